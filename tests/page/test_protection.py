"""Protection of the page: hosts, origins, tokens, logins."""

import http.client
import re
import threading
import time

import pytest

from page_client import Browser, PageServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("page")) as server:
        yield server
        assert server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log()


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A server with users."""
    with PageServer(tmp_path_factory.mktemp("locked")) as server:
        admin = server.client().admin
        roles = [("ada", ["root"]), ("bob", [{"role": "read", "db": "kitchen"}])]
        for user, roles in roles:
            if user == "bob":
                admin = server.client(username="ada", password="secret").admin
            admin.command("createUser", user, pwd="secret", roles=roles)
        server.connection = {"username": "ada", "password": "secret"}
        yield server
        assert "panicked" not in server.log()


def test_every_answer_has_the_headers(server):
    browser = server.browser()
    for path in ["/", "/overview", "/nothing", "/assets/page.css", "/assets/no"]:
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path


def test_pages_have_no_scripts_and_styles_inside(server):
    text = server.browser().get("/overview").text
    assert "<style" not in text and " style=" not in text and " onclick=" not in text
    assert "<script>" not in text and "javascript:" not in text


def test_assets_are_kept(server):
    browser = server.browser()
    address = re.search(r'href="(/assets/page.css[^"]*)"', browser.get("/overview").text).group(1)
    assert "immutable" in browser.get(address).headers["cache-control"]
    first = browser.get("/assets/page.css")
    assert first.headers["content-encoding"] == "gzip" and b"--accent" in first.body
    assert "no-cache" in first.headers["cache-control"]
    again = browser.get("/assets/page.css", {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    plain = browser.get("/assets/page.css", {"Accept-Encoding": "identity"})
    assert plain.body == first.body


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("127.0.0.1:1", 200), ("[::1]", 200),
    ("evil.example", 403), ("localhost.evil.example", 403), ("192.0.2.1", 403), ("", 403),
])
def test_other_hosts_are_refused(server, host, status):
    """DNS rebinding: a web site whose name resolves to 127.0.0.1 must not read the page."""
    assert server.browser().get("/overview", {"Host": host}).status == status


def test_nothing_is_changed_by_get(server):
    assert server.browser().get("/logout").status == 405
    assert server.browser().request("DELETE", "/overview").status == 405
    assert server.browser().request("HEAD", "/overview").body == b""


def test_forms_need_their_token_and_origin(server):
    browser = server.browser()
    browser.get("/overview")
    assert browser.post("/logout").status == 303
    assert browser.post("/logout", token=False).status == 403
    assert browser.post("/logout", {"token": "0" * 64}, token=False).status == 403
    for origin in ["http://evil.example", "null", f"http://127.0.0.1:{server.web_port + 1}"]:
        assert browser.post("/logout", headers={"Origin": origin}).status == 403, origin
    header = {"X-Form-Token": browser.token}
    assert browser.post("/logout", token=False, headers=header).status == 303


def test_large_forms_are_refused(server):
    browser = server.browser()
    browser.get("/overview")
    assert browser.post("/logout", {"a": "x" * (2 << 20)}).status == 413


def test_a_login_is_needed_when_there_are_users(locked):
    browser = locked.browser()
    answer = browser.get("/overview?a=b")
    assert answer.status == 303
    assert answer.headers["location"] == "/login?next=%2Foverview%3Fa%3Db"
    assert browser.get("/overview", {"Accept": "application/json"}).status == 401
    assert browser.get("/overview", {"X-Part": "1"}).status == 401
    assert browser.get("/overview/live").status == 303
    assert browser.log_in("ada", "wrong").status == 401
    answer = browser.log_in("ada", "secret", next="/overview")
    assert (answer.status, answer.headers["location"]) == (303, "/overview")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert "ada" in browser.get("/overview").text
    other = Browser(locked.web_port)
    other.cookie = browser.cookie
    assert browser.post("/logout").status == 303
    assert other.get("/overview").status == 303


def test_logins_lead_to_own_pages(locked):
    browser = locked.browser()
    answer = browser.log_in("ada", "secret", next="//evil.example")
    assert answer.headers["location"] == "/"


def test_privileges_are_those_of_the_user(locked):
    browser = locked.browser()
    assert browser.log_in("bob", "secret").status == 303
    answer = browser.get("/overview")
    assert answer.status == 200 and "data-live" not in answer.text and "admin" not in answer.text
    assert browser.get("/").status == 200
    answer = browser.get("/folders/failures")
    assert answer.status == 403 and "not authorized" in answer.text


def test_failed_logins_wait(tmp_path):
    """Passwords cannot be guessed in quick succession."""
    with PageServer(tmp_path, options=["--auth"]) as server:
        browser = server.browser()
        for _ in range(4):
            assert browser.log_in("ada", "guess").status == 401
        began = time.monotonic()
        answer = browser.log_in("ada", "guess")
        assert answer.status == 429 and "Try again" in answer.text
        assert time.monotonic() - began < 1


def test_logins_do_not_stop_the_page(tmp_path):
    """Each wrong password used to block a thread of the page and a lock for half a second."""
    with PageServer(tmp_path, options=["--auth"]) as server:
        server.client().admin.command("createUser", "ada", pwd="secret", roles=["root"])
        ada, other = server.browser(), server.browser()
        assert ada.log_in("ada", "secret").status == 303
        statuses = []
        threads = [threading.Thread(target=lambda number=number: statuses.append(
            server.browser().log_in(f"user{number}", "guess").status)) for number in range(80)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        assert ada.get("/collections").status == 200
        assert time.monotonic() - began < 5
        for thread in threads:
            thread.join()
        assert set(statuses) <= {401, 503} and 401 in statuses
        # Other users are not delayed.
        assert other.log_in("ada", "secret").status == 303


def test_other_machines_need_a_login(tmp_path):
    options = ["--web", "0.0.0.0:0"]
    with pytest.raises(RuntimeError, match="clients must log in"):
        PageServer(tmp_path, options=options)


def test_an_address_in_use_is_named(tmp_path, server):
    with pytest.raises(RuntimeError, match="the page cannot listen on"):
        PageServer(tmp_path, options=["--web", f"127.0.0.1:{server.web_port}"])


def test_broken_requests_do_no_harm(server):
    for path in ["/%ff", "/overview?%ff=%zz", "/assets/%2e%2e/x", "/" + "a" * 60_000, "//evil"]:
        assert server.browser().get(path).status in (200, 303, 404, 414, 431)
    connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=30)
    connection.sock = None
    connection.connect()
    connection.sock.sendall(b"POST /logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nab")
    connection.close()
    assert server.browser().get("/overview").status == 200


def test_live_parts_are_streams(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=30)
    connection.request("GET", "/overview/live")
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [response.fp.readline() for _ in range(6)]
    assert any(line.startswith(b"data: <dl") for line in lines), lines
    connection.close()


def test_streams_end_with_their_session(locked):
    """An open page used to receive events after a logout."""
    browser = locked.browser()
    browser.log_in("ada", "secret")
    connection = http.client.HTTPConnection("127.0.0.1", locked.web_port, timeout=30)
    connection.request("GET", "/overview/live", headers={"Cookie": browser.cookie})
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    browser.get("/overview")
    assert browser.post("/logout").status == 303
    began = time.monotonic()
    while response.readline():
        assert time.monotonic() < began + 10, "the stream goes on"
    connection.close()
