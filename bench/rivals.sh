#!/usr/bin/env bash
# Compiles the baselines into bench/out. One whose library cannot be had is left out, and the
# bench says so and continues.
set -uo pipefail
cd "$(dirname "$0")"
mkdir -p out

newer() { # is the result newer than its source?
    [ -x "out/$1" ] && [ "out/$1" -nt "rivals/$2" ]
}

has() { # is the header there?
    echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1
}

# One that stands on a library of Debian's: name, header, package, linker options.
on_library() {
    local name=$1 header=$2 package=$3
    shift 3
    if newer "$name" "$name.c"; then
        return
    fi
    if ! has "$header" && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $package"
        { apt-get update -qq && apt-get install -y -qq "$package"; } >/dev/null 2>&1
    fi
    if has "$header"; then
        cc -O2 -Wall -Wextra -o "out/$name" "rivals/$name.c" "$@" || exit 1
    else
        echo "$package is not there: workloads run without $name"
    fi
}

if ! newer stable_sort stable_sort.cpp; then
    g++ -O2 -Wall -Wextra -o out/stable_sort rivals/stable_sort.cpp || exit 1
fi
on_library wiredtiger wiredtiger.h libwiredtiger-dev -lwiredtiger -lpthread
on_library rocksdb rocksdb/c.h librocksdb-dev -lrocksdb

# W9's queries in SQL, for orientation. SQLite comes with Python; DuckDB's package is asked for once.
if command -v python3 >/dev/null && python3 -c 'import sqlite3' 2>/dev/null; then
    install -m 755 rivals/documents_in_sql.py out/sqlite
fi
if [ ! -x out/duckdb ] && python3 -m venv out/duckdb-python >/dev/null 2>&1 &&
    out/duckdb-python/bin/pip install -q 'duckdb==1.1.3' >/dev/null 2>&1; then
    { echo "#!$PWD/out/duckdb-python/bin/python"; tail -n +2 rivals/documents_in_sql.py; } >out/duckdb
    chmod +x out/duckdb
fi
[ -x out/duckdb ] || echo "DuckDB's package is not there: W9 runs without it"
