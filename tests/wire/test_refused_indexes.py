"""Indexes that are refused by themselves, or because of existing ones."""

import pytest
from pymongo import IndexModel
from pymongo.errors import OperationFailure


@pytest.mark.parametrize("first, second, code", [
    (IndexModel("a", name="x"), IndexModel("b", name="x"), 86),
    (IndexModel("a", name="x"), IndexModel("a", name="y"), 85),
    (IndexModel("a"), IndexModel("a", expireAfterSeconds=5), 85),
    # These options distinguish indexes of one key, so another index has the name.
    (IndexModel("a"), IndexModel("a", unique=True), 86),
    (IndexModel("a"), IndexModel("a", sparse=True), 86),
    (IndexModel("a"), IndexModel("a", collation={"locale": "en"}), 86),
    (IndexModel("a"), IndexModel("a", partialFilterExpression={"b": 1}), 86),
    # Equivalent projections count as equal.
    (IndexModel("$**", name="x", wildcardProjection={"a": 1, "b": 1}),
     IndexModel("$**", name="y", wildcardProjection={"b": True, "a": 1.0}), 85),
])
def test_indexes_that_contradict_each_other(collection, first, second, code):
    collection.create_indexes([first])
    with pytest.raises(OperationFailure) as error:
        collection.create_indexes([second])
    assert error.value.code == code


@pytest.mark.parametrize("key, options, code", [
    ({"a": 0}, {}, 67), ({"a": "x"}, {}, 67), ({}, {}, 67), ({"": 1}, {}, 67),
    ({"a..b": 1}, {}, 67), ({"$a": 1}, {}, 67), ({"a": 1}, {"noSuchOption": 1}, 197),
    ({"a": 1}, {"sparse": True, "partialFilterExpression": {"b": 1}}, 67),
    ({"a": 1}, {"partialFilterExpression": {"b": {"$ne": 1}}}, 67),
    ({"_id": 1}, {"sparse": True}, 197),
    ({"a": 1}, {"default_language": 1}, 14), ({"a": 1}, {"language_override": 1}, 14),
    ({"a": "text", "b": 1.797e308}, {}, 67), ({"a": "text", "b": -1.797e308}, {}, 67), ({"a": "text", "b": 2}, {}, 67),
    ({"a": 1}, {"partialFilterExpression": {"$and": [{"$and": [{"$and": [{"$and": [{"x": 3}]}]}]}]}}, 67),
    ({"a": 1}, {"collation": {"locale": "en_US", "backwards": None}}, 14),
    ({"a": 1}, {"collation": {"locale": "en_US"}, "v": 1}, 67),
])
def test_indexes_that_cannot_be(database, key, options, code):
    database.c.insert_one({})
    index = {"key": key, "name": "x", **options}
    reply = database.command({"createIndexes": "c", "indexes": [index]}, check=False)
    assert (reply["ok"], reply["code"]) == (0, code), reply
