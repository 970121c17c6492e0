#!/usr/bin/env bash
# Compiles the baselines into bench/out. One whose library cannot be had is left out, and the
# bench says so and goes on.
set -uo pipefail
cd "$(dirname "$0")"
mkdir -p out

newer() { # is the result newer than its source?
    [ -x "out/$1" ] && [ "out/$1" -nt "rivals/$2" ]
}

has_wiredtiger() {
    echo '#include <wiredtiger.h>' | cc -E -x c - >/dev/null 2>&1
}

if ! newer stable_sort stable_sort.cpp; then
    g++ -O2 -Wall -Wextra -o out/stable_sort rivals/stable_sort.cpp || exit 1
fi

if newer wiredtiger wiredtiger.c; then
    exit 0
fi
if ! has_wiredtiger && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'installing libwiredtiger-dev'
    { apt-get update -qq && apt-get install -y -qq libwiredtiger-dev; } >/dev/null 2>&1
fi
if has_wiredtiger; then
    cc -O2 -Wall -Wextra -o out/wiredtiger rivals/wiredtiger.c -lwiredtiger -lpthread || exit 1
else
    echo 'libwiredtiger-dev is not there: w2 and w8 run without their baseline'
fi
