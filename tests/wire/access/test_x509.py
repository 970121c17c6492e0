"""Logins with the certificate of a connection: MONGODB-X509."""

import subprocess

import pymongo
import pytest
from pymongo.errors import OperationFailure

import certificates
from windrow_server import ROOT, Server

SUBJECT = "CN=alice"


@pytest.fixture
def folder(tmp_path):
    return certificates.make(tmp_path / "tls", "alice", "bob")


@pytest.fixture
def server(folder, tmp_path):
    options = certificates.server_options(
        folder, "require", "--tls-ca-file", str(folder / "ca.pem"),
        "--tls-allow-connections-without-certificates")
    with Server(tmp_path, options=options, connection=certificates.client_options(folder)) as server:
        external = server.client()["$external"]
        external.command("createUser", SUBJECT, roles=[{"role": "readWrite", "db": "shop"}])
        yield server


def connect(server, folder, name, **options):
    return pymongo.MongoClient(
        "127.0.0.1", server.port, directConnection=True, authMechanism="MONGODB-X509",
        **certificates.client_options(folder, name), **options)


def code(function, *arguments):
    with pytest.raises(OperationFailure) as error:
        function(*arguments)
    return error.value.code


def test_the_subject_of_the_certificate_is_the_user(server, folder):
    with connect(server, folder, "alice") as client:
        client.shop.fruit.insert_one({"_id": 1})
        assert client.shop.fruit.find_one() == {"_id": 1}
        assert code(client.other.fruit.find_one) == 13
        status = client.admin.command("connectionStatus")["authInfo"]
        assert status["authenticatedUsers"] == [{"user": SUBJECT, "db": "$external"}]
    with connect(server, folder, "alice", username=SUBJECT) as client:
        assert client.shop.fruit.find_one() == {"_id": 1}
    assert f'"user":"{SUBJECT}"' in server.log() and "MONGODB-X509" in server.log()


def test_others_are_refused_with_one_error(server, folder):
    unknown = connect(server, folder, "bob")
    wrong_name = connect(server, folder, "bob", username=SUBJECT)
    without = connect(server, folder, None)
    without_named = connect(server, folder, None, username=SUBJECT)
    for client in [unknown, wrong_name, without, without_named]:
        with client:
            assert code(client.shop.fruit.find_one) == 18
    # Without a login, the user of the same client is not known.
    with pymongo.MongoClient("127.0.0.1", server.port, directConnection=True,
                             **certificates.client_options(folder, "alice")) as client:
        assert code(client.shop.fruit.find_one) == 13
        wrong = {"authenticate": 1, "mechanism": "MONGODB-X509"}
        assert code(client.admin.command, wrong) == 18
        assert code(client["$external"].command, {**wrong, "mechanism": "PLAIN"}) == 334


def test_a_dropped_user_is_refused_at_once(server, folder):
    with connect(server, folder, "alice") as client:
        client.shop.fruit.insert_one({"_id": 1})
        server.client()  # has no rights
        with connect(server, folder, "alice") as other:
            assert other.shop.fruit.find_one() == {"_id": 1}
        admin = {"roles": [{"role": "root", "db": "admin"}]}
        assert code(client["$external"].command, "createUser", "CN=bob", admin) == 13


def test_it_is_not_enabled_without_authorities(tmp_path):
    folder = certificates.make(tmp_path / "tls", "alice")
    options = certificates.server_options(folder)
    with Server(tmp_path, options=options, connection=certificates.client_options(folder)) as server:
        with connect(server, folder, "alice") as client:
            assert code(client.shop.fruit.find_one) == 334


def test_mongosh_logs_in_with_a_certificate(server, folder):
    mongosh = ROOT / ".cache" / "mongosh" / "node_modules" / ".bin" / "mongosh"
    if not mongosh.exists():
        pytest.skip("`make test` installs mongosh")
    options = ["--tls", "--tlsCAFile", folder / "ca.pem", "--tlsCertificateKeyFile", folder / "alice.pem",
               "--authenticationMechanism", "MONGODB-X509", "--authenticationDatabase", "$external"]
    shown = "db.runCommand({connectionStatus: 1}).authInfo.authenticatedUsers[0].user"
    command = [mongosh, "--quiet", "--norc", *options, f"mongodb://localhost:{server.port}/shop", "--eval", shown]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == SUBJECT, ended.stderr
