"""`windrow index --watch`: changed files are searchable within a second."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from windrow_server import Server, binary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import windrow  # noqa: E402


def wait_for(condition, seconds=20):
    """Waits until the condition holds, and returns how long that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.02)
    return time.monotonic() - began


class Watch:
    """A running `windrow index --watch`."""

    def __init__(self, work, *arguments):
        self.work = work
        command = [binary(), "index", work / "files", "--data", work / "data", "--watch",
                   *arguments]
        self.output = open(work / "output", "w+")
        self.process = subprocess.Popen([str(part) for part in command], stdout=self.output,
                                        stderr=subprocess.STDOUT)
        wait_for(lambda: "unchanged" in self.text())

    def text(self):
        return (self.work / "output").read_text()

    def finds(self, word, name):
        ended = windrow("search", word, "-l", "--data", self.work / "data")
        return name in [os.path.basename(line) for line in ended.stdout.splitlines()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0, self.text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def work(tmp_path):
    (tmp_path / "files/in").mkdir(parents=True)
    (tmp_path / "files/a.txt").write_text("anemone")
    return tmp_path


def test_changes_are_found_while_it_runs(work):
    files = work / "files"
    with Watch(work, "--skip", "skipped") as watch:
        assert watch.finds("anemone", "a.txt")
        (files / "b.txt").write_text("bluebell")
        wait_for(lambda: watch.finds("bluebell", "b.txt"))
        (files / "b.txt").write_text("buttercup")
        wait_for(lambda: watch.finds("buttercup", "b.txt"))
        assert not watch.finds("bluebell", "b.txt")
        # A folder that is created, filled and moved within moments.
        (files / "new/deep").mkdir(parents=True)
        (files / "new/deep/c.txt").write_text("crocus")
        (files / "new").rename(files / "moved")
        wait_for(lambda: watch.finds("crocus dir:moved", "c.txt"))
        (files / "moved/deep/d.txt").write_text("daffodil")
        wait_for(lambda: watch.finds("daffodil", "d.txt"))
        shutil.rmtree(files / "moved")
        wait_for(lambda: not watch.finds("crocus", "c.txt"))
        assert not watch.finds("daffodil", "d.txt")
        # Files that the rules exclude are not read.
        (files / "skipped").mkdir()
        (files / "skipped/e.txt").write_text("edelweiss")
        (files / ".hidden").write_text("edelweiss")
        (files / "f.txt").write_text("foxglove")
        wait_for(lambda: watch.finds("foxglove", "f.txt"))
        assert not watch.finds("edelweiss", "e.txt")
        assert not watch.finds("edelweiss", ".hidden")
        watch.stop()
    ended = windrow("search", "foxglove", "--data", work / "data")
    assert ended.returncode == 0
    again = windrow("index", files, "--data", work / "data", "--skip", "skipped")
    assert "0 new, 0 changed, 0 moved, 3 unchanged, 0 gone" in again.stdout


def test_a_changed_file_is_searchable_within_a_second(work):
    """100 changes per second. The limits allow for a loaded machine; the measured times are printed."""
    with Watch(work) as watch:
        with watch_client(work) as client:
            documents = client.files.documents
            began = time.monotonic()
            for number in range(300):
                (work / f"files/{number}.txt").write_text(f"word{number}")
                time.sleep(max(0, began + (number + 1) / 100 - time.monotonic()))
            changed = time.monotonic()
            wait_for(lambda: documents.count_documents({}) == 301)
            lag = time.monotonic() - changed
        print(f"the last change was searchable after {lag:.2f} s")
        assert lag < 5
        watch.stop()


def watch_client(work):
    import json

    import pymongo
    address = json.loads((work / "data/server.json").read_text())["address"]
    return pymongo.MongoClient(f"mongodb://{address}/?directConnection=true")


def test_a_server_can_have_the_folder_open(work):
    with Server(work) as server:
        with Watch(work) as watch:
            (work / "files/b.txt").write_text("bluebell")
            documents = server.client().files.documents
            wait_for(lambda: documents.count_documents({"text": "bluebell"}) == 1)
            watch.stop()


def test_a_folder_that_vanishes_keeps_its_documents(work):
    with Watch(work) as watch:
        (work / "files").rename(work / "away")
        wait_for(lambda: "is missing or empty" in watch.text())
        assert watch.finds("anemone", "a.txt")
        # Another folder with the same path.
        (work / "files").mkdir()
        (work / "files/b.txt").write_text("bluebell")
        wait_for(lambda: watch.finds("bluebell", "b.txt"))
        assert not watch.finds("anemone", "a.txt")
        (work / "files/c.txt").write_text("crocus")
        wait_for(lambda: watch.finds("crocus", "c.txt"))
        # Replaced without a pause.
        (work / "files").rename(work / "second")
        (work / "away").rename(work / "files")
        wait_for(lambda: watch.finds("anemone", "a.txt"))
        watch.stop()


def test_a_folder_may_appear_later(work):
    with Watch(work, work / "later") as watch:
        wait_for(lambda: "later: there is no such file or folder" in watch.text())
        assert watch.finds("anemone", "a.txt")
        (work / "later").mkdir()
        (work / "later/b.txt").write_text("bluebell")
        wait_for(lambda: watch.finds("bluebell", "b.txt"))
        watch.stop()


def test_other_folders_are_read_if_one_is_missing(work):
    ended = windrow("index", work / "none", work / "files", "--data", work / "data")
    assert ended.returncode == 1
    assert "none: there is no such file or folder" in ended.stderr and "not all folders" in ended.stderr
    assert "1 new," in ended.stdout
    assert windrow("search", "anemone", "--data", work / "data").returncode == 0
    alone = windrow("index", work / "none", "--data", work / "data")
    assert alone.returncode == 1 and alone.stdout == ""


def test_what_was_read_meanwhile_is_moved(work):
    """Files that the watch had already read, and files without text, used to be read again."""
    files = work / "files"
    with Watch(work) as watch:
        (files / "new").mkdir()
        for name, content in [("b.txt", b"bluebell"), ("program", b"\x7fELF" + bytes(100)),
                              ("bad.pdf", b"%PDF-1.4 nothing")]:
            (files / "new" / name).write_bytes(content)
            wait_for(lambda: watch.finds(f"filename:{name}", name))
        (files / "new").rename(files / "moved")
        wait_for(lambda: watch.finds("bluebell dir:moved", "b.txt"))
        wait_for(lambda: "3 moved" in watch.text())
        (files / "moved/b.txt").rename(files / "c.txt")
        wait_for(lambda: watch.finds("bluebell", "c.txt"))
        wait_for(lambda: "0 new, 0 changed, 1 moved" in watch.text())
        failures = windrow("failures", "--data", work / "data")
        assert "moved/bad.pdf: damaged PDF" in failures.stdout
        watch.stop()
    again = windrow("index", files, "--data", work / "data")
    assert "0 new, 0 changed, 0 moved, 4 unchanged, 0 gone" in again.stdout


def clock(hours):
    return time.strftime("%H:%M", time.localtime(time.time() + 3600 * hours))


def test_the_first_scan_waits_for_the_schedule(work):
    config = work / "index.toml"
    config.write_text('data = "data"\n[[folder]]\npath = "files"\n'
                      f'[watch]\nschedule = "{clock(2)}-{clock(3)}"\n')
    command = [str(binary()), "index", "--watch", "--config", str(config)]
    with open(work / "output", "w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: "files are not read now" in (work / "output").read_text())
            (work / "files/b.txt").write_text("bluebell")
            time.sleep(1)
            found = windrow("search", "anemone", "--data", work / "data")
            assert found.returncode == 1 and found.stdout == ""
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    config.write_text(config.read_text().replace(f"{clock(2)}-", f"{clock(-1)}-"))
    # Without --watch, the schedule does not apply.
    ended = windrow("index", "--config", config)
    assert "2 new" in ended.stdout, ended.stdout + ended.stderr
