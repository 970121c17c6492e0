"""What the server reports: latencies of commands, verbosity of its log, slow operations."""

import json
import time

import pytest
from answers import refused
from pymongo.write_concern import WriteConcern


HASHES = ["planCacheShapeHash", "queryHash", "planCacheKey", "queryFramework"]


def lines(server, message, since=0):
    found = []
    for line in server.log().splitlines()[since:]:
        if line.startswith("{") and json.loads(line)["msg"] == message:
            found.append(json.loads(line))
    return found


def count(server):
    return len(server.log().splitlines())


@pytest.fixture
def verbosity(client):
    """Sets the verbosity of the log, and resets it."""
    yield lambda **levels: client.admin.command("setParameter", 1, logComponentVerbosity=levels)
    off = {"verbosity": -1}
    client.admin.command("setParameter", 1, logComponentVerbosity={
        "verbosity": 0, "command": off, "write": off, "index": off, "storage": off})


def latencies(collection, **options):
    stages = [{"$collStats": {"latencyStats": options}}]
    return next(collection.aggregate(stages))["latencyStats"]


def test_latencies_of_a_collection(collection):
    collection.insert_one({"_id": 1})
    collection.update_one({"_id": 1}, {"$set": {"a": 1}})
    collection.find_one_and_update({"_id": 1}, {"$set": {"a": 2}})
    list(collection.find())
    collection.count_documents({})
    collection.create_index("a")
    stats = latencies(collection)
    assert list(stats) == ["reads", "writes", "commands", "transactions"]
    assert [stats[name]["ops"] for name in stats] == [2, 3, 1, 0]
    assert stats["writes"]["latency"] > 0 and "histogram" not in stats["reads"]
    histogram = latencies(collection, histograms=True)["writes"]["histogram"]
    assert sum(one["count"] for one in histogram) == 3
    bounds = [one["micros"] for one in histogram]
    assert bounds == sorted(bounds) and all(one & (one - 1) == 0 or one % 3 == 0 for one in bounds)
    collection.drop()
    collection.insert_one({})
    assert latencies(collection)["reads"]["ops"] == 0
    with pytest.raises(Exception, match="wrong type"):
        list(collection.aggregate([{"$collStats": {"latencyStats": 1}}]))


def test_latencies_of_a_view(database):
    database.c.insert_one({"_id": 1})
    database.create_collection("v", viewOn="c", pipeline=[])
    assert len(list(database.v.find())) == 1
    assert latencies(database.v)["reads"]["ops"] == 1


def test_latencies_of_all(client):
    plain = client.admin.command("serverStatus")["opLatencies"]
    assert list(plain) == ["reads", "writes", "commands", "transactions"]
    assert list(plain["commands"]) == ["latency", "ops"]
    asked = client.admin.command("serverStatus", opLatencies={"histograms": True})["opLatencies"]
    assert asked["commands"]["histogram"]


def test_a_component_tells_more(server, client, collection, verbosity):
    before = count(server)
    collection.insert_one({"_id": 1})
    collection.find_one({"_id": 1})
    assert lines(server, "Slow query", before) == []
    verbosity(write={"verbosity": 1})
    collection.insert_one({"_id": 2})
    collection.find_one({"_id": 2})
    told = lines(server, "Slow query", before)
    assert [(one["c"], one["attr"]["type"]) for one in told] == [("WRITE", "insert")]
    verbosity(write={"verbosity": -1}, verbosity=1, command={"verbosity": 0})
    before = count(server)
    collection.update_one({"_id": 2}, {"$set": {"a": 1}})
    collection.find_one({"_id": 2})
    told = lines(server, "Slow query", before)
    assert [(one["c"], one["attr"]["type"]) for one in told] == [("WRITE", "update")]


def test_a_write_that_waits_to_be_durable_is_told(server, client, collection, verbosity):
    """As every other write: the wait for the log counts, too."""
    durable = collection.with_options(write_concern=WriteConcern(j=True))
    verbosity(write={"verbosity": 1}, command={"verbosity": 1})
    before = count(server)
    durable.insert_one({"_id": 1})
    durable.update_one({"_id": 1}, {"$set": {"a": 1}})
    told = [(one["c"], one["attr"]["type"]) for one in lines(server, "Slow query", before)]
    assert ("WRITE", "insert") in told and ("WRITE", "update") in told
    assert ("COMMAND", "command") in told


def test_levels_are_shown(client, verbosity):
    def shown(name):
        return client.admin.command("getParameter", 1, **{name: 1})[name]

    levels = shown("logComponentVerbosity")
    assert (levels["verbosity"], levels["command"]) == (0, {"verbosity": -1})
    assert levels["storage"]["journal"] == {"verbosity": -1}
    was = verbosity(verbosity=2, storage={"verbosity": 1, "journal": {"verbosity": 3}})["was"]
    assert was == levels
    assert shown("logLevel") == 2
    assert shown("logComponentVerbosity")["storage"]["journal"] == {"verbosity": 3}
    assert client.admin.command("setParameter", 1, logLevel=0)["was"] == 2
    assert shown("logComponentVerbosity")["verbosity"] == 0
    refused(lambda: verbosity(foo={"verbosity": 1}), 2)
    refused(lambda: verbosity(command={"verbosity": "x"}), 2)
    refused(lambda: client.admin.command("setParameter", 1, logLevel=6), 2)


def test_a_quiet_server_does_not_tell_of_connections(server, client):
    client.admin.command("setParameter", 1, quiet=True)
    before = count(server)
    server.client().admin.command("ping")
    assert lines(server, "Connection accepted", before) == []
    client.admin.command("setParameter", 1, quiet=False)
    server.client().admin.command("ping")
    assert lines(server, "Connection accepted", before) != []


def test_documents_that_expire_are_told(server, client, collection, verbosity):
    verbosity(index={"verbosity": 1})
    collection.create_index("at", expireAfterSeconds=0)
    from datetime import datetime
    collection.insert_many([{"at": datetime(2020, 1, 1)} for _ in range(3)])
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    until = time.monotonic() + 20
    while not (told := lines(server, "Deleted expired documents using index")):
        assert time.monotonic() < until
        time.sleep(0.1)
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)
    assert (told[0]["c"], told[0]["attr"]["numDeleted"]) == ("INDEX", 3)


def test_slow_lines_and_profiles_have_mongodbs_fields(server, database):
    database.c.insert_many([{"_id": one, "n": one} for one in range(10)])
    database.command("profile", 2, slowms=0)
    before = count(server)
    list(database.c.find({"n": {"$gt": 2}}, sort=[("n", 1)], comment="looked for"))
    database.c.update_many({"n": 5}, {"$set": {"a": 1}})
    database.c.delete_one({"n": 6})
    list(database.c.find({}, batch_size=3))
    database.command("profile", 0, slowms=100)

    told = {(one["c"], one["attr"]["type"], next(iter(one["attr"]["command"]))): one["attr"]
            for one in lines(server, "Slow query", before)}
    assert told["COMMAND", "command", "find"]["planSummary"] == "COLLSCAN"
    update = told["WRITE", "update", "q"]
    assert update["command"] == {"q": {"n": 5}, "u": {"$set": {"a": 1}}, "multi": True,
                                 "upsert": False}
    assert list(update) == [
        "type", "ns", "command", "planSummary", "keysExamined", "docsExamined", "nMatched",
        "nModified", "numYields", *HASHES, "locks", "storage", "remote", "workingMillis",
        "durationMillis"]
    assert ("COMMAND", "command", "update") in told and ("WRITE", "remove", "q") in told
    more = told["COMMAND", "command", "getMore"]
    assert more["originatingCommand"]["find"] == "c" and more["planSummary"] == "COLLSCAN"

    kept = {one["op"]: one for one in database["system.profile"].find({}, {"_id": 0})}
    assert kept["update"]["command"]["multi"] and kept["remove"]["ndeleted"] == 1
    found = database["system.profile"].find_one({"command.comment": "looked for"}, {"_id": 0})
    assert list(found) == [
        "op", "ns", "command", "keysExamined", "docsExamined", "hasSortStage", "cursorExhausted",
        "numYield", "nreturned", *HASHES, "locks", "flowControl", "responseLength", "protocol",
        "millis", "workingMillis", "planSummary", "execStats", "ts", "client", "allUsers", "user"]
    steps = found["execStats"]
    assert (steps["stage"], steps["nReturned"]) == ("SORT", 7)
    assert steps["inputStage"]["docsExamined"] == found["docsExamined"] == 10
    explained = database.command("explain", {"find": "c", "filter": {"n": {"$gt": 5}},
                                             "sort": {"n": 1}}, verbosity="queryPlanner")
    assert found["queryHash"] == explained["queryPlanner"]["queryHash"]


def test_the_hint_of_a_write_is_told_as_mongodb_keeps_it(database):
    database.c.create_index("n")
    database.command("profile", 2)
    database.c.update_one({"n": 1}, {"$set": {"a": 1}}, hint="n_1")
    database.c.delete_one({"n": 1}, hint={"n": 1})
    database.c.delete_one({"n": 1}, hint="n_1")
    database.command("profile", 0)
    told = database["system.profile"].find({"command.hint": {"$exists": True}})
    assert [(one["op"], one["command"]["hint"]) for one in told] == [
        ("update", {"$hint": "n_1"}), ("remove", {"n": 1}), ("remove", {"$hint": "n_1"})]


@pytest.mark.parametrize("command, expected", [
    ({"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$group": {"_id": "$n"}}],
      "cursor": {}}, ("IXSCAN { a: 1 }", 20, 20)),
    ({"aggregate": "v", "pipeline": [{"$match": {"a": 3}}], "cursor": {}},
     ("IXSCAN { a: 1 }", 20, 20)),
    ({"count": "c", "query": {"a": 3, "n": {"$gt": 50}}}, ("IXSCAN { a: 1 }", 20, 20)),
    # Counted from the fences between the entries, without reading each entry.
    ({"count": "c", "query": {"a": 3}}, ("COUNT_SCAN { a: 1 }", 0, 0)),
    ({"count": "c", "query": {"n": 3}}, ("COLLSCAN", 0, 100)),
    ({"distinct": "c", "key": "n", "query": {"a": 3}}, ("IXSCAN { a: 1 }", 20, 20)),
    ({"findAndModify": "c", "query": {"a": 3}, "update": {"$set": {"b": 1}}},
     ("IXSCAN { a: 1 }", 1, 1)),
])
def test_what_a_command_has_looked_at_is_told(database, command, expected):
    database.c.insert_many([{"_id": one, "n": one, "a": one % 5} for one in range(100)])
    database.c.create_index("a")
    database.create_collection("v", viewOn="c", pipeline=[])
    database.command("profile", 2)
    database.command({**command, "comment": "told"})
    database.command("profile", 0)
    told = database["system.profile"].find_one({"command.comment": "told"})
    assert (told["planSummary"], told["keysExamined"], told["docsExamined"]) == expected
    assert told["queryHash"] == told["planCacheShapeHash"] and told["planCacheKey"]


@pytest.mark.parametrize("command", [
    {"find": "c", "batchSize": 1}, {"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 1}},
    {"listIndexes": "c", "cursor": {"batchSize": 0}},
])
def test_what_asks_for_more_has_the_comment_of_its_cursor(database, command):
    database.c.insert_many([{}, {}, {}])
    database.command("profile", 2)
    cursor = database.command({**command, "comment": {"why": "told"}})["cursor"]["id"]
    of = {"collection": "c", "batchSize": 1}
    more = database.command({"getMore": cursor, **of})["cursor"]["id"]
    if more:
        database.command({"getMore": more, **of, "comment": "own"})
    database.command("profile", 0)
    told = database["system.profile"].find({"op": "getmore"}, sort=[("$natural", 1)])
    comments = [one["command"].get("comment") for one in told]
    assert comments == [{"why": "told"}, "own"][:len(comments)] and comments


def test_a_wait_that_a_client_wants_is_no_work(client):
    """The monitor of a driver waits in hello for seconds, again and again."""
    def commands():
        return client.admin.command("serverStatus")["opLatencies"]["commands"]

    before = commands()
    version = client.admin.command("hello")["topologyVersion"]
    client.admin.command("hello", topologyVersion=version, maxAwaitTimeMS=1000)
    after = commands()
    assert after["ops"] - before["ops"] >= 3
    assert after["latency"] - before["latency"] < 500_000


def test_work_is_counted(client, collection):
    """Monitoring tools compute from it whether queries read more than they return."""
    def metrics():
        all_of_them = client.admin.command("serverStatus")["metrics"]
        return [all_of_them["document"][name] for name in (
            "inserted", "returned", "updated", "deleted")] + [
            all_of_them["queryExecutor"]["scanned"], all_of_them["queryExecutor"]["scannedObjects"],
            all_of_them["operation"]["scanAndOrder"]]

    before = metrics()
    collection.insert_many([{"_id": one, "n": one % 3} for one in range(9)])
    list(collection.find({"n": 1}, sort=[("n", 1)], batch_size=2))
    collection.update_many({"_id": {"$gte": 7}}, {"$set": {"n": 5}})
    collection.delete_one({"_id": 8})
    assert [now - then for now, then in zip(metrics(), before)] == [9, 3, 2, 1, 3, 12, 1]
    before = metrics()
    client.admin.command({"bulkWrite": 1, "nsInfo": [{"ns": collection.full_name}], "ops": [
        {"insert": 0, "document": {"_id": 20}}, {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"n": 7}}},
        {"delete": 0, "filter": {"_id": 2}}]})
    assert [now - then for now, then in zip(metrics(), before)][:4] == [1, 0, 1, 1]


def test_disk_use_is_set_for_all(client, collection):
    collection.insert_many([{"a": one, "s": "x" * 1000} for one in range(100)])
    client.admin.command("setParameter", 1, allowDiskUseByDefault=False)
    assert client.admin.command("getParameter", 1, allowDiskUseByDefault=1)[
        "allowDiskUseByDefault"] is False
    assert len(list(collection.aggregate([{"$sort": {"a": 1}}]))) == 100
    client.admin.command("setParameter", 1, allowDiskUseByDefault=True)


def test_an_expression_within_one_document_stops_in_time(collection):
    """It also stops on the threads that help a group. Without a stop, each document would keep a
    thread busy for days."""
    collection.insert_many([{"_id": one, "pad": "x" * 200} for one in range(40_000)])

    def summed(count, term):
        return {"$sum": {"$map": {"input": {"$range": [0, count]}, "in": term}}}

    long = summed(5_000_000, summed(1_000_000, {"$mod": ["$$this", 7]}))
    stages = [{"$group": {"_id": None, "sum": {"$sum": long}}}]
    refused(lambda: list(collection.aggregate(stages, maxTimeMS=300)), 50)
