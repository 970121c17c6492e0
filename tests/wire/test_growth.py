"""Pipelines, projections and updates can enlarge a document with every step. Each growth ends in an
error, in bounded memory."""

import time

import pytest
from pymongo.errors import OperationFailure

BIG = 8 << 20
# The largest growth of the server's peak memory: three documents of 125 MB, one of them growing,
# and the values of an expression.
PEAK_BYTES_MAX = 1 << 30
SECONDS_MAX = 120

MEMORY = 146
BUFFER = 13548
STRING = 16493
REPLY = 10334


@pytest.fixture(scope="module")
def documents(client):
    client.drop_database("growth")
    collection = client.growth.c
    collection.insert_one({"_id": 1, "a": ["y" * 1000] * 100, "s": "x" * 100_000, "o": {"k": "z" * 1000},
                           "big": "x" * BIG, "many": [0] * 1000})
    client.growth.other.insert_many({"_id": i, "big": "x" * BIG} for i in range(20))
    return collection


def status(server, name):
    with open(f"/proc/{server.process.pid}/status") as lines:
        found = dict(line.split(":", 1) for line in lines)[name]
    return int(found.split()[0]) << 10


@pytest.fixture(autouse=True)
def bounded(server, documents):
    # Resets the peak of the process.
    with open(f"/proc/{server.process.pid}/clear_refs", "w") as clear:
        clear.write("5")
    before, began = status(server, "VmRSS"), time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS_MAX
    assert status(server, "VmHWM") - before < PEAK_BYTES_MAX


def doubled(field, expression):
    return [{"$set": {field: expression}}] * 40


def bigs(count):
    """An array of this many large strings."""
    return {"$map": {"input": {"$range": [0, count]}, "in": "$big"}}


def computed(expression):
    return [{"$project": {"x": {"$bsonSize": {"x": expression}}}}]


def of_rows(count, *stages):
    return [{"$set": {"r": {"$range": [0, count]}}}, {"$unwind": "$r"}, *stages]


PIPELINES = {
    "arrays doubled by each stage": (MEMORY, doubled("a", {"$concatArrays": ["$a", "$a"]})),
    "strings doubled by each stage": (STRING, doubled("s", {"$concat": ["$s", "$s"]})),
    "objects doubled by each stage": (BUFFER, doubled("o", {"p": "$o", "q": "$o"})),
    "arrays of themselves": (MEMORY, doubled("a", ["$a", "$a"])),
    "the root in a field": (BUFFER, [{"$set": {f"f{i}": "$$ROOT"}} for i in range(40)]),
    "the root in a field of each element": (BUFFER, [{"$set": {"many.x": "$big"}}]),
    "an object's entries": (MEMORY, doubled("o", {"$objectToArray": {"p": "$o", "q": "$o"}})),
    "$reduce": (MEMORY, computed({"$reduce": {
        "input": {"$range": [0, 40]}, "initialValue": "$a",
        "in": {"$concatArrays": ["$$value", "$$value"]}}})),
    "$reduce of strings": (STRING, computed({"$reduce": {
        "input": {"$range": [0, 40]}, "initialValue": "$s", "in": {"$concat": ["$$value", "$$value"]}}})),
    "$map": (MEMORY, computed(bigs(1000))),
    "$range": (MEMORY, computed({"$range": [0, 2**31 - 1]})),
    "$range of a field": (MEMORY, computed({"$range": ["$_id", 2**31 - 1]})),
    "$zip": (MEMORY, computed({"$zip": {
        "inputs": [{"$range": [0, 1000]}, []], "defaults": [0, "$big"], "useLongestLength": True}})),
    "$mergeObjects": (MEMORY, computed({"$mergeObjects": [{f"f{i}": "$big"} for i in range(20)]})),
    "$setUnion": (MEMORY, computed({"$setUnion": [["$big"]] * 20})),
    "$setField": (MEMORY, [{"$set": {"o": {"$setField": {
        "field": f"f{i}", "input": "$o", "value": "$big"}}}} for i in range(20)]),
    "$replaceAll": (STRING, computed({"$replaceAll": {"input": "$s", "find": "x", "replacement": "$s"}})),
    "$replaceAll of nothing": (STRING, computed({"$replaceAll": {
        "input": "$s", "find": "", "replacement": "$s"}})),
    "$regexFindAll": (MEMORY, computed({"$regexFindAll": {
        "input": "$big", "regex": "(" * 20 + "x*" + ")" * 20}})),
    "variables": (MEMORY, computed({"$let": {"vars": {f"v{i}": bigs(11) for i in range(20)}, "in": 1}})),
    "arguments within arguments": (MEMORY, computed({"$slice": [bigs(11), {"$size": {"$slice": [
        bigs(11), {"$size": {"$slice": [bigs(11), {"$size": bigs(11)}]}}]}}]})),
    "$push": (MEMORY, of_rows(20, {"$group": {"_id": None, "x": {"$push": "$big"}}})),
    "$push of a bucket": (MEMORY, of_rows(20, {"$bucketAuto": {
        "groupBy": "$_id", "buckets": 1, "output": {"x": {"$push": "$big"}}}})),
    "$addToSet": (MEMORY, of_rows(20, {"$group": {
        "_id": None, "x": {"$addToSet": {"$concat": [{"$toString": "$r"}, "$big"]}}}})),
    "$mergeObjects of a group": (MEMORY, of_rows(20, {"$group": {"_id": None, "x": {"$mergeObjects": {
        "$arrayToObject": [[{"k": {"$toString": "$r"}, "v": "$big"}]]}}}})),
    "$topN": (MEMORY, of_rows(20, {"$group": {
        "_id": None, "x": {"$topN": {"n": 100, "sortBy": {"r": 1}, "output": "$big"}}}})),
    "many fields of a group": (BUFFER, [{"$group": {
        "_id": None, **{f"f{i}": {"$first": "$big"} for i in range(20)}}}]),
    "windows": (MEMORY, of_rows(20, {"$setWindowFields": {"sortBy": {"r": 1}, "output": {
        "x": {"$push": "$big", "window": {"documents": ["unbounded", "current"]}}}}})),
    "$lookup": (4568, [{"$lookup": {"from": "other", "pipeline": [], "as": "x"}}]),
    "$lookup in many fields": (BUFFER, [
        {"$lookup": {"from": "other", "pipeline": [{"$limit": 6}], "as": f"x{i}"}} for i in range(20)]),
    "what leaves": (REPLY, [{"$set": {"x": bigs(3)}}]),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_that_grows_ends_with_an_error(documents, name):
    code, pipeline = PIPELINES[name]
    with pytest.raises(OperationFailure) as error:
        list(documents.aggregate(pipeline, allowDiskUse=True))
    assert error.value.code == code, error.value


@pytest.mark.parametrize("code, expression", [
    (MEMORY, bigs(1000)), (REPLY, bigs(3)), (MEMORY, {"$range": ["$_id", 2**31 - 1]}),
    (STRING, {"$replaceAll": {"input": "$s", "find": "x", "replacement": "$s"}}),
])
def test_a_projection_that_grows_ends_with_an_error(documents, code, expression):
    with pytest.raises(OperationFailure) as error:
        list(documents.find({}, {"x": expression}))
    assert error.value.code == code, error.value


@pytest.mark.parametrize("code, update", [
    (MEMORY, doubled("a", {"$concatArrays": ["$a", "$a"]})),
    (STRING, doubled("s", {"$concat": ["$s", "$s"]})),
    (BUFFER, [{"$set": {f"f{i}": "$$ROOT"}} for i in range(40)]),
    (17419, [{"$set": {"x": bigs(3)}}]),
    (BUFFER, {"$set": {"many.$[]": "x" * BIG}}),
    (BUFFER, {"$set": {"many.$[].x": "x" * BIG}}),
])
def test_an_update_that_grows_ends_with_an_error(documents, code, update):
    if code == BUFFER and "many.$[].x" in str(update)[:40]:
        documents.update_one({}, {"$set": {"many": [{}] * 1000}})
    with pytest.raises(OperationFailure) as error:
        documents.update_one({}, update)
    assert error.value.code == code, error.value


def test_what_stays_within_the_limits_is_computed(documents):
    asked = [{"$project": {"x": {"$size": bigs(11)}, "y": {"$size": {"$range": [0, 1_000_000]}}}}]
    assert list(documents.aggregate(asked)) == [{"_id": 1, "x": 11, "y": 1_000_000}]
    # Between stages, documents may be longer than returned ones. So may those of groups.
    grouped = of_rows(5, {"$group": {"_id": None, "x": {"$push": "$big"}}}, {"$set": {"x": {"$size": "$x"}}})
    assert list(documents.aggregate(grouped)) == [{"_id": None, "x": 5}]


@pytest.mark.parametrize("function", [
    {"$last": "$s"}, {"$max": "$s"}, {"$maxN": {"n": 2, "input": "$s"}}, {"$lastN": {"n": 3, "input": "$s"}},
    {"$bottom": {"sortBy": {"_id": 1}, "output": "$s"}},
], ids=lambda function: next(iter(function)))
def test_a_long_value_in_long_windows(documents, function):
    """The windows of all rows share one long string, the values of 51 rows."""
    rows = [{"$limit": 1}, {"$set": {"r": {"$range": [0, 1001]}}}, {"$unwind": "$r"}, {"$project": {
        "_id": "$r", "s": {"$cond": [{"$eq": ["$r", 1000]}, {"$substrBytes": ["$big", 0, BIG >> 1]}, "a"]}}}]
    windows = [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
        "v": {**function, "window": {"documents": [start, 1000]}}}}} for start in (950, 0)]
    lengths = [{"$project": {"n": {"$bsonSize": {"v": "$v"}}}}, {"$match": {"n": {"$gt": BIG >> 1}}}, {"$count": "n"}]
    assert list(documents.aggregate([*rows, windows[0], *lengths])) == [{"n": 51}]
    # All values together are too long.
    with pytest.raises(OperationFailure) as error:
        list(documents.aggregate([*rows, windows[1], *lengths]))
    assert error.value.code == MEMORY


def test_many_values_in_long_windows(documents):
    rows = [{"$limit": 1}, {"$set": {"r": {"$range": [0, 3000]}}}, {"$unwind": "$r"}, {"$project": {"_id": "$r"}}]
    functions = {"late": {"$lastN": {"n": 300, "input": "$_id"}}, "least": {"$minN": {"n": 300, "input": "$_id"}},
                 "top": {"$topN": {"n": 300, "sortBy": {"_id": -1}, "output": "$_id"}}}
    stage = {"sortBy": {"_id": 1}, "output": {
        name: {**function, "window": {"documents": [-1500, 0]}} for name, function in functions.items()}}
    [found] = documents.aggregate([*rows, {"$setWindowFields": stage}, {"$match": {"_id": 2999}}])
    assert found["late"] == list(range(2700, 3000))
    assert found["least"] == list(range(1499, 1799))
    assert found["top"] == list(range(2999, 2699, -1))


def test_a_let_is_bounded(documents):
    variables = {f"v{i}": {"$range": [0, 1_000_000]} for i in range(100)}
    with pytest.raises(OperationFailure) as error:
        list(documents.aggregate([{"$limit": 1}, {"$project": {"_id": 1}}], let=variables))
    assert error.value.code == MEMORY
