"""Sorts and groups of more than 100 MB use the disk, unless they may not."""

import pathlib

import pytest
from pymongo.errors import OperationFailure

PADDING = "x" * 100_000


@pytest.fixture(scope="module")
def large(client):
    collection = client.spill.large
    collection.drop()
    for first in range(0, 1500, 100):
        collection.insert_many([{"_id": n, "n": n * 7919 % 1500, "p": PADDING} for n in range(first, first + 100)])
    yield collection
    client.drop_database("spill")


SORT = [{"$sort": {"n": 1}}, {"$set": {"m": "$p"}}, {"$project": {"n": 1}}]
GROUP = [{"$group": {"_id": {"$concat": ["$p", {"$toString": "$n"}]}, "n": {"$sum": "$n"}, "f": {"$first": "$_id"}}},
         {"$project": {"_id": {"$strLenCP": "$_id"}, "n": 1, "f": 1}}]


def test_sorts(large):
    assert [row["n"] for row in large.aggregate(SORT)] == list(range(1500))
    assert [row["n"] for row in large.find().sort("n", -1)] == list(range(1499, -1, -1))


def test_a_sort_keeps_how_the_documents_were_found(large):
    told = {"w": {"$meta": "indexKey"}, "s": {"$meta": "sortKey"}, "r": {"$meta": "recordId"}}
    stages = [{"$match": {"_id": {"$gte": 0}}}, {"$unwind": "$n"}, {"$sort": {"n": 1}}, {"$project": told}]
    found = list(large.aggregate(stages, hint={"_id": 1}))
    assert [row["s"] for row in found] == [[n] for n in range(1500)]
    assert all(row["w"] == {"_id": row["_id"]} and row["r"] > 0 for row in found)


def test_groups(large):
    twice = [{"$unionWith": "large"}, *GROUP]
    found = list(large.aggregate(twice))
    assert len(found) == 1500
    assert all(row["n"] == 2 * (row["f"] * 7919 % 1500) for row in found)


@pytest.mark.parametrize("stages", [SORT, GROUP])
def test_without_the_disk(large, stages):
    with pytest.raises(OperationFailure) as failure:
        list(large.aggregate(stages, allowDiskUse=False))
    assert failure.value.code == 292


def test_an_unwound_row_holds_what_is_read_of_it(client, server):
    """Regression: each row of an `$unwind` reserved room for the whole array and for all fields of
    the document. A long field beside a long array filled the memory of a sort, and then the disk.
    """
    collection = client.spill.unwound
    collection.drop()
    elements = [{"x": n, "y": n * 7919 % 5000, "s": "x" * 60} for n in range(5000)]
    collection.insert_one({"_id": 1, "o": elements})
    stages = [{"$unwind": "$o"}, {"$sort": {"o.y": 1}},
              {"$group": {"_id": "$_id", "all": {"$push": "$o.y"}}}]

    def run():
        [row] = collection.aggregate(stages, allowDiskUse=False)
        return row["all"] == list(range(5000))

    def megabytes_max():
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) >> 10

    before = megabytes_max()
    assert run()
    assert megabytes_max() - before < 300
    collection.update_one({"_id": 1}, {"$set": {"p": PADDING * 10}})
    assert run()
    whole = [{"$unwind": "$o"}, {"$sort": {"o.y": -1}}, {"$limit": 1}, {"$project": {"p": {"$strLenCP": "$p"}, "o": 1}}]
    assert [(row["p"], row["o"]["y"]) for row in collection.aggregate(whole)] == [(1_000_000, 4999)]
