"""Reordered stages return the same documents. Limits of pipelines."""

import time

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def two(database, collection):
    collection.insert_many([{"_id": n, "k": n % 3, "l": [n, n + 1], "n": n} for n in range(6)])
    database.other.insert_many([{"_id": n, "k": n % 2, "x": n * 10} for n in range(4)])
    collection.create_index("n")
    return collection


LOOKUP = {"$lookup": {"from": "other", "localField": "k", "foreignField": "k", "as": "o"}}


@pytest.mark.parametrize("stages, expected", [
    ([{"$project": {"n": 1, "m": {"$add": ["$n", 1]}}}, {"$match": {"n": {"$gt": 3}, "m": {"$lt": 6}}}],
     [{"_id": 4, "n": 4, "m": 5}]),
    ([{"$project": {"k": 1}}, {"$match": {"n": {"$gt": 3}}}], []),
    ([{"$unwind": "$l"}, {"$match": {"l": 3, "n": {"$lt": 3}}}, {"$project": {"l": 1}}], [{"_id": 2, "l": 3}]),
    ([LOOKUP, {"$match": {"n": 5, "o": {"$size": 0}}}, {"$project": {"o": 1}}], [{"_id": 5, "o": []}]),
    ([LOOKUP, {"$unwind": "$o"}, {"$match": {"n": {"$lte": 1}}}, {"$project": {"x": "$o.x"}},
      {"$sort": {"_id": 1, "x": 1}}],
     [{"_id": 0, "x": 0}, {"_id": 0, "x": 20}, {"_id": 1, "x": 10}, {"_id": 1, "x": 30}]),
    ([LOOKUP, {"$unwind": {"path": "$o", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"}},
      {"$match": {"n": {"$in": [1, 2]}}}, {"$project": {"x": "$o.x", "i": 1}}],
     [{"_id": 1, "x": 10, "i": 0}, {"_id": 1, "x": 30, "i": 1}, {"_id": 2, "i": None}]),
    ([{"$sort": {"n": -1}}, {"$set": {"m": 1}}, {"$skip": 1}, {"$limit": 2}, {"$project": {"m": 1}}],
     [{"_id": 4, "m": 1}, {"_id": 3, "m": 1}]),
    ([{"$set": {"n": {"$multiply": ["$n", 2]}}}, {"$match": {"n": 4}}, {"$project": {"n": 1}}],
     [{"_id": 2, "n": 4}]),
])
def test_the_order_changes_nothing(two, stages, expected):
    assert list(two.aggregate(stages)) == expected


@pytest.mark.parametrize("nothing", [
    {"$expr": False}, {"$alwaysFalse": 1}, {"$nor": [{"$expr": {"$lt": [1, 2]}}]}, {"$expr": {"$gt": ["a", "b"]}},
])
@pytest.mark.parametrize("stages", [
    [{"$facet": {"all": [{"$match": {"n": 1}}]}}],
    [{"$facet": {"all": []}}, {"$project": {"none": {"$size": "$all"}}}],
    [{"$unionWith": "other"}],
    [{"$unionWith": "other"}, {"$set": {"m": 1}}],
])
def test_a_filter_that_nothing_passes_stays_behind_what_makes_rows(two, stages, nothing):
    """Regression: a filter of constants moved in front of `$facet`, which made one document of
    none, and of `$unionWith`."""
    assert list(two.aggregate([*stages, {"$match": nothing}])) == []


def front(database, name, stages):
    explained = database.command("aggregate", name, pipeline=stages, explain=True)
    return str(explained["stages"][0]["$cursor"]), [next(iter(stage)) for stage in explained["stages"][1:]]


@pytest.mark.parametrize("before", [
    LOOKUP, {"$unwind": "$l"}, {"$project": {"n": 1, "m": {"$add": [1, "$k"]}}}, {"$set": {"m": 1}},
])
def test_filters_reach_the_index(database, two, before):
    cursor, _ = front(database, two.name, [before, {"$match": {"n": 3}}])
    assert "IXSCAN" in cursor


def test_an_unwind_goes_into_its_lookup(database, two):
    _, stages = front(database, two.name, [LOOKUP, {"$unwind": "$o"}])
    assert stages == ["$lookup"]


def test_a_lookup_that_is_unwound_makes_no_large_array(database, collection):
    collection.insert_one({"_id": 1})
    database.large.insert_many([{"_id": n, "p": "x" * 1_000_000} for n in range(20)])
    lookup = {"$lookup": {"from": "large", "pipeline": [], "as": "o"}}
    found = list(collection.aggregate([lookup, {"$unwind": "$o"}, {"$project": {"n": "$o._id"}}]))
    assert [row["n"] for row in found] == list(range(20))
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([lookup]))
    assert failure.value.code == 10334


def test_documents_between_stages_may_be_longer_than_those_that_leave(database, collection):
    collection.insert_many([{"_id": n, "p": "x" * 1_000_000} for n in range(20)])
    lookup = {"$lookup": {"from": collection.name, "pipeline": [], "as": "o"}}
    facet = {"$facet": {"o": []}}
    graph = {"$graphLookup": {"from": collection.name, "startWith": {"$range": [0, 20]}, "as": "o",
                              "connectFromField": "x", "connectToField": "_id"}}
    for long in ([{"$limit": 1}, lookup], [facet], [{"$limit": 1}, graph]):
        [found] = collection.aggregate([*long, {"$project": {"_id": 0, "n": {"$size": "$o"}}}])
        assert found == {"n": 20}
        with pytest.raises(OperationFailure) as failure:
            list(collection.aggregate(long))
        assert failure.value.code == 10334


def test_a_document_that_is_made_is_no_longer_than_replies_take(collection):
    collection.insert_one({"p": "x" * (8 << 20)})
    twice = {"$replaceWith": {"p": "$p", "q": "$p", "n": 1}}
    assert [one["n"] for one in collection.aggregate([twice])] == [1]
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([twice, {"$set": {"r": "y" * 20_000}}]))
    assert failure.value.code == 10334


def nested(depth):
    expression = "$n"
    for _ in range(depth):
        expression = {"$abs": expression}
    return expression


@pytest.mark.parametrize("stages, code", [
    ([{"$set": {"a": 1}}] * 1000, None),
    ([{"$set": {"a": 1}}] * 1001, 7749501),
    ([{"$match": {"n": {"$in": list(range(100_000))}}}], None),
    ([{"$set": {"a": nested(60)}}], None),
    ([{"$match": {"s": {"$regex": "(a|aa)+$"}}}], None),
    ([{"$match": {"$sampleRate": 0}}], None),
    ([{"$match": {"$sampleRate": 2}}], 2),
])
def test_large_pipelines(collection, stages, code):
    collection.insert_one({"_id": 1, "n": 1, "s": "a" * 5000 + "b"})
    began = time.monotonic()
    if code is None:
        list(collection.aggregate(stages))
    else:
        with pytest.raises(OperationFailure) as failure:
            list(collection.aggregate(stages))
        assert failure.value.code == code, failure.value
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("projection, expected", [
    ({"w": {"$meta": "sortKey"}, "n": 1}, {"_id": 5, "n": 5, "w": [2, 5]}),
    ({"_id": 1, "w.k": {"$meta": "recordId"}}, {"_id": 5, "w": {"k": 6}}),
])
def test_how_a_document_was_found(two, projection, expected):
    found = two.find({}, projection, sort=[("k", -1), ("n", -1)], limit=1)
    document = next(found)
    if "k" in document.get("w", ()):
        assert isinstance(document["w"]["k"], int)
        return
    assert document == expected


def test_the_key_of_the_index(two):
    found = two.find({"n": 3}, {"_id": 0, "w": {"$meta": "indexKey"}}, hint={"n": 1})
    assert [row["w"] for row in found] == [{"n": 3}]
    with pytest.raises(OperationFailure) as failure:
        list(two.find({}, {"w": {"$meta": "sortKey"}}))
    assert failure.value.code == 2


@pytest.mark.parametrize("projection, sort, expected", [
    ({"c": {"$meta": "sortKey"}}, {"a": -1}, [{"a": 3, "c": [3]}, {"a": 2, "c": [2]}, {"a": 1, "c": [1]}]),
    ({"c": {"$meta": "sortKey"}, "b": 1}, {"b": 1},
     [{"a": 3, "c": [1]}, {"a": 2, "c": [2]}, {"a": 1, "c": [3]}]),
    ({"c.d": {"$meta": "sortKey"}, "e": {"f": {"$meta": "sortKey"}}}, {"b": 1, "a": 1},
     [{"a": a, "c": {"d": [b, a]}, "e": {"f": [b, a]}} for a, b in ((3, 1), (2, 2), (1, 3))]),
    ({"a": 0}, {"a": 1}, [{"a": 1}, {"a": 2}, {"a": 3}]),
])
def test_return_key_shows_the_keys_of_the_order(collection, projection, sort, expected):
    """Regression: `returnKey` removed everything, also the fields of the projection that show the
    keys."""
    collection.create_index("a")
    collection.insert_many([{"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 3, "b": 1}])
    find = {"find": "c", "projection": projection, "sort": sort, "hint": {"a": 1}, "returnKey": True}
    assert collection.database.command(find)["cursor"]["firstBatch"] == expected


KEY = {"$meta": "indexKey"}


@pytest.mark.parametrize("stages, expected", [
    ([{"$project": {"_id": 0, "w": KEY}}], [{"w": {"n": 3}}]),
    ([{"$project": {"_id": 0, "n": 1, "w.k": KEY}}], [{"n": 3, "w": {"k": {"n": 3}}}]),
    ([{"$set": {"w": KEY}}, {"$project": {"_id": 0, "w": 1}}], [{"w": {"n": 3}}]),
    # A projection that excludes fields may add the key, too.
    ([{"$project": {"_id": 0, "k": 0, "l": 0, "w": KEY}}], [{"n": 3, "w": {"n": 3}}]),
    ([{"$project": {"w.k": KEY, "k": 0, "_id": 0}}, {"$project": {"n": 0, "l": 0}}], [{"w": {"k": {"n": 3}}}]),
    ([{"$sort": {"n": -1}}, {"$project": {"_id": 0, "k": 0, "l": 0, "n": 0, "w": {"$meta": "sortKey"}}}],
     [{"w": [3]}]),
    ([{"$sort": {"k": 1}}, {"$set": {"a": 1}}, {"$project": {"_id": 0, "w": KEY}}], [{"w": {"n": 3}}]),
    ([{"$limit": 1}, {"$unwind": "$n"}, {"$project": {"_id": 0, "w": KEY}}], [{"w": {"n": 3}}]),
    ([{"$group": {"_id": KEY}}], [{"_id": {"n": 3}}]),
    # Stages that make new documents drop the keys of the old ones.
    ([{"$group": {"_id": "$n"}}, {"$set": {"w": KEY}}], [{"_id": 3}]),
    ([{"$sort": {"n": -1, "k": 1}}, {"$project": {"_id": 0, "w": {"$meta": "sortKey"}}}], [{"w": [3, 0]}]),
    ([{"$unwind": "$n"}, {"$sort": {"n": 1}}, {"$project": {"_id": 0, "w": {"$meta": "sortKey"}}}],
     [{"w": [3]}]),
])
def test_how_a_pipeline_found_its_documents(two, stages, expected):
    assert list(two.aggregate([{"$match": {"n": 3}}, *stages], hint={"n": 1})) == expected


def test_documents_are_put_in_random_order(collection):
    collection.insert_many({"_id": i, "p": i % 2} for i in range(60))
    collection.create_index("p")
    random = {"$meta": "randVal"}
    runs = [lambda: collection.find(sort=[("_id", random)]),
            lambda: collection.find(sort=[("_id", random)]).limit(40),
            lambda: collection.aggregate([{"$sort": {"_id": random}}]),
            lambda: collection.aggregate([{"$set": {"x": 1}}, {"$sort": {"_id": random}}, {"$limit": 40}])]
    for run in runs:
        first, second = [row["_id"] for row in run()], [row["_id"] for row in run()]
        assert len(set(first)) == len(first) >= 40 and first != sorted(first) and first != second
    sort = {"p": 1, "_id": random}
    for rows in (collection.find(sort=list(sort.items())), collection.aggregate([{"$sort": sort}])):
        rows = list(rows)
        assert [row["p"] for row in rows] == [0] * 30 + [1] * 30
        found = [row["_id"] for row in rows]
        assert sorted(found) == list(range(60)) and found[:30] != sorted(found[:30])


def test_what_no_index_and_no_sort_told(two):
    wanted = {"_id": 0, "w": KEY, "s": {"$meta": "sortKey"}}
    match = {"$match": {"n": 3}}
    assert list(two.aggregate([match, {"$project": wanted}], hint={"$natural": 1})) == [{}]
    found = two.aggregate([match, {"$project": {"_id": 0, "r": {"$meta": "recordId"}}}])
    assert [row.keys() for row in found] == [{"r"}]
    # The filter may be part of the query that finds the rows.
    with pytest.raises(OperationFailure) as failure:
        list(two.aggregate([{"$match": {"$expr": {"$eq": [KEY, {"n": 3}]}}}]))
    assert failure.value.code == 40218


@pytest.mark.parametrize("has_index", [False, True])
def test_a_lookup_of_both_forms_knows_how_it_found_its_documents(two, database, has_index):
    """Regression: a pipeline behind localField and foreignField got documents without their record
    ids."""
    if has_index:
        database.other.create_index("k")
    told = {"_id": 1, "r": {"$meta": "recordId"}, "w": KEY}
    lookup = {**LOOKUP["$lookup"], "pipeline": [{"$sort": {"x": -1}}, {"$project": told}, {"$limit": 1}]}
    for wanted in ([{"$lookup": lookup}], [{"$lookup": lookup}, {"$unwind": "$o"}]):
        found = {row["_id"]: row["o"] for row in two.aggregate([{"$match": {"n": {"$lt": 2}}}, *wanted])}
        found = {_id: o[0] if isinstance(o, list) else o for _id, o in found.items()}
        records = {row["_id"]: row["r"] for row in database.other.aggregate([{"$project": told}])}
        keys = ({"w": {"k": 0}}, {"w": {"k": 1}}) if has_index else ({}, {})
        assert found == {0: {"_id": 2, "r": records[2]} | keys[0], 1: {"_id": 3, "r": records[3]} | keys[1]}


@pytest.mark.parametrize("stages, code", [
    # Names, and the content of $facet and $unionWith, stage by stage.
    ([{"$limit": 0}, {"$nonsense": 1}], 40324),
    ([{"$limit": 0}, {"$facet": {}}], 40169),
    ([{"$limit": 0}, {"$facet": {"f": [{"$nonsense": 1}]}}], 40324),
    ([{"$limit": 0}, {"$unionWith": {"pipeline": []}}], 40414),
    ([{"$facet": {}}, {"$nonsense": 1}], 40169),
    ([{"$unionWith": {"pipeline": []}}, {"$facet": {}}], 40414),
    ([{"$facet": {}}, {"$unionWith": {"pipeline": []}}], 40169),
    ([{"$nonsense": 1}, {"$facet": {}}], 40324),
    # Then the checks of each stage.
    ([{"$limit": 0}, {"$facet": {"f": [{"$facet": {"g": []}}]}}], 15958),
    ([{"$facet": {"f": [{"$facet": {"g": []}}]}}, {"$limit": 0}], 40600),
    # Then the values of constants.
    ([{"$set": {"x": {"$add": ["a", 1]}}}, {"$limit": 0}], 15958),
    ([{"$set": {"x": {"$add": ["a", 1]}}}, {"$out": "o"}, {"$limit": 1}], 40601),
    ([{"$set": {"x": {"$add": ["a", 1]}}}, {"$set": {"x": {"$divide": [1, 0]}}}], 16554),
    ([{"$facet": {"f": [{"$set": {"x": {"$add": ["a", 1]}}}]}}, {"$limit": 0}], 15958),
])
def test_of_several_errors_one_is_told(collection, stages, code):
    with pytest.raises(OperationFailure) as raised:
        list(collection.aggregate(stages))
    assert raised.value.code == code
