"""Clients of five kinds log in by each mechanism, with TLS and without, and are refused with a wrong password."""

import sys

import pytest

from windrow_server import ROOT, Server

sys.path[:0] = [str(ROOT / "tests" / "wire"), str(ROOT / "tests" / "drivers")]
import certificates  # noqa: E402
from programs import DRIVERS, Login  # noqa: E402

PASSWORD, AUTHENTICATION_FAILED = "p@ss:wörd/€", "18"
ENCODED = "p%40ss%3Aw%C3%B6rd%2F%E2%82%AC"
SCRAM = ["SCRAM-SHA-1", "SCRAM-SHA-256"]
CASES = [(mechanism, tls) for mechanism in SCRAM for tls in (False, True)] + [("MONGODB-X509", True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return certificates.make(tmp_path_factory.mktemp("tls") / "files", "alice", "bob")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    options = certificates.server_options(
        folder, "prefer", "--auth", "--tls-ca-file", str(folder / "ca.pem"),
        "--tls-allow-connections-without-certificates")
    with Server(tmp_path_factory.mktemp("server"), options=options) as server:
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        admin = server.client(username="root", password="secret")
        roles = [{"role": "readWrite", "db": "shop"}]
        admin.accounts.command("createUser", "cook", pwd=PASSWORD, roles=roles)
        admin["$external"].command("createUser", "CN=alice", roles=roles)
        yield server
        assert "Panic" not in server.log()


def login(server, folder, mechanism, tls, right):
    host = f"localhost:{server.port}/?directConnection=true&authMechanism={mechanism}"
    if mechanism == "MONGODB-X509":
        # The certificate of bob is valid, but there is no such user.
        return Login(f"mongodb://{host}&authSource=%24external", folder, "alice" if right else "bob")
    user = f"cook:{ENCODED if right else 'wrong'}"
    return Login(f"mongodb://{user}@{host}&authSource=accounts", folder if tls else None)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
def test_a_driver_logs_in(server, folder, driver):
    cakes = server.client(username="root", password="secret").shop.cakes
    cakes.drop()
    start = len(server.log())
    right = [login(server, folder, *case, True) for case in CASES]
    wrong = [login(server, folder, *case, False) for case in CASES]
    answers = driver(right + wrong)
    expected = ["found"] * len(CASES) + [AUTHENTICATION_FAILED] * len(CASES)
    assert dict(zip(range(len(expected)), answers)) == dict(zip(range(len(expected)), expected)), answers
    assert cakes.count_documents({"driver": driver.__name__}) == len(CASES)
    logged = server.log()[start:]
    for mechanism in {mechanism for mechanism, _ in CASES}:
        assert f'"mechanism":"{mechanism}"' in logged
