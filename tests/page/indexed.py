"""Folders of indexed files for tests of the page: ordinary and hostile ones."""

import os
import subprocess
import time
from pathlib import Path

from page_client import PageServer
from windrow_server import binary

MAIL = """From: Ada Lovelace <ada@example.org>
To: grace@example.org
Subject: About the marblefinch
Date: Thu, 01 Jan 2026 00:00:00 +0000
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

The marblefinch sings in the kitchen.
--b
Content-Type: text/plain; name=notes.txt
Content-Disposition: attachment; filename=notes.txt

Notes on the copperhare.
--b--
"""

# name → content
FILES = {
    "kitchen/bread.md": "# Bread\n\nFlour and water make *bread*. Breads are baked.\n\n"
                        "<script>alert(1)</script>\n\n[own](/logout) [out](https://example.org)\n",
    "kitchen/cake.txt": "A cake of flour.\nThe second line has flour, too.\n",
    "kitchen/deep/er/soup.txt": "Soup has no flour in it.\n",
    "code/main.rs": "// flour mill\nfn main() {\n    let flour = \"milled\";\n}\n",
    "mail/letter.eml": MAIL,
    "kitchen/page.html": "<html><head><title>Flour page</title></head><body onload=alert(1)>"
                         "<p onclick='alert(1)'>About <b>flour</b>.</p><img src=x onerror=alert(1)>"
                         "<form action=/logout method=post><button>x</button></form></body></html>",
}
HOSTILE = {
    "hostile/script.txt": "<script>alert('flour')</script><img src=x onerror=alert(1)> flour & \"more\"",
    "hostile/title.html": "<title><script>alert(1)</script>&lt;b&gt;</title><p>flour</p>",
    "hostile/broken.html": "<p><b><table><tr><td>flour <svg><style><img src=x onerror=alert(1)>",
    "hostile/line.txt": "flour " + "x" * 10_000_000 + " flour",
    "hostile/rtl\u202egpj.txt": "\u202eflour reversed\u202c and \u05e9\u05dc\u05d5\u05dd",
    "hostile/\"><img src=x onerror=alert(1)>.txt": "flour in a name",
    "hostile/' onmouseover='alert(1).txt": "flour again",
}


def pdf(*pages):
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for number, text in enumerate(pages):
        content = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"]
    written, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return written + (f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
                      f"startxref\n{len(written)}\n%%EOF\n").encode()


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0"
    "000003010100c9fe92ef0000000049454e44ae426082")


def write_files(folder, files):
    for name, content in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def index(data, *folders, options=()):
    command = [str(binary()), "index", *map(str, folders), "--data", str(data), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class IndexedServer(PageServer):
    """A server with indexed files."""

    def __init__(self, folder, files=None, **arguments):
        self.files = Path(folder) / "files"
        write_files(self.files, FILES | HOSTILE if files is None else files)
        if files is None:
            (self.files / "kitchen" / "picture.png").write_bytes(PNG)
            # A line that is on all pages would be treated as a page header.
            texts = [f"{chr(96 + number % 26) * number} flourmill {chr(97 + number % 25) * 5}" for number in range(1, 31)]
            (self.files / "kitchen" / "book.pdf").write_bytes(pdf(*texts))
            old = time.mktime((2021, 5, 4, 12, 0, 0, 0, 0, 0))
            os.utime(self.files / "kitchen/cake.txt", (old, old))
        (Path(folder) / "data").mkdir()
        index(Path(folder) / "data", self.files)
        super().__init__(folder, **arguments)

    def path(self, name):
        return str(self.files / name)
