"""The old type undefined. Drivers read it as null and do not write it any more."""

import bson
import pytest
from bson.raw_bson import RawBSONDocument


def with_undefined(document, name):
    """The document with undefined in place of the null of its field."""
    null, undefined = (kind + name.encode() + b"\0" for kind in (b"\x0a", b"\x06"))
    data = bson.encode(document)
    assert data.count(null) == 1
    return RawBSONDocument(data.replace(null, undefined))


@pytest.fixture
def values(collection):
    """1 is undefined, 2 missing, 3 null, 4 a number."""
    collection.insert_one(with_undefined({"_id": 1, "w": None}, "w"))
    collection.insert_many([{"_id": 2}, {"_id": 3, "w": None}, {"_id": 4, "w": 7}])
    assert [one["_id"] for one in collection.find({"w": {"$type": "undefined"}})] == [1]
    return collection


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("condition, expected", [
    ({"$eq": ["$w", "$$REMOVE"]}, [1, 2]),
    ({"$eq": ["$$REMOVE", "$w"]}, [1, 2]),
    ({"$eq": ["$w", "$nope"]}, [1, 2]),
    ({"$ne": ["$w", "$nope"]}, [3, 4]),
    ({"$gt": ["$w", "$nope"]}, [3, 4]),
    ({"$gte": ["$w", "$nope"]}, [1, 2, 3, 4]),
    ({"$lt": ["$w", "$nope"]}, []),
    ({"$lte": ["$w", "$nope"]}, [1, 2]),
    ({"$eq": [{"$cmp": ["$w", "$nope"]}, 0]}, [1, 2]),
    ({"$eq": ["$w", None]}, [3]),
    ({"$gte": ["$w", None]}, [3, 4]),
    ({"$lt": ["$w", None]}, [1, 2]),
    ({"$lte": ["$w", 6]}, [1, 2, 3]),
], ids=str)
def test_in_comparisons_of_expressions_it_is_as_if_missing(values, indexed, condition, expected):
    if indexed:
        values.create_index("w")
    hint = [("w", 1)] if indexed else [("$natural", 1)]
    assert sorted(one["_id"] for one in values.find({"$expr": condition}, hint=hint)) == expected
    assert sorted(one["_id"] for one in values.find({"$expr": condition})) == expected


@pytest.mark.parametrize("indexed", [False, True])
def test_what_is_missing_joins_it(values, indexed):
    if indexed:
        values.create_index("w")
    rows = values.aggregate([{"$lookup": {
        "from": values.name, "let": {"v": "$w"}, "as": "r",
        "pipeline": [{"$match": {"$expr": {"$eq": ["$w", "$$v"]}}}, {"$sort": {"_id": 1}}, {"$project": {"w": 0}}]}}])
    found = {row["_id"]: [one["_id"] for one in row["r"]] for row in rows}
    assert found == {1: [1, 2], 2: [1, 2], 3: [3], 4: [4]}
