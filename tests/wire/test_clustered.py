"""Clustered collections: creation, reads, writes, and recovery after a crash."""

import datetime
import random
import time
import uuid

import bson
import pymongo
import pytest
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from windrow_server import Server

BY_ID = {"key": {"_id": 1}, "unique": True}


def create(database, name="c", **options):
    database.command("create", name, clusteredIndex=dict(BY_ID), **options)
    return database[name]


def code_of(action, *arguments, **options):
    with pytest.raises(OperationFailure) as caught:
        action(*arguments, **options)
    return caught.value.code


def plan(collection, filter=None, verbosity="queryPlanner", **options):
    command = {"find": collection.name, "filter": filter or {}, **options}
    return collection.database.command("explain", command, verbosity=verbosity)


def leaf(collection, filter=None, **options):
    stage = plan(collection, filter, **options)["queryPlanner"]["winningPlan"]
    stages = [stage["stage"]]
    while "inputStage" in stage:
        stage = stage["inputStage"]
        stages.append(stage["stage"])
    return stage, stages


@pytest.mark.parametrize("options, expected", [
    ({"clusteredIndex": True}, 5979703),
    ({"clusteredIndex": 1}, 5979703),
    ({"clusteredIndex": "x"}, 14),
    ({"clusteredIndex": {"key": {"_id": 1}}}, 40414),
    ({"clusteredIndex": {"unique": True}}, 40414),
    ({"clusteredIndex": {"key": {"_id": 1}, "unique": False}}, 5979700),
    ({"clusteredIndex": {"key": {"_id": -1}, "unique": True}}, 197),
    ({"clusteredIndex": {"key": {"a": 1}, "unique": True}}, 197),
    ({"clusteredIndex": {"key": {"_id": 1, "a": 1}, "unique": True}}, 197),
    ({"clusteredIndex": {**BY_ID, "v": 1}}, 5979704),
    ({"clusteredIndex": {**BY_ID, "other": 1}}, 40415),
    ({"clusteredIndex": {**BY_ID, "name": 1}}, 14),
    ({"clusteredIndex": {**BY_ID, "key": 1}}, 14),
    ({"clusteredIndex": BY_ID, "viewOn": "x"}, 6026500),
    ({"clusteredIndex": BY_ID, "autoIndexId": False}, 6026501),
    ({"clusteredIndex": BY_ID, "size": 10}, 6049200),
    ({"clusteredIndex": BY_ID, "max": 10}, 6049204),
    ({"clusteredIndex": BY_ID, "capped": True}, 6049201),
    ({"clusteredIndex": BY_ID, "capped": True, "expireAfterSeconds": 10}, 6127800),
    ({"clusteredIndex": BY_ID, "expireAfterSeconds": -10}, 72),
    ({"clusteredIndex": False, "expireAfterSeconds": 5}, 72),
    ({"expireAfterSeconds": 5}, 72),
])
def test_what_cannot_be_made(database, options, expected):
    assert code_of(database.command, {"create": "c", **options}) == expected
    assert database.list_collection_names() == []


def test_how_it_is_told(database):
    database.command("create", "c", clusteredIndex={**BY_ID, "name": "by id"}, expireAfterSeconds=5)
    told = next(database.list_collections(filter={"name": "c"}))
    by_id = {"v": 2, "key": {"_id": 1}, "name": "by id", "unique": True}
    assert told["options"] == {"clusteredIndex": by_id, "expireAfterSeconds": 5}
    assert "idIndex" not in told and told["info"]["readOnly"] is False
    listed = {**by_id, "clustered": True}
    assert [dict(one) for one in database.c.list_indexes()] == [{**listed, "expireAfterSeconds": 5}]
    database.command("collMod", "c", expireAfterSeconds="off")
    assert [dict(one) for one in database.c.list_indexes()] == [listed]
    database.command("collMod", "c", expireAfterSeconds=9)
    told = next(database.list_collections(filter={"name": "c"}))
    assert told["options"]["expireAfterSeconds"] == 9
    assert code_of(database.command, "collMod", "c", expireAfterSeconds=-1) == 72
    assert code_of(database.command, "collMod", "c", expireAfterSeconds="on") == 72
    database.create_collection("plain")
    assert code_of(database.command, "collMod", "plain", expireAfterSeconds=1) == 72
    assert code_of(database.command, "convertToCapped", "c", size=4096) == 20
    statistics = database.command("collStats", "c")
    assert statistics["clustered"] is True
    assert (statistics["nindexes"], statistics["indexSizes"]) == (0, {})
    assert "clustered" not in database.command("collStats", "plain")
    create(database, "d")
    assert database.d.index_information()["_id_"]["clustered"] is True


def test_its_index_can_be_neither_made_nor_dropped(database):
    clustered = create(database)
    before = list(clustered.list_indexes())
    for wanted in [{"key": {"_id": 1}, "name": "_id_"},
                   {"key": {"_id": 1}, "name": "_id_", "clustered": True, "unique": True},
                   {"key": {"_id": 1}, "name": "other"}]:
        made = database.command("createIndexes", "c", indexes=[wanted])
        assert made["note"] == "all indexes already exist"
    assert list(clustered.list_indexes()) == before
    other = {"key": {"a": 1}, "name": "a", "clustered": True, "unique": True}
    assert code_of(database.command, "createIndexes", "c", indexes=[other]) == 6243700
    create_on = lambda name, **options: code_of(
        database.command, "createIndexes", name,
        indexes=[{"key": {"_id": 1}, "name": "_id_", "unique": True, **options}])
    assert create_on("nothing", clustered=True) == 6100900
    assert create_on("nothing", clustered=False) == 6492800
    database.create_collection("plain")
    assert create_on("plain", clustered=True) == 6243700
    for wanted in ["_id_", {"_id": 1}, ["_id_"]]:
        assert code_of(database.command, "dropIndexes", "c", index=wanted) == 5979800
    clustered.create_index("a")
    assert database.command("dropIndexes", "c", index="*")["nIndexesWas"] == 1
    assert list(clustered.list_indexes()) == before
    hide = {"keyPattern": {"_id": 1}, "hidden": True}
    assert code_of(database.command, "collMod", "c", index=hide) == 6011800
    assert database.command("drop", "c")["nIndexesWas"] == 0


MIXED = [None, -5, 1, 2.5, 10, "", "a", "b" * 100, {"a": 1}, {"a": {"b": 1}}, b"\x01\x02",
         bson.ObjectId("65a000000000000000000000"), False, True,
         datetime.datetime(2020, 1, 1), bson.Timestamp(5, 1), bson.MinKey(), bson.MaxKey(),
         bson.Int64(9223372036854775807), bson.Decimal128("2.75"),
         uuid.UUID("11111111-2222-3333-4444-555555555555")]


@pytest.fixture
def both(server, database):
    """The same documents in a clustered and an ordinary collection."""
    options = bson.CodecOptions(uuid_representation=bson.binary.UuidRepresentation.STANDARD)
    database = database.with_options(codec_options=options)
    create(database)
    documents = [{"_id": one, "n": place % 4} for place, one in enumerate(MIXED)]
    random.Random(3).shuffle(documents)
    for name in ["c", "plain"]:
        database[name].insert_many(documents)
        database[name].create_index("n")
    return database.c, database.plain


@pytest.mark.parametrize("filter", [
    {}, {"_id": 1}, {"_id": 2.5}, {"_id": None}, {"_id": "a"}, {"_id": {"a": 1}},
    {"_id": {"$in": [1, "a", None, 99, True]}}, {"_id": {"$in": []}},
    {"_id": {"$gt": 1}}, {"_id": {"$gte": 1}}, {"_id": {"$lt": 10}}, {"_id": {"$lte": 10}},
    {"_id": {"$gt": 1, "$lt": 10}}, {"_id": {"$gt": "a"}}, {"_id": {"$gte": bson.MinKey()}},
    {"_id": {"$lt": datetime.datetime(2030, 1, 1)}}, {"_id": {"$gte": None}},
    {"_id": {"$ne": 1}}, {"_id": {"$nin": [1, None]}}, {"_id": {"$exists": True}},
    {"_id": {"$type": "string"}}, {"_id": {"$regex": "^b"}}, {"_id": {"$not": {"$gt": 5}}},
    {"_id.a": 1}, {"n": 2}, {"n": 2, "_id": {"$gt": 1}}, {"$or": [{"_id": 1}, {"n": 3}]},
    {"$or": [{"_id": 1}, {"_id": {"$gt": "a"}}]}, {"_id": {"$gt": 5, "$type": "decimal"}},
    {"$expr": {"$gt": ["$_id", 5]}}, {"_id": {"$mod": [2, 0]}},
])
def test_it_answers_like_an_ordinary_one(both, filter):
    clustered, plain = both

    def sorted_both(*arguments, **options):
        return [list(one.find(*arguments, **options).sort(by))
                for one in both for by in [[("_id", 1)]]]

    one, other = sorted_both(filter)
    assert one == other
    assert list(clustered.find(filter).sort("_id", -1)) == one[::-1]
    assert sorted(map(repr, clustered.find(filter))) == sorted(map(repr, one))
    assert list(clustered.find(filter, sort=[("$natural", 1)])) == one
    assert list(clustered.find(filter, sort=[("$natural", -1)])) == one[::-1]
    assert list(clustered.find(filter).hint([("_id", 1)])) == one
    assert list(clustered.find(filter).sort("_id", 1).skip(1).limit(2)) == one[1:3]
    assert [list(it.find(filter, {"_id": 1}).sort("_id", 1)) for it in both].count(
        [{"_id": it["_id"]} for it in one]) == 2
    assert clustered.count_documents(filter) == plain.count_documents(filter)
    assert clustered.distinct("_id", filter) == plain.distinct("_id", filter)
    assert clustered.distinct("n", filter) == plain.distinct("n", filter)
    pipeline = [{"$match": filter}, {"$sort": {"_id": -1}}, {"$limit": 3}]
    assert list(clustered.aggregate(pipeline)) == list(plain.aggregate(pipeline))
    for collection in both:
        collection.update_many(filter, {"$set": {"seen": 1}, "$inc": {"n": 1}})
        collection.delete_many({"$and": [filter, {"n": {"$gt": 2}}]})
    one, other = sorted_both({})
    assert one == other
    assert clustered.database.validate_collection("c", full=True)["valid"]


def test_plans(database):
    clustered = create(database)
    clustered.insert_many([{"_id": one, "a": -one} for one in range(100)])
    clustered.create_index("a")

    def check(filter, low, high, direction="forward", **options):
        stage, stages = leaf(clustered, filter, **options)
        assert stages == ["CLUSTERED_IXSCAN"]
        assert (stage["minRecord"], stage["maxRecord"]) == (low, high)
        assert stage["direction"] == direction

    def check_unbounded(direction="forward", **options):
        stage, stages = leaf(clustered, **options)
        assert stages == ["COLLSCAN"]
        assert stage["direction"] == direction and "minRecord" not in stage

    check({"_id": 5}, 5, 5)
    check({"_id": {"$gt": 5, "$lte": 9}}, 5, 9)
    check({"_id": {"$gte": 89}}, 89, float("inf"))
    check({"_id": {"$in": [10, 20, 30]}}, 10, 30)
    check({"_id": {"$gt": 5, "$lt": 9}}, 5, 9, "backward", sort={"_id": -1})
    check({"_id": 80}, 80, 80, "backward", hint={"$natural": -1})
    check({"_id": {"$lte": 80, "$gt": 3}}, 3, 80, hint="_id_")
    check({}, 101, bson.MaxKey(), hint={"_id": 1}, min={"_id": 101}, max={"_id": bson.MaxKey()})
    check({"_id": {"$gte": 3, "$lt": 5}, "b": 1}, 3, 5)
    check_unbounded()
    check_unbounded(sort={"_id": 1})
    check_unbounded("backward", sort={"_id": -1})
    check_unbounded(hint={"_id": 1})
    check_unbounded("backward", hint={"$natural": -1})
    check_unbounded(filter={"b": 1})
    assert leaf(clustered, {"a": -3})[1] == ["FETCH", "IXSCAN"]
    assert leaf(clustered, {"a": -3}, hint={"_id": 1})[1] == ["COLLSCAN"]
    bad = {"find": "c", "hint": {"_id": 1}, "min": {"_id": 5}, "max": {"_id": 3}}
    assert code_of(database.command, bad) == 6137401
    assert code_of(database.command, {"find": "c", "hint": {"_id": -1}}) == 2
    ran = plan(clustered, {"_id": {"$in": [10, 20, 30]}}, "executionStats")["executionStats"]
    assert ran["nReturned"] == ran["totalDocsExamined"] == 3
    ran = plan(clustered, {"_id": 5}, "executionStats")["executionStats"]
    assert (ran["totalKeysExamined"], ran["totalDocsExamined"]) == (0, 1)
    for command in [{"count": "c", "query": {"_id": {"$gt": 5}}},
                    {"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 0}]},
                    {"update": "c", "updates": [{"q": {"_id": {"$lt": 3}}, "u": {"$inc": {"b": 1}}}]}]:
        stage = database.command("explain", command, verbosity="queryPlanner")
        stage = stage["queryPlanner"]["winningPlan"]["inputStage"]
        assert stage["stage"] == "CLUSTERED_IXSCAN"
    assert code_of(lambda: list(clustered.find(cursor_type=pymongo.CursorType.TAILABLE))) == 2


def test_many_ids_at_once(database):
    clustered = create(database)
    ids = [str(uuid.UUID(int=random.Random(one).getrandbits(128))) for one in range(20_000)]
    for start in range(0, len(ids), 5_000):
        clustered.insert_many([{"_id": one, "n": len(one)} for one in ids[start:start + 5_000]])
    wanted = ids[::3] + ["none"]
    assert sorted(it["_id"] for it in clustered.find({"_id": {"$in": wanted}})) == sorted(ids[::3])
    assert [it["_id"] for it in clustered.find()] == sorted(ids)
    assert clustered.delete_many({"_id": {"$in": wanted}}).deleted_count == len(ids[::3])
    assert clustered.count_documents({"_id": {"$gte": ""}}) == len(ids) - len(ids[::3])


def test_writing(database):
    clustered = create(database)
    clustered.insert_many([{"_id": 1}, {"_id": 42.0}, {"_id": "x" * 100_000}])
    for duplicate in [1, 1.0, bson.Int64(42), "x" * 100_000]:
        with pytest.raises(DuplicateKeyError) as caught:
            clustered.insert_one({"_id": duplicate})
        assert caught.value.details["keyPattern"] == {"_id": 1}
    with pytest.raises(BulkWriteError) as caught:
        clustered.insert_many([{"_id": 2}, {"_id": 1}, {"_id": 3}], ordered=False)
    assert caught.value.details["nInserted"] == 2
    assert code_of(clustered.update_one, {"_id": 1}, {"$set": {"_id": 9}}) == 66
    clustered.replace_one({"_id": 1}, {"a": 1})
    assert clustered.find_one({"a": 1}) == {"_id": 1, "a": 1}
    assert clustered.find_one_and_update({"_id": 7}, {"$set": {"b": 2}}, upsert=True,
                                         return_document=True) == {"_id": 7, "b": 2}
    assert clustered.find_one_and_delete({"_id": 7}) == {"_id": 7, "b": 2}
    clustered.insert_one({"_id": 7, "again": True})
    assert clustered.find_one({"_id": 7}) == {"_id": 7, "again": True}
    assert clustered.count_documents({}) == 6


def test_collation(database):
    english = {"locale": "en", "strength": 2}
    clustered = create(database, collation=english)
    clustered.insert_many([{"_id": "b"}, {"_id": "A"}, {"_id": 5}])
    with pytest.raises(DuplicateKeyError):
        clustered.insert_one({"_id": "a"})
    assert [it["_id"] for it in clustered.find({"_id": "a"})] == ["A"]
    assert [it["_id"] for it in clustered.find()] == [5, "A", "b"]
    assert [it["_id"] for it in clustered.find({"_id": {"$gte": "B"}})] == ["b"]
    assert list(clustered.find({"_id": "a"}).collation({"locale": "simple"})) == []
    assert leaf(clustered, {"_id": "A"})[1] == ["CLUSTERED_IXSCAN"]
    assert leaf(clustered, {"_id": "A"}, collation={"locale": "simple"})[1] == ["COLLSCAN"]
    assert next(clustered.list_indexes())["collation"]["locale"] == "en"


def test_other_ways_in(database):
    clustered = create(database)
    clustered.insert_many([{"_id": one, "a": one % 7} for one in range(1_000, 0, -1)])
    clustered.create_index("a")
    database.command("create", "v", viewOn="c", pipeline=[{"$match": {"a": 3}}])
    assert [it["_id"] for it in database.v.find().sort("_id", 1).limit(2)] == [3, 10]
    list(database.v.aggregate([{"$out": "c"}]))
    assert database.c.count_documents({}) == len(range(3, 1_001, 7))
    told = next(database.list_collections(filter={"name": "c"}))
    assert told["options"]["clusteredIndex"]["key"] == {"_id": 1}
    assert set(database.c.index_information()) == {"_id_", "a_1"}
    database.plain.insert_many([{"_id": 3, "b": 1}, {"_id": 5, "b": 1}])
    list(database.plain.aggregate([{"$merge": "c"}]))
    assert database.c.find_one({"_id": 3}) == {"_id": 3, "a": 3, "b": 1}
    assert [it["_id"] for it in database.c.find().limit(3)] == [3, 5, 10]
    joined = {"from": "c", "localField": "_id", "foreignField": "_id", "as": "c"}
    found = list(database.plain.aggregate([{"$lookup": joined}, {"$sort": {"_id": 1}}]))
    assert [it["c"][0]["_id"] for it in found] == [3, 5]
    assert database.command("dataSize", f"{database.name}.c")["numObjects"] == 144
    size = database.command("dataSize", f"{database.name}.c", keyPattern={"_id": 1},
                            min={"_id": 3}, max={"_id": 10})
    assert size["numObjects"] == 2
    assert [dict(it)["name"] for it in database.c.aggregate([{"$indexStats": {}}])] == ["a_1"]
    database.c.rename("moved")
    assert [it["_id"] for it in database.moved.find().limit(2)] == [3, 5]
    assert database.validate_collection("moved")["nIndexes"] == 1


def test_documents_expire_by_their_ids(tmp_path):
    with Server(tmp_path) as server:
        database = server.client().d
        database.client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
        clustered = create(database, expireAfterSeconds=3600)
        now = datetime.datetime.now(datetime.timezone.utc)
        hours = lambda count: now - datetime.timedelta(hours=count)
        old = [{"_id": hours(2) - datetime.timedelta(seconds=one)} for one in range(2_500)]
        kept = [{"_id": hours(0.5)}, {"_id": "text"}, {"_id": 5}, {"_id": bson.ObjectId()}]
        clustered.insert_many(old + kept)
        deadline = time.monotonic() + 60
        while clustered.count_documents({}) > len(kept) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert clustered.count_documents({}) == len(kept)
        assert [type(it["_id"]) for it in clustered.find()] == [
            int, str, bson.ObjectId, datetime.datetime]


@pytest.mark.parametrize("ids", ["growing", "random"])
def test_after_a_crash(tmp_path, ids):
    chance = random.Random(11)
    new_id = {"growing": bson.ObjectId, "random": lambda: f"{chance.getrandbits(160):040x}"}[ids]
    model = {}
    with Server(tmp_path, memory=64 << 20) as server:
        clustered = create(server.client().d)
        clustered.create_index("n")
        for turn in range(6):
            clustered = server.client().d.c
            new = [{"_id": new_id(), "n": chance.randrange(50), "pad": "x" * 200}
                   for _ in range(4_000)]
            clustered.insert_many(new)
            model.update({it["_id"]: it for it in new})
            n = chance.randrange(50)
            clustered.update_many({"n": n}, {"$set": {"n": 100 + turn}})
            for it in model.values():
                it["n"] = 100 + turn if it["n"] == n else it["n"]
            n = chance.randrange(50)
            clustered.delete_many({"n": n})
            model = {one: it for one, it in model.items() if it["n"] != n}
            server.kill()
            server.start()
            clustered = server.client().d.c
            assert list(clustered.find()) == [model[one] for one in sorted(model)]
            assert clustered.count_documents({"n": 100 + turn}) == sum(
                it["n"] == 100 + turn for it in model.values())
            checked = clustered.database.validate_collection("c", full=True)
            assert checked["valid"], checked["errors"]
        clustered.create_index([("pad", 1), ("n", -1)])
        assert clustered.database.validate_collection("c", full=True)["valid"]
