"""A write that is sent again with its session and number is made once and gets its first answer
again, also from a server that was killed in between, after folds and without the collection."""

import pathlib
import sys
import uuid

import pytest
from bson import Binary, Int64
from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from raw import Raw, op_msg, section  # noqa: E402


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path) as server:
        yield server


class Session:
    """Sends commands with a session of its own, as no driver allows it."""

    def __init__(self):
        self.id = {"id": Binary(uuid.uuid4().bytes, 4)}

    def run(self, server, number, command, database="d", **more):
        numbered = {"lsid": self.id, "txnNumber": Int64(number), "$db": database}
        with Raw(server) as connection:
            return connection.send(op_msg(section(command | numbered | more))).reply()


def insert(*ids):
    return {"insert": "c", "documents": [{"_id": one, "n": 0} for one in ids]}


UPDATE = {"update": "c", "updates": [
    {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}},
    {"q": {"_id": "new"}, "u": {"$inc": {"n": 1}}, "upsert": True},
    {"q": {"_id": "none"}, "u": {"$inc": {"n": 1}}}]}
MODIFY = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}}
DELETE = {"delete": "c", "deletes": [{"q": {"n": 0}, "limit": 1}, {"q": {"n": 0}, "limit": 1}]}
REMOVE = {"findAndModify": "c", "query": {"n": 0}, "sort": {"_id": 1}, "remove": True}
BULK = {"bulkWrite": 1, "nsInfo": [{"ns": "d.c"}], "ops": [
    {"insert": 0, "document": {"_id": "b"}},
    {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}},
    {"delete": 0, "filter": {"n": 0}}]}

WRITES = {
    "insert": insert(10, 11, 12), "update": UPDATE, "delete": DELETE, "remove": REMOVE,
    "modify": MODIFY, "modify to new": MODIFY | {"new": True},
    "modify with an upsert": MODIFY | {"query": {"_id": "other"}, "upsert": True, "new": True},
}


def everything(server):
    return list(server.client().d.c.find().sort("_id", 1))


@pytest.mark.parametrize("between", ["nothing", "kill", "stop", "compacted"])
@pytest.mark.parametrize("name", WRITES)
def test_what_is_sent_again_is_answered_again(server, name, between):
    session = Session()
    session.run(server, 1, insert(1, 2, 3))
    first = session.run(server, 2, WRITES[name])
    before = everything(server)
    if between == "compacted":
        # Everything is folded, so the log may be cut.
        server.client().d.command("compact", "c")
        server.kill()
        server.start()
    elif between != "nothing":
        getattr(server, between)()
        server.start()
    again = session.run(server, 2, WRITES[name])
    # The reply also names the statements that had run before.
    retried = again.pop("retriedStmtIds", None) or [again.pop("retriedStmtId")]
    assert retried[0] == 0 and again == first
    assert everything(server) == before


def test_one_number_and_no_older(server):
    session = Session()
    session.run(server, 5, insert(1))
    server.kill()
    server.start()
    assert session.run(server, 4, insert(2))["code"] == 225
    assert session.run(server, 6, insert(2))["n"] == 1
    assert session.run(server, 5 + 2, MODIFY)["value"]["n"] == 0


def test_statements_that_failed_are_made(server):
    session = Session()
    server.client().d.c.insert_one({"_id": 2})
    first = session.run(server, 1, insert(1, 2, 3), ordered=False)
    assert (first["n"], len(first["writeErrors"])) == (2, 1)
    server.client().d.c.delete_one({"_id": 2})
    server.kill()
    server.start()
    again = session.run(server, 1, insert(1, 2, 3), ordered=False)
    assert (again["n"], "writeErrors" in again) == (3, False)
    assert len(everything(server)) == 3


def test_a_command_for_several_collections(server):
    session = Session()
    session.run(server, 1, insert(1, 2, 3))
    first = session.run(server, 2, BULK, "admin")
    server.kill()
    server.start()
    again = session.run(server, 2, BULK, "admin")
    counts = ("nInserted", "nModified", "nDeleted", "nErrors")
    assert [again[one] for one in counts] == [first[one] for one in counts] == [1, 1, 1, 0]
    assert len(everything(server)) == 3


def test_without_the_collection(server):
    session = Session()
    session.run(server, 1, insert(1))
    server.client().d.c.drop()
    server.kill()
    server.start()
    assert session.run(server, 1, insert(1))["n"] == 1
    assert everything(server) == []


def test_a_name_that_is_another_collections_by_now(server):
    """Regression: a retry was refused with 361 if its collection had been renamed since."""
    session, database = Session(), server.client().d
    session.run(server, 1, insert(1, 2, 3))
    known = next(database.list_collections(filter={"name": "c"}))["info"]["uuid"]
    named = {"collectionUUID": known}
    update = UPDATE | {"updates": UPDATE["updates"][:2]} | named
    place = BULK | {"nsInfo": [{"ns": "d.c"} | named]}
    commands = [(insert(4, 5) | named, "d"), (update, "d"), (DELETE | named, "d"), (place, "admin"), (MODIFY, "d")]
    sessions = [Session() for _ in commands]
    first = [session.run(server, 1, *command) for session, command in zip(sessions, commands)]
    assert all("writeErrors" not in reply and reply.get("nErrors", 0) == 0 for reply in first)
    database.c.rename("e")
    database.command("create", "c", viewOn="e", pipeline=[])
    before = list(database.e.find().sort("_id", 1))
    again = [session.run(server, 1, *command) for session, command in zip(sessions, commands)]
    counts = ("n", "nModified", "nInserted", "nDeleted", "nErrors", "writeErrors", "lastErrorObject", "value", "upserted")
    for one, other in zip(first, again):
        assert [one.get(name) for name in counts] == [other.get(name) for name in counts]
    assert list(database.e.find().sort("_id", 1)) == before
    # Statements that have not run are refused one by one.
    more = session.run(server, 2, insert(6, 7) | named, ordered=False)
    assert (more["n"], [error["code"] for error in more["writeErrors"]]) == (0, [361, 361])


def test_a_commit_that_is_sent_again(server):
    session = Session()
    server.client().d.create_collection("c")
    within = {"autocommit": False}
    session.run(server, 1, insert(1), startTransaction=True, **within)
    commit = {"commitTransaction": 1}
    assert session.run(server, 1, commit, "admin", **within)["ok"] == 1
    server.kill()
    server.start()
    assert session.run(server, 1, commit, "admin", **within)["ok"] == 1
    assert session.run(server, 1, {"abortTransaction": 1}, "admin", **within)["code"] == 256
    assert everything(server) == [{"_id": 1, "n": 0}]
