"""Files without text are found by their names, and do not come before documents with text."""

import io
import json
import os
import pathlib
import sys
import zipfile

import pytest

from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_changes import status, summary  # noqa: E402
from test_folders import index, search, windrow  # noqa: E402
from tree import pdf  # noqa: E402

PROGRAM = b"\x7fELF" + bytes(5000)


def archive(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as written:
        for name, content in members:
            written.writestr(name, content)
    return out.getvalue()


FILES = {
    "quartz.bin": bytes(range(256)) * 8,
    "granite report.pdf": b"%PDF-1.4 nothing of it is there",
    "basalt.zip": archive(("in/slate.txt", "a slate roof"), ("in/marble.o", PROGRAM)),
    "hollow.zip": archive(),
    "empty": b"",
    "flint.so.6": PROGRAM,
    "chalk.txt": b"quartz is in the text of this file, and so is report.",
}


@pytest.fixture
def work(tmp_path):
    (tmp_path / "files").mkdir()
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(content)
    index(tmp_path / "files", tmp_path)
    return tmp_path


def found(query, work, *options):
    ended = windrow("search", query, "-l", "--data", work / "data", *options)
    assert ended.returncode in (0, 1), ended.stderr
    prefix = f"{work}/files/"
    return [line.removeprefix(prefix) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_found_by_its_name(work, name):
    assert name in found(f'filename:"{name}"', work)


@pytest.mark.parametrize("query, names", [
    ("filename:quartz*", ["quartz.bin"]),
    ("ext:bin", ["quartz.bin"]),
    ("size:5004 -kind:archive", ["flint.so.6"]),
    ("kind:pdf", ["granite report.pdf"]),
    ("mime:application/pdf", ["granite report.pdf"]),
    ("kind:archive", ["basalt.zip", "hollow.zip"]),
    ("granite", ["granite report.pdf"]),
    ("granite report", ["granite report.pdf"]),
    ("marble", ["basalt.zip/!/in/marble.o"]),
    ("filename:marble.o", ["basalt.zip/!/in/marble.o"]),
    ("dir:files date:today kind:other ext:6", ["flint.so.6"]),
])
def test_queries_find_files_without_text(work, query, names):
    assert sorted(found(query, work)) == names


def test_texts_come_first(work):
    for number in range(20):
        (work / f"files/quartz{number}.o").write_bytes(PROGRAM)
        (work / f"files/quartz {number}.o").write_bytes(PROGRAM)
        (work / f"files/{number}.txt").write_text(f"number {number} is of quartz, a mineral")
    index(work / "files", work)
    names = found("quartz", work, "--limit", "100")
    texts = [name for name in names if name.endswith(".txt")]
    assert len(texts) == 21 and len(names) == 42, names
    assert names[:21] == texts


def test_results_say_why_there_is_no_text(work):
    assert "(damaged PDF" in search("granite", work)
    assert "(the file has no text of its own; its members are documents)" in search("basalt", work)
    ended = windrow("search", "flint", "--json", "--data", work / "data")
    result = json.loads(ended.stdout.splitlines()[0])
    assert result["title"] == "flint.so.6" and "ELF program" in result["unread"]
    shown = windrow("search", "flint", "--format", "{title} {kind}", "--data", work / "data")
    assert shown.stdout == "flint.so.6 other\n"


def test_counts_are_of_documents_with_text(work):
    shown = status(work)
    assert shown["documents"] == {"text": 3}, shown
    assert shown["names_only"] == 6
    assert shown["skipped"] == {"ELF program": 2, "binary data": 1}
    assert shown["failures"] == {"malformed": 1}
    output = index(work / "files", work)
    assert output.startswith("0 files") and summary(output)["unchanged"] == len(FILES)


def test_files_without_text_change_and_move(work):
    files = work / "files"
    (files / "deep").mkdir()
    for name in FILES:
        os.rename(files / name, files / "deep" / name)
    output = index(files, work)
    assert summary(output)["moved"] == len(FILES) and output.startswith("0 files"), output
    assert found("quartz.bin", work) == ["deep/quartz.bin"]
    assert status(work)["skipped"] == {"ELF program": 2, "binary data": 1}
    listed = windrow("failures", "--data", work / "data")
    assert "deep/granite report.pdf: damaged PDF" in listed.stdout
    assert index(files, work).startswith("0 files")
    (files / "deep/quartz.bin").write_text("obsidian")
    (files / "deep/flint.so.6").unlink()
    index(files, work)
    assert found("obsidian", work) == ["deep/quartz.bin"]
    assert found("flint", work) == []


def test_a_folder_of_an_older_version_gets_the_names(work):
    """Files that were skipped or failed used to have no documents."""
    with Server(work) as server:
        server.client().files.documents.delete_many({"unread": {"$exists": True}, "inner": None})
    assert found("flint", work) == []
    again = summary(index(work / "files", work))
    assert again["changed"] == 3, again
    assert found("flint", work) == ["flint.so.6"]
