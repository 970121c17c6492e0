"""Creates folders with files of many formats, some of them broken or hostile."""

import gzip
import io
import os
import zipfile
import zlib

MAIL = """From {mark}@example.org Thu Jan  1 00:00:00 2026
From: {mark}@example.org
To: grace@example.org
Subject: {subject}
Date: Thu, 01 Jan 2026 00:00:00 +0000
Message-ID: <{mark}@example.org>

{body}

"""

# name → (content, a word that occurs only in this file)
VALID_FILES = {
    "plain.txt": ("The zephyrfish swims.", "zephyrfish"),
    "latin.txt": ("Der Quittenbrösel schmeckt.".encode("latin-1"), "Quittenbrösel"),
    "utf16.txt": ("\ufeffA quokkaberry grows.".encode("utf-16-le"), "quokkaberry"),
    "notes.md": ("# Title\n\nSome *emberlark* [link](http://x).", "emberlark"),
    "page.html": ("<html><head><title>Page</title><script>var hiddenword=1</script></head>"
                  "<body><p>A &auml; moorwhistle</p></body></html>", "moorwhistle"),
    "code.rs": ("fn main() { println!(\"tindersocket\"); }", "tindersocket"),
    "deep/er/readme": ("A gravelmoth lives below.", "gravelmoth"),
    "packed.txt.gz": (gzip.compress(b"A packed wickerowl."), "wickerowl"),
    "letter.eml": (MAIL.format(mark="ada", subject="Bread", body="The saltplume rises.")
                   .split("\n", 1)[1], "saltplume"),
    "mail.mbox": (MAIL.format(mark="ada", subject="One", body="A marblefinch.")
                  + MAIL.format(mark="bob", subject="Two", body="A copperhare."), "copperhare"),
}


def pdf(text, loop=False):
    """Returns a PDF of one page. If `loop` is set, its page tree contains itself."""
    content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
    kids = "[2 0 R 3 0 R]" if loop else "[3 0 R]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids {kids} /Count 1 >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % offset for offset in offsets))
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
              % (len(objects) + 1, start))
    return out.getvalue()


def archive(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, content in members.items():
            whole.writestr(name, content)
    return out.getvalue()


def bomb():
    """Returns a zip archive of 400 KB that decompresses to 400 MB."""
    return archive({f"zeros{number}.txt": b"0" * 100_000_000 for number in range(4)})


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_valid_files(folder):
    for name, (content, _) in VALID_FILES.items():
        write(folder, name, content)
    write(folder, "paper.pdf", pdf("A printed lanternvole"))
    write(folder, "box.zip", archive({"in/side.txt": "An enclosed thistlecrab.",
                                      "page.html": "<p>A boxed rivetfern</p>"}))


def write_broken_files(folder):
    write(folder, "bomb.zip", bomb())
    write(folder, "bomb.gz", gzip.compress(b"0" * 500_000_000, 9))
    write(folder, "loop.pdf", pdf("round and round", loop=True))
    write(folder, "cut.pdf", pdf("never seen")[:200])
    write(folder, "cut.zip", archive({"a.txt": "lost" * 1000})[:60])
    write(folder, "cut.gz", gzip.compress(os.urandom(5_000))[:100])
    write(folder, "nested.html", "<div>" * 200_000 + "deepword")
    write(folder, "binary.bin", bytes(range(256)) * 100)
    write(folder, "empty.txt", b"")
    write(folder, "stream.pdf", b"%PDF-1.4\n1 0 obj << /Filter /FlateDecode /Length 10 >>\nstream\n"
          + zlib.compress(b"x" * 10_000_000) + b"\nendstream endobj")
    os.symlink(folder, folder / "circle")
    os.symlink(folder / "nowhere", folder / "dangling")
    os.mkfifo(folder / "pipe")
    bad_name = os.fsencode(folder) + b"/not-\xff-utf8.txt"
    with open(bad_name, "wb") as file:
        file.write(b"A strange fernotter.")
