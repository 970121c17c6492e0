"""Excessive queries get the documented error or the right answer, in bounded memory and time."""

import time

import pytest
from pymongo.errors import OperationFailure

# The largest growth of the server during one of them. A block of a sort may hold 100 MB.
GROWTH_BYTES_MAX = 400 << 20
# Generous, because other programs run beside the tests.
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def documents(client):
    client.drop_database("bad_queries")
    collection = client.bad_queries.c
    collection.insert_many({"_id": i, "a": i % 1000, "s": "x" * 200} for i in range(20_000))
    collection.create_index("a")
    return collection


@pytest.fixture(autouse=True)
def bounded(server):
    def held():
        with open(f"/proc/{server.process.pid}/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmRSS"].split()[0]) << 10

    before, began = held(), time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS_MAX
    assert held() - before < GROWTH_BYTES_MAX


def refused(code, ask):
    with pytest.raises(OperationFailure) as error:
        ask()
    assert error.value.code == code, error.value


def long_string(times):
    """Many strings of 200 bytes."""
    return {"$reduce": {"input": {"$range": [0, times]}, "initialValue": "",
                        "in": {"$concat": ["$$value", "$s"]}}}


def test_a_pipeline_has_at_most_1000_stages(documents):
    assert len(list(documents.aggregate([{"$match": {"a": 5}}] * 1000))) == 20
    reshaped = [{"$addFields": {f"f{i}": {"$add": ["$a", i]}}} for i in range(999)]
    assert list(documents.aggregate([{"$limit": 1}, *reshaped]))[0]["f998"] == 998
    refused(7749501, lambda: documents.aggregate([{"$match": {"a": 5}}] * 1001))


@pytest.mark.parametrize("levels, code", [(100, None), (150, None), (200, 15), (5000, 15)])
def test_an_expression_of_many_levels(documents, levels, code):
    expression = "$a"
    for _ in range(levels):
        expression = {"$abs": expression}
    pipeline = [{"$match": {"_id": 7}}, {"$project": {"x": expression}}]
    if code is None:
        assert list(documents.aggregate(pipeline)) == [{"_id": 7, "x": 7}]
    else:
        try:
            documents.aggregate(pipeline)
        except OperationFailure as error:
            assert error.code == code
        except RecursionError:
            pass  # The driver itself nests no deeper.
        else:
            pytest.fail("it was accepted")


@pytest.mark.parametrize("pattern, expected", [
    (r"(a+)+$", 1),
    (r"(a|aa)+$", 1),
    (r"^(a+)+b?c$", 0),
    (r"(?:a?){40}a{40}", 1),
    ("a" * 30_000, 1),
    # No text has the letter that these need. The engine knows it without trying the alternatives.
    (r"(a+)+\1c", 0),
    (r"(.*)(.*)(.*)(.*)(.*)x\1", 0),
    ("((a{1,100}){1,100}){1,100}", 2),
    (r"^(a+)+c?(b)\2", 51156),
    ("a" * 32_765, 51091),
])
def test_a_regular_expression_that_explodes(client, pattern, expected):
    texts = client.bad_queries.texts
    texts.drop()
    texts.insert_many([{"s": "a" * 30 + "b"}, {"s": "a" * 40_000}])

    def count():
        return texts.count_documents({"s": {"$regex": pattern}})

    if expected < 1000:
        assert count() == expected
    else:
        refused(expected, count)


def test_an_update_that_would_exceed_16_mb(documents):
    refused(17419, lambda: documents.update_one({"_id": 1}, [{"$set": {
        "l": {"$map": {"input": {"$range": [0, 200_000]}, "in": "$s"}}}}]))
    assert documents.find_one({"_id": 1}) == {"_id": 1, "a": 1, "s": "x" * 200}


def test_a_lookup_into_itself(documents):
    joined = [{"$match": {"_id": {"$lt": 3}}},
              {"$lookup": {"from": "c", "localField": "a", "foreignField": "a", "as": "r"}},
              {"$project": {"n": {"$size": "$r"}}}]
    assert [one["n"] for one in documents.aggregate(joined)] == [20] * 3
    everything = {"$lookup": {"from": "c", "pipeline": [], "as": "q"}}
    twice = {"$lookup": {"from": "c", "pipeline": [everything], "as": "r"}}
    refused(4568, lambda: documents.aggregate([{"$limit": 1}, twice]))
    nested = []
    for _ in range(21):
        nested = [{"$lookup": {"from": "c", "pipeline": nested, "as": "r"}}]
    refused(232, lambda: documents.aggregate(nested))


def test_a_sort_of_more_than_memory(documents):
    grown = [{"$project": {"s": long_string(50)}}, {"$sort": {"s": 1, "_id": -1}},
             {"$skip": 10}, {"$project": {"_id": 1}}, {"$limit": 3}]
    without_limit = grown[:-1]
    refused(292, lambda: documents.aggregate(without_limit, allowDiskUse=False))
    found = documents.aggregate(without_limit, allowDiskUse=True)
    assert [next(found)["_id"] for _ in range(3)] == [19_989, 19_988, 19_987]
    found.close()
    # With a limit, only few rows are in memory.
    assert len(list(documents.aggregate(grown, allowDiskUse=False))) == 3


def test_100000_values_of_in(documents):
    many = list(range(500, 100_500))
    assert documents.count_documents({"a": {"$in": many}}) == 10_000
    assert documents.count_documents({"s": {"$in": [str(one) for one in many]}}) == 0
    assert len(list(documents.find({"a": {"$in": many}}).sort("a", -1).limit(5))) == 5
    assert documents.count_documents({"a": {"$nin": many}}) == 10_000


def test_a_collation_of_an_unknown_locale(documents):
    for ask in (lambda: list(documents.find({}, collation={"locale": "klingon"})),
                lambda: documents.create_index("s", collation={"locale": "xx_YY"}),
                lambda: documents.database.create_collection("d", collation={"locale": "no-where"}),
                lambda: documents.aggregate([], collation={"locale": ""})):
        refused(2, ask)
    assert "d" not in documents.database.list_collection_names()


def test_one_document_keeps_no_query_busy_past_its_time(documents):
    one = {"$match": {"_id": 1}}
    endless = {"$map": {"input": {"$range": [0, 100_000]}, "in": {
        "$size": {"$filter": {"input": {"$range": [0, 100_000]}, "cond": {"$lt": ["$$this", "$a"]}}}}}}
    for expression in (long_string(200_000), endless):
        pipeline = [one, {"$project": {"n": expression}}]
        refused(50, lambda: documents.aggregate(pipeline, maxTimeMS=500))


def test_a_projection_of_more_than_16_mb(database):
    large = database.large
    large.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 2, "s": "x" * 9_000_000}])
    twice = {"n": 1, "one": "$$ROOT", "other": "$$ROOT"}
    assert [one["n"] for one in large.find({"_id": 1}, twice)] == [1]
    refused(10334, lambda: list(large.find({}, twice).sort("_id", 1)))
    refused(10334, lambda: list(large.find({}, twice).sort("_id", 1).batch_size(1)))
    refused(10334, lambda: large.find_one_and_update({"_id": 2}, {"$inc": {"n": 1}}, projection=twice))
    refused(10334, lambda: list(large.aggregate([{"$project": twice}])))
    assert large.count_documents({}) == 2


def test_groups_of_more_than_memory(documents):
    kept = [{"$group": {"_id": "$_id", "l": {"$first": long_string(100)}}}]
    refused(292, lambda: documents.aggregate(kept, allowDiskUse=False))
    pushed = [{"$group": {"_id": None, "l": {"$push": long_string(100)}}}]
    refused(146, lambda: documents.aggregate(pushed, allowDiskUse=True))
    refused(10334, lambda: documents.aggregate(
        [{"$group": {"_id": None, "l": {"$push": long_string(10)}}}], allowDiskUse=True))
