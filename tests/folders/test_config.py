"""The configuration of `windrow index`, and `windrow config`."""

import os
import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import windrow  # noqa: E402


@pytest.fixture
def work(tmp_path):
    for name in ("docs/a.txt", "docs/skip/b.txt", "src/c.txt", "src/build/d.txt", "src/.e.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("campanula")
    (tmp_path / "src/.gitignore").write_text("build/\n")
    (tmp_path / "index.toml").write_text("""
data = "data"
workers = 1
nice = 5

[defaults]
skip = ["skip"]

[limits]
file-size = "1kB"

[[folder]]
path = "docs"

[[folder]]
path = "src"
gitignore = true
hidden = true
skip = [".gitignore"]
""")
    return tmp_path


def found(work, *arguments):
    ended = windrow("search", "campanula", "-l", "--data", work / "data", *arguments)
    return {os.path.relpath(line, work) for line in ended.stdout.splitlines()}


def test_folders_are_read_by_their_own_rules(work):
    config = work / "index.toml"
    ended = windrow("index", "--config", config)
    assert ended.returncode == 0, ended.stderr
    assert found(work) == {"docs/a.txt", "src/c.txt", "src/.e.txt"}
    # A folder inside a configured folder has the same rules.
    (work / "src/build/f.txt").write_text("campanula")
    ended = windrow("index", work / "docs", "--config", config, "--hidden")
    assert ended.returncode == 0, ended.stderr
    assert found(work) == {"docs/a.txt", "src/c.txt", "src/.e.txt"}


def test_the_usual_file_is_used_without_arguments(work):
    usual = work / "home/windrow/index.toml"
    usual.parent.mkdir(parents=True)
    (work / "index.toml").rename(usual)
    usual.write_text(usual.read_text().replace('"docs"', f'"{work}/docs"')
                     .replace('"src"', f'"{work}/src"').replace('"data"', f'"{work}/data"'))
    environment = {**os.environ, "XDG_CONFIG_HOME": str(work / "home")}
    assert windrow("index", env=environment).returncode == 0
    assert found(work) == {"docs/a.txt", "src/c.txt", "src/.e.txt"}
    shown = windrow("status", env=environment)
    assert shown.returncode == 0 and "3   text" in shown.stdout
    assert "no errors" in windrow("config", "check", env=environment).stdout


def test_limits_are_those_of_the_file(work):
    (work / "docs/large.txt").write_text("campanula " * 200)
    ended = windrow("index", "--config", work / "index.toml")
    assert "1 failures" in ended.stdout
    listed = windrow("failures", "--class", "limit", "--data", work / "data")
    assert "large.txt: the size exceeds the limit of 1000 bytes" in listed.stdout


def test_shown_settings_are_a_file_with_all_values(work):
    shown = windrow("config", "show", "--config", work / "index.toml")
    assert shown.returncode == 0
    for line in ("file-size = 1000", "pages = 10000", f'path = "{work}/docs"', "nice = 5"):
        assert line in shown.stdout.splitlines(), shown.stdout
    (work / "shown.toml").write_text(shown.stdout)
    again = windrow("config", "show", "--config", work / "shown.toml")
    assert again.stdout == shown.stdout


def test_languages_are_those_of_the_folder(work):
    german = "Der schnelle braune Fuchs springt über den faulen Hund und läuft davon. " * 10
    for name in ("docs/german.txt", "src/german.txt"):
        (work / name).write_text(german)
    config = work / "index.toml"
    plain = config.read_text()
    config.write_text(plain.replace('path = "src"', 'path = "src"\nlanguages = ["en"]'))
    assert windrow("index", "--config", config).returncode == 0
    languages = lambda: {name: windrow("search", f"lang:{name}", "-l", "--data", work / "data").stdout.count(".txt")
                         for name in ("de", "en")}
    # If a folder has a single language, short texts have it, too.
    assert languages() == {"de": 1, "en": 3}
    config.write_text(plain.replace('path = "src"', 'path = "src"\nlanguages = ["en", "de"]'))
    ended = windrow("index", "--config", config)
    assert "3 changed" in ended.stdout and languages() == {"de": 2, "en": 0}


@pytest.mark.parametrize("text, expected", [
    ("folder = 1", "line 1"),
    ("[[folder]]\npath = 'x'\nskipp = []", "skipp"),
    ("[[folder]]\npath = 'x'\nskip = ['[']", '"["'),
    ("[[folder]]\npath = 'missing'", "do not exist"),
    ("nice = 99", "nice"),
    ("[[folder]]\npath = 'docs'\nlanguages = ['english']", '"english" is not one of da, de, en'),
])
def test_errors_say_what_is_wrong(work, text, expected):
    config = work / "wrong.toml"
    config.write_text(text)
    ended = windrow("config", "check", "--config", config)
    assert ended.returncode == 1 and expected in ended.stderr, ended.stderr


@pytest.mark.parametrize("arguments, expected", [
    (["index"], "FOLDER"),
    (["index", "--config", "empty.toml"], "[[folder]]"),
    (["index", "--config", "none.toml"], "none.toml"),
    (["config"], "check or show"),
    (["config", "check", "show"], "show"),
])
def test_a_wrong_command_line_is_reported(work, arguments, expected):
    (work / "empty.toml").write_text('data = "data"\n')
    environment = {**os.environ, "XDG_CONFIG_HOME": str(work / "none")}
    ended = windrow(*arguments, cwd=work, env=environment)
    assert ended.returncode != 0 and expected in ended.stderr, ended.stderr
