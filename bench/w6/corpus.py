#!/usr/bin/env python3
"""Makes the folders of W6 in bench/out/w6/files, a folder for each kind of file.

html, pdf, text and source are real files of Debian's packages, which are downloaded and unpacked, not
installed. mail and office are made of their texts: mailboxes by Python's `email`, documents as the
smallest files of Office Open XML and OpenDocument that hold a text. mixed has links to every sixth file of
each other kind. A complete folder is kept.
"""

import email.message
import email.utils
import mailbox
import os
import subprocess
import sys
import tempfile
import zipfile
from html import escape
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "out" / "w6" / "files"
PACKAGES = {
    "html": ["python3.11-doc", "postgresql-doc-15", "git-doc", "apache2-doc", "libstdc++-12-doc",
             "rust-doc", "qtbase5-doc-html"],
    "pdf": ["r-doc-pdf", "asymptote-doc", "graphviz-doc", "gnuplot-doc", "octave-doc", "maxima-doc",
            "lilypond-doc-pdf", "fftw3-doc", "texlive-latex-base-doc", "texlive-pictures-doc"],
    "text": ["linux-doc-6.1", "vim-doc", "anarchism", "doc-rfc-std", "perl-doc", "nodejs-doc"],
    "source": ["libpython3.11-stdlib", "python3-django", "rust-src", "golang-1.19-src"],
}
SUFFIXES = {
    "html": {".html", ".htm"},
    "pdf": {".pdf"},
    "text": {".txt", ".rst", ".md", ".pod", ".text"},
    "source": {".py", ".rs", ".go", ".c", ".h"},
}
# About the number of bytes of each kind.
BYTES_MAX = {"html": 150e6, "pdf": 100e6, "text": 80e6, "source": 90e6, "mail": 60e6, "office": 20e6}
TEXT_BYTES_MIN, TEXT_BYTES_MAX = 400, 100_000
MIXED_STEP = 6


def packages(names, work):
    """Unpacks the packages that the release has, one after the other."""
    for name in names:
        done = subprocess.run(["apt-get", "-qq", "download", name], cwd=work,
                              stderr=subprocess.DEVNULL)
        files = list(work.glob(f"{name}_*.deb"))
        if done.returncode or not files:
            print(f"{name} is not available: W6 goes without it", file=sys.stderr)
            continue
        tree = work / name
        subprocess.run(["dpkg-deb", "-x", files[0], tree], check=True)
        files[0].unlink()
        yield name, tree


def copy_files(kind, work):
    """Moves the files of a kind out of their packages."""
    folder, size = OUT / kind, 0
    for name, tree in packages(PACKAGES[kind], work):
        for path in sorted(tree.rglob("*")):
            if path.is_symlink() or not path.is_file() or path.suffix not in SUFFIXES[kind]:
                continue
            if size > BYTES_MAX[kind]:
                return
            size += path.stat().st_size
            target = folder / name / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)


def texts():
    """Yields names and contents of the text files."""
    for path in sorted((OUT / "text").rglob("*")):
        if path.is_file():
            content = path.read_text(errors="replace")[:TEXT_BYTES_MAX]
            if len(content) >= TEXT_BYTES_MIN:
                yield path.stem, content.replace("\0", " ").replace("\f", "\n")


def write_mails():
    """Mailboxes of up to 400 mails. A fifth of the mails has the text as an attachment."""
    size, box, count = 0, None, 0
    for number, (name, content) in enumerate(pieces(texts(), 6_000)):
        if size > BYTES_MAX["mail"]:
            break
        if box is None or count % 400 == 0:
            path = OUT / "mail" / f"{number // 400:04}.mbox"
            path.parent.mkdir(parents=True, exist_ok=True)
            box = mailbox.mbox(path)
        message = email.message.EmailMessage()
        message["From"] = f"Writer {number % 97} <writer{number % 97}@example.org>"
        message["To"] = f"list{number % 7}@example.org"
        message["Subject"] = f"{name} {number}"
        message["Date"] = email.utils.formatdate(1_500_000_000 + number * 977)
        message["Message-ID"] = f"<{number}@example.org>"
        if number % 5 == 0:
            message.set_content("The text is attached.\n")
            message.add_attachment(content, filename=f"{name}.txt")
        else:
            message.set_content(content)
        box.add(message)
        size, count = size + len(content), count + 1
    if box is not None:
        box.flush()


def pieces(all_texts, length):
    for name, content in all_texts:
        for start in range(0, len(content), length):
            yield name, content[start:start + length]


def printable(text):
    return "".join(one if one >= " " else " " for one in text)


WORD = """<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/\
wordprocessingml/2006/main"><w:body>{}</w:body></w:document>"""
TYPES = """<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/\
2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" \
ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override \
PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.\
wordprocessingml.document.main+xml"/></Types>"""
RELATIONS = """<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.\
org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/\
officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"""
OPEN = """<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="urn:oasis:names:tc:\
opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body>\
<office:text>{}</office:text></office:body></office:document-content>"""
MANIFEST = """<?xml version="1.0" encoding="UTF-8"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:\
opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="\
application/vnd.oasis.opendocument.text"/></manifest:manifest>"""


def write_office():
    """Word and OpenDocument files in turn."""
    size = 0
    for number, (name, content) in enumerate(pieces(texts(), 20_000)):
        if size > BYTES_MAX["office"]:
            break
        lines = [escape(printable(line)) for line in content.splitlines()]
        folder = OUT / "office" / f"{number // 200:03}"
        folder.mkdir(parents=True, exist_ok=True)
        is_word = number % 2 == 0
        path = folder / f"{number}-{name[:40]}.{'docx' if is_word else 'odt'}"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            if is_word:
                body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in lines)
                archive.writestr("[Content_Types].xml", TYPES)
                archive.writestr("_rels/.rels", RELATIONS)
                archive.writestr("word/document.xml", WORD.format(body))
            else:
                body = "".join(f"<text:p>{line}</text:p>" for line in lines)
                archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
                archive.writestr("META-INF/manifest.xml", MANIFEST)
                archive.writestr("content.xml", OPEN.format(body))
        size += path.stat().st_size


def link_mixed():
    for kind in [*PACKAGES, "mail", "office"]:
        files = sorted(path for path in (OUT / kind).rglob("*") if path.is_file())
        for path in files[::MIXED_STEP]:
            target = OUT / "mixed" / kind / path.relative_to(OUT / kind)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    makers = {kind: lambda kind=kind: copy_kind(kind) for kind in PACKAGES}
    makers |= {"mail": write_mails, "office": write_office, "mixed": link_mixed}
    for kind, make in makers.items():
        complete = OUT.parent / f"{kind}.complete"
        if complete.exists():
            continue
        subprocess.run(["rm", "-rf", OUT / kind], check=True)
        make()
        complete.touch()
        print(f"{kind}: {sum(1 for path in (OUT / kind).rglob('*') if path.is_file())} files")


def copy_kind(kind):
    with tempfile.TemporaryDirectory(dir=OUT.parent) as work:
        copy_files(kind, Path(work))


def chosen_kinds(parser, names, kinds):
    """Returns the kinds of an option. Ends the program if there is no such kind, or its files are
    missing."""
    chosen = names.split(",")
    for kind in chosen:
        if kind not in kinds:
            parser.error(f"there is no kind {kind!r}; the kinds are {', '.join(kinds)}")
        if not (OUT.parent / f"{kind}.complete").exists():
            sys.exit(f"the files of {kind} are not there; run bench/w6/corpus.py")
    return chosen


if __name__ == "__main__":
    main()
