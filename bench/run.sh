#!/usr/bin/env bash
# The main job on real input, without a question: a folder becomes searchable documents, then a
# text index is built over the wire on a tenth of W1's documents. Ends by itself.
#
#   bench/run.sh [FOLDER]      default: the machine's documentation, else this repository
set -euo pipefail
cd "$(dirname "$0")/.."
windrow=${WINDROW:-target/release/windrow}
bench=$(dirname "$windrow")/windrow-bench

default_folder() {
    if [ -n "$(find /usr/share/doc -type f -print -quit 2>/dev/null)" ]; then
        echo /usr/share/doc
    else
        pwd
    fi
}

folder=${1:-$(default_folder)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== $folder becomes searchable documents"
"$windrow" index "$folder" --data "$work/data"

for words in 'copyright license' '"configuration file"' 'install -windows'; do
    echo
    echo "== windrow search '$words'"
    "$windrow" search "$words" --data "$work/data"
done

echo
echo '== a text index over the wire'
"$bench" w1 --scale 0.1 --show yes --server "$windrow" --rivals bench/out --folder "$work"
