"""Every kind of index returns what a scan returns, and enforces its options."""

import datetime
import random
import threading
import time

import pymongo
import pytest
from bson import Decimal128, Int64, MinKey, ObjectId
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, WriteError

from answers import ids

VALUES = [None, 0, 1, 2, 5, -3, 1.5, Int64(7), Decimal128("2.5"), "a", "b", "ab", "", True, False,
          {"x": 1}, {"x": 2}, [], [1, 2], ["a", 1], [[1]], b"x", ObjectId(b"a" * 12),
          datetime.datetime(2020, 1, 1), float("nan"), float("inf")]
QUERIES = [{"$eq": 1}, {"$gt": 1}, {"$gte": 1, "$lt": 5}, {"$lte": "b"}, {"$ne": 1}, {"$in": [1, "a", None]},
           {"$nin": [1, "a"]}, {"$exists": True}, {"$exists": False}, {"$type": "string"},
           {"$regex": "^a"}, {"$regex": "b"}, {"$elemMatch": {"$gt": 0}}, {"$all": [1, 2]},
           {"$size": 2}, {"$mod": [2, 1]}, {"$not": {"$gt": 1}}, {"$eq": None}, {"$eq": {"x": 1}},
           {"$eq": [1, 2]}, {"$gt": {"x": 1}}, {"$gte": [1]}, {"$lt": datetime.datetime(2021, 1, 1)}]


def documents(seed, count=400):
    """Documents whose a, b and d.e have every type or are missing."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        one = {"_id": number, "n": chance.randrange(50)}
        for name in "ab":
            if chance.random() < 0.85:
                one[name] = chance.choice(VALUES)
        if isinstance(one.get("a"), list) and isinstance(one.get("b"), list):
            del one["b"]
        if chance.random() < 0.8:
            one["d"] = chance.choice([{"e": chance.choice(VALUES)}, [{"e": 1}, {"e": "a"}], 3])
            if isinstance(one["d"], dict) and isinstance(one["d"]["e"], list):
                one.pop("b", None)
        made.append(one)
    return made


INDEXES = {
    "single": ([("a", 1)], {}),
    "descending": ([("a", -1)], {}),
    "compound": ([("n", 1), ("a", -1)], {}),
    "dotted": ([("d.e", 1)], {}),
    "compound dotted": ([("d.e", 1), ("n", 1)], {}),
    "sparse": ([("a", 1)], {"sparse": True}),
    "partial": ([("a", 1)], {"partialFilterExpression": {"n": {"$gt": 25}}}),
    "wildcard": ([("$**", 1)], {}),
    "wildcard dotted": ([("d.$**", 1)], {}),
}


@pytest.mark.parametrize("built", ["before", "after"])
@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_changes_no_answer(collection, kind, built):
    key, options = INDEXES[kind]
    field = "d.e" if "dotted" in kind else "a"
    made = documents(kind)
    if built == "before":
        collection.create_index(key, **options)
    collection.insert_many(made)
    queries = [{field: query} for query in QUERIES]
    queries += [{field: query, "n": {"$gt": 25}} for query in QUERIES]
    natural = [sorted(ids(collection.find(query).hint([("$natural", 1)]))) for query in queries]
    if built == "after":
        collection.create_index(key, **options)
    for query, expected in zip(queries, natural):
        assert sorted(ids(collection.find(query))) == expected, query
        if not options and "wildcard" not in kind:
            assert sorted(ids(collection.find(query).hint(key))) == expected, query
        assert collection.count_documents(query) == len(expected), query


@pytest.mark.parametrize("kind", ["single", "descending", "compound", "dotted"])
def test_an_index_follows_updates_and_deletes(collection, kind):
    key, options = INDEXES[kind]
    chance = random.Random(kind)
    collection.create_index(key, **options)
    collection.insert_many(documents(kind, 200))
    for one in documents(kind + "again", 200):
        if chance.random() < 0.5:
            collection.replace_one({"_id": one["_id"]}, one)
        elif chance.random() < 0.3:
            collection.delete_one({"_id": one["_id"]})
    found = collection.database.command({"validate": collection.name, "full": True})
    assert found["valid"], found["errors"]
    for query in QUERIES:
        query = {"d.e" if kind == "dotted" else "a": query}
        expected = ids(collection.find(query).hint([("$natural", 1)]))
        assert sorted(ids(collection.find(query).hint(key))) == sorted(expected), query


@pytest.mark.parametrize("order", [[("n", 1), ("m", 1)], [("n", -1), ("m", -1)], [("n", 1)],
                                   [("n", 1), ("m", -1)], [("m", 1)]])
def test_sorting_by_an_index_is_sorting(collection, order):
    collection.insert_many([{"n": one % 7, "m": one * 37 % 11} for one in range(300)])
    keys = [name for name, _ in order]
    rows = lambda: [[one[key] for key in keys]  # noqa: E731
                    for one in collection.find().sort(order)]
    before = rows()
    collection.create_index([("n", 1), ("m", 1)])
    assert rows() == before
    limited = collection.find().sort(order).skip(5).limit(10)
    assert [[one[key] for key in keys] for one in limited] == before[5:15]


def test_a_covered_query_reads_no_document(database):
    database.c.create_index([("a", 1), ("b", 1)])
    database.c.insert_many([{"a": one, "b": one * 2, "pad": "x"} for one in range(100)])
    cursor = database.c.find({"a": {"$gte": 90}}, {"_id": 0, "a": 1, "b": 1})
    assert [(one["a"], one["b"]) for one in cursor] == [(one, one * 2) for one in range(90, 100)]
    stats = database.c.find({"a": {"$gte": 90}}, {"_id": 0, "b": 1}).explain()["executionStats"]
    assert (stats["totalDocsExamined"], stats["totalKeysExamined"]) == (0, 10)


# Regression: the index on `_id` kept 1 when the document had 1.0. Covered queries returned it, and
# validation found a missing entry.
@pytest.mark.parametrize("options", [{}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}])
@pytest.mark.parametrize("change", [
    lambda collection: collection.replace_one({"_id": 1}, {"_id": 1.0}),
    lambda collection: collection.update_one({"_id": 1}, [{"$set": {"_id": 1.0}}]),
])
def test_an_id_that_becomes_an_equal_one_of_another_type(database, options, change):
    database.create_collection("c", **options)
    database.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2}])
    change(database.c)
    [covered] = database.c.find({"_id": {"$lt": 2}}, {"_id": 1})
    whole = database.c.find_one({"_id": 1})
    assert type(covered["_id"]) is type(whole["_id"]) is float
    assert database.command("validate", "c", full=True)["valid"]
    with pytest.raises(DuplicateKeyError):
        database.c.insert_one({"_id": 1})
    assert database.c.delete_one({"_id": 1}).deleted_count == 1
    database.c.insert_one({"_id": 1})
    assert database.command("validate", "c", full=True)["valid"]


def test_listing_and_dropping(collection):
    assert collection.create_index([("a", 1), ("b", -1)]) == "a_1_b_-1"
    assert collection.create_index("c", name="mine", sparse=True) == "mine"
    collection.create_index("u", unique=True)
    about = collection.index_information()
    assert set(about) == {"_id_", "a_1_b_-1", "mine", "u_1"}
    assert about["a_1_b_-1"]["key"] == [("a", 1), ("b", -1)]
    assert about["mine"]["sparse"] and about["u_1"]["unique"]
    collection.drop_index("mine")
    collection.drop_index([("a", 1), ("b", -1)])
    assert set(collection.index_information()) == {"_id_", "u_1"}
    with pytest.raises(OperationFailure) as error:
        collection.drop_index("mine")
    assert error.value.code == 27
    with pytest.raises(OperationFailure) as error:
        collection.drop_index("_id_")
    assert error.value.code == 72
    collection.drop_indexes()
    assert set(collection.index_information()) == {"_id_"}


def test_the_reply_counts_indexes_before_and_after(database):
    make = {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}
    first = database.command(make)
    assert (first["numIndexesBefore"], first["numIndexesAfter"]) == (1, 2)
    assert first["createdCollectionAutomatically"] is True
    again = database.command(make)
    assert (again["numIndexesBefore"], again["numIndexesAfter"]) == (2, 2)
    assert "already exist" in again["note"]
    assert "createdCollectionAutomatically" not in again


def test_the_index_on_id_of_a_new_collection_counts_as_made(database):
    """Regression: the reply did not say that the collection was created, since no index was built
    for it."""
    make = {"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}
    first = database.command(make)
    first.pop("ok")
    assert first == {"createdCollectionAutomatically": True, "numIndexesBefore": 1,
                     "numIndexesAfter": 1, "note": "all indexes already exist"}
    assert "createdCollectionAutomatically" not in database.command(make)


class TestUnique:
    def test_a_second_of_the_same_is_refused(self, collection):
        collection.create_index("a", unique=True)
        collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": "1"}, {"_id": 3}])
        for value in (1, 1.0, Int64(1)):
            with pytest.raises(DuplicateKeyError) as error:
                collection.insert_one({"a": value})
            assert error.value.details["keyPattern"] == {"a": 1}
            assert error.value.details["keyValue"] == {"a": value}
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"no": "a"})  # a missing value counts as null, once
        assert collection.count_documents({}) == 3

    def test_updates_may_not_make_one_either(self, collection):
        collection.create_index("a", unique=True)
        collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
        with pytest.raises((DuplicateKeyError, WriteError)) as error:
            collection.update_one({"_id": 2}, {"$set": {"a": 1}})
        assert error.value.code == 11000
        with pytest.raises(DuplicateKeyError):
            collection.find_one_and_update({"_id": 2}, {"$inc": {"a": -1}})
        with pytest.raises(DuplicateKeyError):
            collection.update_one({"_id": 3}, {"$set": {"a": 2}}, upsert=True)
        collection.update_one({"_id": 2}, {"$set": {"a": 2, "b": 1}})
        collection.update_one({"_id": 1}, {"$set": {"a": 3}})
        collection.update_one({"_id": 2}, {"$set": {"a": 1}})
        assert [(one["_id"], one["a"]) for one in collection.find()] == [(1, 3), (2, 1)]

    def test_a_deleted_value_is_free_again(self, collection):
        collection.create_index("a", unique=True)
        for _ in range(5):
            collection.insert_one({"_id": 1, "a": 1})
            with pytest.raises(DuplicateKeyError):
                collection.insert_one({"_id": 2, "a": 1})
            collection.delete_one({"_id": 1})
            collection.insert_one({"_id": 2, "a": 1})
            collection.delete_one({"a": 1})

    def test_within_one_batch(self, collection):
        collection.create_index("a", unique=True)
        with pytest.raises(BulkWriteError) as error:
            collection.insert_many([{"a": 1}, {"a": 2}, {"a": 1}, {"a": 3}], ordered=False)
        assert error.value.details["nInserted"] == 3
        assert [one["index"] for one in error.value.details["writeErrors"]] == [2]

    def test_compound_and_multikey(self, collection):
        collection.create_index([("a", 1), ("t", 1)], unique=True)
        collection.insert_one({"a": 1, "t": [1, 2, 2]})
        collection.insert_one({"a": 2, "t": [1, 2]})
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"a": 1, "t": [3, 2]})
        collection.insert_one({"a": 1, "t": [3]})

    def test_sparse_and_partial_leave_the_others_alone(self, collection):
        collection.create_index("s", unique=True, sparse=True)
        collection.create_index("p", unique=True, partialFilterExpression={"on": True})
        collection.insert_many([{}, {}, {"p": 1}, {"p": 1}, {"p": 1, "on": True}])
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"p": 1, "on": True})
        collection.insert_one({"s": None})
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"s": None})

    def test_it_is_not_built_over_duplicates(self, collection):
        collection.insert_many([{"_id": one, "a": one % 99} for one in range(100)])
        with pytest.raises(DuplicateKeyError) as error:
            collection.create_index("a", unique=True)
        assert error.value.code == 11000
        assert set(collection.index_information()) == {"_id_"}
        collection.delete_one({"_id": 99})
        collection.create_index("a", unique=True)

    def test_writers_at_once_agree_on_one(self, server, database):
        database.c.create_index("a", unique=True)
        won = []

        def write(writer):
            with pymongo.MongoClient(server.uri) as client:
                for value in range(200):
                    try:
                        client[database.name].c.insert_one({"a": value, "writer": writer})
                        won.append(value)
                    except DuplicateKeyError:
                        pass

        threads = [threading.Thread(target=write, args=(one,)) for one in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == list(range(200))
        assert database.c.count_documents({}) == 200


@pytest.mark.parametrize("partial, query, serves", [
    ({"n.0": {"$gt": 5}}, {"n.0": 7}, True),
    ({"n.0": {"$gt": 5}}, {"n.0": {"$in": [6, 7]}}, True),
    ({"n.0": {"$gt": 5}}, {"n.0": {"$gt": 4}}, False),
    ({"n.0": {"$gt": 5}}, {"n": 7}, False),
    ({"n.0.k": {"$exists": True}}, {"n.0.k": 7}, True),
])
def test_a_partial_index_by_a_place_serves_what_implies_it(collection, partial, query, serves):
    collection.create_index("a", partialFilterExpression=partial)
    values = [7, [7], [[7]], [[7, 5]], [5, 7], [[5, 7]], [{"0": 7}], [{"k": 7}], {"0": 7}, {"0": {"k": 7}}, [[{"k": 7}]]]
    collection.insert_many({"_id": place, "a": 1, "n": n} for place, n in enumerate(values))
    query = {"a": 1, **query}
    plan = str(collection.find(query).explain()["queryPlanner"]["winningPlan"])
    assert ("IXSCAN" in plan) == serves
    found = [one["_id"] for one in collection.find(query).sort("_id")]
    assert found == [one["_id"] for one in collection.find(query).hint([("$natural", 1)])] != []


def test_a_partial_index_serves_only_what_it_holds(collection):
    collection.create_index("a", partialFilterExpression={"n": {"$gt": 5}})
    collection.insert_many([{"_id": one, "a": one % 3, "n": one} for one in range(20)])
    assert sorted(ids(collection.find({"a": 1}))) == [1, 4, 7, 10, 13, 16, 19]
    stage = collection.find({"a": 1}).explain()["queryPlanner"]["winningPlan"]
    assert "IXSCAN" not in str(stage)
    inside = collection.find({"a": 1, "n": {"$gt": 5}})
    assert "IXSCAN" in str(inside.explain()["queryPlanner"]["winningPlan"])
    assert sorted(ids(inside)) == [7, 10, 13, 16, 19]
    collection.update_one({"_id": 1}, {"$set": {"n": 100}})
    assert sorted(ids(collection.find({"a": 1, "n": {"$gt": 5}}))) == [1, 7, 10, 13, 16, 19]


def test_a_sparse_index_leaves_out_what_lacks_the_field(database):
    database.c.create_index("a", sparse=True)
    database.c.insert_many([{"a": 1}, {"a": None}, {}, {"b": 1}])
    assert database.command({"validate": "c", "full": True})["keysPerIndex"]["a_1"] == 2
    assert len(list(database.c.find().hint("a_1"))) == 2
    assert len(list(database.c.find({"a": None}))) == 3


def test_an_index_is_built_while_others_write(server, database):
    database.c.insert_many([{"_id": one, "a": one % 1000} for one in range(100_000)])
    stop = threading.Event()
    written = []

    def write():
        with pymongo.MongoClient(server.uri) as client:
            target, number = client[database.name].c, 100_000
            while not stop.is_set():
                target.insert_one({"_id": number, "a": number % 1000})
                target.update_one({"_id": number - 100_000}, {"$set": {"a": 5000}})
                target.delete_one({"_id": number - 50_000})
                written.append(number)
                number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for field in ("a", "_id"):
            database.c.create_index([(field, ASCENDING), ("x", DESCENDING)])
    finally:
        stop.set()
        thread.join()
    found = database.command({"validate": "c", "full": True})
    assert found["valid"] and written
    by_index = database.c.find({"a": {"$gte": 0}}).hint([("a", 1), ("x", -1)])
    assert len(ids(by_index)) == database.c.count_documents({}) == 100_000
    assert database.c.count_documents({"a": 5000}) == \
        len([one for one in written if one - 100_000 not in {two - 50_000 for two in written}])


def test_a_key_of_any_length_fits(collection):
    # MongoDB's limit of 1,024 bytes ended with version 4.2.
    collection.create_index("a")
    long = "x" * 100_000
    collection.insert_many([{"_id": 1, "a": long}, {"_id": 2, "a": long + "y"}])
    assert ids(collection.find({"a": long}).hint("a_1")) == [1]
    assert ids(collection.find({"a": {"$gt": long}}).hint("a_1")) == [2]


def test_the_limits_of_a_collections_indexes(collection):
    with pytest.raises(OperationFailure) as error:
        collection.create_index([(f"f{one}", 1) for one in range(33)])
    assert error.value.code in (67, 13103)
    collection.create_indexes([IndexModel(f"f{one}") for one in range(63)])
    with pytest.raises(OperationFailure) as error:
        collection.create_index("one more")
    assert error.value.code == 67


def test_hints(collection):
    collection.create_index("a")
    collection.insert_many([{"_id": one, "a": -one} for one in range(10)])
    assert ids(collection.find().hint("a_1")) == list(range(9, -1, -1))
    assert ids(collection.find().hint([("a", 1)])) == list(range(9, -1, -1))
    assert ids(collection.find().hint([("$natural", -1)])) == list(range(9, -1, -1))
    assert collection.count_documents({"a": {"$lt": -4}}, hint="a_1") == 5
    with pytest.raises(OperationFailure) as error:
        list(collection.find().hint("b_1"))
    assert error.value.code == 2


def test_min_and_max_bound_an_index(collection):
    collection.create_index("a")
    collection.insert_many([{"_id": one, "a": one} for one in range(10)])
    found = collection.find().min([("a", 3)]).max([("a", 6)]).hint([("a", 1)])
    assert ids(found) == [3, 4, 5]


def test_hashed_indexes_find_equals_and_take_no_arrays(database):
    things = database.things
    things.insert_many([{"_id": 1, "a": 2}, {"_id": 2, "a": 2.0}, {"_id": 3, "a": 2.5}, {"_id": 4}])
    things.create_index([("a", "hashed")])
    assert [it["_id"] for it in things.find({"a": 2}).sort("_id", 1)] == [1, 2]
    assert [it["_id"] for it in things.find({"a": {"$in": [None, 2.5]}}).sort("_id", 1)] == [3, 4]
    plan = things.find({"a": 2}).explain()["queryPlanner"]["winningPlan"]
    assert plan["inputStage"]["keyPattern"] == {"a": "hashed"}
    assert things.find({"a": {"$gt": 1}}).explain()["queryPlanner"]["winningPlan"]["stage"] == "COLLSCAN"
    with pytest.raises(pymongo.errors.WriteError) as failure:
        things.insert_one({"a": [1]})
    assert failure.value.code == 16766
    with pytest.raises(pymongo.errors.WriteError) as failure:
        things.update_one({"_id": 1}, {"$set": {"a": []}})
    assert failure.value.code == 16766


def test_wildcard_indexes_find_values_at_any_path(database):
    things = database.things
    things.create_index([("$**", 1)])
    things.insert_many([
        {"_id": 1, "a": {"b": 5}, "tags": ["x", "y"]},
        {"_id": 2, "a": [{"b": 7}, {"b": 9}]},
        {"_id": 3, "c": {}},
    ])
    plan = things.find({"a.b": {"$gt": 6, "$lt": 8}}).explain()["queryPlanner"]["winningPlan"]
    scan = plan["inputStage"]
    assert scan["keyPattern"] == {"$_path": 1, "a.b": 1}
    assert scan["multiKeyPaths"] == {"$_path": [], "a.b": ["a"]}
    assert scan["indexBounds"]["$_path"] == ['["a.b", "a.b"]']
    assert [it["_id"] for it in things.find({"a.b": {"$gt": 6}})] == [2]
    assert [it["_id"] for it in things.find({"tags": "y"})] == [1]
    assert [it["_id"] for it in things.find({"a": {"$exists": True}}).sort("_id", 1)] == [1, 2]
    assert [it["_id"] for it in things.find({"c": {}})] == [3]
    things.update_one({"_id": 3}, {"$set": {"new.path": 1}})
    assert [it["_id"] for it in things.find({"new.path": 1})] == [3]
    # Of arrays as whole values, only the empty one can be sought.
    things.insert_many([{"_id": 4, "e": []}, {"_id": 5, "e": [[]]}, {"_id": 6, "e": [[1]]}, {"_id": 7, "e": [1]}])
    assert [it["_id"] for it in things.find({"e": []}, hint="$**_1").sort("_id", 1)] == [4, 5]
    assert [it["_id"] for it in things.find({"e": {"$in": [[], 1]}}, hint="$**_1").sort("_id", 1)] == [4, 5, 7]
    for other in ([1], [[]], {"$in": [[], [1]]}):
        with pytest.raises(pymongo.errors.OperationFailure) as failure:
            things.find_one({"e": other}, hint="$**_1")
        assert failure.value.code == 291
    with pytest.raises(pymongo.errors.OperationFailure) as failure:
        things.find_one({"a": None}, hint="$**_1")
    assert failure.value.code == 291


def wait_for_passes(admin, count):
    """Waits until the thread has checked all TTL indexes this many times more."""
    passes = lambda: admin.command("serverStatus")["metrics"]["ttl"]["passes"]  # noqa: E731
    wanted, deadline = passes() + count, time.monotonic() + 20
    while passes() < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_documents_expire(database):
    admin = database.client.admin
    now = datetime.datetime.now(datetime.timezone.utc)
    old, young = now - datetime.timedelta(hours=2), now + datetime.timedelta(hours=2)
    things, many, hidden = database.things, database.many, database.hidden
    things.insert_many([
        {"_id": "a", "at": old}, {"_id": "b", "at": young}, {"_id": "c"}, {"_id": "d", "at": 5},
        {"_id": "e", "at": [young, old]}, {"_id": "f", "at": old},
    ])
    many.insert_many([{"at": old} for _ in range(2500)])
    many.create_index("at", expireAfterSeconds=0)
    hidden.insert_one({"at": old})
    hidden.create_index("at", expireAfterSeconds=0, hidden=True)
    things.create_index("at", expireAfterSeconds=3600, partialFilterExpression={"_id": {"$lt": "f"}})
    admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 1})
    try:
        wait_for_passes(admin, 2)
        assert (many.count_documents({}), hidden.count_documents({})) == (0, 0)
        assert ids(things.find().sort("_id", 1)) == ["b", "c", "d", "f"]
    finally:
        admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 60})


def test_an_index_serves_queries_of_its_collation(database):
    things, collation = database.things, {"locale": "en", "strength": 2}
    things.insert_many([{"_id": number, "a": text} for number, text in enumerate(
        ["apple", "Apple", "APPLE", "äpple", "banana", "Banana", "10", "9"])] + [{"_id": 8, "a": 5}])
    things.create_index("a", collation=collation)
    plan = things.find({"a": "APPLE"}, collation=collation).explain()["queryPlanner"]["winningPlan"]
    assert plan["inputStage"]["stage"] == "IXSCAN"
    assert things.find({"a": "apple"}).explain()["queryPlanner"]["winningPlan"]["stage"] == "COLLSCAN"
    numbers = things.find({"a": 5}).explain()["queryPlanner"]["winningPlan"]
    assert numbers["inputStage"]["stage"] == "IXSCAN"
    queries = [{"a": "APPLE"}, {"a": {"$gt": "apple"}}, {"a": {"$ne": "BANANA"}}, {"a": {"$lte": "B"}},
               {"a": {"$nin": ["BANANA", "apple"]}}, {"a": {"$in": ["ÄPPLE", 5]}}, {"a": {"$regex": "^a"}},
               {"a": {"$exists": True}}, {"a": {"$not": {"$gt": "apple"}}}]
    for query in queries:
        for hint in ("a_1", [("$natural", 1)]):
            found = ids(things.find(query, collation=collation).hint(hint).sort("_id", 1))
            natural = ids(things.find(query, collation=collation).hint([("$natural", 1)]).sort("_id", 1))
            assert found == natural, (query, hint)
    assert ids(things.find({"a": "APPLE"}, collation=collation)) == [0, 1, 2]
    ordered = things.find({"a": {"$gt": ""}}, collation=collation).sort("a", 1)
    assert "SORT" not in str(ordered.clone().explain()["queryPlanner"]["winningPlan"])
    assert ids(ordered) == [6, 7, 0, 1, 2, 3, 4, 5]
    assert things.count_documents({"a": "APPLE"}, collation=collation) == 3
    assert things.distinct("a", {"a": {"$in": ["apple", "banana"]}}, collation=collation) == ["apple", "banana"]
    assert things.update_many({"a": "BANANA"}, {"$set": {"b": 1}}, collation=collation).modified_count == 2
    grouped = things.aggregate([{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
                               collation=collation)
    assert [(one["_id"], one["n"]) for one in grouped][-1] == ("banana", 2)
    things.create_index("u", unique=True, sparse=True, collation=collation)
    things.insert_one({"_id": 20, "u": "x"})
    with pytest.raises(DuplicateKeyError):
        things.insert_one({"_id": 21, "u": "X"})
    assert things.delete_many({"a": "APPLE"}, collation=collation).deleted_count == 3
    found = things.database.command({"validate": "things", "full": True})
    assert found["valid"], found["errors"]


def test_a_collection_compares_as_it_was_made_to(database):
    things = database.create_collection("things", collation={"locale": "en", "strength": 2})
    assert things.options()["collation"]["version"] == "57.1"
    things.create_index("a", unique=True)
    things.create_index("b", collation={"locale": "simple"})
    specifications = {one["name"]: one for one in things.list_indexes()}
    assert specifications["_id_"]["collation"]["strength"] == 2
    assert specifications["a_1"]["collation"] == specifications["_id_"]["collation"]
    assert "collation" not in specifications["b_1"]
    things.insert_many([{"_id": "one", "a": "x", "b": "x"}, {"_id": "two", "a": "y", "b": "y"}])
    for wrong in ({"_id": "ONE", "a": "z"}, {"_id": "three", "a": "X"}):
        with pytest.raises(DuplicateKeyError):
            things.insert_one(wrong)
    simple = {"locale": "simple"}
    for query in ({"_id": "ONE"}, {"a": "X"}, {"b": "X"}, {"_id": {"$in": ["ONE", "Three"]}}):
        assert ids(things.find(query)) == ["one"]
        assert ids(things.find(query, collation=simple)) == []
        assert ids(things.aggregate([{"$match": query}])) == ["one"]
        assert things.count_documents(query) == 1
        assert things.distinct("b", query) == ["x"]
    assert things.find({"_id": "ONE"}).explain()["queryPlanner"]["winningPlan"]["stage"] == "IDHACK"
    assert things.update_one({"_id": "TWO"}, {"$set": {"c": 1}}).modified_count == 1
    assert things.update_one({"_id": "TWO"}, {"$set": {"c": 2}}, collation=simple).matched_count == 0
    assert things.find_one_and_update({"b": "Y"}, {"$set": {"c": 3}})["c"] == 1
    assert things.delete_one({"_id": "TWO"}).deleted_count == 1
    things.insert_one({"_id": "TWO", "a": "Y"})
    assert [one["_id"] for one in things.find(sort=[("_id", 1)])] == ["one", "TWO"]
    with pytest.raises(OperationFailure) as refused:
        things.database.command({"createIndexes": "things", "indexes": [
            {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "fr"}}]})
    assert refused.value.code == 2
    with pytest.raises(OperationFailure) as refused:
        things.create_index([("t", "text")])
    assert refused.value.code == 67
    found = things.database.command({"validate": "things", "full": True})
    assert found["valid"], found["errors"]


@pytest.mark.parametrize("key", [{"a": 1}, {"a": -1}, {"a": 1, "b": -1}, {"b": 1, "a": -1}])
def test_distinct_values_of_an_index_are_those_of_a_scan(database, key):
    """Values with few and with many documents, of several types, in every order of an index."""
    values = [None, 1, 2.5, "x", "y", {"c": 1}, datetime.datetime(2020, 1, 1), True, MinKey(), 7, 7.0, "yy"]
    documents = [{"_id": one, "a": values[one * one % 97 % 12], "b": one % 3} for one in range(600)]
    documents += [{"_id": 600 + one, "a": 1000 + one // 2, "b": one % 2} for one in range(300)]
    documents.append({"_id": -1, "a": None, "b": None})
    database.scanned.insert_many(documents)
    database.c.insert_many(documents)
    database.c.create_index(list(key.items()))
    for query in ({}, {"a": {"$gt": 1}}, {"a": {"$in": [7, "x", None, 1003]}}, {"b": 1}, {"b": {"$gt": 0}, "a": 1},
                  {"a": {"$lt": "y"}, "b": {"$in": [0, 2]}}, {"a": 1, "b": {"$in": [0, 2]}},
                  {"a": {"$in": [1, 7]}, "b": {"$in": [0, 2]}}, {"a": 1, "b": {"$ne": 1}}):
        assert database.c.distinct("a", query) == database.scanned.distinct("a", query), query
        assert database.c.distinct("b", query) == database.scanned.distinct("b", query), query


def test_a_validator_compares_as_its_collection_does(database):
    things = database.create_collection("things", collation={"locale": "en", "strength": 2},
                                        validator={"kind": {"$in": ["bird", "fish"]}})
    things.insert_one({"_id": 1, "kind": "Bird"})
    with pytest.raises(WriteError):
        things.insert_one({"_id": 2, "kind": "stone"})


def test_a_specification_may_be_long(collection):
    texts = [f"a text with the number {number}" for number in range(1000)]
    collection.insert_many([{"_id": number, "a": number % 7, "s": text}
                            for number, text in enumerate(texts)])
    filter_of = {"s": {"$in": texts[:700]}}
    collection.create_index("a", name="long", partialFilterExpression=filter_of)
    listed = {index["name"]: index for index in collection.list_indexes()}
    assert listed["long"]["partialFilterExpression"] == filter_of
    query = {"a": 3, "s": {"$in": texts[:700]}}
    assert ids(collection.find(query).hint("long")) == ids(collection.find(query).hint({"$natural": 1}))
    collection.drop_index("long")
    assert list(collection.index_information()) == ["_id_"]
