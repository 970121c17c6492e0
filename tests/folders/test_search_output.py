"""What `windrow search` shows besides the documents, and how: suggestions, similar documents, templates,
saved searches."""

import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree  # noqa: E402
from test_folders import index, windrow  # noqa: E402

from windrow_server import Server, binary

COFFEE = "Roast the coffee beans, grind them and brew the coffee with water.\n"
FILES = {
    **{f"many/coffee{number}.txt": f"Note {number}. " + COFFEE for number in range(30)},
    "docs/espresso.txt": "Machines\n\nAn espresso machine presses water through ground coffee beans.\n",
    "docs/tea.txt": "Pour hot water over the tea leaves.\n",
    "docs/car.txt": "The automobile stands in the garage.\n",
    "docs/van.txt": "A motor vehicle with a large space.\n",
    "docs/page.html": "<html><meta name=author content='Grace Hopper'><title>Page</title><p>A lamp</p></html>",
    "docs/other.html": "<html><meta name=author content='Grace Hopper'><title>Other</title><p>A lamp</p></html>",
    "docs/evil\x1b[2J.txt": "A sentence with \x1b[31mescape\x1b[0m codes and a gargoyle.\n",
    "mail/one.eml": ("From: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nSubject: Lamps\n"
                     "Date: Mon, 4 Mar 2024 10:00:00 +0000\n\nThe lamp is on.\n"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    work = tmp_path_factory.mktemp("output")
    for name, text in FILES.items():
        tree.write(work / "files", name, text)
    tree.write(work / "files", "box.zip", tree.archive({"in/side.txt": "An enclosed thistlecrab."}))
    index(work / "files", work)
    return work


def search(files, *arguments, **options):
    environment = {**os.environ, "WINDROW_HISTORY": "off", "TZ": "UTC"} | options.pop("env", {})
    return windrow("search", *arguments, "--data", files / "data", env=environment, **options)


def in_order(ended):
    assert ended.returncode < 2, ended.stderr
    return [pathlib.PurePath(line).name for line in ended.stdout.splitlines()]


def names(ended):
    return sorted(in_order(ended))


@pytest.mark.parametrize("query, suggested", [
    ("cofee", "coffee"),
    ("cofee watter", "coffee water"),
    ("(cofee OR tea) -sugar", "(coffee OR tea) -sugar"),
    ("expresso machine", "espresso machine"),
    ("coffee", None),
    ("zzzzqqqq", None),
    ("title:cofee", "title:coffee"),
    # An inflected form of a word is not a misspelling.
    ("pressing", None),
])
def test_words_are_suggested(files, query, suggested):
    ended = search(files, query)
    found = re.findall("did you mean: (.*)", ended.stderr)
    assert found == ([suggested] if suggested else []), ended.stderr
    lines = [json.loads(line) for line in search(files, query, "--json").stdout.splitlines()]
    assert [line["suggestion"] for line in lines if "suggestion" in line] == found


@pytest.mark.parametrize("query, reason", [
    ("zzzzqqqq", "no document has zzzzqqqq"),
    ("coffee ext:pdf", "no document has ext:pdf"),
    ("lamp -on -ext:html", "excludes all"),
    ("tea ext:html", "none has all"),
])
def test_nothing_is_explained(files, query, reason):
    ended = search(files, query)
    assert ended.returncode == 1 and reason in ended.stderr and not ended.stdout, ended.stderr


def test_similar_documents(files):
    ended = search(files, "-l", "--similar", files / "files/many/coffee3.txt", "--limit", "100")
    found = in_order(ended)
    # The texts of all notes differ only in their numbers.
    assert found[0].startswith("coffee") and len(found) >= 30 and "coffee3.txt" not in found
    ended = search(files, "-l", "--similar", files / "files/many/coffee3.txt", "dir:docs")
    assert in_order(ended)[0] == "espresso.txt" and "coffee4.txt" not in names(ended)
    missing = search(files, "--similar", files / "nowhere.txt")
    assert missing.returncode == 2 and "not indexed" in missing.stderr


def test_a_server_does_the_same(files):
    with Server(files):
        assert "did you mean: coffee" in search(files, "cofee").stderr
        ended = search(files, "-l", "--similar", files / "files/many/coffee3.txt", "dir:docs")
        assert in_order(ended)[0] == "espresso.txt"
        counted = search(files, "lamp", "--count-by", "author").stdout
        assert counted.split() == ["2", "Grace", "Hopper", "1", "Ada", "<ada@example.org>"]


def test_authors_are_counted(files):
    lines = search(files, "lamp", "--count-by", "author", "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"value": "Grace Hopper", "count": 2}, {"value": "Ada <ada@example.org>", "count": 1}]
    assert len(search(files, "lamp", "--count-by", "author", "--limit=1").stdout.splitlines()) == 1


def test_templates(files):
    line = search(files, "espresso", "--format", "{number}|{name}|{kind}|{line}|{snippet}").stdout
    text = "… An espresso machine presses water through ground coffee beans."
    assert line == f"1|espresso.txt|text|3|{text}\n"
    line = search(files, "kind:mail", "--format", "{date}\\t{author}\\t{ext}{{}}").stdout
    assert line == "2024-03-04 10:00:00\tAda <ada@example.org>\teml{}\n"
    line = search(files, "thistlecrab", "--format", "{file}:{inner}:{size}").stdout
    box = files / "files/box.zip"
    assert line == f"{box}:!/in/side.txt:{box.stat().st_size}\n"
    wrong = search(files, "tea", "--format", "{colour}")
    assert wrong.returncode == 2 and "{colour}" in wrong.stderr and "snippet" in wrong.stderr


def test_lines_are_shown(files):
    assert "line 3: " in search(files, "espresso").stdout
    [line] = search(files, "espresso", "--json").stdout.splitlines()
    assert json.loads(line)["line"] == 3
    assert "line" not in search(files, "lamp ext:html").stdout


def test_colours(files):
    red = "\x1b[1;31m"
    assert red in search(files, "tea", "--color", "always").stdout
    assert red not in search(files, "tea").stdout
    assert red not in search(files, "tea", "--color", "never").stdout
    shown = search(files, "gargoyle").stdout
    assert "\x1b" not in shown and "gargoyle" in shown


def test_results_are_opened(files, tmp_path):
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/opened\n')
    opener.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def opened(*arguments):
        ended = search(files, *arguments, env=environment)
        assert ended.returncode == 0, ended.stderr
        for _ in range(1_000):
            if (tmp_path / "opened").exists():
                break
            time.sleep(0.01)
        path = (tmp_path / "opened").read_text()
        (tmp_path / "opened").unlink()
        return path, ended.stdout

    path, said = opened("tea", "--open", "1")
    assert path == str(files / "files/docs/tea.txt") and path in said
    path, said = opened("thistlecrab", "--open", "1")
    assert path == str(files / "files/box.zip") and "contains !/in/side.txt" in said
    none = search(files, "tea", "--open", "5", env=environment)
    assert none.returncode == 1 and "no result 5" in none.stderr
    without = search(files, "tea", "--open", "1", env={"PATH": str(files), "BROWSER": ""})
    assert without.returncode == 2 and "xdg-open" in without.stderr


def test_synonyms(files, tmp_path):
    assert names(search(files, "-l", "car")) == ["car.txt"]
    groups = tmp_path / "words.txt"
    groups.write_text("# vehicles\ncar, automobile, motor vehicle\n")
    found = names(search(files, "-l", "vehicle OR automobile", "--synonyms", groups))
    assert found == ["car.txt", "van.txt"]
    assert names(search(files, "-l", "automobile", "--synonyms", groups)) == ["car.txt", "van.txt"]
    assert names(search(files, "-l", '"automobile"', "--synonyms", groups)) == ["car.txt"]
    default = files / "data/synonyms.txt"
    default.write_text(groups.read_text())
    assert names(search(files, "-l", "automobile")) == ["car.txt", "van.txt"]
    default.write_text("alone\n")
    wrong = search(files, "tea")
    assert wrong.returncode == 2 and "line 1" in wrong.stderr
    default.unlink()
    assert search(files, "tea", "--synonyms", tmp_path / "none").returncode == 2


def test_searches_are_saved(files):
    ended = search(files, "coffee -dir:many", "--save", "drinks", "-l")
    assert names(ended) == ["espresso.txt"] and "@drinks" in ended.stderr
    assert names(search(files, "@drinks OR tea", "-l")) == ["espresso.txt", "tea.txt"]
    assert search(files, "--saved").stdout == "drinks\tcoffee -dir:many\n"
    [line] = search(files, "--saved", "--json").stdout.splitlines()
    assert json.loads(line) == {"name": "drinks", "query": "coffee -dir:many"}
    search(files, "@loop tea", "--save", "loop")
    loop = search(files, "@loop")
    assert loop.returncode == 2 and "refers to itself" in loop.stderr
    unknown = search(files, "@nosuchname")
    assert unknown.returncode == 1 and "no saved search" in unknown.stderr
    saved = files / "data/saved-searches.txt"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    saved.unlink()
    # The folder is still a data folder.
    index(files / "files", files)
    assert names(search(files, "tea", "-l")) == ["tea.txt"]


def test_the_history_can_be_left_out(files):
    on = {"WINDROW_HISTORY": ""}
    assert search(files, "--history").returncode == 1
    search(files, "tea", env=on)
    search(files, "coffee\nbeans", env=on)
    search(files, "secret", "--no-history", env=on)
    search(files, "secret")
    lines = search(files, "--history").stdout.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["coffee beans", "tea"]
    assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\t", lines[0])
    assert len(search(files, "--history", "--limit", "1").stdout.splitlines()) == 1


def test_names_are_in_the_bytes_of_the_file_system(tmp_path):
    """`--format {file}` used to escape backslashes and bytes that are not UTF-8."""
    folder = os.fsencode(tmp_path / "files")
    os.mkdir(folder)
    for name in (b"caf\xe9.txt", b"back\\slash.txt"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"a gargoyle")
    index(tmp_path / "files", tmp_path)
    command = [str(binary()), "search", "gargoyle", "--data", str(tmp_path / "data"), "--format",
               r"{file}\0{path}\0{folder}\0{name}"]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    lines = sorted(line.split(b"\0") for line in shown.splitlines())
    expected = [[folder + b"/" + name] * 2 + [folder, name]
                for name in (b"back\\slash.txt", b"caf\xe9.txt")]
    assert lines == expected


def test_years_are_those_of_the_time_zone(tmp_path):
    """The end of a year in one time zone is in the next year in another one."""
    tree.write(tmp_path / "files", "a.txt", "gargoyle")
    moment = 1_704_063_600  # 2023-12-31 23:00 UTC
    os.utime(tmp_path / "files/a.txt", (moment, moment))
    index(tmp_path / "files", tmp_path)
    for zone, year in [("UTC", "2023"), ("Pacific/Auckland", "2024"), ("America/New_York", "2023")]:
        counted = search(tmp_path, "gargoyle", "--count-by", "year", env={"TZ": zone})
        assert counted.stdout.split() == ["1", year], (zone, counted.stdout)
        found = search(tmp_path, f"gargoyle date:{year}", env={"TZ": zone})
        assert found.returncode == 0, zone


def test_commands_that_only_read_create_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/.profile").write_text("")
    for command in (["search", "x"], ["status"], ["failures"], ["index", "--remove", "x"]):
        for data in ("empty", "none"):
            ended = windrow(*command, "--data", tmp_path / data)
            assert ended.returncode != 0 and "no files are indexed" in ended.stderr, ended.stderr
    ended = windrow("index", tmp_path / "nowhere", "--data", tmp_path / "none")
    assert ended.returncode == 1 and "nowhere: there is no such" in ended.stderr
    assert os.listdir(tmp_path / "empty") == [".profile"]
    assert os.listdir(tmp_path) == ["empty"]


def test_folders_of_runs_are_absolute(tmp_path):
    tree.write(tmp_path / "files", "a.txt", "gargoyle")
    ended = windrow("index", "files", "--data", "data", cwd=tmp_path)
    assert ended.returncode == 0
    shown = windrow("status", "--data", tmp_path / "data", "--json")
    assert json.loads(shown.stdout)["last_run"]["folders"] == [str(tmp_path.resolve() / "files")]
