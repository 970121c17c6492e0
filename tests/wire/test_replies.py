"""Replies and refusals as MongoDB 8.0 has them, field by field."""

import pytest
from answers import refused
from bson import Int64, Timestamp
from pymongo import IndexModel, MongoClient

from windrow_server import Server


def test_views_are_counted(client, database):
    database.c.insert_one({"_id": 1})
    before = client.admin.command("serverStatus")["catalogStats"]
    database.create_collection("v", viewOn="c", pipeline=[])
    database.create_collection("k", capped=True, size=4096)
    assert database.command("dbStats")["views"] == 1
    after = client.admin.command("serverStatus")["catalogStats"]
    assert [after[name] - before[name] for name in ("views", "collections", "capped")] == [1, 1, 1]


def test_top_shows_views(client, database):
    database.create_collection("v", viewOn="c", pipeline=[])
    list(database.v.find())
    for _ in range(2):
        assert client.admin.command("top")["totals"][f"{database.name}.v"]["queries"]["count"] == 1


def test_what_is_not_there_is_dropped(database):
    assert database.command("drop", "nothing") == {"ok": 1.0}


def test_what_the_machine_tells(client):
    extra = client.admin.command("hostInfo")["extra"]
    assert extra["pageSize"] >= 4096 and extra["numPages"] > 0 and extra["maxOpenFiles"] > 0
    # The kernel counts in hundredths of a second. A new server may not have used one yet.
    while not sum((status := client.admin.command("serverStatus"))["extra_info"][name]
                  for name in ("user_time_us", "system_time_us")):
        pass
    assert status["extra_info"]["maximum_resident_set_kb"] > 1000
    assert set(status["opcountersRepl"].values()) == {0} and status["locks"] == {}
    assert "repl" not in status


def test_validate_describes_indexes(database):
    database.c.insert_many([{"a": one} for one in range(5)])
    database.c.create_index("a")
    found = database.command("validate", "c")
    assert (found["nrecords"], found["keysPerIndex"]) == (5, {"_id_": 5, "a_1": 5})
    assert all(type(found[name]) is int for name in ("nrecords", "nInvalidDocuments"))
    assert found["indexDetails"]["a_1"] == {
        "valid": True, "spec": {"v": 2, "key": {"a": 1}, "name": "a_1"}}
    assert found["repairMode"] == "None"
    for options, mode in [({"repair": True}, "FixErrors"), ({"fixMultikey": 1}, "AdjustMultikey"),
                          ({"repair": "yes", "fixMultikey": True}, "FixErrors"),
                          ({"repair": 0, "scandata": 1}, "None")]:
        assert database.command("validate", "c", **options)["repairMode"] == mode, options
    assert "nrecords" not in database.command("validate", "c", metadata="yes")


def test_parameters_are_set_together_or_not_at_all(client):
    admin = client.admin
    refused(lambda: admin.command("setParameter", 1, logLevel=3, nothing=1), 72)
    assert admin.command("getParameter", 1, logLevel=1)["logLevel"] == 0
    at = {setting: admin.command("getParameter", {"allParameters": True, "setAt": setting})
          for setting in ("startup", "runtime")}
    assert at["startup"].keys() - at["runtime"].keys() == {
        "enableLocalhostAuthBypass", "enableTestCommands"}
    assert at["runtime"].keys() - at["startup"].keys() == {"logComponentVerbosity"}
    assert "logLevel" in at["runtime"] and "maxBSONDepth" not in at["runtime"]


@pytest.mark.parametrize("command, code", [
    ({"killOp": 1, "op": 2**31}, 26823),
    ({"killOp": 1, "op": 1.5}, 2),
    ({"getParameter": {"nothing": 1}, "logLevel": 1}, 40415),
    ({"setParameter": 1, "logComponentVerbosity": "x"}, 14),
    ({"setParameter": 1, "logComponentVerbosity": {"command": {"verbosity": float("nan")}}}, 2),
    ({"setParameter": 1, "logComponentVerbosity": {"command": {"verbosity": 2**31}}}, 2),
    ({"profile": None}, 40414),
    ({"profile": 0, "filter": "x"}, 2),
    ({"profile": 0, "sampleRate": "x"}, 14),
    ({"getLog": None}, 40414),
    ({"getLog": "global", "nothing": 1}, 40415),
    ({"hostInfo": 1, "nothing": 1}, 40415),
    ({"getCmdLineOpts": 1, "nothing": 1}, 40415),
    ({"dbStats": 1, "nothing": 1}, 40415),
    ({"explain": {"find": "c"}, "verbosity": "x"}, 2),
    ({"explain": {"find": "c"}, "verbosity": 1}, 9),
    ({"explain": "find"}, 9),
    ({"killCursors": 5, "cursors": []}, 9),
    ({"killCursors": "c"}, 9),
    ({"killCursors": "c", "cursors": 5}, 9),
    ({"killCursors": "c", "cursors": [None, 5]}, 9),
    ({"getMore": Int64(5), "collection": "c", "term": 1}, 14),
    ({"ping": 1, "nothing": 1}, 40415),
    ({"buildInfo": 1, "nothing": 1}, 40415),
    ({"hello": 1, "saslSupportedMechs": "x"}, 2),
    ({"hello": 1, "saslSupportedMechs": 5}, 14),
    ({"getParameter": {"showDetails": "x", "nothing": 1}}, 14),
    ({"dataSize": 5}, 14),
    ({"dataSize": "d.c", "nothing": 1}, 40415),
    ({"dataSize": "d.c", "keyPattern": 5}, 14),
    ({"dbHash": 1, "collections": [5]}, 2),
    ({"lockInfo": 1, "nothing": 1}, 40415),
    ({"dropConnections": 1}, 40414),
    ({"fsyncUnlock": 1}, 20),
    ({"fsync": 1, "lock": "x"}, 14),
    ({"fsync": 1, "lock": True}, 238),
    ({"fsync": 1, "fsyncLockAcquisitionTimeoutMillis": 1.5}, 14),
    ({"dropConnections": 1, "hostAndPort": ["a:x"]}, 9),
    ({"dropConnections": 1, "hostAndPort": [5]}, 14),
    ({"autoCompact": True}, 238),
    ({"setFeatureCompatibilityVersion": 8.0, "confirm": True}, 14),
    ({"setFeatureCompatibilityVersion": "8.0", "confirm": "x"}, 14),
    ({"setFeatureCompatibilityVersion": "9", "confirm": True}, 4926900),
    ({"setFeatureCompatibilityVersion": "8.0"}, 7369100),
    ({"killSessions": 5}, 14),
    ({"killAllSessions": 5}, 14),
    ({"killAllSessions": [{"user": "a", "db": "b", "nothing": 1}]}, 40415),
    ({"killAllSessions": [{"user": "a"}]}, 40414),
    ({"killAllSessions": [{"user": "a", "db": "b"}]}, 11),
    ({"getDefaultRWConcern": 1}, 51300),
    ({"logRotate": "x"}, 4),
    ({"logRotate": "server", "nothing": 1}, 40415),
    ({"startSession": 1, "nothing": 1}, 40415),
    ({"dropDatabase": 1}, 20),
    ({"create": "system.other", "viewOn": "c"}, 73),
    ({"create": "system.js", "viewOn": "c"}, 73),
    ({"create": "v", "viewOn": "c", "changeStreamPreAndPostImages": {"enabled": True}}, 72),
    ({"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "d", "pipeline": [{"$documents": []}]}}], "cursor": {}}, 73),
    ({"aggregate": "c", "pipeline": [{"$changeStreamSplitLargeEvent": {}}], "cursor": {}}, 20),
    ({"connPoolStats": 1, "nothing": 1}, 40415),
    ({"planCacheSetFilter": "missing", "query": {}, "indexes": ["a"]}, 2),
    ({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}], "commitQuorum": 1}, 2),
])
def test_what_is_wrong_is_refused(client, command, code):
    refused(lambda: client.admin.command(command), code)


@pytest.mark.parametrize("command", [
    {"killCursors": "c", "cursors": [None]},
    {"killSessions": [None], "nothing": 1},
    {"killAllSessions": [None], "nothing": 1},
    {"dropConnections": 1, "hostAndPort": ["a:1"]},
    {"lockInfo": 1},
    {"logRotate": 1},
    {"planCacheClear": "missing", "query": 5, "sort": {"a": 1}},
    {"planCacheClearFilters": "missing", "sort": {"a": 1}},
    {"planCacheListFilters": "missing"},
])
def test_what_means_nothing_is_let_through(client, command):
    assert client.admin.command(command)["ok"] == 1


def test_commands_are_counted_by_name(client):
    def counts():
        commands = client.admin.command("serverStatus")["metrics"]["commands"]
        return [commands["ping"]["total"], commands["ping"]["failed"], commands["<UNKNOWN>"]]

    before = counts()
    client.admin.command("ping")
    refused(lambda: client.admin.command("ping", nothing=1), 40415)
    refused(lambda: client.admin.command("nothing"), 59)
    assert [after - one for after, one in zip(counts(), before)] == [2, 1, 1]


def test_updates_are_counted_by_what_they_are_made_of(client, database):
    def counts(command):
        found = client.admin.command("serverStatus")["metrics"]["commands"][command]
        return [found["pipeline"], found["arrayFilters"], found["total"]]

    before = counts("update"), counts("findAndModify")
    database.c.update_one({}, [{"$set": {"a": 1}}])
    database.c.update_one({}, {"$set": {"a.$[x]": 1}}, array_filters=[{"x": 1}])
    database.c.update_one({}, {"$set": {"a": 1}})
    database.c.find_one_and_update({}, [{"$set": {"a": 1}}])
    after = counts("update"), counts("findAndModify")
    grown = [[one - other for one, other in zip(*both)] for both in zip(after, before)]
    assert grown == [[1, 1, 3], [1, 0, 1]]


def test_a_database_has_a_hash_of_what_it_holds(client, database):
    other = client[database.name + "2"]
    for one, numbers in [(database, [1, 2, 3]), (other, [3, 2, 1, 4])]:
        one.create_collection("k", capped=True, size=4096)
        one.c.insert_many([{"_id": number, "a": {"b": number}} for number in numbers])
        one.create_collection("v", viewOn="c", pipeline=[])
        one.command("profile", 2)
        list(one.c.find())
        one.command("profile", 0)
    other.c.delete_one({"_id": 4})
    found, same = database.command("dbHash"), other.command("dbHash")
    assert list(found["collections"]) == ["c", "k", "system.views"] == list(found["uuids"])
    assert found["capped"] == ["k"] and len(found["md5"]) == 32
    assert found["collections"]["c"] == same["collections"]["c"] != found["collections"]["k"]
    other.c.update_one({"_id": 1}, {"$set": {"a.b": 2}})
    after = other.command("dbHash", collections=["c", "missing"])
    assert list(after["collections"]) == ["c"] and after["md5"] != same["md5"]
    assert after["collections"]["c"] != same["collections"]["c"]
    client.drop_database(other.name)


def test_the_size_of_a_range_of_an_index(database):
    database.c.insert_many([{"_id": number, "a": number, "b": number} for number in range(10)])
    database.c.create_index([("a", 1), ("b", -1)])

    def size(**options):
        return database.command("dataSize", f"{database.name}.c", **options)

    assert type(size()["numObjects"]) is Int64
    for options, expected in [
        ({"keyPattern": {"a": 1}, "min": {"a": 2}, "max": {"a": 5}}, 3),
        ({"min": {"a": 2}, "max": {"a": 5}}, 3),
        ({"min": {"_id": 8}, "max": {"_id": 100}}, 2),
        ({"min": {"_id": 5}, "max": {"_id": 5}}, 0),
        ({"min": {"a": 5}, "max": {"a": 1}}, 0),
    ]:
        assert size(**options)["numObjects"] == expected, options
    refused(lambda: size(min={"x": 1}, max={"x": 2}), 96)
    refused(lambda: size(min={"a": 1}), 2)


def test_how_full_the_file_system_is(database):
    found = database.command("dbStats", freeStorage=1)
    assert 0 < found["fsUsedSize"] <= found["fsTotalSize"]
    assert found["totalFreeStorageSize"] == 0
    assert database.command("dbStats", scale=1024)["fsTotalSize"] == found["fsTotalSize"] / 1024
    assert "totalFreeStorageSize" not in database.command("dbStats")


def test_the_log_goes_on_in_a_new_file(tmp_path):
    log = tmp_path / "windrow.log"
    with Server(tmp_path / "server", options=["--logpath", str(log)]) as server:
        server.client().admin.command("logRotate", "server")
        server.client().admin.command("hello")
        old = list(tmp_path.glob("windrow.log.20*"))
        assert len(old) == 1 and old[0].stat().st_size > 0 and log.exists()


@pytest.mark.parametrize("verbosity", ["queryPlanner", "executionStats", "allPlansExecution"])
def test_a_change_stream_is_explained_by_its_stages(database, verbosity):
    stages = [{"$changeStream": {"fullDocument": "updateLookup"}}, {"$match": {"a": 1}}]
    for name in ("c", 1):
        command = {"aggregate": name, "pipeline": stages, "cursor": {}}
        explained = database.command("explain", command, verbosity=verbosity)
        assert explained["stages"] == stages and explained["command"] == command
    bad = {"aggregate": "c", "pipeline": [{"$changeStream": {"nothing": 1}}], "cursor": {}}
    refused(lambda: database.command("explain", bad), 40415)


def test_a_query_is_known_by_its_shape(database):
    def shape(command):
        return database.command("explain", command, verbosity="queryPlanner")["queryShapeHash"]

    database.create_collection("v", viewOn="c", pipeline=[{"$match": {"a": 1}}])
    found = shape({"find": "c", "filter": {"a": 1}})
    assert len(found) == 64
    assert found == shape({"find": "c", "filter": {"a": {"$eq": 7}}})
    assert found != shape({"find": "v", "filter": {"a": 1}})
    assert found != shape({"aggregate": "c", "pipeline": [{"$match": {"a": 1}}], "cursor": {}})
    assert shape({"distinct": "c", "key": "a"}) != shape({"distinct": "c", "key": "b"})


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("member"), options=["--replica-set", "rs0"]) as server:
        yield server


def test_a_member_says_the_time_of_the_newest_change(member):
    database = member.client().d
    first, second = (database.command("insert", "c", documents=[{"_id": one}]) for one in range(2))
    assert first["operationTime"] < second["operationTime"]
    assert second["$clusterTime"]["clusterTime"] == second["operationTime"]
    refusal = refused(lambda: database.command("nothing"), 59)
    assert refusal["operationTime"] == second["operationTime"]
    found = database.command("find", "c")
    assert len(found["cursor"]["firstBatch"]) == 2 and found["operationTime"] >= second["operationTime"]
    with database.watch(start_at_operation_time=second["operationTime"]) as stream:
        event = stream.next()
    assert (event["documentKey"], event["clusterTime"]) == ({"_id": 1}, second["operationTime"])
    concern = database.client.admin.command("getDefaultRWConcern")
    assert concern["defaultReadConcern"] == {"level": "local"}
    status = database.client.admin.command("serverStatus")["repl"]
    assert status["setName"] == "rs0" and status["isWritablePrimary"]


def test_a_causal_session_reads_what_it_wrote(member):
    uri = f"mongodb://127.0.0.1:{member.port}/?replicaSet=rs0"
    with MongoClient(uri) as client, client.start_session(causal_consistency=True) as session:
        client.d.causal.insert_one({"_id": 1}, session=session)
        assert session.operation_time is not None and session.cluster_time is not None
        assert client.d.causal.find_one({}, session=session) == {"_id": 1}


def test_cursors_of_a_session_with_snapshots_go_on(member):
    """Drivers repeat the read concern of the session with every getMore."""
    uri = f"mongodb://127.0.0.1:{member.port}/?replicaSet=rs0"
    with MongoClient(uri) as client, client.start_session(snapshot=True) as session:
        client.d.snapshots.insert_many([{"_id": number} for number in range(5)])
        found = list(client.d.snapshots.find({}, batch_size=2, session=session))
        assert [one["_id"] for one in found] == [0, 1, 2, 3, 4]
        assert len(list(client.d.snapshots.aggregate([], batchSize=2, session=session))) == 5


def test_a_member_builds_for_a_quorum_of_itself(member):
    database = member.client().d
    for number, quorum in enumerate([0, 1, "majority", "votingMembers"]):
        database.c.create_indexes([IndexModel(f"a{number}")],
                                  commitQuorum=quorum)
    indexes = [{"key": {"b": 1}, "name": "b"}]
    refused(lambda: database.command("createIndexes", "c", indexes=indexes, commitQuorum=2), 278)
    refused(lambda: database.command("createIndexes", "c", indexes=indexes, commitQuorum="x"), 79)


def test_a_member_knows_the_time_of_its_set(member):
    database = member.client().clock
    for number in range(3):
        inserted = database.command("insert", "c", documents=[{"_id": number, "at": Timestamp(number, 1)}])
    newest = inserted["operationTime"]
    is_newer = {"$expr": {"$lt": ["$at", "$$CLUSTER_TIME"]}}
    now = {"now": "$$CLUSTER_TIME"}
    assert database.c.find_one({"_id": 1}, now) == {"_id": 1, "now": newest}
    assert database.c.count_documents(is_newer) == database.command("count", "c", query=is_newer)["n"] == 3
    assert sorted(database.c.distinct("_id", is_newer)) == [0, 1, 2]
    database.create_collection("v", viewOn="c", pipeline=[{"$project": now}])
    newest = database.command("ping")["operationTime"]
    assert [one["now"] for one in database.v.find()] == [newest] * 3
    within = {"from": "v", "as": "v", "pipeline": [{"$match": {"$expr": {"$eq": ["$now", "$$then"]}}}],
              "let": {"then": "$$CLUSTER_TIME"}}
    for pipeline in ([{"$lookup": within}], [{"$lookup": {**within, "pipeline": [], "let": {}}}]):
        assert [len(one["v"]) for one in database.c.aggregate(pipeline)] == [3, 3, 3]
    let = {"aggregate": "c", "pipeline": [{"$project": {"x": "$$x"}}], "cursor": {}, "let": {"x": "$$CLUSTER_TIME"}}
    assert database.command(let)["cursor"]["firstBatch"][0]["x"] == newest
    database.c.update_one({"_id": 0}, [{"$set": now}])
    assert database.c.find_one({"_id": 0})["now"] == newest
    changed = database.c.find_one_and_update({"_id": 1}, [{"$set": now}], return_document=True)
    assert changed["now"] > newest
    updating = {"into": "c", "whenMatched": [{"$set": {"now": "$$t", "then": "$$CLUSTER_TIME"}}],
                "let": {"t": "$$CLUSTER_TIME"}}
    database.c.aggregate([{"$match": {"_id": 2}}, {"$merge": updating}])
    merged = database.c.find_one({"_id": 2})
    assert merged["now"] == merged["then"] > changed["now"]
    for command in ({"delete": "c", "deletes": [{"q": is_newer, "limit": 1}]}, {"find": "v", "filter": is_newer},
                    {"update": "c", "updates": [{"q": is_newer, "u": {"$set": {"x": 1}}}]}):
        assert database.command("explain", command)["ok"] == 1
    assert database.c.delete_many(is_newer).deleted_count == 3


def test_the_statements_of_a_command_see_one_time(member):
    database = member.client().moment
    database.c.insert_many([{"_id": number} for number in range(200)])
    seen = [{"$set": {"now": "$$NOW", "then": "$$CLUSTER_TIME"}}]
    updates = [{"q": {"_id": number}, "u": seen} for number in range(200)]
    assert database.command("update", "c", updates=updates)["nModified"] == 200
    assert len(database.c.distinct("now")) == len(database.c.distinct("then")) == 1


def test_a_server_of_no_set_has_no_such_time(database):
    project = [{"$project": {"now": "$$CLUSTER_TIME"}}]
    database.create_collection("v", viewOn="c", pipeline=project)
    is_newer = {"$expr": {"$lt": ["$at", "$$CLUSTER_TIME"]}}
    for command in ({"aggregate": "c", "pipeline": project, "cursor": {}}, {"find": "v"},
                    {"find": "c", "filter": is_newer}, {"count": "c", "query": is_newer}):
        refused(lambda: database.command(command), 10071200)


def test_explained_writes_see_their_variables(database):
    query = {"$expr": {"$eq": ["$a", "$$x"]}}
    for command in ({"delete": "c", "deletes": [{"q": query, "limit": 0}], "let": {"x": 1}},
                    {"update": "c", "updates": [{"q": query, "u": [{"$set": {"b": "$$x"}}]}], "let": {"x": 1}}):
        assert "queryPlanner" in database.command("explain", command)
