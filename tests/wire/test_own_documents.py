"""Stages that return documents about the server: their arguments and their places."""

import pytest
from bson import Decimal128, Int64
from pymongo.errors import OperationFailure


def refused(database, body):
    with pytest.raises(OperationFailure) as error:
        database.command({**body, "cursor": {}})
    return error.value.code


def listed(database, stage, operand, **others):
    reply = database.command("aggregate", 1, pipeline=[{stage: operand}], cursor={}, **others)
    return reply["cursor"]["firstBatch"]


def test_scans_are_counted(collection):
    collection.insert_one({"a": 1})
    collection.create_index("a")
    list(collection.find({"b": 1}))
    list(collection.find({"a": 1}))
    [stats] = collection.aggregate([{"$collStats": {"queryExecStats": {}, "count": None}}])
    assert stats["queryExecStats"] == {"collectionScans": {"total": 1, "nonTailable": 1}}
    assert "count" not in stats


@pytest.mark.parametrize("operand, code", [
    ({"storageStats": {}}, 166), ({"count": {}}, 166), ({"count": {"x": 1}}, 31170), ({"count": 1}, 14),
])
def test_a_view_has_no_storage(database, operand, code):
    database.create_collection("v", viewOn="c", pipeline=[])
    assert refused(database, {"aggregate": "v", "pipeline": [{"$collStats": operand}]}) == code


def test_sizes_are_divided(collection):
    collection.insert_one({})
    for scale, expected in ((1.9, 1), (Int64(2**40), 2**31 - 1)):
        [stats] = collection.aggregate([{"$collStats": {"storageStats": {"scale": scale}}}])
        assert stats["storageStats"]["scaleFactor"] == expected


def test_sessions_have_no_user(client):
    with client.start_session() as session:
        client.admin.command("ping", session=session)
        shown = listed(client.admin, "$listLocalSessions", {}, session=session)
        assert all(len(one["_id"]["uid"]) == 32 for one in shown) and shown
        nobody = {"users": [{"user": "nobody", "db": "admin"}]}
        assert listed(client.admin, "$listLocalSessions", nobody, session=session) == []


def test_the_catalog_lists_collections_and_views(client, database):
    database.create_collection("c", capped=True, size=4096)
    database.create_collection("v", viewOn="c", pipeline=[])
    shown = {one["ns"]: one for one in listed(database, "$listClusterCatalog", {"shards": True})}
    capped, view = (shown[f"{database.name}.{name}"] for name in "cv")
    assert (capped["type"], capped["options"]["capped"], capped["sharded"]) == ("collection", True, False)
    assert capped["idIndex"]["name"] == "_id_" and capped["shards"] == []
    assert (view["type"], view["db"], view["info"]) == ("view", database.name, {"readOnly": True})
    everywhere = {one["ns"] for one in listed(client.admin, "$listClusterCatalog", {})}
    assert set(shown) <= everywhere


def test_no_query_has_settings(database):
    assert listed(database, "$querySettings", {"showDebugQueryShape": True}) == []


def test_cursors_that_wait_are_shown_where_that_is_asked_for(client, collection):
    collection.insert_many({"_id": number} for number in range(9))
    cursor = collection.find({"_id": {"$gte": 0}}, batch_size=2, no_cursor_timeout=True)
    next(cursor)

    def waiting(**options):
        shown = listed(client.admin, "$currentOp", options)
        return [one for one in shown if one["type"] == "idleCursor" and one["ns"] == collection.full_name]

    [shown] = waiting(idleCursors=True)
    told = shown["cursor"]
    assert told["cursorId"] == cursor.cursor_id and told["noCursorTimeout"] and not told["tailable"]
    assert (told["nDocsReturned"], told["nBatchesReturned"]) == (2, 1)
    assert told["originatingCommand"]["filter"] == {"_id": {"$gte": 0}}
    assert shown["planSummary"] == "IXSCAN { _id: 1 }"
    assert shown["lsid"] and told["createdDate"] <= told["lastAccessDate"]
    next(cursor), next(cursor)
    told = waiting(idleCursors=True)[0]["cursor"]
    assert (told["nDocsReturned"], told["nBatchesReturned"]) == (4, 2)
    assert waiting() == waiting(idleCursors=False) == []
    cursor.close()
    assert waiting(idleCursors=True) == []


def test_connections_that_wait_are_shown_where_that_is_asked_for(client):
    def waiting(stage):
        return [one for one in listed(client.admin, "$currentOp", stage) if one.get("active") is False]

    client.admin.command("ping")
    shown = waiting({"idleConnections": True})
    assert shown and all(one["type"] == "op" and "opid" not in one for one in shown)
    assert len({one["connectionId"] for one in shown}) == len(shown)
    assert waiting({}) == []
    everything = client.admin.command({"currentOp": 1, "$all": True})["inprog"]
    assert any(one["active"] is False for one in everything)
    assert all(one["active"] for one in client.admin.command("currentOp")["inprog"])


def test_transactions_that_wait_are_shown_unless_nobody_wants_them(client, collection):
    with client.start_session() as session:
        with session.start_transaction():
            collection.insert_one({}, session=session)

            def waiting(**options):
                shown = listed(client.admin, "$currentOp", options)
                mine = [one for one in shown if one.get("lsid", {}).get("id") == session.session_id["id"]]
                return [one for one in mine if one["type"] == "idleSession"]

            [shown] = waiting()
            assert shown["active"] is False and shown["transaction"]["parameters"]["autocommit"] is False
            assert waiting(idleSessions=True) and waiting(idleSessions=False) == []
            assert waiting(idleConnections=True)
        assert waiting() == []


STAGES = {"$currentOp": 73, "$listClusterCatalog": 9621301, "$listLocalSessions": 73, "$querySettings": 73}


@pytest.mark.parametrize("stage", STAGES)
def test_they_name_no_collection_and_stand_first(client, collection, stage):
    database, first = client.admin, {stage: {}}
    within = {"from": "c", "pipeline": [first], "as": "x"}
    assert refused(collection.database, {"aggregate": "c", "pipeline": [first]}) == STAGES[stage]
    assert refused(collection.database, {"aggregate": "c", "pipeline": [{"$lookup": within}]}) == STAGES[stage]
    assert refused(database, {"aggregate": 1, "pipeline": [first, first]}) == 40602
    assert refused(database, {"aggregate": 1, "pipeline": [{**first, "x": 1}]}) == 40323


@pytest.mark.parametrize("stage", ["$currentOp", "$listLocalSessions", "$querySettings", "$queryStats"])
def test_they_stand_in_no_facet(client, stage):
    stages = [{"$facet": {"x": [{stage: {}}]}}]
    assert refused(client.admin, {"aggregate": 1, "pipeline": stages}) == 40600


@pytest.mark.parametrize("stage", [{"$collStats": {}}, {"$geoNear": {}}, {"$facet": {"y": []}}, {"$indexStats": {}}])
def test_nor_do_others_in_pipelines_within_a_facet(collection, stage):
    union = {"$unionWith": {"coll": "c", "pipeline": [stage]}}
    assert refused(collection.database, {"aggregate": "c", "pipeline": [{"$facet": {"x": [union]}}]}) == 40600


@pytest.mark.parametrize("stage", ["$currentOp", "$listClusterCatalog", "$listLocalSessions"])
def test_they_are_read_locally(client, stage):
    body = {"aggregate": 1, "pipeline": [{stage: {}}], "readConcern": {"level": "majority"}}
    assert refused(client.admin, body) == 72


@pytest.mark.parametrize("argument, code", [
    ({"explain": 1}, 14), ({"explain": None}, 14), ({"x": 1}, 9), ({"cursor": {"x": 1}}, 2),
    ({"explain": True, "writeConcern": {"w": 1}}, 9), ({"explain": True, "cursor": {"batchSize": -1}}, 2),
    ({"explain": True, "cursor": 1}, 14),
])
def test_arguments_of_aggregate(collection, argument, code):
    body = {"aggregate": "c", "pipeline": [], "cursor": {}, **argument}
    with pytest.raises(OperationFailure) as error:
        collection.database.command(body)
    assert error.value.code == code


@pytest.mark.parametrize("stage, code", [
    ({"$limit": float("inf")}, 5107201), ({"$skip": 1e300}, 5107200), ({"$count": "_id"}, 9039800),
    ({"$lookup": {"from": "c", "localField": "a", "foreignField": "b"}}, 9),
    ({"$lookup": {"from": "c", "localField": "a", "foreignField": "", "as": "x"}}, 9),
    ({"$lookup": {"from": {"x": 1}, "as": "x"}}, 40415), ({"$lookup": {"from": 1, "as": "x"}}, 9),
    ({"$lookup": {}}, 9), ({"$lookup": {"From": "c", "as": "x"}}, 9),
    ({"$lookup": {"from": "c", "localField": 1, "as": "x"}}, 14),
    ({"$lookup": {"from": "c", "as": "x\0", "pipeline": []}}, 16411),
    ({"$lookup": {"from": "c", "as": ".".join("a" * 201), "pipeline": []}}, 15),
    ({"$lookup": {"from": "c", "as": "x", "pipeline": [{"$documents": []}]}}, 73),
])
def test_operands_of_stages(collection, stage, code):
    assert refused(collection.database, {"aggregate": "c", "pipeline": [stage]}) == code


def test_the_greatest_number_is_skipped(collection):
    collection.insert_one({})
    for greatest in (Int64(2**63 - 1), Decimal128("9223372036854775807")):
        assert list(collection.aggregate([{"$skip": greatest}])) == []
        assert len(list(collection.aggregate([{"$limit": greatest}]))) == 1


@pytest.mark.parametrize("skip, code", [("x", 14), (-1, 2)])
def test_skips_of_count(collection, skip, code):
    with pytest.raises(OperationFailure) as error:
        collection.database.command("count", "c", skip=skip)
    assert error.value.code == code
    collection.insert_many([{}, {}, {}])
    assert collection.database.command("count", "c", skip=1.9)["n"] == 2
    assert collection.database.command("count", "c", skip=None)["n"] == 3


def test_pipelines_within_others_ask_of_their_collections(database):
    database.c.insert_many([{"_id": 1}, {"_id": 2}])
    database.other.insert_many({"a": number} for number in range(3))
    database.other.create_index("a")
    database.other.create_index("b")
    for number in range(2):
        list(database.other.find({"a": 1, "b": number}))

    def joined(*stages, **others):
        stage = {"from": "other", "as": "x", "pipeline": [*stages], **others}
        return [one["x"] for one in database.c.aggregate([{"$sort": {"_id": 1}}, {"$lookup": stage}])]

    def united(*stages):
        return list(database.c.aggregate([{"$limit": 1}, {"$unionWith": {"coll": "other", "pipeline": [*stages]}}]))[1:]

    count = {"$collStats": {"count": {}}}, {"$project": {"count": 1, "ns": 1}}
    told = {"ns": f"{database.name}.other", "count": 3}
    assert joined(*count) == [[told], [told]] and united(*count) == [told]
    both = [{**told, "own": number} for number in (1, 2)]
    assert joined(*count, {"$set": {"own": "$$own"}}, let={"own": "$_id"}) == [[one] for one in both]
    names = {"$indexStats": {}}, {"$sort": {"name": 1}}, {"$project": {"name": 1}}
    expected = [{"name": "_id_"}, {"name": "a_1"}, {"name": "b_1"}]
    assert joined(*names) == [expected, expected] and united(*names) == expected
    plans = {"$planCacheStats": {}}, {"$count": "plans"}
    assert joined(*plans) == [[{"plans": 1}]] * 2 and united(*plans) == [{"plans": 1}]


@pytest.mark.parametrize("stages, code", [
    ([{"$collStats": {"x": 1}}], 40415), ([{"$collStats": 1}], 40166), ([{"$indexStats": {"x": 1}}], 28803),
    ([{"$planCacheStats": {"allHosts": 1}}], 13111), ([{"$match": {}}, {"$indexStats": {}}], 40602),
])
def test_what_they_ask_is_checked_where_no_row_asks_it(database, stages, code):
    for coll, key in (("from", "$lookup"), ("coll", "$unionWith")):
        within = {coll: "other", "pipeline": stages, **({"as": "x"} if coll == "from" else {})}
        assert refused(database, {"aggregate": "c", "pipeline": [{key: within}]}) == code
    assert refused_view(database, stages) == code


def refused_view(database, stages):
    with pytest.raises(OperationFailure) as error:
        database.create_collection("v", viewOn="c", pipeline=stages)
    return error.value.code


def test_pipelines_within_others_fail_as_their_stages_do(database):
    database.c.insert_one({})
    database.create_collection("v", viewOn="c", pipeline=[{"$match": {}}])
    for coll, stage, code in (("none", {"$collStats": {"count": {}}}, 40481),
                              ("none", {"$collStats": {"storageStats": {}}}, 26),
                              ("none", {"$planCacheStats": {}}, 50933),
                              ("v", {"$indexStats": {}}, 40602), ("v", {"$collStats": {}}, 40602)):
        union = {"$unionWith": {"coll": coll, "pipeline": [stage]}}
        assert refused(database, {"aggregate": "c", "pipeline": [union]}) == code
    # A join by fields is in front of the pipeline.
    for stage, code in (({"$indexStats": {}}, 40602), ({"$match": {"$text": {"$search": "x"}}}, 17313),
                        ({"$geoNear": {"near": [0, 0], "distanceField": "d"}}, 40602)):
        by_field = {"from": "c", "localField": "a", "foreignField": "a", "as": "x", "pipeline": [stage]}
        assert refused(database, {"aggregate": "c", "pipeline": [{"$lookup": by_field}]}) == code
    empty = {"$unionWith": {"coll": "none", "pipeline": [{"$indexStats": {}}]}}
    assert list(database.c.aggregate([{"$project": {"_id": 0}}, empty])) == [{}]


def test_views_ask_of_what_they_are_on(database):
    def view(name, on, *stages):
        database.create_collection(name, viewOn=on, pipeline=[*stages])

    def told(name, *stages):
        return [one["ns"].split(".", 1)[1] for one in database[name].aggregate([*stages])]

    stats = {"$collStats": {"latencyStats": {}}}
    view("a", "b", stats, {"$match": {}})
    view("b", "c", stats)
    view("plain", "c")
    assert told("a") == ["b"] and told("b") == ["c"]
    assert [told(name, stats) for name in ("a", "b", "c")] == [["a"], ["b"], ["c"]]
    assert [one["ns"] for one in database.a.find()] == [f"{database.name}.b"]
    assert database.a.count_documents({}) == 1
    command = {"aggregate": "a", "pipeline": [{"$limit": 1}], "cursor": {}}
    explained = database.command("explain", command, verbosity="queryPlanner")
    assert explained["stages"] == [stats, {"$match": {}}, {"$limit": 1}]
    ran = database.command("explain", command, verbosity="executionStats")["stages"]
    assert [one["nReturned"] for one in ran] == [1, 1, 1]
    database.c.insert_one({"a": 1})
    view("indexes", "plain", {"$indexStats": {}}, {"$project": {"name": 1}})
    assert list(database.indexes.find()) == [{"name": "_id_"}]
    assert [one["name"] for one in database.plain.aggregate([{"$indexStats": {}}])] == ["_id_"]
    assert list(database.plain.aggregate([{"$planCacheStats": {}}])) == []
    view("filtered", "c", {"$match": {}})
    assert refused(database, {"aggregate": "filtered", "pipeline": [{"$indexStats": {}}]}) == 40602
    assert database.indexes.count_documents({"name": "x"}) == 0
    union = {"$unionWith": {"coll": "plain", "pipeline": [{"$indexStats": {}}, {"$project": {"name": 1}}]}}
    assert list(database.c.aggregate([{"$match": {"_id": 0}}, union])) == [{"name": "_id_"}]
