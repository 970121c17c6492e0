"""The page in Chromium: layout, keyboard, hostile documents, a restart of the server."""

import json
import subprocess
import urllib.parse

import pytest

import chromium
from indexed import HOSTILE, IndexedServer, index, pdf
from page_client import PageServer
from windrow_server import ROOT

# Screenshots of every page, for manual inspection.
PICTURES = ROOT / "tests" / "page" / "out"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with IndexedServer(tmp_path_factory.mktemp("browser")) as server:
        yield server
        assert "panicked" not in server.log()


def document(server, name, **query):
    return "/search/document?" + urllib.parse.urlencode({"id": server.path(name), **query})


def test_every_page_is_accessible(server):
    """Each page at three widths in both colour schemes: axe finds nothing, nothing is logged, nothing
    is wider than the window."""
    paths = [
        "/search?q=flour", "/search?q=flour&view=table", "/search?q=flour&kind=text&date=2021..2027",
        "/search?q=marblefnch", "/search?q=%22open", document(server, "mail/letter.eml", q="sings"),
        document(server, "kitchen/bread.md", q="bread"), document(server, "code/main.rs", q="mill"),
        document(server, "kitchen/picture.png"), document(server, "kitchen/book.pdf", q="flourmill"), document(server, "hostile/line.txt", q="flour"),
        "/folders/failures", "/folders/configuration",
    ]
    found = chromium.run("pages", server, PICTURES, paths=paths)
    assert "/search" in found["paths"]


def test_the_login_is_accessible(tmp_path):
    with PageServer(tmp_path, options=["--auth"]) as server:
        chromium.run("pages", server, PICTURES, paths=["/login"], expected="401")


def test_results_appear_while_a_person_types(server):
    found = chromium.run("typing", server, PICTURES, words=["copperhare", "flour mill"])
    assert found["names"] == ["main.rs"]
    assert found["address"].endswith("/search?q=flour+mill") and found["count"] >= 5


def test_keys_do_everything(server):
    found = chromium.run("keys", server, PICTURES)
    assert found["focused"] == found["previewed"] == found["back"]
    assert found["isClosed"] and found["completed"].startswith("kind:ma")
    count = found["before"].split(" / ")[-1]
    expected = "1 / 1" if count == "1" else f"2 / {count}"
    assert found["after"] == expected


def test_pages_of_a_pdf_are_drawn(server):
    found = chromium.run("drawings", server, PICTURES)
    assert not found["before"], "a search without a PDF loads nothing for it"
    assert found["ink"] > 500 and found["drawn"] <= 12
    assert (found["first"], found["later"], found["back"]) == ("1 / 30", "25 / 30", "24 / 30")


def test_a_pdf_that_has_changed_is_shown_as_text(server):
    """It is neither drawn nor asked for."""
    path = server.files / "kitchen" / "changed.pdf"
    path.write_bytes(pdf("The owlgrain is in a book."))
    index(server.data, server.files)
    path.write_bytes(pdf("Another text."))
    found = chromium.run("pages", server, PICTURES, paths=[document(server, "kitchen/changed.pdf", q="owlgrain")], only=True)
    assert found["paths"]


def test_facets_are_chosen_with_the_mouse(server):
    found = chromium.run("facets", server, PICTURES)
    assert found["range"].startswith("2021") and ".." in found["range"] and found["kind"]


def test_hostile_documents_do_nothing(server):
    paths = [document(server, name, q="flour") for name in [*HOSTILE, "kitchen/page.html"]]
    chromium.run("hostile", server, PICTURES, paths=paths)


def test_the_search_needs_no_scripts(server):
    found = chromium.run("plain", server, PICTURES)
    assert found["names"] == ["notes.txt"] and found["marks"] == ["copperhare"]


def test_a_page_goes_on_after_a_restart(tmp_path):
    with IndexedServer(tmp_path, files={"a.txt": "flour"}) as server:
        settings = {"path": "/overview", "expected": "ERR_"}
        process = subprocess.Popen(
            chromium.command("restart", server.origin, PICTURES, settings), env=chromium.environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n"
            server.kill()
            print("ended", file=process.stdin, flush=True)
            assert process.stdout.readline() == "offline\n"
            server.start()
            print("started", file=process.stdin, flush=True)
            found = json.loads(process.stdout.readline())
        finally:
            process.kill()
            process.wait()
        assert not found["problems"], found["problems"]
        assert "Overview" in found["text"]
