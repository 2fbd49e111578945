#!/bin/sh
# What the tests need from Debian, installed where it is missing: a headless browser, pgbouncer, nginx, and Prometheus
# with its Alertmanager and node exporter.
# Starts no service: the tests start what they need, on ports of their own.
set -eu
PATH="$PATH:/usr/sbin"

has() {
  for command in "$@"; do
    command -v "$command" >/dev/null 2>&1 && return 0
  done
  return 1
}

wanted=""
[ -n "${CASENOTES_TEST_BROWSER:-}" ] || has chromium-headless-shell chromium chromium-browser google-chrome ||
  wanted="$wanted chromium-headless-shell"
has pgbouncer || wanted="$wanted pgbouncer"
has nginx || wanted="$wanted nginx-light"
for program in prometheus prometheus-alertmanager prometheus-node-exporter; do
  has "$program" || wanted="$wanted $program"
done
[ -n "$wanted" ] || exit 0

if [ "$(id -u)" != 0 ] || ! has apt-get; then
  echo "Some tests will skip; to run them: sudo apt-get install$wanted" >&2
  exit 0
fi

policy=/usr/sbin/policy-rc.d # exit status 101 keeps a package from starting its service
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends $wanted >/dev/null; }
install 2>/dev/null || { apt-get update -qq && install; }
