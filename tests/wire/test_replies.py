"""Replies and refusals as MongoDB 8.0 has them, field by field."""

import pytest
from answers import refused
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
    # The kernel counts in hundredths of a second, of which a new server may not have had one yet.
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
    assert database.command("validate", "c", repair=True)["repairMode"] == "FixErrors"


def test_parameters_are_set_together_or_not_at_all(client):
    admin = client.admin
    refused(lambda: admin.command("setParameter", 1, logLevel=3, nothing=1), 72)
    assert admin.command("getParameter", 1, logLevel=1)["logLevel"] == 0
    at = {setting: admin.command("getParameter", {"allParameters": True, "setAt": setting})
          for setting in ("startup", "runtime")}
    assert at["startup"] == {"ok": 1.0}
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
    ({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}], "commitQuorum": 1}, 2),
])
def test_what_is_wrong_is_refused(client, command, code):
    refused(lambda: client.admin.command(command), code)


@pytest.mark.parametrize("verbosity", ["queryPlanner", "executionStats", "allPlansExecution"])
def test_a_change_stream_is_explained_by_its_stages(database, verbosity):
    stages = [{"$changeStream": {"fullDocument": "updateLookup"}}, {"$match": {"a": 1}}]
    for name in ("c", 1):
        command = {"aggregate": name, "pipeline": stages, "cursor": {}}
        explained = database.command("explain", command, verbosity=verbosity)
        assert explained["stages"] == stages and explained["command"] == command
    bad = {"aggregate": "c", "pipeline": [{"$changeStream": {"nothing": 1}}], "cursor": {}}
    refused(lambda: database.command("explain", bad), 40415)


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
    status = database.client.admin.command("serverStatus")["repl"]
    assert status["setName"] == "rs0" and status["isWritablePrimary"]


def test_a_causal_session_reads_what_it_wrote(member):
    uri = f"mongodb://127.0.0.1:{member.port}/?replicaSet=rs0"
    with MongoClient(uri) as client, client.start_session(causal_consistency=True) as session:
        client.d.causal.insert_one({"_id": 1}, session=session)
        assert session.operation_time is not None and session.cluster_time is not None
        assert client.d.causal.find_one({}, session=session) == {"_id": 1}


def test_a_member_builds_for_a_quorum_of_itself(member):
    database = member.client().d
    for number, quorum in enumerate([0, 1, "majority", "votingMembers"]):
        database.c.create_indexes([IndexModel(f"a{number}")],
                                  commitQuorum=quorum)
    indexes = [{"key": {"b": 1}, "name": "b"}]
    refused(lambda: database.command("createIndexes", "c", indexes=indexes, commitQuorum=2), 278)
    refused(lambda: database.command("createIndexes", "c", indexes=indexes, commitQuorum="x"), 79)
