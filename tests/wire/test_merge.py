"""$merge: the documents of a pipeline are merged into a collection."""

import pytest
from pymongo import ASCENDING, GEO2D, GEOSPHERE
from pymongo.errors import OperationFailure

NEW = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]
OLD = [{"_id": 2, "b": 20, "a": "old"}, {"_id": 9, "b": 90}]


@pytest.fixture
def target(database, collection):
    collection.insert_many(NEW)
    database.target.insert_many(OLD)
    return database.target


def merge(collection, **options):
    return list(collection.aggregate([{"$merge": {"into": "target", **options}}]))


@pytest.mark.parametrize("options, expected", [
    ({}, [{"_id": 1, "a": 1}, {"_id": 2, "b": 20, "a": 2}, {"_id": 9, "b": 90}]),
    ({"whenMatched": "replace"}, [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 9, "b": 90}]),
    ({"whenMatched": "keepExisting"}, [{"_id": 1, "a": 1}, *OLD]),
    ({"whenNotMatched": "discard"}, [{"_id": 2, "b": 20, "a": 2}, {"_id": 9, "b": 90}]),
    ({"whenMatched": [{"$set": {"a": {"$add": ["$b", "$$new.a", "$$k"]}}}], "let": {"k": 100}},
     [{"_id": 1, "a": 1}, {"_id": 2, "b": 20, "a": 122}, {"_id": 9, "b": 90}]),
])
def test_documents_meet(collection, target, options, expected):
    assert merge(collection, **options) == []
    assert list(target.find(sort=[("_id", 1)])) == expected


@pytest.mark.parametrize("options, code", [
    ({"whenMatched": "fail"}, 11000),
    ({"whenNotMatched": "fail"}, 13113),
    ({"on": "b"}, 51183),
    ({"whenMatched": "fail", "whenNotMatched": "fail"}, 51181),
    ({"into": {"db": "admin", "coll": "x"}}, 31320),
    ({"into": "system.views"}, 31319),
])
def test_what_cannot_be_merged_is_refused(collection, target, options, code):
    with pytest.raises(OperationFailure) as failure:
        merge(collection, **options)
    assert failure.value.code == code, failure.value


@pytest.mark.parametrize("options, code", [({"whenMatched": "fail"}, 11000), ({"on": "_id"}, 11000)])
def test_a_document_that_cannot_be_merged_keeps_no_other_from_it(database, collection, target, options, code):
    target.create_index("u", unique=True, sparse=True)
    target.update_one({"_id": 9}, {"$set": {"u": 1}})
    collection.insert_many([{"_id": 3, "u": 1}, {"_id": 4, "a": 4}])
    with pytest.raises(OperationFailure) as failure:
        merge(collection, **options)
    assert failure.value.code == code, failure.value
    assert [one["_id"] for one in target.find(sort=[("_id", 1)])] == [1, 2, 4, 9]


def test_the_fields_that_name_a_document_may_be_others(database, collection, target):
    target.create_index("b", unique=True)
    stages = [{"$project": {"_id": 0, "b": {"$multiply": ["$a", 10]}}}, {"$set": {"new": True}}]
    collection.aggregate([*stages, {"$merge": {"into": "target", "on": ["b"]}}])
    found = list(target.find({}, {"_id": 0}, sort=[("b", 1)]))
    assert found == [{"b": 10, "new": True}, {"b": 20, "a": "old", "new": True}, {"b": 90}]
    with pytest.raises(OperationFailure) as failure:
        collection.aggregate([{"$merge": {"into": "target", "on": "b"}}])
    assert failure.value.code == 51132


def test_another_database_and_documents_without_id(client, database, collection, target):
    other = client[f"{database.name}_other"]
    collection.aggregate([{"$unset": "_id"}, {"$merge": {"into": {"db": other.name, "coll": "c"}}}])
    assert other.c.count_documents({}) == 2
    client.drop_database(other.name)


def test_only_the_last_stage_writes(collection, target):
    for pipeline, code in [([{"$merge": "target"}, {"$limit": 1}], 40601),
                           ([{"$facet": {"a": [{"$merge": "target"}]}}], 40600),
                           ([{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$merge": "t"}]}}], 51047)]:
        with pytest.raises(OperationFailure) as failure:
            collection.aggregate(pipeline)
        assert failure.value.code == code, failure.value


def test_nothing_is_written_before_the_first_batch(database, collection, target):
    reply = database.command("aggregate", collection.name, pipeline=[{"$merge": "fresh"}],
                             cursor={"batchSize": 0})
    assert reply["cursor"]["id"] != 0 and database.fresh.count_documents({}) == 0
    database.command("getMore", reply["cursor"]["id"], collection=collection.name)
    assert database.fresh.count_documents({}) == 2


@pytest.mark.parametrize("stage, code", [
    ({"$fill": {"output": {"a": {"value": 1}}}}, 72), ({"$densify": {}}, 72), ({"$rankFusion": {}}, 72),
    ({"$queryStats": {}}, 72), ({"$changeStreamSplitLargeEvent": {}}, 72), ({"$nothing": {}}, 40324),
    ({"$set": {"a": 1}, "$unset": "b"}, 40323),
])
def test_stages_that_an_updating_pipeline_may_not_have(database, stage, code):
    database.c.insert_one({"_id": 1})
    for run in (lambda: database.c.aggregate([{"$merge": {"into": "d", "whenMatched": [stage]}}]),
                lambda: database.c.update_one({}, [stage])):
        with pytest.raises(OperationFailure) as refused:
            run()
        assert refused.value.code == code


@pytest.mark.parametrize("keys, on", [
    ([("a", ASCENDING), ("p", GEOSPHERE)], ["a", "p"]), ([("p", GEO2D)], "p"), ([("p", GEOSPHERE)], "p"),
])
def test_only_indexes_by_value_say_that_fields_name_one_document(database, keys, on):
    database.c.insert_one({"_id": 1})
    database.d.create_index(keys, unique=True)
    with pytest.raises(OperationFailure) as refused:
        database.c.aggregate([{"$merge": {"into": "d", "on": on}}])
    assert refused.value.code == 51183


def test_a_field_within_an_array_is_missing(database):
    database.c.insert_one({"_id": 1, "a": [{"b": 1}], "c": [1]})
    database.d.create_index("a.b", unique=True)
    database.d.create_index("c", unique=True)
    for on, code in (("a.b", 51132), ("c", 51185)):
        with pytest.raises(OperationFailure) as refused:
            database.c.aggregate([{"$merge": {"into": "d", "on": on}}])
        assert refused.value.code == code
