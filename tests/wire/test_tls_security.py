"""Attacks before the handshake ends: old versions, weak ciphers, slow handshakes, damaged records,
and records without an end."""

import errno
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from windrow_server import Server

sys.path.insert(0, str(Path(__file__).parent))
import certificates  # noqa: E402
from raw import op_msg, section  # noqa: E402

MUTATIONS = 10_000
HANDSHAKE_SECONDS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("tls") / "files", "alice")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    options = certificates.server_options(
        folder, "require", "--tls-ca-file", str(folder / "ca.pem"),
        "--handshake-seconds-max", str(HANDSHAKE_SECONDS))
    with Server(tmp_path_factory.mktemp("server"), options=options,
                connection=certificates.client_options(folder, "alice")) as server:
        yield server
        assert "Panic" not in server.log()


def probe(server, folder, *options):
    certificate = ["-cert", str(folder / "alice.pem"), "-key", str(folder / "alice.pem")]
    return certificates.s_client(server, folder, *certificate, *options)


def test_new_versions_are_accepted(server, folder):
    for option, version in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")]:
        accepted, output = probe(server, folder, option)
        assert accepted and re.search(rf"{version}, Cipher is \w", output), output
        assert "Compression: NONE" in output


def test_old_versions_are_refused(server, folder):
    # The client must offer them: OpenSSL does so at the lowest security level only.
    for option in ("-tls1", "-tls1_1"):
        accepted, output = probe(server, folder, option, "-cipher", "ALL:@SECLEVEL=0")
        assert not accepted, output
        assert "Cipher is (NONE)" in output and "SSL alert number" in output, output


def test_ssl_3_is_refused(server):
    """OpenSSL cannot offer it any more: a hello byte by byte."""
    hello = bytes.fromhex("0300" + "ab" * 32 + "00" + "0004" + "002f000a" + "0100")
    handshake = b"\x01" + len(hello).to_bytes(3, "big") + hello
    record = b"\x16\x03\x00" + len(handshake).to_bytes(2, "big") + handshake
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(record)
        reply = connection.recv(100)
    # An alert, fatal: no ServerHello.
    assert reply[:1] == b"\x15" and reply[5:6] == b"\x02", reply


def test_disabled_versions_are_refused(folder, tmp_path):
    for disabled, left, refused in [("TLS1_2", "-tls1_3", "-tls1_2"), ("TLS1_3", "-tls1_2", "-tls1_3")]:
        options = certificates.server_options(folder, "require", "--tlsDisabledProtocols", disabled)
        with Server(tmp_path / disabled, options=options,
                    connection=certificates.client_options(folder)) as server:
            assert certificates.s_client(server, folder, left)[0]
            assert not certificates.s_client(server, folder, refused)[0]


def test_only_strong_ciphers_are_accepted(server, folder):
    """Each cipher that OpenSSL knows is offered alone."""
    listed = subprocess.run(["openssl", "ciphers", "-s", "-tls1_2", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"],
                            check=True, capture_output=True, text=True).stdout.strip().split(":")
    accepted = {name for name in listed if not name.startswith("TLS_") and probe(
        server, folder, "-tls1_2", "-cipher", f"{name}:@SECLEVEL=0")[0]}
    assert len(listed) > 60
    assert accepted == {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
                        "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_renegotiation_is_refused(server, folder):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2",
               "-CAfile", str(folder / "ca.pem"), "-cert", str(folder / "alice.pem"),
               "-key", str(folder / "alice.pem")]
    # A line of an R renegotiates.
    ended = subprocess.run(command, input="R\n", capture_output=True, text=True, timeout=30)
    assert "no renegotiation" in ended.stdout + ended.stderr, ended.stdout + ended.stderr


def test_a_client_without_a_certificate_is_refused(server, folder):
    """In TLS 1.3 it learns this after its own handshake: from the next bytes."""
    for version in ("-tls1_2", "-tls1_3"):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile", str(folder / "ca.pem"),
                   "-ign_eof", version]
        ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=30)
        output = ended.stdout + ended.stderr
        assert "Acceptable client certificate CA names" in output, output
        assert "alert certificate required" in output or "alert handshake failure" in output, output


def test_early_data_is_refused(server, folder, tmp_path):
    """An attacker could send it again."""
    session, early = tmp_path / "session", tmp_path / "early"
    early.write_bytes(op_msg(section({"ping": 1, "$db": "admin"})))
    probe(server, folder, "-tls1_3", "-sess_out", str(session))
    resumed = ["-sess_in", str(session)] if session.exists() else []
    _, output = probe(server, folder, "-tls1_3", *resumed, "-early_data", str(early))
    assert "Early data was accepted" not in output and "Early data was" in output, output


def test_a_handshake_has_a_deadline(server, folder):
    """Whether the client sends nothing, a part, or a byte now and then."""
    hello = ClientHello(folder).first()

    def drip(connection):
        for byte in hello:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)

    for send in (lambda connection: None, lambda connection: connection.sendall(hello[:1]),
                 lambda connection: connection.sendall(hello[:50]),
                 lambda connection: connection.sendall(hello), drip):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
            try:
                send(connection)
                while connection.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
        took = time.monotonic() - began
        assert HANDSHAKE_SECONDS - 0.5 < took < HANDSHAKE_SECONDS + 5


class ClientHello:
    """The client of a handshake, whose bytes can be changed on their way."""

    def __init__(self, folder, version=None):
        context = certificates.context(folder, "alice")
        if version:
            context.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def first(self):
        """The first flight."""
        self.step(b"")
        return self.outgoing.read()

    def step(self, received):
        """Takes the bytes of the server. Returns whether the handshake is done."""
        if received:
            self.incoming.write(received)
        try:
            self.session.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False


def mutated(data, random_source):
    """Bytes changed, cut, repeated, inserted, or with another length in a header."""
    data = bytearray(data)
    for _ in range(random_source.choice([1, 1, 1, 2, 5, 20])):
        at = random_source.randrange(len(data)) if data else 0
        kind = random_source.randrange(7)
        if kind == 0 and data:
            data[at] = random_source.randrange(256)
        elif kind == 1 and data:
            data[at] ^= 1 << random_source.randrange(8)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = random_source.randbytes(random_source.choice([1, 2, 100, 20_000]))
        elif kind == 4:
            data[at:at] = data[at:at + random_source.randrange(1, 200)]
        elif kind == 5 and data:
            del data[at:at + random_source.randrange(1, 20)]
        elif len(data) > 9:
            # The length of the record or of the message in it.
            data[random_source.choice([3, 4, 6, 7, 8])] = random_source.choice([0, 1, 0x40, 0x7f, 0xff])
    return bytes(data)


def attack(server, folder, seed, count):
    source = random.Random(seed)
    for _ in range(count):
        version = source.choice([None, ssl.TLSVersion.TLSv1_2])
        client, flight = ClientHello(folder, version), source.randrange(2)
        with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
            try:
                sent = client.first()
                connection.sendall(mutated(sent, source) if flight == 0 else sent)
                if flight == 1:
                    done = False
                    while not done and not (sent := client.outgoing.read()):
                        received = connection.recv(1 << 16)
                        if not received:
                            break
                        done = client.step(received)
                    connection.sendall(mutated(sent or client.outgoing.read(), source))
                # The server must not wait for the rest.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
            # The server may have hung up already; other errors are not expected.
            except (ConnectionError, ssl.SSLError):
                pass
            except OSError as error:
                if error.errno != errno.ENOTCONN:
                    raise


def resident_bytes(server):
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_damaged_records_do_no_harm(server, folder):
    client = server.client()
    client.admin.command("ping")
    attack(server, folder, 0, 200)
    before, failures = resident_bytes(server), []

    def run(seed):
        try:
            attack(server, folder, seed, MUTATIONS // 4)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(1, 5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []
    assert client.admin.command("ping")["ok"] == 1
    assert "Panic" not in server.log()
    until = time.monotonic() + 20
    while (current := client.admin.command("serverStatus")["connections"]["current"]) > 10:
        assert time.monotonic() < until, f"{current} connections are left"
        time.sleep(0.1)
    grown = resident_bytes(server) - before
    assert grown < 64 << 20, f"{grown >> 20} MiB more"


def test_a_handshake_without_an_end_uses_little_memory(server, folder):
    """A message of the handshake that declares 16 MB, sent by many clients."""
    before = resident_bytes(server)
    client = server.client()
    start = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + b"\x03\x03" + bytes(16378)
    more = b"\x16\x03\x03\x40\x00" + bytes(16384)
    connections = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(100)]
    for connection in connections:
        try:
            connection.sendall(start)
            for _ in range(60):
                connection.sendall(more)
        except OSError:
            pass
    assert client.admin.command("ping")["ok"] == 1
    grown = resident_bytes(server) - before
    for connection in connections:
        connection.close()
    assert grown < 64 << 20, f"{grown >> 20} MiB more"


def test_a_plain_message_in_a_session_is_an_error(server, folder):
    connection = certificates.connect(server, folder, "alice")
    plain = socket.socket(fileno=os.dup(connection.fileno()))
    plain.sendall(op_msg(section({"ping": 1, "$db": "admin"})))
    with pytest.raises((OSError, ssl.SSLError)):
        if not connection.recv(1):
            raise ConnectionError("closed")
    plain.close()
    connection.close()
    assert server.client().admin.command("ping")["ok"] == 1


def test_failed_handshakes_are_logged_with_their_reason(server, folder):
    certificates.s_client(server, folder)
    errors = [json.loads(line)["attr"]["error"] for line in server.log().splitlines()
              if '"id":22988' in line]
    assert any("SSL handshake failed: peer sent no certificates" in error for error in errors)
