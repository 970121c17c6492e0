"""Long operations end: by maxTimeMS, by the limit of all reads, by killOp, and with their client.
"""

import sys
import threading
import time
from pathlib import Path

import pytest
from answers import refused
from pymongo.errors import OperationFailure

from windrow_server import Server, wait_until

sys.path.insert(0, str(Path(__file__).parent))
from raw import Raw, op_msg, section  # noqa: E402

COUNT = 3_000

# Seconds of work for each document. Returns true or false for all of them.
WORK = {"$sum": {"$map": {"input": {"$range": [0, 5_000_000]}, "in": {
    "$mod": ["$$this", {"$add": ["$n", 7]}]}}}}
ALL = {"$expr": {"$gt": [WORK, -1]}}
NONE = {"$expr": {"$lt": [WORK, -1]}}
FIND = {"find": "c", "filter": NONE}
UPDATE = {"q": NONE, "u": {"$set": {"a": 1}}}


def aggregate(*stages):
    return {"aggregate": "c", "pipeline": list(stages), "cursor": {}}


def joined(stage):
    return [{"$match": stage}]


# Each of these reads documents with such a filter or expression.
BUSY = {
    "find": FIND,
    "sorted": {**FIND, "filter": ALL, "sort": {"n": 1}},
    "count": {"count": "c", "query": ALL},
    "distinct": {"distinct": "c", "key": "n", "query": NONE},
    "match": aggregate({"$match": NONE}),
    "project": aggregate({"$project": {"w": WORK}}),
    "group": aggregate({"$group": {"_id": WORK}}),
    "sort": aggregate({"$set": {"w": WORK}}, {"$sort": {"w": 1}}),
    "bucketAuto": aggregate({"$bucketAuto": {"groupBy": WORK, "buckets": 2}}),
    "window": aggregate({"$setWindowFields": {"sortBy": {"n": 1}, "output": {
        "w": {"$sum": WORK, "window": {"documents": ["unbounded", "current"]}}}}}),
    "unwind": aggregate({"$limit": 1}, {"$project": {
        name: {"$range": [0, 3_000]} for name in "abc"}},
                        {"$unwind": "$a"}, {"$unwind": "$b"}, {"$unwind": "$c"}, {"$count": "n"}),
    "facet": aggregate({"$facet": {"one": [{"$match": NONE}], "two": [{"$count": "n"}]}}),
    "lookup": aggregate({"$lookup": {"from": "c", "pipeline": joined(NONE), "as": "found"}}),
    "graphLookup": aggregate({"$limit": 1}, {"$graphLookup": {
        "from": "c", "startWith": "$n", "connectFromField": "next", "connectToField": "n",
        "as": "found"}}, {"$match": NONE}),
    "unionWith": aggregate({"$limit": 1}, {"$unionWith": {"coll": "c", "pipeline": joined(NONE)}}),
    "out": aggregate({"$match": NONE}, {"$out": "made"}),
    "merge": aggregate({"$match": NONE}, {"$merge": "made"}),
    "update": {"update": "c", "updates": [{**UPDATE, "multi": True}]},
    "update one": {"update": "c", "updates": [UPDATE]},
    "update by pipeline": {"update": "c", "updates": [
        {"q": {}, "u": [{"$set": {"w": WORK}}], "multi": True}]},
    "delete": {"delete": "c", "deletes": [{"q": NONE, "limit": 0}]},
    "findAndModify": {"findAndModify": "c", "query": NONE, "remove": True},
    "explain": {"explain": FIND, "verbosity": "executionStats"},
    "explain of a pipeline": {"explain": aggregate({"$match": NONE}),
                              "verbosity": "executionStats"},
    "explain of an update": {"explain": {"update": "c", "updates": [UPDATE]},
                             "verbosity": "allPlansExecution"},
}

# These have no filter or expression, but take more than a millisecond.
LONG = {
    "createIndexes": {"createIndexes": "c", "indexes": [
        {"key": {f"s{one}": 1, f"s{other}": 1}, "name": f"s{one}_{other}"}
        for one in range(10) for other in range(one)]},
    "validate": {"validate": "c", "full": True},
    "reIndex": {"reIndex": "c"},
    "dataSize": {"dataSize": "limits.c", "keyPattern": {"n": 1}, "min": {"n": 0},
                 "max": {"n": COUNT}},
    "update": {"update": "c", "updates": [
        {"q": {}, "u": {"$inc": {"m": 1}}, "multi": True}]},
    "graphLookup": aggregate({"$graphLookup": {
        "from": "c", "startWith": "$n", "connectFromField": "next", "connectToField": "n",
        "as": "found"}}),
}


@pytest.fixture(scope="module")
def database(client):
    database = client["limits"]
    database.c.insert_many([
        {"_id": one, "n": one, "next": one + 1, "m": 0, "pad": "x" * 100,
         **{f"s{field}": f"{one * 7919 % COUNT:08}" for field in range(10)}}
        for one in range(COUNT)])
    database.c.create_index("n")
    return database


@pytest.mark.parametrize("name", BUSY)
def test_a_command_ends_with_its_time(database, name):
    """None of the commands would end by itself."""
    refused(lambda: database.command({**BUSY[name], "maxTimeMS": 100}), 50)


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_ends_with_its_time(database, name):
    # The builds of an aborted createIndexes end soon after its error.
    wait_until(lambda: len(database.c.index_information()) == 2)
    refused(lambda: database.command({**LONG[name], "maxTimeMS": 1}), 50)


def test_a_bulk_write_ends_with_its_time(client, database):
    error = refused(lambda: client.admin.command({
        "bulkWrite": 1, "ops": [{"update": 0, "filter": NONE, "updateMods": {"$set": {"a": 1}}}],
        "nsInfo": [{"ns": "limits.c"}], "maxTimeMS": 100}), 50)
    assert error["codeName"] == "MaxTimeMSExpired"


@pytest.mark.parametrize("name", ["find", "group", "lookup", "update", "findAndModify", "out"])
def test_a_command_that_is_killed_is_interrupted(client, database, name):
    found = []

    def run():
        try:
            database.command({**BUSY[name], "comment": f"busy {name}"})
        except OperationFailure as error:
            found.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()
    admin = client.admin
    ask = {"currentOp": 1, "command.comment": f"busy {name}"}
    while not (running := admin.command(ask)["inprog"]):
        time.sleep(0.01)
    admin.command("killOp", op=running[0]["opid"])
    thread.join(10)
    assert found == [11601]


@pytest.mark.parametrize("name", ["find", "count", "distinct", "group"])
def test_a_read_ends_with_its_client(server, client, database, name):
    """Regression: the read continued to its end without a client."""
    ask = {"currentOp": 1, "command.comment": f"left {name}"}
    before = client.admin.command("serverStatus")["metrics"]["operation"]
    with Raw(server) as connection:
        connection.send(op_msg(section({**BUSY[name], "comment": f"left {name}", "$db": "limits"})))
        while not client.admin.command(ask)["inprog"]:
            time.sleep(0.01)
    for _ in range(200):
        if not client.admin.command(ask)["inprog"]:
            break
        time.sleep(0.1)
    assert client.admin.command(ask)["inprog"] == []
    after = client.admin.command("serverStatus")["metrics"]["operation"]
    assert after["killedDueToClientDisconnect"] == before["killedDueToClientDisconnect"] + 1


def test_a_cursor_has_what_its_command_left(database):
    first = {"$or": [{"_id": {"$lt": 5}}, NONE]}
    for command in ({"find": "c", "filter": first, "batchSize": 2},
                    {**aggregate({"$match": first}), "cursor": {"batchSize": 2}}):
        reply = database.command({**command, "maxTimeMS": 5000})
        cursor = reply["cursor"]["id"]
        refused(lambda: database.command("getMore", cursor, collection="c"), 50)
        refused(lambda: database.command("getMore", cursor, collection="c"), 43)
    reply = database.command({"find": "c", "batchSize": 2, "maxTimeMS": 60_000})
    more = database.command("getMore", reply["cursor"]["id"], collection="c")
    assert len(more["cursor"]["nextBatch"]) == COUNT - 2


def limit(client, millis):
    client.admin.command("setClusterParameter", {"defaultMaxTimeMS": {"readOperations": millis}})


def test_reads_have_a_limit_that_is_kept(tmp_path):
    with Server(tmp_path) as server:
        client = server.client()
        ask = {"getClusterParameter": "defaultMaxTimeMS"}
        initial = client.admin.command(ask)["clusterParameters"][0]
        assert initial["readOperations"] == 0
        database = client.d
        database.c.insert_many([{"_id": one} for one in range(50)])
        limit(client, 100)
        for name in ("find", "count", "distinct", "match", "group", "lookup"):
            refused(lambda: database.command(BUSY[name]), 50)
        killed = client.admin.command("serverStatus")["metrics"]["operation"]
        assert killed["killedDueToDefaultMaxTimeMSExpired"] == 6
        # The limit does not apply to writes, and to reads with a limit of their own.
        small = {"$sum": {"$map": {"input": {"$range": [0, 20_000]}, "in": 1}}}
        database.c.update_many({}, [{"$set": {"w": small}}])
        list(database.c.aggregate([{"$set": {"v": small}}, {"$out": "made"}]))
        limit(client, 1)
        assert len(list(database.c.find({"$expr": {"$gt": [small, 0]}}, max_time_ms=60_000))) == 50
        database.command({"count": "c", "query": {"$expr": {"$gt": [small, 0]}}, "maxTimeMS": 0})
        kept = client.admin.command(ask)["clusterParameters"]
        server.restart()
        client = server.client()
        assert client.admin.command(ask)["clusterParameters"] == kept
        assert client.admin.command({"getClusterParameter": "*"})["clusterParameters"] == kept
        refused(lambda: client.d.command(BUSY["find"]), 50)
        limit(client, None)
        assert client.d.c.count_documents({}) == 50


@pytest.mark.parametrize("command, code", [
    ({"setClusterParameter": {"changeStreamOptions": {"preAndPostImages": {}}}}, 4),
    ({"setClusterParameter": {"foo": 1}}, 4),
    ({"setClusterParameter": {}}, 4),
    ({"setClusterParameter": None}, 40414),
    ({"setClusterParameter": 1}, 14),
    ({"setClusterParameter": {"defaultMaxTimeMS": 1}}, 2),
    ({"setClusterParameter": {"defaultMaxTimeMS": {}, "foo": {}}}, 72),
    ({"setClusterParameter": {"defaultMaxTimeMS": {"$x": 1}}}, 52),
    ({"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": -1}}}, 2),
    ({"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": "1"}}}, 14),
    ({"setClusterParameter": {"defaultMaxTimeMS": {"foo": 1}}}, 40415),
    ({"getClusterParameter": "foo"}, 4),
    ({"getClusterParameter": ["defaultMaxTimeMS", "*"]}, 4),
    ({"getClusterParameter": []}, 2),
    ({"getClusterParameter": [1]}, 14),
    ({"getClusterParameter": None}, 14),
])
def test_what_is_no_cluster_parameter_is_refused(client, command, code):
    refused(lambda: client.admin.command(command), code)
