#!/bin/sh
# The browser that the tests of the report run in, from the system's packages. Does
# nothing when one is on the PATH already.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done

if ! command -v apt-get >/dev/null 2>&1; then
    echo "The report's tests need chromium on the PATH: install it with your package manager." >&2
    exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    echo "The report's tests need chromium on the PATH: run 'sudo apt-get install chromium'." >&2
    exit 1
fi

echo "installing chromium (once), for the tests of the report"
export DEBIAN_FRONTEND=noninteractive
# A fresh machine may have no package lists yet.
$as_root apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1 || {
    $as_root apt-get update -qq
    $as_root apt-get install -qq -y --no-install-recommends chromium >/dev/null
}
