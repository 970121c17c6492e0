"""The page over TLS, with the certificate of the database's port."""

import http.client
import ssl
import subprocess

import pytest

import chromium
from page_client import Browser, PageServer
from test_browser import PICTURES
from windrow_server import binary

KINDS = ["require", "prefer"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run([str(binary()), "certificate", "--folder", str(folder), "--client", "ada"], check=True,
                   capture_output=True, timeout=60)
    return folder


class TlsServer(PageServer):
    def __init__(self, path, folder, mode, options=()):
        self.tls_folder = folder
        tls = ["--tls-mode", mode, "--tls-certificate-key-file", str(folder / "server.pem"), "--auth"]
        connection = {"tls": True, "tlsCAFile": str(folder / "ca.pem")}
        super().__init__(path, options=[*tls, *options], connection=connection)

    def secure_browser(self):
        return SecureBrowser(self)

    @property
    def origin(self):
        return f"https://127.0.0.1:{self.web_port}"


class SecureBrowser(Browser):
    """A browser that trusts the certificate authority of the server."""

    def __init__(self, server, client=None):
        super().__init__(server.web_port)
        self.scheme = "https"
        self.context = ssl.create_default_context(cafile=str(server.tls_folder / "ca.pem"))
        if client:
            self.context.load_cert_chain(str(client))


@pytest.fixture(scope="module", params=KINDS)
def server(request, folder, tmp_path_factory):
    with TlsServer(tmp_path_factory.mktemp("server"), folder, request.param) as server:
        admin = server.client().admin
        admin.command("createUser", "ada", pwd="secret", roles=["root"])
        server.mode = request.param
        yield server
        assert "panicked" not in server.log()


def test_a_login_over_tls_has_a_secure_cookie(server):
    browser = server.secure_browser()
    assert "windrow_session" not in str(browser.get("/login").headers)
    answer = browser.log_in("ada", "secret")
    assert answer.status == 303 and "; Secure" in answer.headers["set-cookie"]
    assert "ada" in browser.get("/overview").text
    answer = browser.post("/logout")
    assert answer.status == 303 and "; Secure" in answer.headers["set-cookie"]
    assert f"https://127.0.0.1:{server.web_port}" in server.log()


def test_a_page_without_tls_is_not_that_of_an_encrypted_one(server):
    browser = server.secure_browser()
    browser.log_in("ada", "secret")
    browser.get("/overview")
    plain = {"Origin": f"http://127.0.0.1:{server.web_port}"}
    assert browser.post("/logout", headers=plain).status == 403
    assert browser.post("/logout").status == 303


def test_without_tls(server):
    """If TLS is required, browsers without it are redirected, and passwords sent without it are refused."""
    browser = server.browser()
    answer = browser.get("/search?q=a%20b")
    if server.mode == "require":
        assert answer.status == 307
        assert answer.headers["location"] == f"https://127.0.0.1:{server.web_port}/search?q=a%20b"
        assert browser.post("/login", {"user": "ada", "password": "secret"}).status == 403
        assert browser.get("/", {"Host": "evil.example"}).status == 403
    else:
        assert answer.status == 303
        answer = browser.log_in("ada", "secret")
        assert answer.status == 303 and "Secure" not in answer.headers["set-cookie"]


def test_what_is_no_handshake_does_no_harm(server):
    for sent in [b"\x16", b"\x16\x03\x01\x00\x05hello", b"\x16" * 5000, b"\x00", b"GET"]:
        connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=5)
        connection.connect()
        connection.sock.sendall(sent)
        connection.close()
    assert server.secure_browser().get("/login").status == 200


def test_certificates_of_clients_are_needed_as_by_other_clients(folder, tmp_path):
    options = ["--tls-ca-file", str(folder / "ca.pem")]
    connection = {"tlsCertificateKeyFile": str(folder / "ada.pem")}
    with TlsServer.__new__(TlsServer) as server:
        server.tls_folder = folder
        tls = ["--tls-mode", "require", "--tls-certificate-key-file", str(folder / "server.pem"), *options]
        PageServer.__init__(server, tmp_path, options=tls, connection={
            "tls": True, "tlsCAFile": str(folder / "ca.pem"), **connection})
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            SecureBrowser(server).get("/")
        assert SecureBrowser(server, client=folder / "ada.pem").get("/overview").status == 200


def test_other_machines_without_encryption_are_warned_of(tmp_path, folder):
    warning = "can be reached from other machines without encryption"
    with PageServer(tmp_path / "plain", options=["--auth", "--web", "0.0.0.0:0"]) as server:
        assert warning in server.log()
    with TlsServer(tmp_path / "tls", folder, "require", options=["--web", "0.0.0.0:0"]) as server:
        assert warning not in server.log()
    with TlsServer(tmp_path / "both", folder, "prefer", options=["--web", "0.0.0.0:0"]) as server:
        assert warning in server.log()


def test_the_login_in_a_browser(server):
    found = chromium.run("login", server, PICTURES, user="ada", password="secret")
    assert found["isSecure"] and found["title"].startswith("Overview")
