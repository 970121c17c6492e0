"""Pipelines: every stage, the ordinary expressions and accumulators, and their errors."""

import datetime

import pytest
from bson import Decimal128, Int64
from pymongo import IndexModel
from pymongo.errors import OperationFailure

SALES = [
    {"_id": 1, "item": "abc", "price": 10, "quantity": 2, "when": datetime.datetime(2014, 3, 1)},
    {"_id": 2, "item": "jkl", "price": 20, "quantity": 1, "when": datetime.datetime(2014, 3, 1)},
    {"_id": 3, "item": "xyz", "price": 5, "quantity": 10, "when": datetime.datetime(2014, 3, 15)},
    {"_id": 4, "item": "xyz", "price": 5, "quantity": 20, "when": datetime.datetime(2014, 4, 4)},
    {"_id": 5, "item": "abc", "price": 10, "quantity": 10, "when": datetime.datetime(2014, 4, 4)},
]


@pytest.fixture
def sales(collection):
    collection.insert_many(SALES)
    return collection


def run(collection, *stages):
    return list(collection.aggregate(list(stages)))


@pytest.mark.parametrize("stages, expected", [
    ([{"$match": {"item": "xyz"}}, {"$project": {"price": 1}}],
     [{"_id": 3, "price": 5}, {"_id": 4, "price": 5}]),
    ([{"$match": {"_id": 1}}, {"$project": {"_id": 0, "total": {"$multiply": ["$price", "$quantity"]}}}],
     [{"total": 20}]),
    ([{"$match": {"_id": 1}}, {"$project": {"when": 0, "item": 0, "price": 0}}],
     [{"_id": 1, "quantity": 2}]),
    ([{"$match": {"_id": 1}}, {"$addFields": {"a.b": 1, "price": {"$add": ["$price", 1]}}},
      {"$project": {"a": 1, "price": 1}}], [{"_id": 1, "a": {"b": 1}, "price": 11}]),
    ([{"$match": {"_id": 1}}, {"$set": {"x": "$item"}}, {"$unset": ["when", "item", "price"]}],
     [{"_id": 1, "quantity": 2, "x": "abc"}]),
    ([{"$sort": {"quantity": -1}}, {"$limit": 2}, {"$project": {"quantity": 1}}],
     [{"_id": 4, "quantity": 20}, {"_id": 3, "quantity": 10}]),
    ([{"$sort": {"_id": -1}}, {"$skip": 3}, {"$project": {"_id": 1}}], [{"_id": 2}, {"_id": 1}]),
    ([{"$match": {"price": {"$lt": 11}}}, {"$count": "n"}], [{"n": 4}]),
    ([{"$match": {"price": 1000}}, {"$count": "n"}], []),
    ([{"$group": {"_id": "$item", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
     [{"_id": "abc", "n": 2}, {"_id": "jkl", "n": 1}, {"_id": "xyz", "n": 2}]),
    ([{"$group": {"_id": None, "sum": {"$sum": "$quantity"}, "avg": {"$avg": "$quantity"},
                  "min": {"$min": "$price"}, "max": {"$max": "$price"}}}],
     [{"_id": None, "sum": 43, "avg": 8.6, "min": 5, "max": 20}]),
    ([{"$sort": {"_id": 1}}, {"$group": {"_id": "$item", "first": {"$first": "$_id"}, "last": {"$last": "$_id"},
                                         "all": {"$push": "$quantity"}}}, {"$sort": {"_id": 1}}],
     [{"_id": "abc", "first": 1, "last": 5, "all": [2, 10]},
      {"_id": "jkl", "first": 2, "last": 2, "all": [1]},
      {"_id": "xyz", "first": 3, "last": 4, "all": [10, 20]}]),
    ([{"$group": {"_id": {"p": "$price", "big": {"$gte": ["$quantity", 10]}}, "n": {"$sum": 1}}},
      {"$sort": {"_id.p": 1, "_id.big": 1}}],
     [{"_id": {"p": 5, "big": True}, "n": 2}, {"_id": {"p": 10, "big": False}, "n": 1},
      {"_id": {"p": 10, "big": True}, "n": 1}, {"_id": {"p": 20, "big": False}, "n": 1}]),
    ([{"$match": {"_id": 1}}, {"$replaceRoot": {"newRoot": {"a": "$item"}}}], [{"a": "abc"}]),
    ([{"$facet": {"count": [{"$count": "n"}],
                  "dear": [{"$match": {"price": 20}}, {"$project": {"_id": 1}}]}}],
     [{"count": [{"n": 5}], "dear": [{"_id": 2}]}]),
    ([{"$sortByCount": "$price"}, {"$match": {"count": {"$gt": 1}}}, {"$sort": {"_id": 1}}],
     [{"_id": 5, "count": 2}, {"_id": 10, "count": 2}]),
    ([{"$match": {"$expr": {"$gt": ["$quantity", "$price"]}}}, {"$project": {"_id": 1}}],
     [{"_id": 3}, {"_id": 4}]),
])
def test_stages(sales, stages, expected):
    assert run(sales, *stages) == expected


def test_buckets_of_an_empty_output_are_counted(sales):
    stage = {"groupBy": "$price", "buckets": 2}
    buckets = run(sales, {"$bucketAuto": stage | {"output": {}}})
    assert buckets == run(sales, {"$bucketAuto": stage}) and "count" in buckets[0]


def test_counts_are_right_before_and_after_changes(collection):
    """Counts by the fences of an index, by its entries, and by the documents."""
    collection.insert_many({"_id": i, "a": i % 50, "tags": [i % 3, "all"]} for i in range(3000))
    collection.create_indexes([IndexModel("a"), IndexModel("tags")])

    def check():
        documents = list(collection.find())
        for query, hint, holds in [
            ({}, None, lambda one: True),
            ({"a": {"$gte": 10, "$lt": 20}}, "a_1", lambda one: 10 <= one["a"] < 20),
            ({"a": {"$in": [3, 7, 99]}}, "a_1", lambda one: one["a"] in (3, 7)),
            ({"a": {"$gte": 0, "$mod": [7, 1]}}, "a_1", lambda one: one["a"] % 7 == 1),
            ({"tags": "all"}, "tags_1", lambda one: "all" in one["tags"]),
            ({"tags": {"$gte": 1}}, "tags_1", lambda one: any(tag in (1, 2) for tag in one["tags"])),
            ({"_id": {"$gt": 100}}, "_id_", lambda one: one["_id"] > 100),
        ]:
            expected = sum(map(holds, documents))
            options = {"hint": hint} if hint else {}
            assert collection.count_documents(query, **options) == expected, query
            assert collection.count_documents(query, skip=5, limit=400, **options) == min(expected - 5, 400)
            counted = run(collection, {"$match": query}, {"$group": {
                "_id": None, "twice": {"$sum": 2}, "long": {"$sum": Int64(1)}, "n": {"$count": {}}}})
            assert counted == [{"_id": None, "twice": 2 * expected, "long": expected, "n": expected}]
            assert isinstance(counted[0]["long"], Int64) and type(counted[0]["twice"]) is int

    check()
    collection.database.command("compact", collection.name)
    check()
    collection.update_many({"a": {"$lt": 15}}, {"$inc": {"a": 3}, "$push": {"tags": 2}})
    collection.delete_many({"_id": {"$lt": 500}})
    check()
    collection.database.command("compact", collection.name)
    check()
    collection.insert_many({"_id": i, "a": 11, "tags": []} for i in range(100))
    check()
    assert collection.count_documents({"a": 999}) == 0
    assert run(collection, {"$match": {"a": 999}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}) == []


def test_distinct_values_by_group(sales):
    (found,) = run(sales, {"$group": {"_id": None, "items": {"$addToSet": "$item"}}})
    assert sorted(found["items"]) == ["abc", "jkl", "xyz"]


@pytest.mark.parametrize("argument, expected", [
    ("$t", [(1, "a"), (1, "b"), (4, "c")]),
    ({"path": "$t", "preserveNullAndEmptyArrays": True},
     [(1, "a"), (1, "b"), (2, None), (3, None), (4, "c"), (5, None)]),
])
def test_unwind(collection, argument, expected):
    collection.insert_many([{"_id": 1, "t": ["a", "b"]}, {"_id": 2, "t": []}, {"_id": 3},
                            {"_id": 4, "t": "c"}, {"_id": 5, "t": None}])
    found = run(collection, {"$unwind": argument})
    assert [(one["_id"], one.get("t")) for one in found] == expected


def test_unwind_with_the_place(collection):
    collection.insert_one({"_id": 1, "t": ["a", "b"]})
    found = run(collection, {"$unwind": {"path": "$t", "includeArrayIndex": "place"}})
    assert [(one["t"], one["place"]) for one in found] == [("a", 0), ("b", 1)]
    assert isinstance(found[0]["place"], Int64)


@pytest.mark.parametrize("indexed", [False, True])
def test_lookup(database, indexed):
    database.orders.insert_many([{"_id": 1, "item": "almonds"}, {"_id": 2, "item": "pecans"},
                                 {"_id": 3}, {"_id": 4, "item": ["almonds", "pecans"]}])
    database.stock.insert_many([{"_id": 1, "sku": "almonds"}, {"_id": 2, "sku": "bread"},
                                {"_id": 3, "sku": "pecans"}, {"_id": 4}, {"_id": 5, "sku": None}])
    if indexed:
        database.stock.create_index("sku")
    found = run(database.orders, {"$lookup": {"from": "stock", "localField": "item",
                                              "foreignField": "sku", "as": "found"}})
    assert {one["_id"]: sorted(other["_id"] for other in one["found"]) for one in found} == \
        {1: [1], 2: [3], 3: [4, 5], 4: [1, 3]}
    none = run(database.orders, {"$lookup": {"from": "gone", "localField": "item",
                                             "foreignField": "sku", "as": "found"}})
    assert all(one["found"] == [] for one in none)


@pytest.mark.parametrize("indexed", [False, True])
def test_who_lacks_a_numbered_field_is_joined_with_null(database, indexed):
    database.f.insert_many([{"_id": 1, "a": [{"x": 1}]}, {"_id": 2, "a": {"0": {"x": 1}}}, {"_id": 3, "a": [{"x": None}]}])
    database.c.insert_one({"b": None})
    for path in ("a.0.x", "a.1", "a.0"):
        if indexed:
            database.f.create_index(path)
        expected = [one["_id"] for one in database.f.find({path: None}).sort("_id")]
        [joined] = run(database.c, {"$lookup": {"from": "f", "localField": "b", "foreignField": path, "as": "found"}})
        assert sorted(one["_id"] for one in joined["found"]) == expected, path


def test_densify_goes_on_with_the_type_that_it_met_last(collection):
    collection.insert_many([{"v": Decimal128("0")}, {"v": 3.0}, {"v": Decimal128("6")}])
    found = run(collection, {"$densify": {"field": "v", "range": {"step": 1.0, "bounds": "full"}}})
    assert [type(one["v"]) for one in found] == [Decimal128] * 3 + [float] * 3 + [Decimal128]


@pytest.mark.parametrize("granularity, above", [("R80", 1.02e-321), ("1-2-5", 1e-322), ("E192", 1e-321)])
def test_the_least_numbers_have_buckets(sales, granularity, above):
    """No number except zero is below the smallest buckets."""
    bucket = {"groupBy": {"$literal": 5e-324}, "buckets": 8, "granularity": granularity}
    [found] = run(sales, {"$limit": 1}, {"$bucketAuto": bucket})
    assert found["_id"]["min"] == 0 and 5e-324 < found["_id"]["max"] <= above


@pytest.mark.parametrize("stages", [
    [{"$unset": "a"}, {"$set": {"a": 2}}],
    [{"$set": {"a": "$missing"}}, {"$match": {"b": 1}}, {"$set": {"z": 1}}, {"$limit": 5}, {"$sort": {"b": 1}},
     {"$set": {"a": 2}}, {"$unset": "z"}],
])
def test_a_field_that_is_set_again_takes_its_place(collection, stages):
    """Regression: a field that one stage removes and a later one sets again went to the end."""
    collection.insert_one({"_id": 1, "a": 1, "b": 1})
    [found] = run(collection, *stages)
    assert list(found.items()) == [("_id", 1), ("a", 2), ("b", 1)]
    if not any("$match" in stage for stage in stages):
        collection.update_one({}, stages)
        assert list(collection.find_one().items()) == [("_id", 1), ("a", 2), ("b", 1)]
    # A new document has no removed fields.
    replace = {"$replaceWith": {"$mergeObjects": ["$$ROOT"]}}
    [found] = run(collection, {"$unset": "a"}, replace, {"$set": {"a": 2}})
    assert list(found) == ["_id", "b", "a"]


def test_boundaries_of_decimals_are_decimals(collection):
    """Regression: boundaries with a granularity were computed as doubles, so 0.63 and 1.6 were no
    decimals."""
    collection.insert_one({"v": Decimal128("1")})
    [found] = run(collection, {"$bucketAuto": {"groupBy": "$v", "buckets": 1, "granularity": "R5"}})
    assert found["_id"] == {"min": Decimal128("0.630000000000000"), "max": Decimal128("1.60000000000000")}


@pytest.mark.parametrize("expression, expected", [
    ({"$add": [1, 2.5]}, 3.5), ({"$subtract": [5, 3]}, 2),
    ({"$subtract": [Int64(2**63 - 1), Int64(-2)]}, 2.0**63), ({"$subtract": [Int64(-2**63), 1]}, -2.0**63),
    ({"$multiply": [3, 4]}, 12),
    ({"$divide": [7, 2]}, 3.5), ({"$mod": [7, 3]}, 1), ({"$abs": -3}, 3), ({"$floor": 2.7}, 2.0),
    ({"$ceil": 2.1}, 3.0), ({"$round": [2.567, 1]}, 2.6), ({"$trunc": 2.9}, 2.0),
    ({"$sqrt": 16}, 4.0), ({"$pow": [2, 10]}, 1024), ({"$max": [1, 5, 3]}, 5),
    ({"$concat": ["a", "b"]}, "ab"), ({"$concat": ["a", None]}, None), ({"$toUpper": "aß"}, "Aß"),
    ({"$toLower": "AB"}, "ab"), ({"$strLenCP": "käse"}, 4), ({"$strLenBytes": "käse"}, 5),
    ({"$substrCP": ["käse", 1, 2]}, "äs"), ({"$split": ["a-b", "-"]}, ["a", "b"]),
    ({"$trim": {"input": "  x "}}, "x"), ({"$indexOfCP": ["abc", "c"]}, 2),
    ({"$regexMatch": {"input": "abc", "regex": "^A", "options": "i"}}, True),
    ({"$eq": [1, 1.0]}, True), ({"$cmp": ["a", "b"]}, -1), ({"$gt": ["a", 1]}, True),
    ({"$and": [True, 0]}, False), ({"$or": [None, 1]}, True), ({"$not": [0]}, True),
    ({"$cond": [{"$gt": [2, 1]}, "y", "n"]}, "y"), ({"$ifNull": [None, 3]}, 3),
    ({"$switch": {"branches": [{"case": False, "then": 1}], "default": 2}}, 2),
    ({"$size": [[1, 2]]}, 2), ({"$arrayElemAt": [[1, 2], -1]}, 2), ({"$in": [1, [1, 2]]}, True),
    ({"$slice": [[1, 2, 3], 2]}, [1, 2]), ({"$concatArrays": [[1], [2]]}, [1, 2]),
    ({"$filter": {"input": [1, 2, 3], "as": "n", "cond": {"$gt": ["$$n", 1]}}}, [2, 3]),
    ({"$map": {"input": [1, 2], "as": "n", "in": {"$add": ["$$n", 1]}}}, [2, 3]),
    ({"$reduce": {"input": [1, 2, 3], "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, 6),
    ({"$range": [0, 6, 2]}, [0, 2, 4]), ({"$reverseArray": [[1, 2]]}, [2, 1]),
    ({"$setUnion": [[1, 2], [2, 3]]}, [1, 2, 3]), ({"$isArray": [[1]]}, True),
    ({"$mergeObjects": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 2}),
    ({"$objectToArray": {"a": 1}}, [{"k": "a", "v": 1}]),
    ({"$arrayToObject": [[["a", 1]]]}, {"a": 1}),
    ({"$let": {"vars": {"x": 2}, "in": {"$multiply": ["$$x", 3]}}}, 6),
    ({"$literal": "$price"}, "$price"), ({"$type": 1.5}, "double"), ({"$toString": 15}, "15"),
    ({"$toInt": "15"}, 15), ({"$toDouble": "1.5"}, 1.5), ({"$toBool": 0}, False),
    ({"$convert": {"input": "x", "to": "int", "onError": -1}}, -1),
    ({"$year": datetime.datetime(2026, 5, 6)}, 2026), ({"$month": datetime.datetime(2026, 5, 6)}, 5),
    ({"$dayOfMonth": datetime.datetime(2026, 5, 6)}, 6),
    ({"$dateToString": {"format": "%Y-%m-%d", "date": datetime.datetime(2026, 5, 6)}}, "2026-05-06"),
    ({"$add": [datetime.datetime(2026, 1, 1), 1000]}, datetime.datetime(2026, 1, 1, 0, 0, 1)),
    ({"$add": [Decimal128("0.1"), Decimal128("0.2")]}, Decimal128("0.3")),
    ("$missing", None), ("$$ROOT._id", 1),
])
def test_expressions(collection, expression, expected):
    collection.insert_one({"_id": 1, "price": 5})
    (found,) = run(collection, {"$project": {"_id": 0, "v": expression}})
    value = found.get("v")
    assert value == expected and (isinstance(value, bool) == isinstance(expected, bool))


@pytest.mark.parametrize("stages, code", [
    ([{"$unknown": {}}], 40324), ([{}], 40323), ([{"$limit": 0}], 15958), ([{"$limit": "x"}], None),
    ([{"$project": {}}], None), ([{"$group": {"n": {"$sum": 1}}}], 15955),
    ([{"$group": {"_id": 1, "n": 5}}], 40234), ([{"$unwind": "t"}], 28818),
    ([{"$project": {"v": {"$divide": [1, 0]}}}], None),
    ([{"$project": {"v": {"$unknown": 1}}}], None), ([{"$count": ""}], None),
    ([{"$match": 5}], 15959), ([{"$sort": {}}], 15976), ([{"$lookup": {"from": "x"}}], None),
    ([{"$project": {"v": {"$toInt": "x"}}}], 241), ([{"$skip": -1}], None),
    ([{"$facet": {"a": [{"$facet": {}}]}}], None), ([{"$replaceRoot": {"newRoot": 5}}], 40228),
])
def test_pipelines_that_cannot_be(sales, stages, code):
    with pytest.raises(OperationFailure) as error:
        run(sales, *stages)
    assert code is None or error.value.code == code


def test_a_match_that_comes_first_uses_its_index(sales):
    sales.create_index("price")
    plan = sales.database.command({"explain": {
        "aggregate": sales.name, "pipeline": [{"$match": {"price": 5}}], "cursor": {}}})
    assert "IXSCAN" in str(plan)


def test_larger_than_a_batch_and_than_memory_is_polite(collection):
    collection.insert_many({"_id": one, "g": one % 5_000, "pad": "x" * 200}
                           for one in range(50_000))
    found = run(collection, {"$group": {"_id": "$g", "n": {"$sum": 1}, "last": {"$max": "$_id"}}})
    assert len(found) == 5_000 and all(one["n"] == 10 for one in found)
    backwards = run(collection, {"$sort": {"g": 1, "_id": -1}}, {"$project": {"g": 1}})
    assert [(one["g"], one["_id"]) for one in backwards] == \
        sorted(((one % 5_000, one) for one in range(50_000)), key=lambda pair: (pair[0], -pair[1]))


@pytest.mark.parametrize("stages", [
    [{"$sample": {"size": 1}}, {"$project": {"value": "$_id"}}],
    [{"$limit": 1}, {"$project": {"value": {"$rand": {}}}}],
])
def test_what_is_left_to_chance_is_looked_up_anew_for_each_document(collection, stages):
    collection.insert_many([{} for _ in range(50)])
    lookup = {"from": collection.name, "pipeline": stages, "as": "found"}
    found = run(collection, {"$lookup": lookup}, {"$unwind": "$found"})
    assert len({one["found"]["value"] for one in found}) > 1


def test_no_field_is_added_of_an_empty_specification(sales):
    assert run(sales, {"$addFields": {}}) == run(sales, {"$set": {}}) == SALES


def test_an_object_may_have_no_name_with_a_null_byte(collection):
    collection.insert_one({"pair": [["a\0b", 1]], "entry": [{"k": "a\0b", "v": 1}]})
    for field, code in (("pair", 4940400), ("entry", 4940401)):
        with pytest.raises(OperationFailure) as refused:
            run(collection, {"$replaceWith": {"$arrayToObject": f"${field}"}})
        assert refused.value.code == code


def test_parts_of_a_reference_are_projected(collection):
    collection.insert_one({"_id": 1, "to": {"$ref": "c", "$id": 7, "$db": "d"}})
    assert collection.database.command("aggregate", collection.name, cursor={}, pipeline=[
        {"$project": {"to": {"$ref": 0}}}, {"$set": {"names": {"$objectToArray": "$to"}}},
        {"$project": {"names": "$names.k"}}])["cursor"]["firstBatch"] == [{"_id": 1, "names": ["$id", "$db"]}]


def test_a_view_that_samples_is_joined_anew_for_each_document(collection):
    database = collection.database
    database.large.insert_many({"_id": one} for one in range(1000))
    database.create_collection("sampled", viewOn="large", pipeline=[{"$sample": {"size": 1}}])
    collection.insert_many({"_id": one} for one in range(20))
    joined = collection.aggregate([{"$lookup": {"from": "sampled", "pipeline": [], "as": "x"}}])
    assert len({one["x"][0]["_id"] for one in joined}) > 1


def test_long_arrays_in_loops(collection):
    """Loops over elements by index, in the list of an `$in`, and appended one by one. Regression:
    each step cost as much as the whole array."""
    numbers = [n * 7919 % 3001 for n in range(3000)]
    rows = [{"id": n % 50, "cells": [n, -n] * 100} for n in range(60)]
    collection.insert_one({"_id": 1, "a": numbers, "rows": rows})

    def value(expression, **options):
        [row] = collection.aggregate([{"$project": {"v": expression}}], **options)
        return row["v"]

    places = {"$range": [0, {"$size": "$a"}]}
    at = {"$arrayElemAt": ["$a", {"$subtract": [{"$size": "$a"}, {"$add": ["$$this", 1]}]}]}
    assert value({"$map": {"input": places, "in": at}}) == numbers[::-1]
    assert value({"$map": {"input": [-1, 0, 2999, 3000, -3001, -3000], "in": {
        "$arrayElemAt": ["$a", "$$this"]}}}) == [numbers[-1], numbers[0], numbers[2999], None, None, numbers[0]]
    # An array of the loop itself changes in each round.
    inner = {"$map": {"input": {"$range": [195, 200]}, "as": "n", "in": {"$arrayElemAt": ["$$row.cells", "$$n"]}}}
    assert value({"$map": {"input": "$rows", "as": "row", "in": inner}}) == [
        row["cells"][195:200] for row in rows]
    grown = {"$reduce": {"input": {"$range": [0, 400]}, "initialValue": numbers[:300], "in": {
        "$concatArrays": [[{"$arrayElemAt": ["$$value", 0]}], {"$slice": ["$$value", 299]}]}}}
    assert value(grown) == [numbers[0]] * 300
    wanted = [*range(0, 3000, 2), "a", None]
    assert value({"$filter": {"input": "$a", "cond": {"$in": ["$$this", wanted]}}}) == [
        n for n in numbers if n in set(wanted)]
    assert value({"$in": [5.0, [*range(20)]]}) is True
    letters = [chr(97 + n) for n in range(20)]
    assert value({"$in": [{"$concat": ["B"]}, letters]}) is False
    assert value({"$in": [{"$concat": ["B", {"$substrCP": ["$_id", 0, 0]}]}, letters]},
                 collation={"locale": "en", "strength": 2}) is True

    def appended(initial, *parts):
        return value({"$reduce": {"input": "$a", "initialValue": initial,
                                  "in": {"$concatArrays": ["$$value", *parts]}}})

    assert appended([], ["$$this"]) == numbers
    assert appended(["x"], ["$$this"], ["$_id"])[:5] == ["x", numbers[0], 1, numbers[1], 1]
    assert appended(None, ["$$this"]) is None
    assert appended([], "$missing") is None
    assert appended("$missing", ["$$this"]) is None
    for initial, part in ((1, ["$$this"]), ([], "$$this")):
        with pytest.raises(OperationFailure) as error:
            appended(initial, part)
        assert error.value.code == 28664


def test_many_fields_of_a_projection(collection):
    document = {"_id": 1, **{f"f{n}": n for n in range(300)}}
    collection.insert_one(document)
    chosen = {f"f{n}": 1 for n in range(0, 300, 3)}
    expected = {"_id": 1, **{f"f{n}": n for n in range(0, 300, 3)}}
    assert run(collection, {"$project": chosen}) == [expected]
    assert list(collection.find({}, chosen)) == [expected]
    hidden = {f"f{n}": 0 for n in range(300) if n % 3}
    assert run(collection, {"$project": {**hidden, "_id": 0}}) == [
        {name: value for name, value in expected.items() if name != "_id"}]
    assert list(collection.find({}, hidden)) == [expected]
    added = {f"f{n}": {"$add": [f"$f{n}", 1000]} for n in range(100, 400)}
    [row] = run(collection, {"$addFields": added})
    assert list(row) == [*document, *(f"f{n}" for n in range(300, 400))]
    assert (row["f99"], row["f100"], row["f299"], row["f399"]) == (99, 1100, 1299, None)


def test_a_small_sample_reads_no_more_than_it_gives(collection):
    collection.insert_many({"_id": n} for n in range(5000))
    collection.delete_many({"_id": {"$gte": 1000, "$lt": 3000}})
    collection.database.command("profile", 2)
    try:
        met = set()
        for _ in range(40):
            found = [row["_id"] for row in run(collection, {"$sample": {"size": 100}}, {"$match": {}})]
            assert len(found) == len(set(found)) == 100
            assert not any(1000 <= one < 3000 for one in found)
            met.update(found)
        assert len(met) > 2000
        entry = collection.database["system.profile"].find_one(
            {"command.aggregate": collection.name}, sort=[("$natural", -1)])
        assert entry["docsExamined"] == 100
    finally:
        collection.database.command("profile", 0)
        collection.database["system.profile"].drop()
    assert len(run(collection, {"$sample": {"size": 400}})) == 400
    assert len(run(collection, {"$match": {"_id": {"$lt": 10}}}, {"$sample": {"size": 5}})) == 5


@pytest.mark.parametrize("stage", [{"$sample": {"size": 20}}, {"$sample": {"size": 900}}])
def test_a_sample_refuses_a_hint_that_fits_nothing(collection, stage):
    collection.insert_many({"_id": n, "a": n} for n in range(1000))
    collection.create_index("a")
    assert len(list(collection.aggregate([stage], hint="a_1"))) == stage["$sample"]["size"]
    collection.database.create_collection("view", viewOn=collection.name, pipeline=[])
    for asked in (collection, collection.database.view):
        for hint in ("b_1", {"b": 1}):
            with pytest.raises(OperationFailure) as refused:
                list(asked.aggregate([stage], hint=hint))
            assert refused.value.code == 2


def test_many_short_fields_of_groups_are_merged(collection):
    """All fields fit into one document."""
    collection.insert_many(
        {"_id": n, "o": {f"f{n * 10_000 + field}": 1 for field in range(10_000)}} for n in range(90))
    [group] = collection.aggregate([
        {"$group": {"_id": None, "o": {"$mergeObjects": "$o"}}}, {"$project": {"n": {"$bsonSize": "$o"}}}])
    assert group["n"] == 5 + sum(7 + len(f"f{n}") - 1 for n in range(900_000))
