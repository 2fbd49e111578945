#!/bin/sh
# What the tests need from Debian: a headless browser. Does nothing where it is there already.
set -eu
for browser in chromium-headless-shell chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null 2>&1 && exit 0
done
[ -n "${CASENOTES_TEST_BROWSER:-}" ] && exit 0
wanted="chromium-headless-shell"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -qq --no-install-recommends "$wanted" >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$wanted" >/dev/null; }
else
  echo "The browser tests will skip; to run them: sudo apt-get install $wanted" >&2
fi
