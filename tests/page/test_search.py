"""The search of the page, without scripts."""

import html
import html.parser
import http.client
import json
import os
import re
import socket
import time
import urllib.parse

import pytest
from bson import Int64

from indexed import HOSTILE, IndexedServer

PART = {"X-Part": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with IndexedServer(tmp_path_factory.mktemp("search")) as server:
        yield server
        assert server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log()


def address(path, **query):
    return path + "?" + urllib.parse.urlencode(query)


def names(text):
    """The names of the results, in their order."""
    return [html.unescape(name) for name in re.findall(r'<a class="open"[^>]*>([^<]*)</a>', text)]


def search(server, **query):
    answer = server.browser().get(address("/search", **query))
    assert answer.status == 200, answer.text
    return answer.text


class Elements(html.parser.HTMLParser):
    """Fails at an element or an attribute that could execute code."""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("iframe", "object", "embed", "base", "style"), tag
        assert tag != "script" or attributes["src"].startswith("/assets/"), attributes
        assert tag != "img" or attributes["src"].startswith(("/assets/", "/search/file?")), attributes
        for name, value in attributes.items():
            assert name != "title" or "\u202e" not in value, value
            assert not name.startswith("on") and name != "style", (tag, name, value)
            assert not (value or "").strip().lower().startswith("javascript:"), (tag, value)

    def handle_data(self, text):
        # Directional characters must not disguise a name.
        assert "\u202egpj" not in text, text


def check_harmless(text):
    Elements().feed(text)


def test_the_first_page_is_the_search(server):
    text = server.browser().get("/").text
    assert 'role="search"' in text and "bread.md" in text


def test_results_have_snippets(server):
    text = search(server, q="copperhare")
    assert names(text) == ["notes.txt"]
    assert "Notes on the <mark>copperhare</mark>." in text and "1 document" in text
    assert "/mail/letter.eml" in text.replace("</bdi><bdi class=\"last\">", "")


def test_results_are_sorted_and_shown_as_a_table(server):
    newest = names(search(server, q="flour ext:txt dir:kitchen", sort="newest"))
    oldest = names(search(server, q="flour ext:txt dir:kitchen", sort="oldest"))
    assert set(newest) == {"cake.txt", "soup.txt"} and newest == oldest[::-1]
    assert oldest[0] == "cake.txt"
    table = search(server, q="flour", view="table")
    assert "<table" in table and "2021-05-04" in table


def test_filters_narrow_down(server):
    assert names(search(server, q="flour", kind="source")) == ["main.rs"]
    assert names(search(server, q="flour", dir=server.path("kitchen/deep"))) == ["soup.txt"]
    assert names(search(server, q="flour", date="2021-05")) == ["cake.txt"]
    assert names(search(server, q="flour", date="2020..2022", ext="txt")) == ["cake.txt"]
    assert set(names(search(server, size="huge"))) == {"line.txt"}
    assert names(search(server, author="Ada Lovelace <ada@example.org>", kind="mail")) == [
        "About the marblefinch"]
    text = search(server, q="flour", kind="source", ext="rs")
    assert text.count('class="chip-name"') == 2
    removed = re.search(r'<ul class="chips".*?href="([^"]*)"', text, re.S).group(1)
    assert html.unescape(removed) == "/search?q=flour&ext=rs"


def test_facets_count(server):
    text = search(server, q="flour", dir=server.path("kitchen"))
    facets = dict(re.findall(r'<span class="name"[^>]*>([^<]*)</span><span class="count">([^<]*)</span>', text))
    assert facets["Text"] == "2" and facets["Markdown"] == "1" and facets["Web page"] == "1"
    assert "<svg" in text and 'data-value="2021"' in text
    assert "kitchen" in " ".join(facets)


def test_wrong_queries_are_explained(server):
    text = search(server, q='"open')
    assert "is not closed" in text and names(text) == []
    assert "does not take" in search(server, q="a", date="never")
    part = server.browser().get(address("/search/results", q='"open'), PART)
    assert "data-problem=" in part.text and "is not closed" in part.text


def test_similar_words_are_suggested(server):
    text = search(server, q="marblefnch")
    assert "Did you mean" in text and 'href="/search?q=marblefinch"' in text


def test_words_that_are_typed_are_beginnings(server):
    browser = server.browser()
    assert names(browser.get(address("/search/results", q="marblef"), PART).text) == []
    typed = browser.get(address("/search/results", q="marblef", typing="1"), PART).text
    assert names(typed) == ["About the marblefinch"]
    assert 'data-total="1 document"' in browser.get(
        address("/search/facets", q="marblef", typing="1"), PART).text


def test_similar_documents(server):
    text = search(server, like=server.path("kitchen/cake.txt"))
    assert "similar to" in text and "cake.txt" not in names(text)
    assert server.browser().get(address("/search", like="/nothing")).status == 200


def test_pages_are_turned(tmp_path):
    files = {f"{number:03}.txt": f"flour {number}" for number in range(45)}
    with IndexedServer(tmp_path, files=files) as server:
        shown = []
        for page in (1, 2, 3):
            text = search(server, q="flour", sort="largest", page=page)
            assert ('rel="next"' in text) == (page < 3) and "45 documents" in text
            shown += names(text)
        assert sorted(shown) == sorted(files)


def test_a_mail_has_headers_and_attachments(server):
    text = server.browser().get(address("/search/document", id=server.path("mail/letter.eml"), q="sings")).text
    assert "Ada Lovelace &lt;ada@example.org&gt;" in text and "Attachments" in text
    assert "<mark id=\"hit-1\">sings</mark>" in text
    link = re.search(r'<a href="([^"]*)" data-id="[^"]*"><bdi>notes.txt', text).group(1)
    attachment = server.browser().get(html.unescape(link)).text
    assert "Notes on the copperhare." in attachment and "Attached to" in attachment


def test_matches_are_marked_in_any_form(server):
    text = server.browser().get(address(
        "/search/document", id=server.path("kitchen/bread.md"), q="bread", plain="1")).text
    marked = re.findall(r'<mark id="hit-(\d+)">([^<]*)</mark>', text)
    assert [word for _, word in marked] == ["Bread", "bread", "Breads"]
    assert [int(number) for number, _ in marked] == [1, 2, 3]


def test_source_code_has_colours(server):
    text = server.browser().get(address("/search/document", id=server.path("code/main.rs"), q="mill")).text
    assert '<span class="sc">// flour </span><mark id="hit-1">mill</mark>' in text
    assert '<span class="sk">fn</span>' in text and '<mark id="hit-2">milled</mark><span class="ss">' in text


def test_formatted_documents_are_harmless(server):
    for name in ["kitchen/bread.md", "kitchen/page.html", "hostile/broken.html", "hostile/title.html"]:
        text = server.browser().get(address("/search/document", id=server.path(name), q="flour"), PART).text
        formatted = text.split('class="formatted"', 1)[1]
        for wrong in ["<script", "<img", "<form", "<style", "<svg", "onload", "onclick", "onerror=",
                      'href="/logout']:
            assert wrong not in formatted, (name, wrong)


def test_hostile_texts_are_texts(server):
    """The content of a document must not be interpreted as markup of the page."""
    text = search(server, q="flour", dir=server.path("hostile"))
    # The text of more than 8 MiB is split into two documents.
    assert len(names(text)) == len(HOSTILE) + 1
    check_harmless(text)
    for name in os.listdir(server.files / "hostile"):
        answer = server.browser().get(address("/search/document", id=server.path("hostile/" + name), q="flour"))
        assert answer.status == 200 and len(answer.body) < 2_000_000
        check_harmless(answer.text)


def test_files_are_opened_and_downloaded(server):
    browser = server.browser()
    cake = address("/search/file", id=server.path("kitchen/cake.txt"))
    answer = browser.get(cake)
    assert answer.text.startswith("A cake") and answer.headers["content-type"].startswith("text/plain")
    assert "sandbox" in answer.headers["content-security-policy"]
    download = browser.get(cake + "&download=1")
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''cake%2Etxt"
    assert download.headers["content-type"] == "application/octet-stream"
    page = browser.get(address("/search/file", id=server.path("kitchen/page.html")))
    assert page.headers["content-type"].startswith("text/plain")
    assert browser.get(address("/search/file", id=server.path("kitchen/picture.png"))).headers[
        "content-type"] == "image/png"
    long = browser.get(address("/search/file", id=server.path("hostile/line.txt")))
    assert len(long.body) == 10_000_012


def test_only_what_is_indexed_is_opened(server):
    """A client can insert a document with the path of any file. The page must not send that file."""
    browser = server.browser()
    for path in ["/etc/passwd", server.path("kitchen/../kitchen/cake.txt"), "", "cake.txt"]:
        assert browser.get(address("/search/file", id=path)).status == 404, path
    documents = server.client().files.documents
    documents.insert_one({"_id": "/etc/passwd", "path": "/etc/passwd", "kind": "text", "text": "x",
                          "size": os.stat("/etc/passwd").st_size})
    assert browser.get(address("/search/file", id="/etc/passwd")).status == 404
    documents.delete_one({"_id": "/etc/passwd"})
    # Neither the stamp, which `stat` reports to all users, nor another file's signature is accepted.
    secret = server.folder / "secret.txt"
    secret.write_text("classified-4711")
    secret.chmod(0o600)
    found = secret.stat()
    stamp = {"size": found.st_size, "inode": Int64(found.st_ino), "modified_ns": Int64(found.st_mtime_ns),
             "changed_ns": Int64(found.st_ctime_ns)}
    indexed = documents.find_one({"_id": server.path("kitchen/page.html")})
    for signature in [{}, {"signature": b""}, {"signature": bytes(16)}, {"signature": indexed["signature"]}]:
        documents.replace_one({"_id": str(secret)}, {
            "path": str(secret), "kind": "text", "text": "x", **stamp, **signature}, upsert=True)
        assert browser.get(address("/search/file", id=str(secret))).status == 404, signature
        assert "classified" not in browser.get(address("/search/document", id=str(secret))).text
    documents.delete_one({"_id": str(secret)})
    key = server.data / "indexed-files.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    soup = server.path("kitchen/deep/er/soup.txt")
    with open(soup, "a") as file:
        file.write("changed\n")
    answer = browser.get(address("/search/file", id=soup))
    assert answer.status == 404 and "was changed" in answer.text


def test_queries_are_completed(server):
    offers = json.loads(server.browser().get(address("/search/complete", q="cake aut")).text)
    assert [offer["query"] for offer in offers] == ["cake author:"]


def test_the_interface_for_programs(server):
    def get(path, **query):
        answer = server.browser().get(address("/api/v1/" + path, **query))
        assert answer.headers["content-type"].startswith("application/json")
        return answer.status, json.loads(answer.text)

    status, found = get("search", q="copperhare")
    assert status == 200 and found["total"] == 1
    result = found["results"][0]
    assert result["path"] == server.path("mail/letter.eml") and result["inner"] == "!/1/notes.txt"
    start, end = result["highlights"][0]
    assert result["snippet"][start:end] == "copperhare" and result["modified"].startswith("20")
    assert get("search", q="flour", limit="0")[0] == 400
    assert get("search", q='"open')[1]["error"]["message"].endswith("is not closed")
    assert get("search", q="marblefnch")[1]["suggestion"] == "marblefinch"
    assert len(get("search", q="flour", limit=2, skip=1)[1]["results"]) == 2
    assert get("facets", q="flour", field="kind", ext="rs")[1]["values"] == [
        {"value": "source", "count": 1}]
    assert get("facets", field="odd")[0] == 400
    assert get("document", id=server.path("kitchen/cake.txt"))[1]["text"].startswith("A cake")
    assert get("document", id="/no")[0] == 404
    status = get("status")[1]
    assert status["files"]["documents"] > 10 and status["files"]["last_run"]["files_read"] > 10
    assert get("openapi.json")[1]["openapi"] == "3.1.0"


def test_programs_log_in_with_each_request(tmp_path):
    with IndexedServer(tmp_path, files={"a.txt": "flour"}) as server:
        server.client().admin.command("createUser", "ada", pwd="secret",
                                      roles=[{"role": "read", "db": "files"}])
        browser = server.browser()
        assert browser.get("/api/v1/search?q=flour").status == 401
        for user, status in [("YWRhOnNlY3JldA==", 200), ("YWRhOndyb25n", 401), ("?", 401)]:
            answer = browser.get("/api/v1/search?q=flour", {"Authorization": f"Basic {user}"})
            assert answer.status == status, answer.text
        assert browser.get("/search", {"Authorization": "Basic YWRhOnNlY3JldA=="}).status == 303
        assert browser.get("/api/v1/openapi.json").status == 200


def test_a_browser_that_goes_ends_its_search(tmp_path):
    """The command of a request is interrupted when the browser disconnects."""
    options = ["--set-parameter", "enableTestCommands=1"]
    with IndexedServer(tmp_path, files={"a.txt": "flour"}, options=options) as server:
        admin = server.client().admin
        block = {"failCommands": ["aggregate"], "blockConnection": True, "blockTimeMS": 20_000}
        admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=block)
        connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=30)
        connection.request("GET", address("/search", q="flour"))

        def running():
            mine = {"appName": "Windrow page", "command.aggregate": "documents"}
            return admin.command({"currentOp": 1, **mine})["inprog"]

        deadline = time.monotonic() + 10
        while not running():
            assert time.monotonic() < deadline, "the search does not begin"
        connection.sock.close()
        began = time.monotonic()
        while running():
            assert time.monotonic() < began + 5, "the search goes on"
            time.sleep(0.02)


def chunks_of(server, path):
    """Returns the chunks of a response."""
    with socket.create_connection(("127.0.0.1", server.web_port), timeout=30) as browser:
        browser.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = browser.makefile("rb")
        while answer.readline() != b"\r\n":
            pass
        while length := int(answer.readline(), 16):
            yield answer.read(length).decode()
            answer.readline()


def test_the_field_comes_before_the_results(server):
    """The first part of a page is sent before the search ends, so that the browser can load its assets."""
    first, *others = chunks_of(server, "/search?q=flour")
    assert 'id="q"' in first and "search.css" in first and 'id="results"' not in first
    rest = "".join(others)
    assert 'id="results"' in rest and "</html>" in rest and "<!--" not in first + rest
    first, *others = chunks_of(server, "/search?q=%22open%3C%21--rest--%3E")
    assert "<!--rest" not in first and 'role="alert">' in "".join(others)
