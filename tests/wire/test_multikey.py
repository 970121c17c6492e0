"""Multikey indexes: an entry for each element, and for a numeric path component."""

import random

import pytest
from bson import Decimal128, Int64, MaxKey, MinKey
from pymongo.errors import DuplicateKeyError, OperationFailure, WriteError

from answers import ids


def test_multikey_entries_are_one_for_each_element(database):
    database.c.create_index("t")
    database.c.insert_many([{"t": [1, 2, 3]}, {"t": [3, 3]}, {"t": []}, {"t": 5}, {}])
    assert database.command({"validate": "c", "full": True})["keysPerIndex"]["t_1"] == 7
    assert database.c.count_documents({"t": 3}) == 2
    found = database.c.find({"t": {"$gte": 1}}).hint("t_1")
    assert len(list(found)) == 3


def test_elements_that_are_equal_and_of_other_types(database):
    """Regression: the order of two equal elements of one array was undefined in the index, and
    `validate` reported the index as damaged."""
    twice = [[1.0, 1, Int64(1)], [1, 1.0], [Int64(1), Decimal128("1.0"), 1]]
    database.c.create_index("a", name="kept")
    for number in range(300):
        database.c.insert_one({"_id": number, "a": twice[number % 3]})
    database.c.update_many({"_id": {"$lt": 150}}, {"$push": {"a": 1.0}})
    database.c.update_many({"_id": {"$gte": 250}}, {"$set": {"a": twice[1]}})
    database.c.create_index([("a", -1)], name="built")
    assert database.command("validate", "c", full=True)["valid"]
    assert database.c.count_documents({"a": 1}, hint="kept") == 300


def test_hundred_elements_a_document(collection):
    chance = random.Random(1)
    collection.create_index("uri")
    made = [{"_id": one, "uri": [f"{chance.randrange(2000)}" for _ in range(100)]}
            for one in range(500)]
    collection.insert_many(made)
    for value in map(str, range(0, 2000, 97)):
        expected = [one["_id"] for one in made if value in one["uri"]]
        assert sorted(ids(collection.find({"uri": value}))) == expected


def test_an_array_at_a_place_is_one_value(collection):
    collection.insert_many([{"_id": 1, "l": [1]}, {"_id": 2, "l": [[1]]}, {"_id": 3, "l": [[1, 2], 1]}])
    collection.create_index("l.0", unique=True)
    collection.insert_many([{"_id": 4, "l": [[2]]}, {"_id": 5, "l": [[[1]]]}, {"_id": 6, "l": [[]]}])
    for double in ([1, 5], [[1]], [[1, 2]], [[1, 2], 3], [[]]):
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"l": double})
    with pytest.raises(DuplicateKeyError):
        collection.update_one({"_id": 4}, {"$set": {"l.0": [1, 2]}})
    assert collection.find_one({"l.0": [1]}, hint="l.0_1")["_id"] == 2
    assert [one["_id"] for one in collection.find({"l.0": 1}, hint="l.0_1")] == [1]
    elements = {"l.0": {"$elemMatch": {"$gte": 1}}}
    assert {one["_id"] for one in collection.find(elements, hint="l.0_1")} == {2, 3, 4}
    collection.update_one({"_id": 3}, {"$push": {"l.0": 3}})
    collection.delete_one({"_id": 2})
    collection.insert_many([{"l": [[1, 2]]}, {"l": [[1]]}])
    assert collection.database.command("validate", "c")["valid"]
    # As a field name, the number leads to an array as any other name does.
    collection.insert_one({"l": {"0": [7, 8]}})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"l": [8]})


@pytest.mark.parametrize("pad", ["", "x" * 400])
def test_a_number_that_is_a_place_and_a_name_has_no_key(collection, pad):
    ambiguous = {"a": [{"0": {"b": 1}}, {"b": 5}], "pad": pad}
    collection.create_index("a.0.b")
    collection.insert_one({"_id": 1, "a": [{"b": 1}]})
    with pytest.raises(WriteError) as refused:
        collection.insert_one({"_id": 2, **ambiguous})
    assert refused.value.code == 16746
    with pytest.raises(WriteError) as refused:
        collection.update_one({"_id": 1}, {"$set": ambiguous})
    assert refused.value.code == 16746
    assert ids(collection.find({}, hint="a.0.b_1")) == [1]
    collection.drop_indexes()
    collection.insert_one({"_id": 2, **ambiguous})
    with pytest.raises(OperationFailure) as refused:
        collection.create_index("a.0.b")
    assert refused.value.code == 16746
    assert list(collection.index_information()) == ["_id_"]


def test_a_place_in_an_array_is_no_name_in_what_an_index_covers(collection):
    """Regression: covered queries returned {"a": {"0": 5}} for the key of 5."""
    collection.insert_one({"_id": 1, "b": 1, "a": [5, 6]})
    collection.create_index([("b", 1), ("a.0", 1)], name="place")
    for hint in ("place", [("$natural", 1)]):
        assert list(collection.find({"b": 1}, {"_id": 0, "a.0": 1}).hint(hint)) == [{"a": []}]
        stages = [{"$match": {"b": 1}}, {"$group": {"_id": "$a.0"}}]
        assert list(collection.aggregate(stages, hint=hint if hint == "place" else {"$natural": 1})) == [{"_id": []}]


@pytest.mark.parametrize("condition", [{"$gt": MinKey()}, {"$lt": MaxKey()}])
def test_an_array_of_an_end_of_all_values_is_no_end(database, condition):
    """[MinKey] is greater than MinKey as an array, but its only key in an index is MinKey."""
    values = [[MinKey()], [MaxKey()], MinKey(), MaxKey(), [MinKey(), 3], [], None, 1]
    for name in ("plain", "indexed"):
        database[name].insert_many({"_id": place, "a": value} for place, value in enumerate(values))
    database.indexed.create_index("a")
    expected = sorted(ids(database.plain.find({"a": condition})))
    assert sorted(ids(database.indexed.find({"a": condition}))) == expected
    assert sorted(ids(database.indexed.find({"a": condition}, sort=[("a", 1)]))) == expected
    assert {0, 1} <= set(expected) and len(expected) == 7
