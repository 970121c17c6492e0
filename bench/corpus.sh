#!/usr/bin/env bash
# Creates the corpus of W7 in bench/out/corpus: the plain text of Debian's documentation packages, in
# English for the most part, until it has 320 MB. It needs Debian and its package
# registry. Nothing is installed. A complete corpus is kept.
set -uo pipefail
cd "$(dirname "$0")"
CORPUS=$PWD/out/corpus
BYTES_MAX=320000000
# No single subject dominates the corpus.
PACKAGE_BYTES_MAX=24000000
# Prose and reference alternate, so that a part of the corpus resembles the whole. If a
# release lacks a package, the next one is taken.
PACKAGES=(
    linux-doc-6.1 anarchism rust-doc postgresql-doc-15 git-doc qtbase5-doc-html perl-doc
    python3.11-doc apache2-doc dict-wn libboost1.81-doc sqlite3-doc vim-doc gap-doc nodejs-doc
    python-django-doc erlang-doc debian-policy llvm-15-doc octave-doc python-sqlalchemy-doc
    libstdc++-12-doc libreoffice-help-en-us python-scipy-doc postfix-doc maxima-doc cmake-doc
    python-sklearn-doc exim4-doc-html bind9-doc python-pandas-doc zsh-doc gnuplot-doc
    python-sympy-doc grass-doc developers-reference clang-15-doc libglib2.0-doc libgtk-4-doc
    debian-reference-en dict-jargon r-doc-html sphinx-doc gettext-doc sbcl-doc lilypond-doc-html
    ghc-doc openjdk-17-doc
)

if [ -e "$CORPUS/complete" ]; then
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$CORPUS"
mkdir -p "$CORPUS"
if [ "$(id -u)" = 0 ]; then
    apt-get -qq update || exit 1
fi
bytes=0
number=0
for package in "${PACKAGES[@]}"; do
    [ "$bytes" -lt "$BYTES_MAX" ] || break
    # apt warns that it downloads as root.
    if ! (cd "$work" && apt-get -qq download "$package") 2>/dev/null; then
        echo "$package is not available: the corpus goes without it"
        continue
    fi
    dpkg-deb -x "$work/$package"_*.deb "$work/tree" || exit 1
    beginning=$CORPUS/$(printf '%02d' "$number")-$package
    added=$(python3 corpus_text.py "$work/tree" "$beginning" "$PACKAGE_BYTES_MAX") || exit 1
    bytes=$((bytes + added))
    number=$((number + 1))
    echo "$package: $added bytes, $bytes in all"
    rm -rf "${work:?}"/*
done
if [ "$bytes" -lt "$BYTES_MAX" ]; then
    echo "the corpus has only $bytes bytes"
fi
touch "$CORPUS/complete"
