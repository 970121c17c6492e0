"""`windrow completion` and `windrow man`, which are generated from the help texts."""

import functools
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_folders import windrow  # noqa: E402

@functools.cache
def commands():
    shown = windrow("--help").stdout.split("Commands:")[1].split("Options:")[0]
    return re.findall(r"^  ([a-z]+) ", shown, re.M)


def options(command):
    shown = windrow(*([command] if command else []), "--help").stdout
    return set(re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", shown.split("\nOptions:\n")[1], re.M))


def completed(*words):
    """Returns the completions of bash for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _windrow; printf "%s\\n" "${COMPREPLY[@]}"'
    source = pathlib.Path(completed.script)
    ended = subprocess.run(["bash", "-c", script, "bash", str(source), *words], capture_output=True,
                           text=True, check=True)
    assert not ended.stderr, ended.stderr
    return set(ended.stdout.split())


@pytest.fixture(scope="module", autouse=True)
def bash_script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "windrow"
    path.write_text(windrow("completion", "bash").stdout)
    completed.script = path


def test_there_are_commands():
    assert {"serve", "index", "search", "mcp", "completion", "man"} <= set(commands())


def test_bash_completes_commands_and_options(tmp_path):
    assert completed("windrow", "") >= set(commands()) | {"--help"}
    assert completed("windrow", "sea") == {"search"}
    for command in commands():
        assert completed("windrow", command, "--") == options(command), command
    assert completed("windrow", "search", "--sort", "") == {"relevance", "newest", "oldest", "largest"}
    assert completed("windrow", "search", "--color", "a") == {"auto", "always"}
    assert {"author", "year"} <= completed("windrow", "search", "--count-by", "")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert completed("windrow", "search", "--data", f"{tmp_path}/f") == {f"{tmp_path}/folder"}
    assert completed("windrow", "search", "--similar", f"{tmp_path}/f") == {
        f"{tmp_path}/folder", f"{tmp_path}/file"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_options(shell):
    script = windrow("completion", shell).stdout
    for command in commands():
        assert command in script
        for option in options(command):
            assert (option if shell == "zsh" else f"-l {option[2:]} ") in script, option
    if shutil.which(shell):
        checked = subprocess.run([shell, "--no-execute"], input=script, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr


def test_unknown_shells_are_refused():
    ended = windrow("completion", "tcsh")
    assert ended.returncode == 2 and "bash, zsh or fish" in ended.stderr


def test_manual_pages(tmp_path):
    ended = windrow("man", tmp_path / "man1")
    assert ended.returncode == 0, ended.stderr
    names = {path.name for path in (tmp_path / "man1").iterdir()}
    assert names == {"windrow.1"} | {f"windrow-{command}.1" for command in commands()}
    for command in ["", *commands()]:
        path = tmp_path / "man1" / (f"windrow-{command}.1" if command else "windrow.1")
        page = path.read_text()
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"]:
            assert f"\n.SH {section}\n" in page, (path, section)
        for option in options(command):
            assert option.replace("-", "\\-") in page
        if shutil.which("groff"):
            shown = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-ww", str(path)], capture_output=True, text=True)
            assert shown.returncode == 0 and not shown.stderr, shown.stderr
