"""A server that ends sends error labels by which drivers know how to continue after the restart."""

import pathlib
import sys
import time
import uuid

import bson
import pytest
from bson.binary import Binary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from raw import Raw, op_msg, section  # noqa: E402
from windrow_server import Server  # noqa: E402

# Runs far longer than any test waits.
SLOW = {"$match": {"$expr": {"$reduce": {
    "input": {"$range": ["$from", 2_000_000]}, "initialValue": 0,
    "in": {"$max": {"$range": ["$$this", {"$add": ["$$this", 100]}]}}}}}}
SHUTDOWN = (91, 11600)


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path) as server:
        yield server


def ended(raw, server, command):
    """The reply of a command that runs while its server is asked to end."""
    raw.send(op_msg(section(command | {"$db": "d"})))
    time.sleep(0.3)
    server.stop()
    return raw.reply()


def waited_for(server, command):
    """The reply of a getMore that waits on the cursor of a command while its server is asked to
    end."""
    with Raw(server) as raw:
        opened = raw.send(op_msg(section(command | {"$db": "d"}))).reply()
        cursor = bson.Int64(opened["cursor"]["id"])
        return ended(raw, server, {"getMore": cursor, "collection": "c", "maxTimeMS": 10_000})


def session():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def test_a_waiting_change_stream_may_be_opened_again(server):
    server.client().d.c.insert_one({})
    reply = waited_for(server, {"aggregate": "c", "pipeline": [{"$changeStream": {}}],
                                "cursor": {}})
    assert reply["code"] in SHUTDOWN
    assert reply["errorLabels"] == ["ResumableChangeStreamError"]


def test_other_cursors_have_no_label(server):
    client = server.client()
    client.d.create_collection("c", capped=True, size=10_000)
    client.d.c.insert_one({"_id": 1})
    reply = waited_for(server, {"find": "c", "tailable": True, "awaitData": True})
    assert reply["code"] in SHUTDOWN
    assert "errorLabels" not in reply


def test_a_transaction_may_be_begun_anew(server):
    server.client().d.c.insert_many([{"from": 0}, {"from": 1}])
    within = {"lsid": session(), "txnNumber": bson.Int64(1), "startTransaction": True,
              "autocommit": False}
    with Raw(server) as raw:
        reply = ended(raw, server, {"aggregate": "c", "pipeline": [SLOW], "cursor": {}} | within)
    assert reply["code"] in SHUTDOWN
    assert reply["errorLabels"] == ["TransientTransactionError"]
