"""The query language of `windrow search`: queries and the files that they find."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree  # noqa: E402
from test_folders import index, windrow  # noqa: E402

from windrow_server import Server

FILES = {
    "docs/bread.txt": "Flour and water make bread. Bake it hot.",
    "docs/report.md": "# Annual report\n\nThe annual figures of the bakery, a draft.",
    "docs/page.html": "<html lang='de'><title>Alte Häuser</title><p>Die Straßen der Stadt.</p></html>",
    # Only its words identify it as German.
    "docs/zug.txt": "Die Züge fahren heute wegen der starken Unwetter nicht nach Hamburg, und niemand "
                    "weiß, wann die nächsten Wagen kommen werden.",
    "src/open.c": "int notmuch_database_open(void); /* HashMap of handles */",
    "src/large.txt": "needle " + "hay " * 5_000,
    "mail/one.eml": ("From: Ada Lovelace <ada@example.org>\nTo: Bob <bob@example.org>\n"
                     "Subject: Engines\nDate: Mon, 4 Mar 2024 10:00:00 +0000\n\nThe engine runs.\n"),
    "mail/two.eml": ("From: Bob <bob@example.org>\nTo: Ada Lovelace <ada@example.org>\n"
                     "Subject: Re: Engines\nDate: Tue, 5 Mar 2019 10:00:00 +0000\n\nEngines cost much.\n"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    work = tmp_path_factory.mktemp("language")
    for name, text in FILES.items():
        tree.write(work / "files", name, text)
    index(work / "files", work)
    return work


def search(files, *arguments):
    return windrow("search", *arguments, "--data", files / "data")


def names(files, *arguments):
    """The names of the files that are found, in order."""
    ended = search(files, "-0", *arguments)
    assert ended.returncode in (0, 1), ended.stderr
    paths = ended.stdout.split("\0")
    assert paths.pop() == ""
    return [pathlib.PurePath(path).name for path in paths]


@pytest.mark.parametrize("query, expected", [
    ("bread", ["bread.txt"]),
    ("BREAD flour", ["bread.txt"]),
    ("baking breads", ["bread.txt"]),
    ("bread -water", []),
    ("bread OR figures", ["bread.txt", "report.md"]),
    ('"annual report"', ["report.md"]),
    ('"annual bakery"', []),
    ('"annual bakery"p5', ["report.md"]),
    ("figur*", ["report.md"]),
    ("b?ead", ["bread.txt"]),
    ("~flower", ["bread.txt"]),
    ("haus", ["page.html"]),
    ("hauser", ["page.html"]),
    ("Haus", []), ("Häuser", ["page.html"]),
    ("strasse", ["page.html"]),
    ("title:haus", ["page.html"]),
    ("title:stadt", []),
    ("lang:de", ["page.html", "zug.txt"]), ("zug fahrt", ["zug.txt"]),
    ("database_open", ["open.c"]),
    ("hashmap", ["open.c"]),
    ('"hash map"', ["open.c"]),
    ("from:ada", ["one.eml"]),
    ("engine to:ada", ["two.eml"]),
    ("kind:mail date:2024", ["one.eml"]),
    ("kind:mail date<2020", ["two.eml"]),
    ("kind:mail date:2018..2019-04", ["two.eml"]),
    ("ext:txt,md", ["bread.txt", "large.txt", "report.md", "zug.txt"]),
    ("filename:rep*.md", ["report.md"]), ("filename:*.MD", ["report.md"]),
    ("report.md", ["report.md"]),
    ("dir:src", ["large.txt", "open.c"]),
    ("dir:src size>10k", ["large.txt"]),
    ("size<1k dir:docs", ["bread.txt", "page.html", "report.md", "zug.txt"]),
    ("(bread OR report) -draft", ["bread.txt"]),
    # A single quoted word matches only its exact form.
    ('"breads"', []), ('"bread"', ["bread.txt"]), ('"bread" flour', ["bread.txt"]),
    ("mime:text/markdown", ["report.md"]),
    ("mime:message/rfc822 engine", ["one.eml", "two.eml"]),
    ("mime:text/* -mime:text/plain", ["open.c", "page.html", "report.md"]),
])
def test_what_is_found(files, query, expected):
    assert sorted(names(files, query)) == expected


def test_a_server_finds_the_same(files):
    with Server(files):
        assert names(files, "engine to:ada") == ["two.eml"]
        assert names(files, "bread OR figures", "--sort", "largest") == ["report.md", "bread.txt"]


def test_the_best_of_some_words_come_if_no_file_has_all(files):
    ended = search(files, "-l", "bread flour engine")
    assert ended.returncode == 0 and "bread.txt" in ended.stdout
    assert "at least 2" in ended.stderr
    assert names(files, "bread flour engine from:nobody") == []
    # One file contains five words of a long query.
    strange = " ".join(f"nosuchword{number}" for number in range(200))
    ended = search(files, "-l", f"bread flour water bake hot {strange}")
    assert ended.stdout.endswith("bread.txt\n") and "at least 5 " in ended.stderr


def test_pages_and_orders(files):
    everything = names(files, "ext:txt,md,c,html,eml", "--sort", "largest")
    assert everything[0] == "large.txt" and len(everything) == len(FILES)
    paged = [names(files, "ext:txt,md,c,html,eml", "--sort=largest", "--limit=2", f"--skip={skip}")
             for skip in range(0, 10, 2)]
    assert [name for page in paged for name in page] == everything


def test_results_as_json(files):
    [line] = search(files, "needle", "--json").stdout.splitlines()
    result = json.loads(line)
    assert result["path"].endswith("large.txt") and result["kind"] == "text"
    [[start, end]] = result["highlights"]
    assert result["snippet"][start:end] == "needle" and len(result["snippet"]) <= 200
    [line] = search(files, "needle ext:txt kind:text", "--json").stdout.splitlines()
    assert len(json.loads(line)["highlights"]) == 1
    [line] = search(files, "houses OR haus", "--json").stdout.splitlines()
    assert json.loads(line)["snippet"] == "Die Straßen der Stadt."


def test_the_pipeline_does_the_same(files):
    printed = search(files, "engine to:ada", "--show-pipeline").stdout
    with Server(files) as server:
        documents = server.client().files.documents
        found = list(documents.aggregate(json.loads(printed)))
    assert [pathlib.PurePath(one["path"]).name for one in found] == ["two.eml"]


def counts(files, *arguments):
    lines = search(files, *arguments).stdout.splitlines()
    return {line.split(maxsplit=1)[1]: int(line.split()[0]) for line in lines}


def test_documents_are_counted_by_their_properties(files):
    everything = "ext:txt,md,c,html,eml"
    assert counts(files, everything, "--count-by", "ext") == {
        "txt": 3, "eml": 2, "md": 1, "c": 1, "html": 1}
    assert counts(files, everything, "--count-by", "lang")["de"] == 2
    assert counts(files, "engine", "--count-by", "kind") == {"mail": 2}
    folders = counts(files, everything, "--count-by", "dir", "--limit", "100")
    assert folders[str(files / "files")] == len(FILES) and folders[str(files / "files/docs")] == 4
    years = counts(files, everything, "--count-by", "year")
    assert list(years.values()) == [len(FILES)]
    assert search(files, "nosuchword", "--count-by", "ext").returncode == 1
    [line] = search(files, "engine", "--count-by", "ext", "--json").stdout.splitlines()
    assert json.loads(line) == {"value": "eml", "count": 2}


@pytest.mark.parametrize("query, message", [
    ('"bread', "not closed"),
    ("-bread", "only excludes"),
    ("&", "no words"),
    ("mime:audio/none", "audio/none"),
    ("*", "has none"),
    ("bread OR", "OR"),
    ("date:soon", "date"),
    ("size>big", "size"),
])
def test_wrong_queries_are_explained(files, query, message):
    ended = search(files, query)
    assert ended.returncode == 2 and message in ended.stderr and not ended.stdout


def test_patterns_and_addresses_with_punctuation(tmp_path):
    """A pattern with punctuation used to match nothing, and `?` in a URL was a wildcard."""
    for name, text in [("a.txt", "The free-range hens of http://example.org/a-b?c=1 lay eggs."),
                       ("report 2.pdf.txt", "Nothing else"), ("big-report-final.odt", "no document")]:
        tree.write(tmp_path / "files", name, text)
    index(tmp_path / "files", tmp_path)
    for query, expected in [
        ("free-ra*", ["a.txt"]), ("free-x*", []), ("fr?e-range", ["a.txt"]),
        ("http://example.org/a-b?c=1", ["a.txt"]), ("http://example.org/a-b?c=2", []),
        ("*-report-*.odt", ["big-report-final.odt"]), ("~free-rang", ["a.txt"]),
        ("report*2*.txt", ["report 2.pdf.txt"]),
    ]:
        assert names(tmp_path, query) == expected, query


def test_signs_belong_to_single_letters(tmp_path):
    for name, text in [("a.txt", "Templates in C++ are typed."), ("b.txt", "The language C is old"),
                       ("c.txt", "„C#“ and F# have properties"), ("d.c", "for (c = 0; c < 9; c++) x();")]:
        tree.write(tmp_path / "files", name, text)
    index(tmp_path / "files", tmp_path)
    for query, expected in [
        ("C++", ["a.txt", "d.c"]), ("c++ typed", ["a.txt"]), ('"in C++ are"', ["a.txt"]),
        ('"C++ templates"', []), ("C#", ["c.txt"]), ("f#", ["c.txt"]), ("G#", []),
        ("C", ["a.txt", "b.txt", "c.txt", "d.c"]), ("C -C++ -C#", ["b.txt"]),
    ]:
        assert sorted(names(tmp_path, query)) == expected, query
        assert "only letters" not in search(tmp_path, query).stderr


def test_what_may_be_meant_otherwise_is_said(files):
    asked = search(files, "Autor:ada .NET http://example.org 10:30")
    assert 'no field "Autor" (did you mean author:?)' in asked.stderr, asked.stderr
    assert ".NET is searched as NET" in asked.stderr
    assert asked.stderr.count("windrow: ") == 3 or asked.returncode == 0, asked.stderr
    for query in ("author:ada", "http://example.org", "std::vec", '"autor:ada"', "note:x"):
        asked = search(files, query)
        assert "no field" not in asked.stderr and "only letters" not in asked.stderr
