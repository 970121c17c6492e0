"""Moves inputs between libFuzzer's folders and the saved ones, crates/hostile/corpus/TARGET.hex.

    corpus.py unpack TARGET   saved inputs into fuzz/corpus/TARGET
    corpus.py keep TARGET     of fuzz/corpus/TARGET, which `cargo fuzz cmin` made small, some of each length
    corpus.py line FILE       an input as the line to save, for one that did harm
"""

import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
BYTES_MAX = 24_000


def saved(target):
    return FUZZ.parent / "crates/hostile/corpus" / f"{target}.hex"


def unpack(target):
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    lines = saved(target).read_text().splitlines()
    for number, line in enumerate(line for line in lines if not line.startswith("#")):
        (folder / f"saved-{number:04}").write_bytes(bytes.fromhex(line))


def keep(target):
    """What did harm stays, with its story, at the front."""
    lines = saved(target).read_text().splitlines()
    pairs = zip(["", *lines], lines)
    told = [f"{before}\n{line}" for before, line in pairs
            if before.startswith("#") and not line.startswith("#")]
    paths = (FUZZ / "corpus" / target).iterdir()
    found = sorted({path.read_bytes() for path in paths}, key=lambda it: (len(it), it))
    step = next(step for step in range(1, len(found) + 2)
                if sum(map(len, found[::step])) <= BYTES_MAX)
    kept = [content.hex() for content in found[::step] if content]
    saved(target).write_text("\n".join([*told, *kept]) + "\n")


def line(path):
    print(Path(path).read_bytes().hex())


{"unpack": unpack, "keep": keep, "line": line}[sys.argv[1]](sys.argv[2])
