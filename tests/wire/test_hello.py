"""The first commands of drivers and shells, and sessions."""

import pathlib
import sys
import time
import uuid

import pymongo
import pytest
from bson import Binary, Int64, ObjectId
from pymongo.errors import OperationFailure

from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from raw import Raw, op_msg, section  # noqa: E402


@pytest.mark.parametrize("name", ["hello", "isMaster", "ismaster"])
def test_hello(client, name):
    reply = client.admin.command(name)
    assert reply["ok"] == 1
    assert reply["isWritablePrimary" if name == "hello" else "ismaster"] is True
    assert (reply["maxBsonObjectSize"], reply["maxMessageSizeBytes"]) == (16_777_216, 48_000_000)
    assert reply["maxWriteBatchSize"] == 100_000
    assert reply["minWireVersion"] == 0 and reply["maxWireVersion"] >= 21
    assert reply["readOnly"] is False and "localTime" in reply and "connectionId" in reply


def test_build_info(client):
    info = client.admin.command("buildInfo")
    assert info["version"].count(".") == 2 and len(info["versionArray"]) == 4
    assert (info["bits"], info["maxBsonObjectSize"]) == (64, 16_777_216)


@pytest.mark.parametrize("command", [
    {"ping": 1}, {"whatsmyuri": 1}, {"connectionStatus": 1}, {"hostInfo": 1}, {"serverStatus": 1},
    {"listCommands": 1}, {"listDatabases": 1}, {"getLog": "startupWarnings"}, {"getLog": "*"},
    {"getParameter": 1, "featureCompatibilityVersion": 1}, {"currentOp": 1},
    {"getCmdLineOpts": 1}])
def test_what_shells_ask(client, command):
    assert client.admin.command(command)["ok"] == 1


def test_server_status_counts(client):
    before = client.admin.command("serverStatus")
    client.counted.c.insert_many([{"x": 1}, {"x": 2}])
    list(client.counted.c.find())
    after = client.admin.command("serverStatus")
    assert after["opcounters"]["insert"] - before["opcounters"]["insert"] == 2
    assert after["opcounters"]["query"] - before["opcounters"]["query"] == 1
    assert after["connections"]["current"] >= 1 and after["uptime"] >= before["uptime"]
    client.drop_database("counted")


def test_every_listed_command_has_a_help_text(client):
    commands = client.admin.command("listCommands")["commands"]
    for name in ["insert", "find", "getMore", "update", "delete", "findAndModify", "count",
                 "distinct", "aggregate", "explain", "create", "drop", "dropDatabase",
                 "listCollections", "listDatabases", "createIndexes", "dropIndexes",
                 "listIndexes", "collStats", "dbStats", "validate", "currentOp", "shutdown",
                 "killCursors", "hello", "ping"]:
        assert isinstance(commands[name]["help"], str), name
    assert list(commands) == sorted(commands)


def test_sessions_start_and_end(client, database):
    started = client.admin.command("startSession")
    assert started["timeoutMinutes"] == 30
    session = started["id"]
    assert database.command({"insert": "c", "documents": [{"x": 1}], "lsid": session})["n"] == 1
    assert client.admin.command({"endSessions": [session]})["ok"] == 1
    with client.start_session() as one:
        assert database.c.find_one({}, session=one)["x"] == 1
    own = {"id": Binary(uuid.uuid4().bytes, 4)}
    assert database.command({"find": "c", "lsid": own})["ok"] == 1


def test_many_connections_at_once(server, client):
    many = [pymongo.MongoClient(server.uri, maxPoolSize=1) for _ in range(100)]
    try:
        for number, one in enumerate(many):
            assert one.admin.command("ping")["ok"] == 1, number
        assert client.admin.command("serverStatus")["connections"]["current"] >= 100
    finally:
        for one in many:
            one.close()


def test_a_time_limit_ends_an_operation(client, database):
    database.c.insert_many([{"_id": one, "pad": "x" * 200} for one in range(100_000)])
    with pytest.raises(OperationFailure) as error:
        list(database.c.find({"pad": {"$regex": "(x+x+)+y"}}).max_time_ms(1))
    assert error.value.code == 50
    assert database.c.count_documents({}) == 100_000


def test_stopping_by_command(tmp_path):
    with Server(tmp_path) as server:
        with server.client() as client:
            client.a.b.insert_one({"_id": 1})
            with pytest.raises(pymongo.errors.ConnectionFailure):
                client.admin.command("shutdown")
                client.admin.command("ping")
        assert server.process.wait(30) == 0
        server.start()
        assert server.client().a.b.find_one() == {"_id": 1}


@pytest.mark.parametrize("known", ["foreign", "same"])
def test_replies_to_one_hello_have_pauses(server, known):
    """A client that is not logged in must not get replies without a pause."""
    with Raw(server) as connection:
        hello = {"hello": 1, "$db": "admin"}
        version = connection.send(op_msg(section(hello))).reply()["topologyVersion"]
        if known == "foreign":
            version["processId"] = ObjectId()
        hello |= {"topologyVersion": version, "maxAwaitTimeMS": Int64(0)}
        connection.send(op_msg(section(hello), flags=1 << 16))
        began, replies = time.monotonic(), 0
        while time.monotonic() - began < 1:
            assert connection.reply()["ok"] == 1
            replies += 1
    assert 1 < replies <= 101
