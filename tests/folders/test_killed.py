"""`windrow index` is killed at random moments while files change; then the index equals the folder.

In each round files are written, rewritten, moved and deleted while `windrow index`, in every other round
with `--watch`, reads them. It dies by SIGKILL, alone or with its workers. A run to the end follows.
Nothing may be lost, doubled or stale: paths, contents, and what searches find.

FOLDER_ROUNDS and FOLDER_SEED in the environment choose how often and which run to repeat.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from windrow_server import Server, binary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import windrow  # noqa: E402

ROUNDS = int(os.environ.get("FOLDER_ROUNDS", 8))
SEED = int(os.environ.get("FOLDER_SEED", time.time_ns() % 1_000_000))
FILES = 400
FOLDERS = 12
MAILS = 30
SEARCHES = 25
FILLER = "words that all files have, so that a file takes some time to read. " * 20


class Folder:
    """A folder whose files change. Each content has a unique word."""

    def __init__(self, path, seed):
        self.path = path
        self.random = random.Random(seed)
        self.words = 0
        self.stale = []
        for _ in range(FILES):
            self.add()

    def word(self):
        self.words += 1
        return f"unique{self.words}x"

    def files(self):
        return [path for path in self.path.rglob("*") if path.is_file()]

    def any_file(self):
        files = self.files()
        return self.random.choice(files) if files else None

    def new_path(self, suffix):
        folder = self.path / f"d{self.random.randrange(FOLDERS)}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.word()}{suffix}"

    def content(self, suffix):
        if suffix == ".txt":
            return f"{self.word()} {FILLER}\n"
        mails = (f"From a@x Mon Jan  1 00:00:00 2024\nFrom: a@x\nSubject: s\n\n{self.word()} {FILLER}\n\n"
                 for _ in range(self.random.randrange(1, MAILS)))
        return "".join(mails)

    def add(self):
        suffix = ".txt" if self.random.random() < 0.9 else ".mbox"
        self.new_path(suffix).write_text(self.content(suffix))

    def rewrite(self):
        if path := self.any_file():
            self.stale += unique_words(path.read_text())
            path.write_text(self.content(path.suffix))

    def replace(self):
        """Writes a new file and renames it over an old one, as editors do."""
        if path := self.any_file():
            self.stale += unique_words(path.read_text())
            new = path.with_name(".new")
            new.write_text(self.content(path.suffix))
            new.rename(path)

    def delete(self):
        if path := self.any_file():
            self.stale += unique_words(path.read_text())
            path.unlink()

    def move(self):
        if path := self.any_file():
            path.rename(self.new_path(path.suffix))

    def move_folder(self):
        folders = [path for path in self.path.iterdir() if path.is_dir()]
        if folders:
            self.random.choice(folders).rename(self.path / f"d{self.word()}")

    def delete_folder(self):
        folders = [path for path in self.path.iterdir() if path.is_dir()]
        if len(folders) > FOLDERS // 2:
            folder = self.random.choice(folders)
            for path in folder.rglob("*"):
                self.stale += unique_words(path.read_text()) if path.is_file() else []
            shutil.rmtree(folder)

    def change(self, stop):
        """Changes files until `stop` is set."""
        changes = [self.add] * 6 + [self.rewrite] * 3 + [self.replace] * 2 + [self.delete] * 3 + [self.move] * 3
        while not stop.wait(0.002):
            if self.random.random() < 0.01:
                self.random.choice([self.move_folder, self.delete_folder])()
            else:
                self.random.choice(changes)()


def unique_words(text):
    return [word for word in text.split() if word.startswith("unique")]


def die(folder, work, watches, generator):
    """Indexes the folder while it changes, and kills the process."""
    command = [binary(), "index", folder.path, "--data", work / "data", "--workers", "2"]
    if watches:
        command.append("--watch")
    stop = threading.Event()
    thread = threading.Thread(target=folder.change, args=(stop,))
    with open(work / "output", "a") as output:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output,
                                   start_new_session=True)
    thread.start()
    time.sleep(generator.uniform(0.02, 1.2))
    with_workers = generator.random() < 0.5
    try:
        os.killpg(process.pid, signal.SIGKILL) if with_workers else process.kill()
    finally:
        process.wait()
        # Files also change while no watch is running.
        time.sleep(generator.uniform(0, 0.1))
        stop.set()
        thread.join()


def expected(folder):
    """Returns the unique words of each file, for each mail."""
    return {str(path): sorted(unique_words(path.read_text())) for path in folder.files()}


def differences(folder, work, generator):
    """Returns the differences between the index and the folder, as sentences."""
    wanted, found, wrong = expected(folder), {}, []
    with Server(work) as server:
        files = server.client().files
        for document in files.documents.find({}, {"path": 1, "text": 1}):
            found.setdefault(document["path"], []).extend(unique_words(document["text"]))
        found = {path: sorted(words) for path, words in found.items()}
        wrong += [f"lost: {path}" for path in wanted.keys() - found.keys()]
        wrong += [f"stale: {path}" for path in found.keys() - wanted.keys()]
        wrong += [f"{path} has {found[path]}, not {wanted[path]}" for path in wanted.keys() & found.keys()
                  if wanted[path] != found[path]]
        wrong += [f"failure: {one}" for one in files.failures.find()]
        names = generator.sample(sorted(wanted), min(SEARCHES, len(wanted)))
        for path, words in [(path, wanted[path]) for path in names]:
            for word in words[:2]:
                if (paths := search(files.documents, word)) != [path]:
                    wrong.append(f"a search for {word} of {path} finds {paths}")
        current = {word for words in wanted.values() for word in words}
        gone = [word for word in folder.stale[-400:] if word not in current]
        for word in generator.sample(gone, min(SEARCHES, len(gone))):
            if paths := search(files.documents, word):
                wrong.append(f"a search for {word}, which is gone, finds {paths}")
        server.stop()
    return wrong


def search(documents, word):
    stage = {"$search": {"text": {"query": word, "path": "text"}}}
    return [one["path"] for one in documents.aggregate([stage, {"$project": {"path": 1}}])]


def test_after_kills_the_index_equals_the_folder(tmp_path):
    generator = random.Random(SEED)
    folder = Folder(tmp_path / "files", SEED)
    for number in range(ROUNDS):
        die(folder, tmp_path, number % 2 == 1, generator)
        ended = windrow("index", folder.path, "--data", tmp_path / "data")
        assert ended.returncode == 0, f"round {number}, FOLDER_SEED={SEED}: {ended.stderr}"
        wrong = differences(folder, tmp_path, generator)
        assert not wrong, f"round {number}, FOLDER_SEED={SEED}: {wrong[:10]} of {len(wrong)}"
        again = windrow("index", folder.path, "--data", tmp_path / "data")
        assert "0 new, 0 changed, 0 moved" in again.stdout and "0 gone" in again.stdout, again.stdout
