"""Further runs of `windrow index` after files were changed, moved or deleted."""

import json
import os
import shutil
import subprocess
import sys
import pathlib

import pytest

from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import index, search, windrow  # noqa: E402


def summary(output):
    """Returns the counts in the second line of the output, by name."""
    line = next(line for line in output.splitlines() if " unchanged, " in line)
    counts = (part.strip().split(" ") for part in line.split(","))
    return {name: int(count) for count, name in counts}


def status(work):
    ended = windrow("status", "--data", work / "data", "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def work(tmp_path):
    """Three text files in two folders."""
    for name, text in [("a.txt", "anemone"), ("b.txt", "bluebell"), ("in/c.txt", "crocus")]:
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert summary(index(tmp_path / "files", tmp_path))["new"] == 3
    return tmp_path


def test_a_file_replaced_with_equal_size_and_time_is_noticed(work):
    path = work / "files/a.txt"
    before = path.stat()
    other = work / "other"
    other.write_text("campion")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert other.stat().st_size == before.st_size
    os.replace(other, path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert summary(index(work / "files", work))["changed"] == 1
    assert "a.txt" in search("campion", work)
    assert search("anemone", work) == ""


def test_moved_files_keep_their_documents(work):
    (work / "files/in").rename(work / "files/out")
    (work / "files/a.txt").rename(work / "files/out/z.txt")
    output = index(work / "files", work)
    assert summary(output) == {"new": 0, "changed": 0, "moved": 2, "unchanged": 1, "gone": 0}
    assert output.startswith("0 files")
    assert "out/c.txt" in search("crocus dir:out", work)
    assert "z.txt" in search("anemone filename:z.txt ext:txt", work)
    assert search("dir:in", work) == ""
    assert summary(index(work / "files", work))["unchanged"] == 3


def test_attachments_of_a_moved_mailbox_name_their_mail(tmp_path):
    mail = ("From a@x Mon Jan  1 00:00:00 2024\nFrom: a@x\nSubject: s\nMessage-ID: <1@x>\n"
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n--b\n"
            "Content-Type: text/plain\nContent-Disposition: attachment; filename=n.txt\n\n"
            "daffodil\n--b--\n")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "box").write_text(mail)
    index(folder, tmp_path)
    (folder / "box").rename(folder / "inbox")
    assert summary(index(folder, tmp_path))["moved"] == 1
    with Server(tmp_path) as server:
        documents = server.client().files.documents
        attached = documents.find_one({"filename": "n.txt"})
        assert documents.find_one({"_id": attached["attached_to"]["_id"]})["subject"] == "s"


def test_a_missing_or_empty_folder_keeps_its_documents(work):
    (work / "files").rename(work / "away")
    output = index(work / "files", work)
    assert "is missing or empty; the documents of its 3 files are kept" in output
    assert "a.txt" in search("anemone", work)
    (work / "files").mkdir()
    assert "documents of its 3 files are kept" in index(work / "files", work)
    (work / "files").rmdir()
    (work / "away").rename(work / "files")
    assert summary(index(work / "files", work))["gone"] == 0
    assert status(work)["failures"] == {}


def test_a_folder_that_never_existed_is_an_error(work):
    ended = windrow("index", work / "nowhere", "--data", work / "data")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nowhere" in ended.stderr


def test_folders_are_removed_on_request(work):
    shutil.rmtree(work / "files/in")
    ended = windrow("index", "--remove", work / "files/in", "--data", work / "data")
    assert ended.returncode == 0 and "1 files removed" in ended.stdout
    assert search("crocus", work) == "" and search("anemone", work) != ""
    again = windrow("index", "--remove", work / "files/in", "--data", work / "data")
    assert again.returncode == 1 and "nothing" in again.stderr


def test_patterns_that_change_remove_and_add_documents(work):
    data = ("--data", work / "data")
    ended = windrow("index", work / "files", *data, "--skip", "in", "--include", "a*")
    assert summary(ended.stdout)["gone"] == 2
    assert search("bluebell", work) == ""
    assert summary(index(work / "files", work))["new"] == 2


def test_files_without_text_have_a_row_and_are_not_read_again(work):
    program = work / "files/program"
    program.write_bytes(b"\x7fELF" + bytes(5000))
    subprocess.run(["zip", "-q", "-j", work / "files/box.zip", program, work / "files/a.txt"],
                   check=True)
    assert summary(index(work / "files", work))["new"] == 2
    assert index(work / "files", work).startswith("0 files")
    shown = status(work)
    assert shown["skipped"] == {"ELF program": 2}
    listed = windrow("failures", "--skipped", "--data", work / "data")
    assert listed.returncode == 0
    assert [line.split(": ")[0] for line in listed.stdout.splitlines()] == [
        str(work / "files/box.zip/!/program"), str(program)]
    with Server(work) as server:
        row = server.client().files.skipped.find_one({"_id": str(program)})
        assert (row["format"], row["size"]) == ("ELF program", 5004)
        assert row["reason"] and row["modified"] and row["skipped"]
    program.write_text("now a text: foxglove")
    index(work / "files", work)
    assert "program" in search("foxglove", work)
    assert status(work)["skipped"] == {"ELF program": 1}


def test_failures_are_listed_by_class(work):
    (work / "files/bad.zip").write_bytes(b"PK\x03\x04 not a zip")
    index(work / "files", work)
    data = ("--data", work / "data")
    listed = windrow("failures", *data)
    assert listed.returncode == 0 and "bad.zip: damaged zip archive" in listed.stdout
    assert windrow("failures", *data, "--class", "malformed").stdout == listed.stdout
    assert windrow("failures", *data, "--class", "limit").returncode == 1
    assert windrow("failures", *data, "--below", work / "files/in").returncode == 1
    row = json.loads(windrow("failures", *data, "--json").stdout)
    assert row["class"] == "malformed"
    assert windrow("failures", *data, "--class", "odd").returncode == 2
    text = windrow("status", *data).stdout
    for part in ("Documents", "3   text", "1   malformed", "Last run"):
        assert part in text, text


def test_a_long_text_is_indexed_whole_in_parts(work):
    long = work / "files/long.txt"
    line = "filler words of a long file\n"
    long.write_text(line * 700_000 + "the last word is hollyhock\n")
    assert long.stat().st_size > 16 << 20
    index(work / "files", work)
    assert "long.txt" in search("hollyhock filename:long.txt", work)
    with Server(work) as server:
        documents = server.client().files.documents
        parts = list(documents.find({"path": str(long)}, {"text": 0}))
        assert sorted(part.get("inner", "") for part in parts) == ["", "@2", "@3"]
        assert not any(part.get("truncated") for part in parts)
        assert {part["title"] for part in parts} == {"long.txt"}
    long.write_text("short")
    index(work / "files", work)
    assert search("hollyhock", work) == ""
