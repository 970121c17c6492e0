#!/usr/bin/env python3
"""Writes the text of a folder of documentation into files of 2 MB, for W7.

HTML is reduced to its text without markup, scripts, styles and navigation. Compressed files are
unpacked. Files with the same text are taken once. Arguments: the folder of the documentation, the
beginning of the paths of the new files, and the number of bytes after which it stops. Prints the
number of bytes.
"""

import gzip
import hashlib
import html
import re
import sys
from pathlib import Path

PART_BYTES = 2_000_000
FILE_BYTES_MAX = 16_000_000
# Shorter texts are indexes, redirections and version numbers.
TEXT_BYTES_MIN = 500
HTML = {".html", ".htm", ".xhtml"}
PLAIN = {".txt", ".text", ".rst", ".md", ".info", ".dict", ".dz", ".org", ".pod"}
# Lists of names and highlighted source code, as documentation generators write them.
GENERATED = re.compile(r"genindex|searchindex|_source\.html|doc-index|-index\.html|/src/|/_sources/")
UNSEEN = re.compile(r"<(script|style|head|nav|svg)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
TAG = re.compile(r"<[^>]*>")
# Tags inside a word, which do not separate it.
INLINE = re.compile(r"</?(a|abbr|b|code|em|i|kbd|mark|q|samp|small|span|strong|sub|sup|tt|var|wbr)\b[^>]*>",
                    re.I)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def kind(path):
    """Returns the suffix without that of compression."""
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def text_of(path):
    """Returns the text of a file, or None if it is not text."""
    if path.stat().st_size > FILE_BYTES_MAX or GENERATED.search(str(path)):
        return None
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if kind(path) in HTML:
        text = html.unescape(TAG.sub(" ", INLINE.sub("", UNSEEN.sub(" ", text))))
    return CONTROL.sub(" ", text)


def texts(folder):
    """Yields the text of each file, in the order of their paths."""
    seen = set()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or kind(path) not in HTML | PLAIN:
            continue
        text = text_of(path)
        if text is None or len(text) < TEXT_BYTES_MIN:
            continue
        digest = hashlib.sha256(" ".join(text.split()).encode()).digest()
        if digest not in seen:
            seen.add(digest)
            yield text


def lines(folder):
    """Yields the lines of all texts, without indentation and empty lines."""
    for text in texts(folder):
        for line in text.splitlines():
            words = line.split()
            if words:
                yield " ".join(words) + "\n"


def write_parts(folder, beginning, limit):
    """Writes the lines. Returns the number of bytes."""
    part, part_bytes, written, number = [], 0, 0, 0
    for line in lines(folder):
        part.append(line)
        part_bytes += len(line.encode())
        if part_bytes >= PART_BYTES:
            Path(f"{beginning}-{number:04}.txt").write_text("".join(part))
            written, number = written + part_bytes, number + 1
            part, part_bytes = [], 0
        if written >= limit:
            return written
    if part:
        Path(f"{beginning}-{number:04}.txt").write_text("".join(part))
    return written + part_bytes


def main():
    folder, beginning, limit = sys.argv[1:]
    print(write_parts(Path(folder), beginning, int(limit)))


if __name__ == "__main__":
    main()
