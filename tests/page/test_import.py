"""Imports of files while they are uploaded: any size, progress, cancellation."""

import http.client
import re
import secrets
import time

import pytest

from page_client import PageServer, import_address, import_file, import_headers, import_progress

PATH = "/collections/shop/imported"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("import")) as server:
        yield server
        assert "panicked" not in server.log()


@pytest.fixture
def imported(server):
    imported = server.client().shop.imported
    imported.drop()
    return imported


class Upload:
    """A file that is sent in pieces."""

    def __init__(self, server, length, kind="json"):
        self.browser = server.browser()
        self.browser.get("/collections")
        self.number = secrets.token_hex(16)
        self.length = length
        self.connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=30)
        self.connection.putrequest("POST", import_address(PATH, self.number, kind), skip_host=True)
        headers = import_headers(self.browser, Host=self.browser.host)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders()

    def send(self, content):
        self.connection.sock.sendall(content)

    def progress(self):
        return import_progress(self.browser, PATH, self.number, self.length).text

    def until(self, found, seconds=30):
        deadline = time.monotonic() + seconds
        while not (shown := re.search(found, self.progress())):
            assert time.monotonic() < deadline, self.progress()
            time.sleep(0.05)
        return shown


def lines(start, count):
    return b"".join(b'{"_id": %d, "text": "%s"}\n' % (number, b"x" * 400) for number in range(start, start + count))


def test_documents_are_there_before_the_file_ends(server, imported):
    first, last = lines(0, 5_000), lines(5_000, 5_000)
    upload = Upload(server, len(first) + len(last))
    upload.send(first)
    shown = upload.until(r"<progress max=\"\d+\" value=\"\d+\".* of 4.3 MB, ([4-5],\d+) documents inserted")
    assert imported.count_documents({}) >= int(shown.group(1).replace(",", "")) >= 4_000
    upload.send(last)
    upload.until('data-end="complete"')
    assert upload.connection.getresponse().status == 200
    assert "10,000 documents were inserted" in upload.progress()
    assert imported.count_documents({"text": "x" * 400}) == 10_000


def test_a_cancelled_import_says_what_stays(server, imported):
    first = lines(0, 3_000)
    upload = Upload(server, len(first) * 1_000)
    upload.send(first)
    upload.until("documents inserted")
    cancel = {"import": upload.number}
    assert upload.browser.post(PATH + "/import/cancel", cancel).status == 204
    upload.send(b"\n" * 300_000)
    shown = upload.until(r'data-end="cancelled">([\d,]+) documents were inserted. The import was cancelled')
    assert imported.count_documents({}) == int(shown.group(1).replace(",", "")) > 0
    count = imported.count_documents({})
    time.sleep(0.3)
    assert imported.count_documents({}) == count
    upload.connection.close()


def test_an_import_ends_with_its_browser(server, imported):
    first = lines(0, 3_000)
    upload = Upload(server, len(first) * 2)
    upload.send(first)
    upload.until("documents inserted")
    upload.connection.sock.close()
    upload.connection.close()
    shown = upload.until(r'data-end="(\w+)"').group(1)
    assert shown in ("cancelled", "failed")
    # An incomplete upload must not be reported as complete. A part of it may be inserted.
    assert imported.count_documents({}) <= 3_000


def test_a_mistake_names_its_line_and_what_stays(server, imported):
    browser = server.browser()
    answer = import_file(browser, PATH, lines(0, 2_500) + b"{ text: }\n" + lines(2_500, 100))
    assert 'data-end="failed"' in answer.text
    assert "2,500 documents were inserted. Documents: &quot;}&quot; is no value, at line 2501, column 9." in answer.text
    assert imported.count_documents({}) == 2_500
    answer = import_file(browser, PATH, lines(2_600, 10) + lines(7, 1) + lines(2_700, 10))
    assert "10 documents were inserted. " in answer.text and "duplicate key" in answer.text
    assert imported.count_documents({}) == 2_510
    for content, message in [(b"", "no document"), (b"[{}", "expected, at line 1, column 4"), (b"\xff", "not valid UTF-8"), (b"{}\xe2\x82", "not valid UTF-8")]:
        answer = import_file(browser, PATH, content)
        assert 'data-end="failed"' in answer.text and message in answer.text, content
    assert imported.count_documents({}) == 2_510


def test_csv_is_imported_in_pieces(server, imported):
    header, rows = b"name,age\r\n", b"".join(b'"A, ""%d""\n",%d\r\n' % (n, n) for n in range(40_000))
    answer = import_file(server.browser(), PATH, header + rows, "csv")
    assert "40,000 documents were inserted" in answer.text
    assert imported.find_one({"age": 39_999}, {"_id": 0}) == {"name": 'A, "39999"\n', "age": 39_999}
    answer = import_file(server.browser(), PATH, header + b"a,1,2\n", "csv")
    assert "record 1: 3 values for 2 fields" in answer.text


def test_only_the_page_itself_sends_files(server, imported):
    browser = server.browser()
    browser.get("/collections")
    address = import_address(PATH, secrets.token_hex(16))
    headers = import_headers(browser)
    assert browser.request("POST", address, b"{}", {**headers, "X-Form-Token": "0" * 64}).status == 403
    assert browser.request("POST", address, b"{}", {**headers, "Origin": "http://evil.example"}).status == 403
    assert browser.get(address).status == 405
    assert browser.request("POST", import_address(PATH, "1"), b"{}", headers).status == 400
    assert imported.count_documents({}) == 0
    assert browser.request("POST", address, b"{}", headers).status == 200
    again = browser.request("POST", address, b"{}", headers)
    assert again.status == 400 and "known already" in again.text
    assert imported.count_documents({}) == 1
    assert "does not know this import" in import_progress(browser, PATH, "0" * 32).text
    assert browser.post(PATH + "/import/cancel", {"import": "0" * 32}).status == 404
