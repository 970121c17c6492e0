"""Copies inputs between libFuzzer's folders and the saved corpus, crates/fuzz-targets/corpus/TARGET.hex.

    corpus.py unpack TARGET   copies the saved inputs to fuzz/corpus/TARGET
    corpus.py save TARGET     saves a selection of fuzz/corpus/TARGET, after `cargo fuzz cmin`
    corpus.py line FILE       prints an input as a line of the corpus, for one that revealed a bug
"""

import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
BYTES_MAX = 24_000


def corpus_path(target):
    return FUZZ.parent / "crates/fuzz-targets/corpus" / f"{target}.hex"


def unpack(target):
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    lines = corpus_path(target).read_text().splitlines()
    for number, line in enumerate(line for line in lines if not line.startswith("#")):
        (folder / f"saved-{number:04}").write_bytes(bytes.fromhex(line))


def save(target):
    """Inputs with a comment revealed a bug. They are preserved, at the front."""
    lines = corpus_path(target).read_text().splitlines()
    pairs = zip(["", *lines], lines)
    with_comments = [f"{before}\n{line}" for before, line in pairs
                     if before.startswith("#") and not line.startswith("#")]
    paths = (FUZZ / "corpus" / target).iterdir()
    found = sorted({path.read_bytes() for path in paths}, key=lambda content: (len(content), content))
    step = next(step for step in range(1, len(found) + 2)
                if sum(map(len, found[::step])) <= BYTES_MAX)
    selected = [content.hex() for content in found[::step] if content]
    corpus_path(target).write_text("\n".join([*with_comments, *selected]) + "\n")


def line(path):
    print(Path(path).read_bytes().hex())


{"unpack": unpack, "save": save, "line": line}[sys.argv[1]](sys.argv[2])
