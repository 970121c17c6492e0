"""`windrow index` and `windrow search` on valid, broken and hostile files."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from windrow_server import Server, binary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tree  # noqa: E402

MORE = {"lanternvole": "paper.pdf", "thistlecrab": "box.zip", "rivetfern": "box.zip",
        "marblefinch": "mail.mbox"}


def windrow(*arguments, seconds=300, **options):
    return subprocess.run([str(binary()), *map(str, arguments)], capture_output=True,
                          text=True, errors="replace", timeout=seconds, **options)


def index(folder, work):
    ended = windrow("index", folder, "--data", work / "data")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def search(words, work):
    ended = windrow("search", words, "--data", work / "data")
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A folder of valid and broken files, indexed."""
    work = tmp_path_factory.mktemp("folders")
    tree.write_valid_files(work / "files")
    tree.write_broken_files(work / "files")
    began = time.monotonic()
    index(work / "files", work)
    assert time.monotonic() - began < 120
    return work


WORDS = {word: name for name, (_, word) in tree.VALID_FILES.items()} | MORE


@pytest.mark.parametrize("word", WORDS)
def test_every_valid_file_is_found(indexed, word):
    assert WORDS[word] in search(word, indexed)


def test_a_result_shows_the_matching_text(indexed):
    shown = search("zephyrfish", indexed)
    assert "plain.txt" in shown and "swims" in shown


def test_words_of_scripts_and_unknown_words_are_not_found(indexed):
    for word in ("hiddenword", "nosuchwordanywhere"):
        assert str(indexed / "files") not in search(word, indexed)


def test_a_name_can_be_invalid_utf8(indexed):
    assert "utf8.txt" in search("fernotter", indexed)


def test_documents_and_failures_are_stored_in_collections(indexed):
    with Server(indexed) as server:
        files = server.client().files
        documents = {pathlib.PurePath(one["path"]).name for one in files.documents.find()}
        assert {pathlib.PurePath(name).name for name in tree.VALID_FILES} <= documents and {"paper.pdf", "box.zip"} <= documents
        mails = list(files.documents.find({"path": {"$regex": "mail.mbox$"}}))
        assert sorted(one["subject"] for one in mails) == ["One", "Two"]
        page = files.documents.find_one({"path": {"$regex": "page.html$"}})
        assert page["title"] == "Page" and "moorwhistle" in page["text"]
        failures = {pathlib.PurePath(one["path"]).name: one["reason"]
                    for one in files.failures.find()}
        for name in ("bomb.zip", "bomb.gz", "cut.pdf", "cut.zip"):
            assert failures.get(name), f"{name} is not a failure: {failures}"
        found = files.documents.aggregate([
            {"$search": {"text": {"query": "zephyrfish", "path": "text"}}},
            {"$project": {"score": {"$meta": "searchScore"}}}])
        assert [one["score"] > 0 for one in found] == [True]
        # `windrow search` uses the server that has the folder open.
        assert "plain.txt" in search("zephyrfish", indexed)


def test_a_second_call_reads_only_changed_files(tmp_path):
    files = tmp_path / "files"
    for name, text in [("stays", "ironbasil"), ("changes", "oldwillow"), ("goes", "lostpebble")]:
        tree.write(files, f"{name}.txt", f"The {text} is here.")
    index(files, tmp_path)
    tree.write(files, "changes.txt", "Now the newcypress is here.")
    os.utime(files / "changes.txt", (2_000_000_000, 2_000_000_000))
    tree.write(files, "comes.txt", "A freshclover too.")
    (files / "goes.txt").unlink()
    with Server(tmp_path) as server:
        before = server.client().files.documents.find_one({"path": {"$regex": "stays"}})
        server.stop()
    index(files, tmp_path)
    for word, there in [("ironbasil", True), ("oldwillow", False), ("newcypress", True),
                        ("freshclover", True), ("lostpebble", False)]:
        assert (str(files) in search(word, tmp_path)) == there, word
    with Server(tmp_path) as server:
        after = server.client().files.documents.find_one({"path": {"$regex": "stays"}})
    assert after == before


def test_several_folders_and_a_single_file(tmp_path):
    one = tree.write(tmp_path / "one", "a.txt", "A velvetbarge.")
    two = tree.write(tmp_path / "two", "b.txt", "A cobaltspoon.")
    ended = windrow("index", one.parent, two, "--data", tmp_path / "data")
    assert ended.returncode == 0, ended.stderr
    assert "a.txt" in search("velvetbarge", tmp_path)
    assert "b.txt" in search("cobaltspoon", tmp_path)


def test_many_small_files(tmp_path):
    for number in range(3_000):
        tree.write(tmp_path / "files", f"{number % 50}/{number}.txt", f"common token{number}x")
    index(tmp_path / "files", tmp_path)
    assert "2718.txt" in search("token2718x", tmp_path)
    with Server(tmp_path) as server:
        assert server.client().files.documents.count_documents({}) == 3_000


@pytest.mark.parametrize("arguments, expected", [
    (["index"], "FOLDER"), (["index", "/no/such/folder", "--data", "{data}"], "/no/such/folder"),
    (["search", "x"], "--data"), (["nonsense"], "nonsense"), (["serve"], "--data"),
    (["serve", "--data", "{data}", "--listen", "nowhere"], "nowhere"),
    (["serve", "--data", "{data}", "--memory", "much"], "much"),
])
def test_an_invalid_command_line_is_reported(tmp_path, arguments, expected):
    arguments = [one.format(data=tmp_path / "data") for one in arguments]
    ended = windrow(*arguments, seconds=30)
    assert ended.returncode not in (0, 101) and expected in ended.stderr, ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["index", "--help"],
                                       ["search", "--help"]])
def test_help_has_an_example(arguments):
    ended = windrow(*arguments, seconds=30)
    assert ended.returncode == 0 and "windrow" in ended.stdout
    assert "Example" in ended.stdout or "example" in ended.stdout


def test_the_version():
    ended = windrow("--version", seconds=30)
    assert ended.returncode == 0 and ended.stdout.startswith("windrow ")
