#!/usr/bin/env python3
"""Makes the pictures of the page in docs/images: `make screenshots`.

The files that are searched are those of this repository: its documentation, its code, and the files of
other programs that its tests read.
"""

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "page")]

import chromium  # noqa: E402
from indexed import MAIL, index  # noqa: E402
from page_client import PageServer  # noqa: E402

OUT = ROOT / "docs" / "images"
# A short path looks better than that of a temporary folder.
HOME = Path("/tmp/ada")

PICTURES = [
    {"name": "page-search", "path": "/search?q=snapshot+reads"},
    {"name": "page-preview", "path": "/search?q=write+concern", "click": "a.open"},
    {"name": "page-facets", "path": "/search?q=index&kind=markdown&view=table", "scheme": "dark"},
    {"name": "page-source", "path": "/search?q=kind%3Asource+tombstone", "scheme": "dark", "click": "a.open"},
    {"name": "page-folders", "path": "/folders"},
    {"name": "page-narrow", "path": "/search?q=snapshot", "width": 390},
]


def main():
    shutil.rmtree(HOME, ignore_errors=True)
    try:
        documents = HOME / "Documents"
        shutil.copytree(ROOT / "docs", documents / "windrow")
        for page in ROOT.glob("*.md"):
            shutil.copy2(page, documents / "windrow")
        shutil.copytree(ROOT / "crates" / "extract" / "tests" / "fixtures", documents / "formats")
        shutil.copytree(ROOT / "crates", HOME / "Projects",
                        ignore=lambda folder, names: [name for name in names if name in ("fixtures", "corpus")])
        (HOME / "Mail").mkdir()
        (HOME / "Mail" / "letter.eml").write_text(MAIL)
        with tempfile.TemporaryDirectory() as work:
            data = Path(work) / "data"
            data.mkdir()
            index(data, documents, HOME / "Projects", HOME / "Mail")
            with PageServer(work) as server:
                chromium.run("screenshots", server, OUT, pictures=PICTURES)
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
