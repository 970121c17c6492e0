#!/usr/bin/env bash
# Makes the Python that the tests run in: .cache/venv with what tests/requirements.txt names.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.cache/venv
rm -rf "$venv"
mkdir -p .cache
if ! python3 -m venv "$venv" 2>/dev/null; then
    # Debian keeps the part of venv that installs pip in a package of its own.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    fi
    python3 -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
touch "$venv/ready"
