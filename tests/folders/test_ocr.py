"""The text of pictures and scanned pages, by Tesseract and pdftoppm."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tree  # noqa: E402
from test_converters import SYSTEM_PATH, work  # noqa: E402, F401
from test_folders import windrow  # noqa: E402

OCR = '[ocr]\nlanguages = ["eng"]\n'


def png(width=100, height=60):
    def chunk(name, content):
        return (struct.pack(">I", len(content)) + name + content
                + struct.pack(">I", zlib.crc32(name + content)))
    rows = b"".join(b"\0" + b"\xff" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def scan(pages=1, attachment=None):
    """A PDF whose pages are pictures."""
    kids = " ".join(f"{4 + number} 0 R" for number in range(pages))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>",
               "<< /Length 33 >>\nstream\nBI /W 1 /H 1 /BPC 8 /CS /G ID x EI\nendstream"]
    objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 3 0 R >>"] * pages
    text = "%PDF-1.4\n" + "".join(f"{number} 0 obj\n{content}\nendobj\n"
                                   for number, content in enumerate(objects, 1))
    return text + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n%%EOF\n"


@pytest.fixture
def programs(work):  # noqa: F811
    """Fake programs: tesseract prints the number of its call, pdftoppm renders two pages."""
    work.script("tesseract", """#!/bin/sh
[ "$2 $3 $4" = "stdout -l eng" ] || { echo "arguments: $*" >&2; exit 9; }
[ -r "$1" ] || { echo "$1 is not readable" >&2; exit 8; }
case "$(head -c 20 "$1")" in
*slow*) sleep 1000 ;;
*broken*) echo "Image too small" >&2; exit 1 ;;
page*) echo "recognizedword $(cat "$1")" ;;
*) echo "recognizedword picture" ;;
esac
""")
    work.script("pdftoppm", """#!/bin/sh
for last; do before=$file; file=$last; done
page=$(echo "$*" | sed 's/.*-f \\([0-9]*\\).*/\\1/')
[ "$page" -le 2 ] || { echo "Wrong page range" >&2; exit 99; }
[ -r "$before" ] && printf 'page number%s' "$page" > "$last.pgm"
""")
    return f"{work.folder}/bin:{SYSTEM_PATH}"


def test_nothing_is_recognized_unless_asked_for(work, programs):  # noqa: F811
    work.file("a.png", png())
    work.index("", path=programs)
    assert work.found("recognizedword") == [] and work.found("kind:image") == ["a.png"]


def test_pictures_and_scans_are_recognized(work, programs):  # noqa: F811
    work.file("a.png", png())
    work.file("icon.png", png(16, 16))
    work.file("scan.pdf", scan())
    work.file("printed.pdf", tree.pdf("printedword"))
    work.file("box.zip", tree.archive({"b.png": png(), "in/scan.pdf": scan()}))
    work.index(OCR, path=programs)
    assert sorted(work.found("recognizedword")) == [
        "a.png", "box.zip/!/b.png", "box.zip/!/in/scan.pdf", "scan.pdf"], work.failures()
    assert sorted(work.found("number1 number2")) == ["box.zip/!/in/scan.pdf", "scan.pdf"]
    assert work.found("printedword") == ["printed.pdf"]
    assert work.failures() == "" or "scan.pdf" not in work.failures()


def test_pages_beyond_the_limit_are_cut(work, programs):  # noqa: F811
    work.file("scan.pdf", scan())
    work.index(OCR + "pages = 1\n", path=programs)
    assert work.found("number1") == ["scan.pdf"] and work.found("number2") == []
    assert work.document("number1").get("truncated", True)


def test_recognition_is_asked_for_later(work, programs):  # noqa: F811
    work.file("a.png", png())
    work.file("scan.pdf", scan())
    work.file("other.txt")
    work.index("", path=programs)
    assert "scan.pdf" in work.failures()
    assert "2 changed" in work.index(OCR, path=programs)
    assert sorted(work.found("recognizedword")) == ["a.png", "scan.pdf"]
    assert "2 changed" in work.index("", path=programs)
    assert work.found("recognizedword") == [] and "scan.pdf" in work.failures()


def test_missing_programs_are_reported(work):  # noqa: F811
    (work.folder / "none").mkdir()
    work.file("a.png", png())
    work.file("scan.pdf", scan())
    work.index(OCR, path=str(work.folder / "none"))
    assert work.status()["missing_converters"] == {
        "missing converter tesseract for image/*": 1,
        "missing converter pdftoppm for application/pdf": 1}
    assert work.found("kind:image") == ["a.png"]


def test_a_picture_that_cannot_be_recognized_is_stored(work, programs):  # noqa: F811
    work.script("tesseract", "#!/bin/sh\ncase $1 in *slow*) sleep 1000;; esac\necho odd >&2\nexit 1\n")
    work.file("broken.png", png())
    work.file("slow.png", png())
    work.file("other.txt", "unharmed")
    work.index(OCR + "timeout = 1\n", path=programs)
    failures = work.failures()
    assert "tesseract: it ended with code 1: odd" in failures
    assert "tesseract: it took longer than 1 s and was killed" in failures
    assert sorted(work.found("kind:image")) == ["broken.png", "slow.png"]
    assert work.found("unharmed") == ["other.txt"]


@pytest.mark.skipif(not shutil.which("tesseract") or not shutil.which("pdftoppm"),
                    reason="tesseract or pdftoppm is not installed")
def test_real_programs_read_a_real_page(work):  # noqa: F811
    known = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True).stdout.split()
    if "eng" not in known:
        pytest.skip("tesseract has no English")
    source = work.folder / "text.pdf"
    source.write_bytes(tree.pdf("The quick marmalade fox jumps"))
    subprocess.run(["pdftoppm", "-r", "150", "-png", "-singlefile", source, work.folder / "files/page"],
                   check=True)
    jpeg = work.folder / "page.jpg"
    subprocess.run(["pdftoppm", "-r", "150", "-jpeg", "-singlefile", source, jpeg.with_suffix("")],
                   check=True)
    work.file("scan.pdf", picture_pdf(jpeg.read_bytes()))
    work.index(OCR)
    assert sorted(work.found("quick marmalade fox")) == ["page.png", "scan.pdf"], work.failures()
    shown = windrow("search", "marmalade", "--json", "--data", work.folder / "data").stdout
    assert {json.loads(line)["kind"] for line in shown.splitlines()} == {"image", "pdf"}


def picture_pdf(jpeg):
    """A PDF with one page that is a JPEG of US Letter at 150 dpi."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
               b"/Resources << /XObject << /I 5 0 R >> >> >>",
               b"<< /Length 28 >>\nstream\nq 612 0 0 792 0 0 cm /I Do Q\nendstream",
               b"<< /Type /XObject /Subtype /Image /Width 1275 /Height 1650 /BitsPerComponent 8 "
               b"/ColorSpace /DeviceRGB /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream"
               % (len(jpeg), jpeg)]
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % it for it in offsets)
    return body + table + b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(body)
