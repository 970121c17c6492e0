"""Cursors, sessions, transactions and operations belong to their user."""

import threading
import time
import uuid

import bson
import pytest
from pymongo.errors import OperationFailure

from logins import Conversation, code
from raw import Raw


@pytest.fixture(scope="module")
def two(root, login):
    """The clients of two users with one name in two databases. Both may read and write everything.
    """
    root.d.c.insert_many([{"_id": i} for i in range(1000)])
    first = login("readWriteAnyDatabase", name="same")
    root.other.command("createUser", "same", pwd="pw",
                       roles=[{"role": "readWriteAnyDatabase", "db": "admin"}])
    return first


@pytest.fixture(scope="module")
def other(server, two):
    return server.client(username="same", password="pw", authSource="other")


def test_cursors(root, two, other):
    cursor = two.d.command("find", "c", batchSize=2)["cursor"]["id"]
    assert code(other.d.command, "getMore", cursor, collection="c") == 13
    assert code(other.d.command, "killCursors", "c", cursors=[cursor]) == 13
    assert code(root.d.command, "getMore", cursor, collection="c") == 13
    assert two.d.command("getMore", cursor, collection="c", batchSize=2)["ok"]
    assert root.d.command("killCursors", "c", cursors=[cursor])["cursorsKilled"] == [cursor]
    cursor = two.d.command("find", "c", batchSize=2)["cursor"]["id"]
    assert two.d.command("killCursors", "c", cursors=[cursor])["cursorsKilled"] == [cursor]
    assert other.d.command("killCursors", "c", cursors=[cursor])["cursorsNotFound"] == [cursor]


def test_a_cursor_ends_with_the_privilege(root, login):
    client = login("read", name="losing", database="d")
    cursor = client.d.command("find", "c", batchSize=2)["cursor"]["id"]
    root.d.command("updateUser", "losing", roles=[{"role": "read", "db": "other"}])
    assert code(client.d.command, "getMore", cursor, collection="c") == 13
    root.d.command("updateUser", "losing", roles=["read"])
    assert client.d.command("getMore", cursor, collection="c", batchSize=2)["ok"]


def lsid():
    return {"id": bson.Binary(uuid.uuid4().bytes, 4)}


@pytest.fixture
def raw(server, two, other):
    """Connections of the two users without sessions of a driver."""
    with Raw(server) as one, Raw(server) as another:
        yield (Conversation(one).log_in("same", "pw"),
               Conversation(another, "other").log_in("same", "pw"))


def test_sessions_with_the_same_id_are_different(root, raw):
    one, another = raw
    session = lsid()
    part = {"lsid": session, "txnNumber": bson.Int64(1), "autocommit": False}
    assert one.run("d", insert="t", documents=[{"_id": 1}], startTransaction=True, **part)["ok"]
    # The other user has no such transaction.
    for command in ["commitTransaction", "abortTransaction"]:
        assert another.run("admin", **{command: 1}, **part)["code"] == 251
    assert another.run("admin", endSessions=[session])["ok"]
    assert another.run("admin", killSessions=[session])["ok"]
    assert one.run("admin", commitTransaction=1, **part)["ok"]
    assert root.d.t.find_one() == {"_id": 1}


def test_retried_writes_of_others_are_not_known(root, raw):
    one, another = raw
    insert = {"insert": "r", "documents": [{"x": 1}], "lsid": lsid(), "txnNumber": bson.Int64(1)}
    for client in [one, one, another]:
        assert client.run("d", **insert)["n"] == 1
    assert root.d.r.count_documents({}) == 2


def test_the_user_of_a_session_cannot_be_claimed(raw):
    one, another = raw
    session = lsid()
    assert one.run("admin", ping=1, lsid=session)["ok"]
    stage = {"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}
    listed = [one["_id"] for one in one.run("admin", **stage)["cursor"]["firstBatch"]]
    [own] = [identifier for identifier in listed if identifier["id"] == session["id"]]
    assert one.run("d", find="c", lsid=own)["ok"]
    assert another.run("d", find="c", lsid=own)["code"] == 13
    for command in ["killSessions", "refreshSessions", "endSessions"]:
        assert another.run("admin", **{command: [own]})["code"] == 13
    assert one.run("admin", killSessions=[own])["ok"]


def test_sessions_are_listed_for_their_user(root, two, other, raw):
    session = lsid()
    raw[0].run("admin", ping=1, lsid=session)

    def listed(client, **options):
        found = client.admin.aggregate([{"$listLocalSessions": options}])
        return session["id"] in [bson.Binary(bytes(one["_id"]["id"]), 4) for one in found]

    assert listed(two) and not listed(other) and not listed(root)
    assert listed(root, allUsers=True)
    assert listed(root, users=[{"user": "same", "db": "admin"}])
    assert not listed(root, users=[{"user": "same", "db": "other"}])
    assert code(listed, two, allUsers=True) == 13
    assert code(listed, two, users=[{"user": "same", "db": "admin"}]) == 13
    root.admin.command("killAllSessions", [{"user": "same", "db": "admin"}])
    assert not listed(root, allUsers=True)
    assert code(root.admin.command, "killAllSessions", [{"user": "x", "db": "d"}]) == 11
    assert code(two.admin.command, "killAllSessions", []) == 13


@pytest.fixture
def slow(two, root):
    """An operation of the first user that waits for documents."""
    root.d.drop_collection("waits")
    root.d.create_collection("waits", capped=True, size=4096).insert_one({})
    cursor = two.d.command("find", "waits", tailable=True, awaitData=True, comment="slow")["cursor"]
    failed = []

    def run():
        try:
            two.d.command("getMore", cursor["id"], collection="waits", maxTimeMS=60_000)
        except OperationFailure as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    end = time.monotonic() + 20
    while not operations(root) and time.monotonic() < end:
        time.sleep(.01)
    yield failed, thread
    for operation in operations(root):
        root.admin.command("killOp", op=operation["opid"])
    thread.join(20)


def operations(client, **options):
    found = client.admin.command({"currentOp": True, **options})["inprog"]
    return [one for one in found if one.get("command", {}).get("comment") == "slow"]


def test_operations(root, two, other, slow):
    failed, thread = slow
    [operation] = operations(root)
    assert operation["effectiveUsers"] == [{"user": "same", "db": "admin"}]
    assert len(operations(two, **{"$ownOps": True})) == 1
    assert operations(other, **{"$ownOps": True}) == []
    assert code(two.admin.command, "currentOp") == 13
    stage = lambda client, **options: [
        one for one in client.admin.aggregate([{"$currentOp": options}])
        if one.get("command", {}).get("comment") == "slow"]
    assert len(stage(two)) == 1 and stage(other) == []
    assert stage(root) == [] and len(stage(root, allUsers=True)) == 1
    assert code(stage, two, allUsers=True) == 13
    assert code(other.admin.command, "killOp", op=operation["opid"]) == 13
    assert thread.is_alive()
    two.admin.command("killOp", op=operation["opid"])
    thread.join(20)
    assert failed[0].code == 11601


def test_killing_nothing_tells_nothing(two):
    assert code(two.admin.command, "killOp", op=2_000_000_000) == 13


def test_the_profile_names_the_user(root, login):
    client = login("readWrite", name="profiled", database="profiled")
    root.profiled.command("profile", 2)
    client.profiled.c.insert_one({})
    root.profiled.command("profile", 0)
    entry = root.profiled["system.profile"].find_one({"op": "insert"})
    assert entry["user"] == "profiled@profiled"
    assert entry["allUsers"] == [{"user": "profiled", "db": "profiled"}]
    # Its administrators may read the profile, other users not.
    login("dbAdmin", database="profiled").profiled["system.profile"].find_one()
    assert code(client.profiled["system.profile"].find_one) == 13


def test_names_of_others_are_not_listed(root, login):
    root.secret.c.insert_one({})
    root.shared.one.insert_one({})
    root.shared.two.insert_one({})
    root.shared.command("createRole", "one", roles=[], privileges=[
        {"resource": {"db": "shared", "collection": "one"}, "actions": ["find"]}])
    client = login("one", database="shared")
    assert client.list_database_names() == ["shared"]
    assert code(client.admin.command, "listDatabases", authorizedDatabases=False) == 13
    listed = root.admin.command("listDatabases", authorizedDatabases=True)["databases"]
    assert {"secret", "shared"} <= {one["name"] for one in listed}
    assert code(client.shared.command, "listCollections") == 13
    assert code(client.shared.command, "listCollections", nameOnly=True) == 13
    listed = client.shared.command("listCollections", nameOnly=True, authorizedCollections=True)
    assert [one["name"] for one in listed["cursor"]["firstBatch"]] == ["one"]
    assert code(client.secret.command, "listCollections", nameOnly=True,
                authorizedCollections=True) == 13


def test_the_user_matters_and_not_the_connection(server, raw):
    one, another = raw
    cursor = one.run("d", find="c", batchSize=2)["cursor"]["id"]
    more = {"getMore": bson.Int64(cursor), "collection": "c", "batchSize": 1}
    with Raw(server) as nobody:
        assert Conversation(nobody).run("d", **more)["code"] == 13
    assert another.run("d", **more)["code"] == 13
    with Raw(server) as connection:
        assert Conversation(connection).log_in("same", "pw").run("d", **more)["ok"]
