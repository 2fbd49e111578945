#!/bin/sh
# Two questions in one session, and the trace of the first run, by its runId: another run may be the latest by then.
#   demo/demo.sh [URL]          CASENOTES_API_KEY=... where the service wants a key
set -eu
url=${1:-http://127.0.0.1:9900}

api() { # api METHOD PATH [BODY]
  set -- "$@" ""
  curl -sS --fail-with-body -X "$1" ${CASENOTES_API_KEY:+-H "Authorization: Bearer $CASENOTES_API_KEY"} \
    -H 'Content-Type: application/json' ${3:+--data "$3"} "$url$2"
}
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; } # field NAME <JSON

first=$(api POST /api/chat '{"question":"Why is checkout slow?"}')
session=$(echo "$first" | field sessionId)
run=$(echo "$first" | field runId)
second=$(api POST /api/chat "{\"sessionId\":\"$session\",\"question\":\"What changed in payment?\"}")

# Ids that the service made need no percent-encoding; your own may.
echo "session  $session"
echo "run 1    $run"
echo "run 2    $(echo "$second" | field runId)"
trace=$(api GET "/api/diagnosis/$session/trace?runId=$run")
echo "query    $(echo "$trace" | field query)"
api POST /api/feedback "{\"sessionId\":\"$session\",\"runId\":\"$run\",\"feedback\":\"useful\"}" >/dev/null
echo "page     $url/trace?sessionId=$session&runId=$run"

echo "the alerts, as a stream; its first event carries the ids:"
report=$(api POST /api/ai_ops | sed -n 's/^data: //p' | sed -n 1p)
session=$(echo "$report" | field sessionId)
run=$(echo "$report" | field runId)
api GET "/api/diagnosis/$session/trace?runId=$run" | field agentFlow
echo "page     $url/trace?sessionId=$session&runId=$run"
