"""Clients connect with TLS: by the modes of the server, with client certificates, and after the
certificates were replaced."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import bson
import pymongo
import pytest
from pymongo.errors import AutoReconnect, OperationFailure, ServerSelectionTimeoutError

from windrow_server import Server, binary

sys.path.insert(0, str(Path(__file__).parent))
import certificates  # noqa: E402
from raw import Raw, op_msg, section  # noqa: E402

PLAIN = {"tls": False, "tlsCAFile": None}
REFUSED = (AutoReconnect, ServerSelectionTimeoutError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("tls") / "files", "alice")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    """A server that requires TLS."""
    with Server(tmp_path_factory.mktemp("server"), options=certificates.server_options(folder),
                connection=certificates.client_options(folder)) as server:
        yield server
        assert "Panic" not in server.log()


def ping(server, **options):
    """A ping over a new connection."""
    options = {"serverSelectionTimeoutMS": 2000, "directConnection": True, **options}
    with pymongo.MongoClient("127.0.0.1", server.port, **options) as client:
        return client.admin.command("ping")["ok"]


def lines(server, message):
    """The lines of the log with this message."""
    logged = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [line for line in logged if line["msg"] == message]


def test_documents_of_all_sizes_are_sent(server):
    collection = server.client().test.sizes
    sizes = [0, 1, 100, 16_000, 16_384, 100_000, 1 << 20, 15 << 20]
    for size in sizes:
        collection.insert_one({"_id": size, "text": "x" * size})
    assert [len(collection.find_one(size)["text"]) for size in sizes] == sizes
    assert sum(len(one["text"]) for one in collection.find()) == sum(sizes)
    collection.insert_many([{"text": "y" * 1000, "many": number} for number in range(20_000)])
    assert collection.count_documents({"many": {"$gte": 0}}) == 20_000


def test_many_clients_work_at_a_time(server):
    collection = server.client().test.many
    failures = []

    def work(number):
        try:
            with pymongo.MongoClient(server.uri, **server.connection) as client:
                for step in range(50):
                    client.test.many.insert_one({"_id": number * 1000 + step})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == [] and collection.count_documents({}) == 16 * 50


def test_compressed_messages_are_encrypted(server):
    with pymongo.MongoClient(server.uri, compressors="zlib", **server.connection) as client:
        client.test.compressed.insert_one({"_id": 1, "text": "a" * 100_000})
        assert len(client.test.compressed.find_one()["text"]) == 100_000


def test_a_server_that_requires_tls_refuses_others(server):
    with pytest.raises(REFUSED):
        ping(server)
    refused = lines(server, "Error receiving request from client. Ending connection from remote")
    assert "only allow SSL connections" in refused[-1]["attr"]["error"]


@pytest.mark.parametrize("mode", ["allow", "prefer"])
def test_clients_can_choose(mode, folder, tmp_path):
    with Server(tmp_path, options=certificates.server_options(folder, mode)) as server:
        assert ping(server) == ping(server, **certificates.client_options(folder)) == 1
        # A message whose length has the bytes that begin a handshake.
        for length in (0x316, 0x10316, 0x20316):
            document = {"ping": 1, "$db": "admin", "comment": ""}
            document["comment"] = "x" * (length - 21 - len(bson.encode(document)))
            with Raw(server) as connection:
                message = op_msg(section(document))
                assert message[:2] == b"\x16\x03" and len(message) == length
                assert connection.send(message).reply()["ok"] == 1


def test_a_server_without_tls_says_so(folder, tmp_path):
    with Server(tmp_path) as server:
        began = time.monotonic()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            certificates.connect(server, folder)
        assert time.monotonic() - began < 5
        message = "Error receiving request from client. Ending connection from remote"
        assert "without SSL support" in lines(server, message)[-1]["attr"]["error"]
        assert "security" not in server.client().admin.command("serverStatus")
        with pytest.raises(OperationFailure) as failed:
            server.client().admin.command("rotateCertificates")
        assert failed.value.code == 20


def test_connections_are_counted_by_version(server, folder):
    def counts():
        return server.client().admin.command("serverStatus")["transportSecurity"]

    before = counts()
    assert set(before) == {"1.0", "1.1", "1.2", "1.3", "unknown"}
    context = certificates.context(folder)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    plain = Raw(server).socket
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        assert connection.version() == "TLSv1.2"
    after = counts()
    assert after["1.2"] == before["1.2"] + 1 and after["1.3"] >= before["1.3"] >= 1
    security = server.client().admin.command("serverStatus")["security"]
    assert security["SSLServerSubjectName"] == "CN=Windrow server"
    assert security["SSLServerHasCertificateAuthority"] is False
    days = (security["SSLServerCertificateExpirationDate"].timestamp() - time.time()) / 86_400
    assert 363 < days < 366


class TestCertificatesOfClients:
    def start(self, tmp_path, folder, *options, connection):
        options = certificates.server_options(folder, "require", "--tls-ca-file",
                                              str(folder / "ca.pem"), *options)
        return Server(tmp_path, options=options, connection=connection)

    def test_they_are_needed(self, folder, tmp_path):
        alice = certificates.client_options(folder, "alice")
        with self.start(tmp_path / "server", folder, connection=alice) as server:
            assert ping(server, **alice) == 1
            completed = lines(server, "Ingress TLS handshake complete")
            assert completed[-1]["attr"]["clientCertificate"] == "CN=alice"
            status = server.client().admin.command("serverStatus")
            assert status["security"]["SSLServerHasCertificateAuthority"] is True
            with pytest.raises(REFUSED):
                ping(server, **certificates.client_options(folder))
            # Signed by an authority that the server does not trust.
            others = certificates.make(tmp_path / "others", "alice")
            stranger = {**alice, "tlsCertificateKeyFile": str(others / "alice.pem")}
            with pytest.raises(REFUSED):
                ping(server, **stranger)
            # A server's certificate is not accepted from a client.
            with pytest.raises(REFUSED):
                ping(server, **{**alice, "tlsCertificateKeyFile": str(folder / "server.pem")})

    def test_they_can_be_optional(self, folder, tmp_path):
        none = certificates.client_options(folder)
        allow = "--tlsAllowConnectionsWithoutCertificates"
        with self.start(tmp_path / "server", folder, allow, connection=none) as server:
            assert ping(server, **none) == 1
            completed = lines(server, "Ingress TLS handshake complete")
            assert completed[-1]["attr"]["clientCertificate"] is None
            assert ping(server, **certificates.client_options(folder, "alice")) == 1
            others = certificates.make(tmp_path / "others", "alice")
            with pytest.raises(REFUSED):
                ping(server, **{**none, "tlsCertificateKeyFile": str(others / "alice.pem")})


class TestRotation:
    @pytest.fixture
    def rotated(self, folder, tmp_path):
        """A server whose certificate is replaced, and the folder of its files."""
        files = tmp_path / "files"
        shutil.copytree(folder, files)
        with Server(tmp_path / "server", options=certificates.server_options(files),
                    connection=certificates.client_options(files)) as server:
            yield server, files

    @staticmethod
    def replace(files, tmp_path):
        """Makes a new authority and a certificate signed by it."""
        shutil.rmtree(files)
        return certificates.make(files)

    @staticmethod
    def by_signal(server, message):
        count = len(lines(server, message))
        server.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 10
        while len(lines(server, message)) == count:
            assert time.monotonic() < until, server.log()[-2000:]
            time.sleep(0.01)

    def test_a_command_replaces_certificates(self, rotated, tmp_path):
        server, files = rotated
        before = server.client()
        before.admin.command("ping")
        self.replace(files, tmp_path)
        with pytest.raises(REFUSED):
            ping(server, **certificates.client_options(files))
        reply = before.admin.command("rotateCertificates", 1, message="new year")
        assert reply["ok"] == 1
        assert ping(server, **certificates.client_options(files)) == 1
        assert before.admin.command("ping")["ok"] == 1, "open connections go on"

    def test_a_signal_replaces_certificates(self, rotated, tmp_path):
        server, files = rotated
        self.replace(files, tmp_path)
        self.by_signal(server, "Successfully rotated X509 certificates")
        assert ping(server, **certificates.client_options(files)) == 1

    def test_broken_files_change_nothing(self, rotated):
        server, files = rotated
        certificate = (files / "server.pem").read_text()
        key = re.search(r"-----BEGIN PRIVATE KEY.*", certificate, re.DOTALL).group()
        other = certificates.make(files.parent / "other")
        chain = (other / "server.pem").read_text().split("-----BEGIN PRIVATE")[0]
        for broken, reason in [("", "no certificate"), (key, "no certificate"),
                               (certificate.split("-----BEGIN PRIVATE")[0], "no private key"),
                               (certificate[:300], "server.pem"), (chain + key, "KeyMismatch")]:
            (files / "server.pem").write_text(broken)
            with pytest.raises(OperationFailure, match=reason) as failed:
                server.client().admin.command("rotateCertificates")
            assert failed.value.code == 140
            assert ping(server, **certificates.client_options(files)) == 1
        self.by_signal(server, "Certificates are not rotated: the previous ones stay in use")
        assert ping(server, **certificates.client_options(files)) == 1


def test_an_operation_ends_with_its_client(server, folder):
    """The alert that ends TLS must not look like another message of the client."""
    client = server.client()
    client.test.slow.insert_one({"_id": 1})
    long = {"$size": {"$filter": {"input": {"$range": [0, 100_000]}, "cond": {"$gt": ["$$this", 5]}}}}
    slow = {"aggregate": "slow", "cursor": {}, "$db": "test", "pipeline": [
        {"$project": {"r": {"$reduce": {"input": {"$range": [0, 100_000]}, "initialValue": 0, "in": {
            "$cond": [{"$eq": [long, "$$this"]}, 1, 0]}}}}}]}

    def running():
        operations = client.admin.aggregate([{"$currentOp": {}}])
        return [one for one in operations if one.get("command", {}).get("aggregate") == "slow"]

    for with_alert in (True, False):
        connection = certificates.connect(server, folder)
        connection.sendall(op_msg(section(slow)))
        until = time.monotonic() + 10
        while not running():
            assert time.monotonic() < until, "the operation does not run"
        if with_alert:
            connection.settimeout(0.2)
            try:
                connection.unwrap()
            except (OSError, ssl.SSLError):
                pass
        connection.close()
        until = time.monotonic() + 5
        while running():
            assert time.monotonic() < until, f"it does not end, with alert: {with_alert}"
            time.sleep(0.02)


def test_a_stop_says_goodbye(folder, tmp_path):
    with Server(tmp_path, options=certificates.server_options(folder),
                connection=certificates.client_options(folder)) as server:
        connection = certificates.connect(server, folder)
        assert server.stop() == 0
        # The end is announced: without an alert, Python raises SSLEOFError.
        assert connection.recv(1) == b""


def test_a_certificate_that_expires_soon_is_announced(folder, tmp_path):
    message = "The certificate of the server has to be replaced soon"
    soon = certificates.make(tmp_path / "soon", options=["--days", "10"])
    with Server(tmp_path / "server", options=certificates.server_options(soon),
                connection=certificates.client_options(soon)) as server:
        assert lines(server, message)[0]["attr"]["daysLeft"] in (8, 9)
    with Server(tmp_path / "other", options=certificates.server_options(folder),
                connection=certificates.client_options(folder)) as server:
        assert lines(server, message) == []


def test_files_are_checked_at_the_start(folder, tmp_path):
    def error(*options):
        with pytest.raises(RuntimeError) as failed:
            Server(tmp_path, options=options).kill()
        return str(failed.value)

    missing = str(tmp_path / "missing.pem")
    certificate = ["--tls-mode", "require", "--tls-certificate-key-file"]
    assert "missing.pem: No such file" in error(*certificate, missing)
    assert "ca.pem: it has no private key" in error(*certificate, str(folder / "ca.pem"))
    expired = tmp_path / "expired"
    certificates.make(expired)
    good = [*certificate, str(folder / "server.pem")]
    (expired / "empty.pem").write_text("nothing")
    assert "has no certificate" in error(*good, "--tls-ca-file", str(expired / "empty.pem"))
    assert "--tls-ca-file is missing" in error(*good, "--tls-crl-file", missing)


def run(server, *arguments):
    """Runs a command of Windrow beside a server."""
    command = [str(binary()), *arguments, "--data", str(server.data)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(server.folder)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    return ended.stdout + ended.stderr


def test_private_keys_can_be_encrypted(folder, tmp_path):
    pem = (folder / "server.pem").read_text()
    chain = "".join(re.findall(r"-----BEGIN CERT.*?-----END CERT[^\n]*\n", pem, re.DOTALL))
    encrypted = subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "pass:s3cret"],
        input=pem, capture_output=True, text=True, check=True).stdout
    assert "BEGIN ENCRYPTED PRIVATE KEY" in encrypted
    (tmp_path / "server.pem").write_text(chain + encrypted)
    options = certificates.server_options(tmp_path)
    server = Server(tmp_path, start=False, options=options,
                    connection=certificates.client_options(folder))
    with pytest.raises(RuntimeError, match="--tls-certificate-key-file-password is needed"):
        server.start()
    server.options = [*options, "--tlsCertificateKeyFilePassword", "wrong"]
    with pytest.raises(RuntimeError, match="the password of its private key is wrong"):
        server.start()
    configuration = tmp_path / "windrow.conf"
    configuration.write_text("net: {tls: {certificateKeyFilePassword: s3cret}}\n")
    for given in [["--config", str(configuration)], ["--tlsCertificateKeyFilePassword", "s3cret"],
                  ["--tls-certificate-key-file-password=s3cret"]]:
        with server:
            server.options = [*options, *given]
            server.start()
            shown = server.client().admin.command("getCmdLineOpts")
            assert shown["parsed"]["net"]["tls"]["certificateKeyFilePassword"] == "<password>"
            assert "s3cret" not in str(shown)
            server.client().admin.command("rotateCertificates")
            server.stop()
    assert "s3cret" not in server.log()


def test_other_commands_find_a_server_that_requires_tls_and_logins(folder, tmp_path):
    """They have no certificate: they use the Unix domain socket."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a velvet barge")
    options = [*certificates.server_options(folder), "--auth"]
    with Server(tmp_path / "server", options=options,
                connection=certificates.client_options(folder)) as server:
        admin = server.client().admin
        admin.command("createUser", "me", pwd="pw", roles=["root"])
        run(server, "index", str(tmp_path / "files"))
        assert "a.txt" in run(server, "search", "velvet")
        assert "open in a server" in run(server, "doctor")


def test_other_commands_say_that_they_need_the_socket(folder, tmp_path):
    options = [*certificates.server_options(folder), "--no-unix-socket"]
    with Server(tmp_path, options=options,
                connection=certificates.client_options(folder)) as server:
        assert "requires TLS and has no Unix domain socket" in run(server, "status")
