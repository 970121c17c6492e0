"""The corpus of W7 is made of the text of documentation."""

import gzip
import subprocess
import sys

from windrow_server import ROOT

PAGE = """<html><head><title>not this</title><style>p { color: red }</style></head>
<body><nav>Next Up Previous</nav><!-- nor this --><p>Na&iuml;ve <em>re</em>counting of&nbsp;words:
a &lt; b.</p><script>var not = "this";</script>%s</body></html>"""
LONG = "one two three four five " * 30


def corpus(folder, limit, into):
    command = [sys.executable, str(ROOT / "bench" / "corpus_text.py"), str(folder),
               str(into / "00-package"), str(limit)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return int(ended.stdout), {path.name: path.read_text() for path in into.iterdir()}


def test_html_is_reduced_to_its_text(tmp_path):
    tree, into = tmp_path / "tree", tmp_path / "into"
    tree.mkdir(), into.mkdir()
    (tree / "page.html").write_text(PAGE % LONG)
    (tree / "copy.html").write_text(PAGE % LONG)
    (tree / "packed.txt.gz").write_bytes(gzip.compress(("packed " + LONG).encode()))
    (tree / "picture.png").write_bytes(b"\x89PNG" + LONG.encode())
    (tree / "broken.txt").write_bytes(b"\xff\xfe" + LONG.encode())
    (tree / "short.txt").write_text("short")
    count, files = corpus(tree, 10**9, into)
    page = "Naïve recounting of words:\na < b. " + LONG.strip() + "\n"
    assert files == {"00-package-0000.txt": page + "packed " + LONG.strip() + "\n"}
    assert count == len(files["00-package-0000.txt"].encode())


def test_long_texts_are_split(tmp_path):
    """Regression: a dictionary of 27 MB was one file, which the workload skipped as too long."""
    tree, into = tmp_path / "tree", tmp_path / "into"
    tree.mkdir(), into.mkdir()
    (tree / "long.txt").write_text((LONG + "\n") * 10_000)
    count, files = corpus(tree, 10**9, into)
    assert [len(text) // 10**6 for _, text in sorted(files.items())] == [2, 2, 2, 1]
    assert count == sum(len(text) for text in files.values())


def test_it_stops_after_enough_bytes(tmp_path):
    tree, into = tmp_path / "tree", tmp_path / "into"
    tree.mkdir(), into.mkdir()
    (tree / "a.txt").write_text((LONG + "\n") * 4_000)
    (tree / "b.txt").write_text((LONG + "\n") * 10_000)
    count, files = corpus(tree, 2_500_000, into)
    assert len(files) == 2 and count == sum(len(text) for text in files.values())
    assert 4_000_000 <= count < 4_001_000
