"""Requests every address and form with hostile values. Each must be answered in time, with values escaped."""

import html.parser
import socket
import time
import urllib.parse

import pytest

from indexed import HOSTILE as HOSTILE_FILES
from indexed import IndexedServer

MARKUP = "<script>hostile()</script>\"'>"
VALUES = [
    MARKUP, "", "-1", "99999999999999999999", "\0", "\udcff", "x" * 30_000, "{" * 5_000, "[" * 5_000,
    '{"a":' * 3_000, "(" * 5_000, "{$where: 'while(true){}'}", "{_id: /(a+)+$/}", "../../../etc/passwd",
    "%00%ff", "\u202e" * 100, "[{$out: 'stolen'}]", "[{$merge: 'stolen'}]", "{$set: {_id: 1}}", "NaN", "1e400",
]
# The time in which a response must arrive.
SECONDS_MAX = 10
ASKED_BY_SCRIPTS = [
    "/search/results?q=flour&page=1", "/search/facets?q=flour", "/search/complete?q=fl&at=2",
    "/state/series?minutes=5", "/api/v1/search?q=flour&limit=5&skip=0&sort=date", "/api/v1/facets?q=flour&field=ext",
    "/api/v1/document?id=1", "/api/v1/status",
]
NOT_FOLLOWED = ("/assets/", "/search/file", "/logout")


class Page(html.parser.HTMLParser):
    """The addresses and forms of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.forms, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ("href", "src", "data-live", "data-part"):
            if (given.get(name) or "").startswith("/"):
                self.addresses.append(given[name])
        if tag == "form":
            self.forms.append((given.get("method", "get").lower(), given.get("action") or "", {}))
        if tag in ("input", "select", "textarea", "button") and given.get("name") and self.forms:
            self.forms[-1][2][given["name"]] = given.get("value") or ""
        if tag == "script" and "src" not in given:
            self.scripts.append(self.getpos())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    files = {"a.txt": "flour", "b.md": "# flour", "c.pdf": "%PDF-1.4 broken",
             **{name: text for name, text in HOSTILE_FILES.items() if len(text) < 1_000}}
    with IndexedServer(folder, files=files) as server:
        shop = server.client().shop
        shop.orders.insert_many([{"_id": number, "name": MARKUP} for number in range(60)])
        shop.orders.create_index("name")
        shop[f"odd {MARKUP}"].insert_one({MARKUP: MARKUP})
        yield server
        assert "panicked" not in server.log()


def path_of(address):
    return urllib.parse.urlsplit(address).path


def crawl(server):
    """The parameters of each address, and the forms that are sent."""
    browser = server.browser()
    waiting, addresses, forms = ["/", "/overview", "/search?q=flour", *ASKED_BY_SCRIPTS], {}, {}
    while waiting:
        address = waiting.pop()
        parts = urllib.parse.urlsplit(address)
        given = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        if parts.path in addresses:
            addresses[parts.path].update(given)
            continue
        if parts.path.startswith(NOT_FOLLOWED) or parts.path.endswith(("/live", "/export")):
            continue
        addresses[parts.path] = given
        answer = browser.get(address)
        assert answer.status < 500, address
        if "html" not in answer.headers.get("content-type", ""):
            continue
        page = Page(answer.text)
        for method, action, fields in page.forms:
            target = path_of(urllib.parse.urljoin(address, action))
            place = forms if method == "post" else addresses
            place.setdefault(target, {}).update(fields)
        waiting += [urllib.parse.urljoin(address, it) for it in page.addresses]
    return addresses, forms


def check(server, browser, send, path, fields, name, value):
    began = time.monotonic()
    encoded = {key: text.encode("utf-8", "surrogateescape") for key, text in {**fields, name: value}.items()}
    answer = send(browser, path, encoded)
    what = (path, name, value[:50], answer.status)
    assert answer.status < 500, (*what, answer.body[:300])
    assert time.monotonic() - began < SECONDS_MAX, what
    if "html" in answer.headers.get("content-type", ""):
        assert "<script>hostile" not in answer.body.decode(errors="replace"), what
        assert not Page(answer.body.decode(errors="replace")).scripts, what
    assert server.process.poll() is None, what


def by_address(browser, path, fields):
    return browser.get(f"{path}?{urllib.parse.urlencode(fields)}"[:60_000])


def by_form(browser, path, fields):
    fields.pop("token", None)
    return browser.post(path, fields)


def test_addresses(server):
    addresses, _ = crawl(server)
    sections = {path.split("/")[1] for path in addresses}
    assert {"search", "folders", "collections", "indexes", "queries", "state"} <= sections
    browser = server.browser()
    for path, fields in addresses.items():
        for name in [*fields, "unknown"]:
            for value in VALUES:
                check(server, browser, by_address, path, fields, name, value)


def test_forms(server):
    _, forms = crawl(server)
    forms.pop("/logout", None)
    assert len(forms) >= 15, sorted(forms)
    browser = server.browser()
    browser.get("/search")
    for path, fields in forms.items():
        for name in fields:
            for value in VALUES:
                check(server, browser, by_form, path, fields, name, value)
    # No aggregation has created this collection.
    assert "stolen" not in server.client().shop.list_collection_names()


def test_paths(server):
    browser = server.browser()
    names = [urllib.parse.quote(value.encode("utf-8", "surrogateescape"), safe="")[:8_000] for value in VALUES]
    for pattern in ("/collections/{}/orders", "/collections/shop/{}", "/collections/shop/{}/indexes",
                    "/collections/shop/{}/schema", "/collections/shop/{}/pipeline", "/assets/{}", "/{}",
                    "/api/v1/{}"):
        for name in names:
            answer = browser.get(pattern.format(name))
            assert answer.status < 500, (pattern, name[:50], answer.body[:300])
            if "html" in answer.headers.get("content-type", ""):
                assert "<script>hostile" not in answer.text, (pattern, name[:50])


def test_half_requests(server):
    """Requests that end early, and clients that send slowly, do not stop others."""
    halves = []
    for text in (b"GET /search HTTP/1.1\r\nHost: localhost\r\n", b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: 1000\r\n\r\nuser=", b"G", b""):
        for _ in range(50):
            half = socket.create_connection(("127.0.0.1", server.web_port))
            half.sendall(text)
            halves.append(half)
    began = time.monotonic()
    assert server.browser().get("/search?q=flour").status == 200
    assert time.monotonic() - began < SECONDS_MAX
    for half in halves:
        half.close()
