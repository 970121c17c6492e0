"""Insertion, update, deletion and queries as in MongoDB's manual."""

import datetime

import bson
import pymongo
import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, WriteError

EVERY_TYPE = {
    "double": 1.5, "string": "käse", "document": {"a": {"b": 1}}, "array": [1, "two", [3]],
    "binary": b"\x00\xff", "other binary": Binary(b"x", 128), "object id": ObjectId(b"x" * 12),
    "boolean": True, "date": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000), "null": None,
    "regex": Regex("^a", "i"), "code": Code("f()"), "int": 7, "timestamp": Timestamp(5, 6),
    "long": Int64(2 ** 40), "decimal": Decimal128("1.10"), "min": MinKey(), "max": MaxKey(),
    "empty": {}, "none": [], "nul": "a\0b",
}


def test_every_type_comes_back_as_it_went_in(collection):
    collection.insert_one({"_id": 1, **EVERY_TYPE})
    found = collection.find_one({"_id": 1})
    assert list(found) == ["_id", *EVERY_TYPE]
    assert bson.encode(found) == bson.encode({"_id": 1, **EVERY_TYPE})


@pytest.mark.parametrize("identifier", [
    0, 1.5, "s", b"b", ObjectId(), True, None, {"a": 1, "b": 2}, datetime.datetime(2000, 1, 1),
    Decimal128("3.14"), Int64(-1), MinKey(), Timestamp(1, 1)])
def test_a_document_is_found_by_its_id(collection, identifier):
    collection.insert_many([{"_id": "another"}, {"_id": identifier, "x": 1}])
    assert collection.find_one({"_id": identifier})["x"] == 1
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": identifier})
    assert collection.delete_one({"_id": identifier}).deleted_count == 1


def test_a_document_without_id_gets_one_from_the_server(database):
    reply = database.command({"insert": "c", "documents": [{"x": 1}]})
    assert reply["n"] == 1
    found = database.c.find_one()
    assert list(found) == ["_id", "x"] and isinstance(found["_id"], ObjectId)


def test_id_comes_first_wherever_it_was_sent(database):
    database.command({"insert": "c", "documents": [{"x": 1, "_id": 5}]})
    assert list(database.c.find_one()) == ["_id", "x"]


@pytest.mark.parametrize("identifier, code", [([1], 53), (Regex("a"), 53)])
def test_arrays_and_regular_expressions_are_no_ids(database, identifier, code):
    reply = database.command({"insert": "c", "documents": [{"_id": identifier}]})
    assert reply["n"] == 0
    assert reply["writeErrors"][0]["code"] in (code, 2)


def test_equal_numbers_of_other_types_are_the_same_id(collection):
    collection.insert_one({"_id": 1})
    for same in [1.0, Int64(1), Decimal128("1.0")]:
        with pytest.raises(DuplicateKeyError) as error:
            collection.insert_one({"_id": same})
        assert error.value.details["keyPattern"] == {"_id": 1}
        assert error.value.details["keyValue"] == {"_id": same}
        assert error.value.code == 11000


def test_an_ordered_batch_stops_at_its_first_error(collection):
    with pytest.raises(BulkWriteError) as error:
        collection.insert_many([{"_id": 1}, {"_id": 1}, {"_id": 2}])
    details = error.value.details
    assert details["nInserted"] == 1
    assert [(one["index"], one["code"]) for one in details["writeErrors"]] == [(1, 11000)]
    assert [one["_id"] for one in collection.find()] == [1]


def test_an_unordered_batch_goes_on_after_errors(collection):
    with pytest.raises(BulkWriteError) as error:
        collection.insert_many([{"_id": 1}, {"_id": 1}, {"_id": 2}, {"_id": 2}], ordered=False)
    details = error.value.details
    assert details["nInserted"] == 2
    assert [one["index"] for one in details["writeErrors"]] == [1, 3]
    assert sorted(one["_id"] for one in collection.find()) == [1, 2]


def test_a_hundred_thousand_documents_in_one_call(collection):
    collection.insert_many({"_id": number} for number in range(100_000))
    assert collection.count_documents({}) == 100_000
    assert collection.estimated_document_count() == 100_000
    assert collection.find_one({"_id": 77_777}) == {"_id": 77_777}


def test_natural_order_is_that_of_insertion(collection):
    collection.insert_many([{"_id": one} for one in (3, 1, 2)])
    assert [one["_id"] for one in collection.find()] == [3, 1, 2]
    backwards = collection.find().sort("$natural", -1)
    assert [one["_id"] for one in backwards] == [2, 1, 3]


FILTER_DOCUMENTS = [
    {"_id": 1, "a": 1, "t": ["x", "y"], "d": {"e": 5}},
    {"_id": 2, "a": 2.5, "t": ["y", "z"], "d": {"e": [5, 6]}},
    {"_id": 3, "a": "2", "t": [], "d": None},
    {"_id": 4, "a": None, "s": [{"p": 1, "q": 2}, {"p": 3, "q": 4}]},
    {"_id": 5, "t": "x"},
]


@pytest.mark.parametrize("query, expected", [
    ({"a": 1}, [1]),
    ({"a": {"$gt": 1}}, [2]),
    ({"a": {"$gte": 1, "$lt": 2.5}}, [1]),
    ({"a": {"$ne": 1}}, [2, 3, 4, 5]),
    ({"a": None}, [4, 5]),
    ({"a": {"$exists": True}}, [1, 2, 3, 4]),
    ({"a": {"$exists": False}}, [5]),
    ({"a": {"$in": [1, "2"]}}, [1, 3]),
    ({"a": {"$nin": [1, "2"]}}, [2, 4, 5]),
    ({"a": {"$type": "number"}}, [1, 2]),
    ({"a": {"$type": ["string", "null"]}}, [3, 4]),
    ({"a": {"$not": {"$gt": 1}}}, [1, 3, 4, 5]),
    ({"t": "x"}, [1, 5]),
    ({"t": ["x", "y"]}, [1]),
    ({"t": {"$all": ["y", "x"]}}, [1]),
    ({"t": {"$size": 2}}, [1, 2]),
    ({"t": {"$size": 0}}, [3]),
    ({"t.0": "y"}, [2]),
    ({"d.e": 5}, [1, 2]),
    ({"d.e": {"$elemMatch": {"$gt": 5}}}, [2]),
    ({"s": {"$elemMatch": {"p": 1, "q": 2}}}, [4]),
    ({"s": {"$elemMatch": {"p": 1, "q": 4}}}, []),
    ({"s.p": 1, "s.q": 4}, [4]),
    ({"$or": [{"a": 1}, {"t": "z"}]}, [1, 2]),
    ({"$and": [{"t": "y"}, {"a": {"$lt": 2}}]}, [1]),
    ({"$nor": [{"a": 1}, {"t": "z"}]}, [3, 4, 5]),
    ({"a": {"$mod": [2, 1]}}, [1]),
    ({"t": {"$regex": "^Z", "$options": "i"}}, [2]),
    ({"a": Regex("2")}, [3]),
    ({"$expr": {"$eq": ["$a", {"$size": {"$ifNull": ["$s", ["one"]]}}]}}, [1]),
])
def test_filters(collection, query, expected):
    collection.insert_many(FILTER_DOCUMENTS)
    assert sorted(one["_id"] for one in collection.find(query)) == expected
    assert collection.count_documents(query) == len(expected)


@pytest.mark.parametrize("projection, expected", [
    ({"a": 1}, {"_id": 1, "a": 1}),
    ({"a": 1, "_id": 0}, {"a": 1}),
    ({"d": 0, "l": 0, "_id": 0}, {"a": 1}),
    ({"d.e": 1, "_id": 0}, {"d": {"e": 2}}),
    ({"d.e": 0, "a": 0, "l": 0}, {"_id": 1, "d": {"f": 3}}),
    ({"l": {"$slice": 2}, "_id": 0, "a": 1}, {"a": 1, "l": [1, 2]}),
    ({"l": {"$slice": -1}, "_id": 0, "a": 1}, {"a": 1, "l": [4]}),
    ({"l": {"$slice": [1, 2]}, "_id": 0, "a": 1}, {"a": 1, "l": [2, 3]}),
    ({"l": {"$elemMatch": {"$gt": 2}}, "_id": 0}, {"l": [3]}),
])
def test_projections(collection, projection, expected):
    collection.insert_one({"_id": 1, "a": 1, "d": {"e": 2, "f": 3}, "l": [1, 2, 3, 4]})
    assert collection.find_one({}, projection) == expected


def test_inclusion_and_exclusion_do_not_mix(collection):
    collection.insert_one({})
    with pytest.raises(OperationFailure) as error:
        collection.find_one({}, {"a": 1, "b": 0})
    assert error.value.code == 31254


@pytest.mark.parametrize("order, expected", [
    ([("n", 1)], [5, 4, 2, 1, 3]),
    ([("n", -1)], [3, 1, 2, 4, 5]),
    ([("g", 1), ("n", -1)], [3, 1, 5, 2, 4]),
    ([("_id", -1)], [5, 4, 3, 2, 1]),
])
def test_sorting_skipping_limiting(collection, order, expected):
    rows = [(1, "a", 4), (2, "b", 3), (3, "a", 5), (4, "b", 2), (5, "a", 1)]
    collection.insert_many([{"_id": one, "g": group, "n": n} for one, group, n in rows])
    ids = [one["_id"] for one in collection.find().sort(order)]
    assert ids == expected
    part = collection.find().sort(order).skip(1).limit(2)
    assert [one["_id"] for one in part] == expected[1:3]


def test_types_sort_in_mongodbs_order(collection):
    values = [MinKey(), None, -1, 2.5, "a", "b", {"a": 1}, [9], b"x", ObjectId(), False, True,
              datetime.datetime(2000, 1, 1), Timestamp(1, 1), Regex("a"), MaxKey()]
    # An array sorts by its smallest element: [9] stands with the numbers.
    order = [0, 1, 2, 3, 7, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15]
    collection.insert_many([{"_id": place, "v": value}
                            for place, value in reversed(list(enumerate(values)))])
    assert [one["_id"] for one in collection.find().sort("v", 1)] == order
    assert [one["_id"] for one in collection.find().sort("v", -1)] == order[::-1]


@pytest.mark.parametrize("before, update, after", [
    ({"a": 1}, {"$set": {"b": 2}}, {"a": 1, "b": 2}),
    ({"a": 1}, {"$set": {"d.e.f": 2}}, {"a": 1, "d": {"e": {"f": 2}}}),
    ({"a": [1, 2]}, {"$set": {"a.3": 9}}, {"a": [1, 2, None, 9]}),
    ({"a": 1, "b": 2}, {"$unset": {"a": ""}}, {"b": 2}),
    ({"a": 1}, {"$inc": {"a": 2, "n": 1}}, {"a": 3, "n": 1}),
    ({"a": 3}, {"$mul": {"a": 2, "n": 5}}, {"a": 6, "n": 0}),
    ({"a": 3}, {"$min": {"a": 2}, "$max": {"b": 4}}, {"a": 2, "b": 4}),
    ({"a": 3}, {"$max": {"a": 2}}, {"a": 3}),
    ({"a": 1, "b": 2}, {"$rename": {"a": "c"}}, {"b": 2, "c": 1}),
    ({"a": [1]}, {"$push": {"a": 2}}, {"a": [1, 2]}),
    ({}, {"$push": {"a": 2}}, {"a": [2]}),
    ({"a": [5, 1]}, {"$push": {"a": {"$each": [3, 2], "$sort": 1, "$slice": 3}}},
     {"a": [1, 2, 3]}),
    ({"a": [1, 2]}, {"$push": {"a": {"$each": [9], "$position": 1}}}, {"a": [1, 9, 2]}),
    ({"a": [1]}, {"$addToSet": {"a": {"$each": [1, 2, 2]}}}, {"a": [1, 2]}),
    ({"a": [1, 2, 3]}, {"$pop": {"a": 1}}, {"a": [1, 2]}),
    ({"a": [1, 2, 3]}, {"$pop": {"a": -1}}, {"a": [2, 3]}),
    ({"a": [1, 5, 9]}, {"$pull": {"a": {"$gt": 4}}}, {"a": [1]}),
    ({"a": [1, 2, 1, 3]}, {"$pullAll": {"a": [1, 3]}}, {"a": [2]}),
    ({"a": 1}, {"$setOnInsert": {"b": 2}}, {"a": 1}),
    ({"a": 1}, {"$set": {"b": 1, "a": 2}}, {"a": 2, "b": 1}),
])
def test_update_operators(collection, before, update, after):
    collection.insert_one({"_id": 1, **before})
    result = collection.update_one({"_id": 1}, update)
    assert result.matched_count == 1
    assert result.modified_count == (1 if before != after else 0)
    assert collection.find_one() == {"_id": 1, **after}


def test_current_date(collection):
    collection.insert_one({"_id": 1})
    collection.update_one({}, {"$currentDate": {"d": True, "t": {"$type": "timestamp"}}})
    found = collection.find_one()
    assert isinstance(found["d"], datetime.datetime) and isinstance(found["t"], Timestamp)


@pytest.mark.parametrize("update, code", [
    ({"$set": {"_id": 2}}, 66),
    ({"$inc": {"s": 1}}, 14),
    ({"$push": {"s": 1}}, 2),
    ({"$set": {"a": 1}, "$inc": {"a": 1}}, 40),
    ({"$set": {"a": 1, "a.b": 1}}, 40),
    ({"$nonsense": {"a": 1}}, 9),
    ({"$set": {"s.x": 1}}, 28),
])
def test_updates_that_cannot_be(collection, update, code):
    collection.insert_one({"_id": 1, "s": "text"})
    with pytest.raises(WriteError) as error:
        collection.update_one({"_id": 1}, update)
    assert error.value.code == code
    assert collection.find_one() == {"_id": 1, "s": "text"}


def test_constants_of_a_pipeline_matter_where_a_document_is_updated(collection):
    """Regression: an update that changes no document failed, too."""
    pipeline = [{"$set": {"b": {"$add": ["a", 1]}}}]
    assert collection.update_one({"a": 1}, pipeline).matched_count == 0
    assert collection.find_one_and_update({"a": 1}, pipeline) is None
    collection.insert_one({"a": 1})
    for update in (collection.update_many, collection.find_one_and_update):
        with pytest.raises(OperationFailure, match="numeric or date"):
            update({"a": 1}, pipeline)
    with pytest.raises(OperationFailure, match="numeric or date"):
        collection.update_one({"a": 2}, pipeline, upsert=True)


def test_update_many_and_replace(collection):
    collection.insert_many([{"_id": one, "g": one % 2} for one in range(10)])
    result = collection.update_many({"g": 1}, {"$set": {"seen": True}})
    assert (result.matched_count, result.modified_count) == (5, 5)
    again = collection.update_many({"g": 1}, {"$set": {"seen": True}})
    assert (again.matched_count, again.modified_count) == (5, 0)
    assert collection.replace_one({"_id": 3}, {"new": 1}).modified_count == 1
    assert collection.find_one({"_id": 3}) == {"_id": 3, "new": 1}
    assert collection.count_documents({"seen": True}) == 4


def test_upserts(collection):
    result = collection.update_one({"_id": 7, "k": "v"}, {"$inc": {"n": 1},
                                                          "$setOnInsert": {"new": 1}}, upsert=True)
    assert (result.upserted_id, result.matched_count) == (7, 0)
    assert collection.find_one() == {"_id": 7, "k": "v", "n": 1, "new": 1}
    result = collection.update_one({"_id": 7}, {"$inc": {"n": 1}}, upsert=True)
    assert (result.upserted_id, result.modified_count) == (None, 1)
    made = collection.replace_one({"x": 1}, {"y": 2}, upsert=True).upserted_id
    assert collection.find_one({"_id": made}) == {"_id": made, "y": 2}


def test_deletes(collection):
    collection.insert_many([{"_id": one} for one in range(10)])
    assert collection.delete_one({"_id": {"$gt": 4}}).deleted_count == 1
    assert collection.delete_many({"_id": {"$lt": 3}}).deleted_count == 3
    assert collection.delete_many({"_id": 100}).deleted_count == 0
    assert collection.count_documents({}) == 6
    assert collection.delete_many({}).deleted_count == 6
    assert collection.find_one() is None


def test_a_bulk_of_everything(collection):
    collection.insert_many([{"_id": one, "n": 0} for one in range(4)])
    result = collection.bulk_write([
        InsertOne({"_id": 10}), UpdateOne({"_id": 0}, {"$set": {"n": 1}}),
        UpdateMany({"_id": {"$in": [1, 2]}}, {"$inc": {"n": 5}}), DeleteOne({"_id": 3}),
        ReplaceOne({"_id": 11}, {"r": 1}, upsert=True)])
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (1, 3, 1)
    assert result.upserted_ids == {4: 11}
    assert {one["_id"]: one.get("n") for one in collection.find()} == \
        {0: 1, 1: 5, 2: 5, 10: None, 11: None}


def test_find_and_modify(collection):
    collection.insert_many([{"_id": one, "n": one} for one in range(3)])
    assert collection.find_one_and_update({"n": {"$gt": 0}}, {"$inc": {"n": 10}},
                                          sort=[("n", -1)]) == {"_id": 2, "n": 2}
    after = pymongo.ReturnDocument.AFTER
    assert collection.find_one_and_update({"_id": 2}, {"$inc": {"n": 1}}, return_document=after,
                                          projection={"_id": 0}) == {"n": 13}
    assert collection.find_one_and_replace({"_id": 0}, {"r": 1}) == {"_id": 0, "n": 0}
    assert collection.find_one_and_delete({"_id": 0}) == {"_id": 0, "r": 1}
    assert collection.find_one_and_delete({"_id": 0}) is None
    assert collection.find_one_and_update({"_id": 9}, {"$set": {"x": 1}}, upsert=True,
                                          return_document=after) == {"_id": 9, "x": 1}
    with pytest.raises(OperationFailure) as error:
        collection.find_one_and_delete({}, projection={"k": {"$meta": "sortKey"}}, sort=[("n", 1)])
    assert error.value.code == 2 and collection.count_documents({}) == 3


def test_distinct(collection):
    collection.insert_many([{"v": value} for value in (1, [2, 1], "a", 1.0, None)] + [{}])
    assert set(collection.distinct("v")) == {None, 1, 2, "a"}
    assert len(collection.distinct("v")) == 4
    assert sorted(collection.distinct("v", {"v": 2})) == [1, 2]


def test_count_with_skip_and_limit(database):
    database.c.insert_many([{"x": one} for one in range(10)])
    count = lambda **more: database.command({"count": "c", **more})["n"]  # noqa: E731
    assert (count(), count(query={"x": {"$gte": 4}}), count(limit=3), count(skip=8)) == \
        (10, 6, 3, 2)
    assert count(query={"x": {"$gte": 4}}, skip=1, limit=3) == 3


def test_collections_and_databases_come_and_go(client):
    client.drop_database("comes")
    assert "comes" not in client.list_database_names()
    client.comes.create_collection("empty")
    client.comes.full.insert_one({"x": 1})
    assert sorted(client.comes.list_collection_names()) == ["empty", "full"]
    assert "comes" in client.list_database_names()
    with pytest.raises(pymongo.errors.CollectionInvalid):
        client.comes.create_collection("empty")
    client.comes.drop_collection("full")
    assert client.comes.list_collection_names() == ["empty"]
    client.drop_database("comes")
    assert client.comes.list_collection_names() == []
    assert "comes" not in client.list_database_names()


def test_a_name_that_is_too_long(database):
    reply = database.command({"insert": "x" * 300, "documents": [{}]})
    assert (reply["n"], reply["writeErrors"][0]["code"]) == (0, 17381)


@pytest.mark.parametrize("name", ["", "$x", ".x"])
def test_names_that_no_collection_can_have(database, name):
    with pytest.raises(OperationFailure) as error:
        database.command({"insert": name, "documents": [{}]})
    assert error.value.code in (73, 2)


def test_statistics_tell_what_is_there(database):
    database.c.insert_many([{"_id": one, "pad": "x" * 100} for one in range(1_000)])
    database.c.create_index("pad")
    stats = database.command("collStats", "c")
    assert (stats["ns"], stats["count"], stats["nindexes"]) == (f"{database.name}.c", 1_000, 2)
    assert stats["size"] == sum(len(bson.encode(one)) for one in database.c.find())
    assert set(stats["indexSizes"]) == {"_id_", "pad_1"}
    about = database.command("dbStats")
    assert (about["collections"], about["objects"], about["indexes"]) == (1, 1_000, 2)


def test_validate_finds_nothing_wrong(database):
    database.c.create_index("a")
    database.c.insert_many([{"a": [one, one + 1]} for one in range(100)])
    found = database.command({"validate": "c", "full": True})
    assert found["valid"] and found["errors"] == []
    assert found["nrecords"] == 100
    assert found["keysPerIndex"] == {"_id_": 100, "a_1": 200}


def test_journaled_and_majority_writes(client, database):
    for concern in [{"w": 1, "j": True}, {"w": "majority"}, {"w": 0}]:
        options = pymongo.WriteConcern(**concern)
        database.c.with_options(write_concern=options).insert_one({"concern": str(concern)})
    database.command("ping")
    while database.c.count_documents({}) < 3:
        pass
    assert database.c.count_documents({}) == 3


def test_a_write_concern_that_a_standalone_cannot_meet(database):
    with pytest.raises(OperationFailure) as error:
        database.command({"insert": "c", "documents": [{}], "writeConcern": {"w": 5}})
    assert error.value.code == 2


def test_many_values_at_once_in_a_long_array(collection):
    """Regression: each value was compared with every element. The remaining elements and their
    order are those of one value after the other."""
    def array():
        return collection.find_one({"_id": 1})["a"]

    collection.insert_one({"_id": 1, "a": [*range(2000), "x", {"a": 1}]})
    collection.update_one(
        {"_id": 1}, {"$addToSet": {"a": {"$each": [5000, 7.0, "y", 4000, 5000.0, {"a": 1.0}, "x", "y", {"b": 1}]}}})
    assert array() == [*range(2000), "x", {"a": 1}, 5000, "y", 4000, {"b": 1}]
    collection.update_one({"_id": 1}, {"$pullAll": {"a": [*range(0, 2000, 2), {"a": 1}, 5000.0, "Y"]}})
    assert array() == [*range(1, 2000, 2), "x", "y", 4000, {"b": 1}]
    insensitive = {"locale": "en", "strength": 2}
    collection.update_one({"_id": 1}, {"$addToSet": {"a": {"$each": ["X", "z", "Z", "Y", 1]}}}, collation=insensitive)
    assert array()[-4:] == ["y", 4000, {"b": 1}, "z"]
    collection.update_one({"_id": 1}, {"$pullAll": {"a": ["Y", "X", "Z"]}}, collation=insensitive)
    assert array() == [*range(1, 2000, 2), 4000, {"b": 1}]
