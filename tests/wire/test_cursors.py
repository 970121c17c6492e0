"""Results larger than a batch stay in a cursor."""

import pymongo
import pytest
from answers import ids, refused
from bson import Int64
from pymongo.errors import CursorNotFound, OperationFailure


@pytest.fixture
def thousand(collection):
    collection.insert_many([{"_id": one, "pad": "x" * 100} for one in range(1_000)])
    return collection


@pytest.mark.parametrize("size", [1, 7, 100, 999, 1_000, 1_001])
def test_every_document_once_whatever_the_batch(thousand, size):
    assert [one["_id"] for one in thousand.find().batch_size(size)] == list(range(1_000))


def test_the_first_batch_has_101_documents(database, thousand):
    reply = database.command({"find": "c"})["cursor"]
    assert (len(reply["firstBatch"]), reply["ns"]) == (101, f"{database.name}.c")
    more = database.command({"getMore": reply["id"], "collection": "c", "batchSize": 9})["cursor"]
    assert [one["_id"] for one in more["nextBatch"]] == list(range(101, 110))
    rest = database.command({"getMore": reply["id"], "collection": "c"})["cursor"]
    assert (len(rest["nextBatch"]), rest["id"]) == (890, 0)


def test_a_batch_has_at_most_16_mb(database):
    database.c.insert_many([{"pad": "x" * 1_000_000} for _ in range(40)])
    sizes = []
    reply = database.command({"find": "c", "batchSize": 100})["cursor"]
    sizes.append(len(reply["firstBatch"]))
    while reply["id"]:
        reply = database.command({"getMore": reply["id"], "collection": "c"})["cursor"]
        sizes.append(len(reply["nextBatch"]))
    assert sum(sizes) == 40 and max(sizes) <= 16


def test_an_empty_first_batch_opens_the_cursor(database, thousand):
    reply = database.command({"find": "c", "batchSize": 0})["cursor"]
    assert reply["firstBatch"] == [] and reply["id"] != 0
    more = database.command({"getMore": reply["id"], "collection": "c"})["cursor"]
    assert len(more["nextBatch"]) == 1_000


def test_a_single_batch_closes_the_cursor(database, thousand):
    for command in [{"find": "c", "batchSize": 5, "singleBatch": True}, {"find": "c", "limit": 5}]:
        reply = database.command(command)["cursor"]
        assert (len(reply["firstBatch"]), reply["id"]) == (5, 0)


def test_a_killed_cursor_is_gone(database, thousand):
    number = database.command({"find": "c"})["cursor"]["id"]
    killed = database.command({"killCursors": "c", "cursors": [Int64(number), Int64(12345)]})
    assert (killed["cursorsKilled"], killed["cursorsNotFound"]) == ([number], [12345])
    with pytest.raises(CursorNotFound) as error:
        database.command({"getMore": Int64(number), "collection": "c"})
    assert error.value.code == 43


def test_a_cursor_belongs_to_its_collection(database, thousand):
    number = database.command({"find": "c"})["cursor"]["id"]
    with pytest.raises(OperationFailure) as error:
        database.command({"getMore": number, "collection": "other"})
    assert error.value.code == 13
    assert database.command({"getMore": number, "collection": "c"})["cursor"]["nextBatch"]


def test_writes_beside_an_open_cursor_do_no_harm(thousand):
    cursor = thousand.find().batch_size(10)
    seen = [next(cursor)["_id"] for _ in range(10)]
    thousand.delete_many({"_id": {"$gte": 900}})
    thousand.insert_many([{"_id": one} for one in range(2_000, 2_100)])
    seen += [one["_id"] for one in cursor]
    assert len(seen) == len(set(seen))
    assert set(range(900)) <= set(seen)


def test_dropping_the_collection_ends_its_cursors(thousand):
    cursor = thousand.find().batch_size(10)
    next(cursor)
    thousand.drop()
    with pytest.raises((OperationFailure, CursorNotFound)) as error:
        list(cursor)
    assert error.value.code in (43, 175, 11601)


def test_aggregations_have_cursors_too(database, thousand):
    found = thousand.aggregate([{"$match": {"_id": {"$gte": 10}}}], batchSize=7)
    assert [one["_id"] for one in found] == list(range(10, 1_000))
    reply = database.command({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 0}})
    assert reply["cursor"]["firstBatch"] == [] and reply["cursor"]["id"] != 0


def test_sorted_and_indexed_results_go_on_where_they_stopped(thousand):
    thousand.create_index([("pad", 1), ("_id", -1)])
    found = thousand.find({"pad": "x" * 100}).sort([("pad", 1), ("_id", -1)]).batch_size(13)
    assert [one["_id"] for one in found] == list(range(999, -1, -1))
    unindexed = thousand.find().sort("_id", pymongo.DESCENDING).batch_size(17)
    assert [one["_id"] for one in unindexed] == list(range(999, -1, -1))
    assert len(list(thousand.find().skip(950).batch_size(20))) == 50


@pytest.mark.parametrize("command, code", [
    ({"find": "c", "batchSize": -1}, 2), ({"find": "c", "limit": -1}, 2),
    ({"find": "c", "skip": -1}, 2), ({"find": "c", "filter": 1}, 9),
    ({"find": 1}, 9), ({"getMore": 1}, 14), ({"aggregate": "c", "pipeline": []}, 9),
    ({"find": "c", "nothing": 1}, 9), ({"aggregate": "c", "pipeline": [], "cursor": {}, "nothing": 1}, 9),
    ({"findAndModify": "c", "remove": True, "nothing": 1}, 51177),
])
def test_arguments_that_cannot_be(database, command, code):
    """The codes are those recorded with MongoDB 4.4."""
    with pytest.raises(OperationFailure) as error:
        database.command(command)
    assert error.value.code == code


def test_a_cursor_keeps_to_one_version_of_the_api(database):
    """Regression: a getMore could name another version of the stable API than the command that
    opened its cursor."""
    database.c.insert_many([{"_id": number} for number in range(4)])
    strict = {"apiVersion": "1", "apiStrict": True}
    for first, other in (({}, strict), (strict, {}), (strict, {"apiVersion": "1"})):
        for command in ({"find": "c", "batchSize": 2}, {"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 2}}):
            cursor = database.command(command | first)["cursor"]["id"]
            why = refused(lambda: database.command("getMore", cursor, collection="c", **other), 347)
            assert why["errmsg"].startswith("API parameter mismatch: getMore used params {")
            rest = database.command("getMore", cursor, collection="c", **first)["cursor"]
            assert (ids(rest["nextBatch"]), rest["id"]) == ([2, 3], 0)
