"""A `$group` that needs one document of each value reads one index entry for each, with the results
of a scan."""

import random

import pytest

VALUES = 40


@pytest.fixture
def collection(server):
    collection = server.client().distinct_scan.c
    collection.drop()
    numbers = random.Random(1)
    collection.insert_many(
        {"_id": i, "k": i % VALUES, "t": numbers.randrange(10**6), "s": "ab"[i % 2]}
        for i in range(20_000))
    collection.update_many({"_id": {"$lt": 3}}, {"$unset": {"k": 1}})
    collection.update_many({"_id": {"$in": [3, 4]}}, {"$set": {"k": None}})
    collection.create_index([("k", 1), ("t", 1), ("_id", 1)])
    return collection


def counts(collection, pipeline):
    """The stage that read the index, and the numbers of keys and documents that it examined."""
    explained = collection.database.command(
        "explain", {"aggregate": collection.name, "pipeline": pipeline, "cursor": {}},
        verbosity="executionStats")
    stats = explained["stages"][0]["$cursor"]["executionStats"]
    stage = stats["executionStages"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    return stage["stage"], stats["totalKeysExamined"], stats["totalDocsExamined"]


FORWARD = {"$sort": {"k": 1, "t": 1, "_id": 1}}
BACKWARD = {"$sort": {"k": -1, "t": -1, "_id": -1}}
FIRST = {"$group": {"_id": "$k", "one": {"$first": "$$ROOT"}, "s": {"$first": "$s"}}}
LAST = {"$group": {"_id": "$k", "one": {"$last": "$$ROOT"}}}


@pytest.mark.parametrize("pipeline", [
    [{"$group": {"_id": "$k"}}],
    [FORWARD, FIRST],
    [FORWARD, LAST],
    [BACKWARD, FIRST],
    [BACKWARD, LAST],
    [FORWARD, {"$group": {"_id": "$k", "t": {"$last": "$t"}}}],
    [{"$match": {"k": {"$gt": 10}}}, FORWARD, FIRST],
    [{"$match": {"k": {"$in": [3, 5, 30]}}}, BACKWARD, LAST],
    [{"$match": {"k": 7}}, FORWARD, LAST],
], ids=str)
def test_one_entry_a_value_is_enough(collection, pipeline):
    expected = sorted(collection.aggregate(pipeline, hint={"$natural": 1}), key=str)
    assert sorted(collection.aggregate(pipeline), key=str) == expected
    stage, keys, documents = counts(collection, pipeline)
    assert stage == "DISTINCT_SCAN"
    assert keys <= 5 * (VALUES + 1)
    assert documents <= VALUES + 1


@pytest.mark.parametrize("pipeline", [
    [FORWARD, {"$group": {"_id": "$k", "n": {"$sum": 1}}}],
    [FORWARD, {"$group": {"_id": "$k", "a": {"$first": "$t"}, "b": {"$last": "$t"}}}],
    [FORWARD, {"$limit": 500}, LAST],
    [{"$match": {"s": "a"}}, FORWARD, FIRST],
    [{"$sort": {"t": 1, "_id": 1}}, FIRST],
    [{"$match": {"t": {"$lt": 300_000}}}, FORWARD, LAST],
], ids=str)
def test_where_more_are_needed_all_are_read(collection, pipeline):
    expected = sorted(collection.aggregate(pipeline, hint={"$natural": 1}), key=str)
    assert sorted(collection.aggregate(pipeline), key=str) == expected


def test_arrays_have_entries_of_their_own(collection):
    collection.insert_one({"_id": -1, "k": [1, 2], "t": -1})
    expected = sorted(collection.aggregate([FORWARD, FIRST], hint={"$natural": 1}), key=str)
    assert sorted(collection.aggregate([FORWARD, FIRST]), key=str) == expected
    collection.delete_one({"_id": -1})


def test_a_collation_puts_values_together(collection):
    collection.drop()
    collection.insert_many({"_id": i, "k": ["x", "X", "y"][i % 3]} for i in range(3000))
    collection.create_index("k")
    groups = [{"$group": {"_id": "$k"}}]
    assert len(list(collection.aggregate(groups))) == 3
    assert len(list(collection.aggregate(
        groups, collation={"locale": "en", "strength": 2}))) == 2
