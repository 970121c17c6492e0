"""`windrow search --interactive` on a pseudo-terminal."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree  # noqa: E402
from test_folders import index, windrow  # noqa: E402

from windrow_server import Server, binary

FILES = {
    "bread.txt": "One\nTwo\nThree\nFour\nFive\nSix\nFlour and water make bread.\n",
    "breadth.txt": "The breadth of the river.\n",
    "tea.txt": "Pour hot water over the leaves.\n",
    "evil.txt": "A gargoyle \x1b]0;owned\x07 with \x1b[2J\x1b[31mcodes \u202etxt.exe\n",
}
ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b(?:[=>78]|\([A-Z])|\x1b\][^\x07]*\x07")


class Screen:
    """The screen of a terminal. Supports the escape sequences that the program uses."""

    def __init__(self, rows, columns):
        self.unknown, self.pending = [], ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def feed(self, text):
        text, at = self.pending + text, 0
        self.pending = ""
        while at < len(text):
            if text[at] == "\x1b":
                match = ESCAPE.match(text, at)
                if not match:
                    if len(text) - at < 40:
                        self.pending = text[at:]
                        return
                    self.unknown.append(text[at:at + 10])
                    at += 1
                    continue
                self.control(match)
                at = match.end()
                continue
            self.put(text[at])
            at += 1

    def control(self, match):
        numbers = [int(one) for one in re.findall(r"\d+", match[1] or "")]
        if match[2] == "H":
            self.row, self.column = (numbers + [1, 1])[0] - 1, (numbers + [1, 1])[1] - 1
        elif match[2] == "J":
            self.cells = [[" "] * len(line) for line in self.cells]
        elif match[2] not in ("m", "h", "l", "n", "q"):
            self.unknown.append(match[0])

    def put(self, character):
        if ord(character) < 32 or character == "\u202e":
            self.unknown.append(character)
        elif self.row < len(self.cells) and self.column < len(self.cells[self.row]):
            self.cells[self.row][self.column] = character
            self.column += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)


class Terminal:
    def __init__(self, *arguments, env=None, rows=30, columns=100):
        self.screen = Screen(rows, columns)
        self.main, child = pty.openpty()
        self.set_size(rows, columns)
        environment = {**os.environ, "TERM": "xterm-256color", "WINDROW_HISTORY": "off", **(env or {})}
        self.process = subprocess.Popen([str(binary()), *map(str, arguments)], stdin=child, stdout=child,
                                        stderr=child, env=environment, start_new_session=True)
        os.close(child)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)
        os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, seconds):
        if select.select([self.main], [], [], seconds)[0]:
            try:
                self.screen.feed(os.read(self.main, 65_536).decode(errors="replace"))
            except OSError:  # the program has ended
                return

    def press(self, keys):
        os.write(self.main, keys.encode())

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition(self.screen.text()):
            assert time.monotonic() < end, self.screen.text()
            self.read(0.1)
        return self.screen.text()

    def shows(self, *texts):
        return self.wait_for(lambda shown: all(text in shown for text in texts))

    def wait_for_end(self):
        end = time.monotonic() + 20
        while self.process.poll() is None:
            assert time.monotonic() < end
            self.read(0.05)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    work = tmp_path_factory.mktemp("interactive")
    for name, text in FILES.items():
        tree.write(work / "files", name, text)
    index(work / "files", work)
    return work


@pytest.fixture
def start(files):
    terminals = []

    def start(*arguments, **options):
        terminal = Terminal("search", "-i", *arguments, "--data", files / "data", **options)
        terminals.append(terminal)
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()


UP, DOWN, BACKSPACE, ESCAPE_KEY = "\x1b[A", "\x1b[B", "\x7f", "\x1b"


def test_results_come_while_typing(start):
    terminal = start()
    terminal.shows("type words", "Esc leave")
    terminal.press("bread")
    # The last word is also searched as a prefix.
    terminal.shows("bread.txt", "breadth.txt", "2 documents", "Flour and water make bread.")
    terminal.press(" ")
    terminal.wait_for(lambda shown: "breadth.txt" not in shown and "1 document" in shown)
    terminal.press(BACKSPACE * 20 + "watter ")
    terminal.shows("did you mean: water", "no document has watter")
    terminal.press("\x15\"wat")
    terminal.shows("not closed")
    terminal.press("\x15water")
    terminal.shows("tea.txt", "bread.txt", "2 documents")
    terminal.press(ESCAPE_KEY)
    assert terminal.wait_for_end() == 0
    assert terminal.screen.unknown == []


def test_keys_select_and_open(start, tmp_path):
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/opened\n')
    opener.chmod(0o755)
    terminal = start("water", "--sort", "largest", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    terminal.shows("2 documents", "││Six")
    terminal.press(DOWN)
    terminal.wait_for(lambda shown: "││Six" not in shown and shown.count("Pour hot water") == 2)
    terminal.press("\r")
    terminal.shows("opens")
    end = time.monotonic() + 10
    while not (tmp_path / "opened").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "opened").read_text().endswith("tea.txt")
    terminal.press("\t")
    terminal.shows("Facets", "2  text", "2  txt")
    terminal.press("\t" + UP)
    terminal.shows("Preview", "││Six")
    terminal.press("\x03")
    assert terminal.wait_for_end() == 0


def test_the_size_can_change(start):
    terminal = start("water")
    terminal.shows("2 documents")
    for rows, columns in [(12, 40), (3, 5), (1, 1), (50, 200)]:
        terminal.resize(rows, columns)
        terminal.read(0.2)
        assert terminal.process.poll() is None
    terminal.shows("2 documents", "Esc leave")


def test_hostile_text_is_harmless(start):
    terminal = start("gargoyle")
    terminal.shows("evil.txt", "A gargoyle  with codes txt.exe")
    assert terminal.screen.unknown == []
    terminal.press("\x1b[200~pasted\x1b[201~")
    terminal.read(0.2)
    assert terminal.process.poll() is None


def test_a_server_may_have_the_folder_open(files, start):
    with Server(files):
        terminal = start("tea.txt ")
        terminal.shows("1 document", "Pour hot water")


def test_other_commands_work_meanwhile(files, start):
    terminal = start("tea.txt ")
    terminal.shows("1 document")
    ended = windrow("search", "bread", "-l", "--data", files / "data")
    assert ended.returncode == 0 and "bread.txt" in ended.stdout, ended.stderr
    unchanged = index(files / "files", files)
    assert f"{len(FILES)} unchanged" in str(unchanged)
    second = start("bread ")
    second.shows("bread.txt")
    second.press(ESCAPE_KEY)
    assert second.wait_for_end() == 0
    terminal.press("\x15bread ")
    terminal.shows("bread.txt")
    terminal.press(ESCAPE_KEY)
    assert terminal.wait_for_end() == 0
    assert not (files / "data/server.json").exists()


def test_a_terminal_is_needed(files):
    ended = windrow("search", "-i", "--data", files / "data")
    assert ended.returncode == 2 and "terminal" in ended.stderr
