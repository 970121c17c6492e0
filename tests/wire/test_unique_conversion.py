"""collMod makes an index unique in two steps, and adds limits and expiry."""

import pytest
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure


@pytest.fixture
def collection(server):
    collection = server.client().conversion.c
    collection.drop()
    collection.insert_many({"_id": i, "a": i % 4} for i in range(6))
    collection.create_index("a")
    return collection


def change(collection, index, **more):
    return collection.database.command(
        {"collMod": collection.name, "index": {"keyPattern": {"a": 1}, **index}, **more})


def refused(collection, index, code, **more):
    with pytest.raises(OperationFailure) as error:
        change(collection, index, **more)
    assert error.value.code == code
    return error.value.details


def test_an_index_becomes_unique_once_it_has_no_doubles(collection):
    refused(collection, {"unique": True}, 72)
    reply = change(collection, {"prepareUnique": True})
    assert (reply["prepareUnique_old"], reply["prepareUnique_new"]) == (False, True)
    assert collection.index_information()["a_1"]["prepareUnique"] is True
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"a": 2})
    with pytest.raises(BulkWriteError):
        collection.insert_many([{"a": 9}, {"a": 9}])
    # Duplicates stay, and may change in other fields.
    assert collection.update_many({"a": 0}, {"$set": {"b": 1}}).modified_count == 2
    violations = refused(collection, {"unique": True}, 359)["violations"]
    assert violations == [{"ids": [0, 4]}, {"ids": [1, 5]}]
    assert refused(collection, {"unique": True}, 359, dryRun=True)["violations"] == violations
    collection.delete_many({"_id": {"$gt": 3}})
    assert "unique_new" not in change(collection, {"unique": True}, dryRun=True)
    assert "unique" not in collection.index_information()["a_1"]
    assert change(collection, {"unique": True})["unique_new"] is True
    index = collection.index_information()["a_1"]
    assert index["unique"] is True and "prepareUnique" not in index
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"a": 2})


def test_a_conversion_can_be_given_up(collection):
    change(collection, {"prepareUnique": True})
    change(collection, {"prepareUnique": False})
    collection.insert_one({"a": 2})
    refused(collection, {"unique": True}, 72)
    refused(collection, {"unique": False}, 2)
    refused(collection, {"hidden": True}, 72, dryRun=True)


def test_an_index_is_created_prepared(collection):
    collection.create_index("b", prepareUnique=True)
    collection.insert_one({"b": 1})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"b": 1})


def test_an_index_is_given_an_expiry(collection):
    reply = change(collection, {"expireAfterSeconds": 3600})
    assert reply["expireAfterSeconds_new"] == 3600 and "expireAfterSeconds_old" not in reply
    assert collection.index_information()["a_1"]["expireAfterSeconds"] == 3600
    for key in ({"a": 1, "b": 1}, {"s": "text"}):
        collection.create_index(list(key.items()), name="compound")
        with pytest.raises(OperationFailure) as refused:
            collection.database.command(
                {"collMod": "c", "index": {"name": "compound", "expireAfterSeconds": 5}})
        assert refused.value.code == 72
        collection.drop_index("compound")
    reply = change(collection, {"hidden": False})
    assert "hidden_old" not in reply and "hidden_new" not in reply


def test_a_capped_collection_is_given_other_limits(collection):
    database = collection.database
    database.drop_collection("small")
    small = database.create_collection("small", capped=True, size=100_000, max=50)
    small.insert_many({"_id": i} for i in range(50))
    database.command({"collMod": "small", "cappedMax": 10})
    # The next insert removes what exceeds the limit.
    assert small.count_documents({}) == 50
    small.insert_one({"_id": 50})
    assert [one["_id"] for one in small.find()] == list(range(41, 51))
    database.command({"collMod": "small", "cappedSize": 8192, "cappedMax": 0})
    small.insert_many({"_id": i, "text": "x" * 1000} for i in range(51, 61))
    assert [one["_id"] for one in small.find()] == list(range(54, 61))
    database.command({"collMod": "small", "cappedSize": 4096})
    assert small.count_documents({}) == 7
    small.insert_one({"_id": 61, "text": "x" * 1000})
    assert [one["_id"] for one in small.find()] == [59, 60, 61]
    database.command({"collMod": "small", "cappedSize": 8192})
    options = small.options()
    assert options["size"] == 8192 and "max" not in options
    with pytest.raises(OperationFailure) as error:
        database.command({"collMod": "c", "cappedSize": 8192})
    assert error.value.code == 72
