"""$out: the documents of a pipeline replace those of a collection."""

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def source(collection):
    collection.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 2}])
    return collection


def names(database):
    return sorted(database.list_collection_names())


def test_a_collection_is_made(database, source):
    assert list(source.aggregate([{"$match": {"n": 2}}, {"$out": "t"}])) == []
    assert list(database.t.find()) == [{"_id": 2, "n": 2}]
    assert names(database) == sorted(["t", source.name])


def test_a_collection_is_replaced_with_its_indexes(database, source):
    database.t.insert_one({"_id": 9, "n": 9})
    database.t.create_index("n", unique=True, name="by_n")
    source.aggregate([{"$out": {"db": database.name, "coll": "t"}}])
    assert list(database.t.find(sort=[("_id", 1)])) == [{"_id": 1, "n": 1}, {"_id": 2, "n": 2}]
    assert database.t.index_information()["by_n"]["unique"]
    assert "temp" not in database.t.options()


def test_what_fails_leaves_all_as_it_was(database, source):
    database.t.insert_one({"_id": 9, "n": 9})
    database.t.create_index("n", unique=True)
    for stages, code in [([{"$set": {"n": 1}}], 11000),
                         ([{"$set": {"n": {"$divide": [1, {"$subtract": ["$n", 2]}]}}}], 16608),
                         ([{"$set": {"_id": ["$_id"]}}], 2)]:
        with pytest.raises(OperationFailure) as failure:
            source.aggregate([*stages, {"$out": "t"}])
        assert failure.value.code == code, failure.value
        assert list(database.t.find()) == [{"_id": 9, "n": 9}]
        assert names(database) == sorted(["t", source.name])


def test_into_itself(source):
    source.aggregate([{"$set": {"n": {"$add": ["$n", 10]}}}, {"$out": source.name}])
    assert [row["n"] for row in source.find(sort=[("_id", 1)])] == [11, 12]


@pytest.mark.parametrize("operand, code", [
    (1, 16990),
    ("", 73),
    ({"db": "d"}, 40414),
    ({"db": "d", "coll": 1}, 14),
    ("system.views", 17385),
    ({"db": "admin", "coll": "t"}, 31321),
])
def test_what_cannot_be_a_target(source, operand, code):
    with pytest.raises(OperationFailure) as failure:
        source.aggregate([{"$out": operand}])
    assert failure.value.code == code, failure.value


def test_a_view_is_no_target(database, source):
    database.create_collection("v", viewOn=source.name)
    with pytest.raises(OperationFailure) as failure:
        source.aggregate([{"$out": "v"}])
    assert failure.value.code == 166


def test_explain_does_not_write(database, source):
    pipeline = [{"$out": "t"}]
    explained = database.command("aggregate", source.name, pipeline=pipeline, explain=True)
    assert explained["stages"][-1] == {"$out": {"coll": "t", "db": database.name}}
    assert "t" not in names(database)
