#!/bin/sh
# Installs the dependencies of the page tests into .cache/page, and Chromium on Debian if permitted.
set -e
mkdir -p .cache/page
npm install --silent --no-save --prefix .cache/page playwright-core@1.65.1 axe-core@4.14.1
if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -qq --no-install-recommends chromium >/dev/null ||
        echo 'Chromium cannot be installed; its tests are skipped'
fi
touch .cache/page/ready
