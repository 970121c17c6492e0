"""Stages that read the rows around a row: $setWindowFields, $densify, $fill; and $documents."""

import datetime

import pytest
from bson import Decimal128, Int64
from pymongo.errors import OperationFailure

CAKES = [
    {"_id": 0, "type": "chocolate", "date": datetime.datetime(2020, 5, 18), "state": "CA", "price": 13, "quantity": 120},
    {"_id": 1, "type": "chocolate", "date": datetime.datetime(2021, 3, 20), "state": "WA", "price": 14, "quantity": 140},
    {"_id": 2, "type": "vanilla", "date": datetime.datetime(2021, 1, 11), "state": "CA", "price": 12, "quantity": 145},
    {"_id": 3, "type": "vanilla", "date": datetime.datetime(2020, 2, 8), "state": "WA", "price": 13, "quantity": 104},
    {"_id": 4, "type": "strawberry", "date": datetime.datetime(2019, 5, 18), "state": "CA", "price": 41, "quantity": 162},
    {"_id": 5, "type": "strawberry", "date": datetime.datetime(2019, 1, 8), "state": "WA", "price": 43, "quantity": 134},
]


@pytest.fixture
def cakes(collection):
    collection.insert_many(CAKES)
    return collection


def window(collection, output, partition="$state", sort=None):
    stage = {"sortBy": sort or {"date": 1}, "output": {"r": output}}
    if partition:
        stage["partitionBy"] = partition
    rows = collection.aggregate([{"$setWindowFields": stage}])
    return [(row["_id"], row["r"]) for row in rows]


@pytest.mark.parametrize("output, expected", [
    ({"$sum": "$quantity", "window": {"documents": ["unbounded", "current"]}},
     [(4, 162), (0, 282), (2, 427), (5, 134), (3, 238), (1, 378)]),
    ({"$sum": "$quantity"}, [(4, 427), (0, 427), (2, 427), (5, 378), (3, 378), (1, 378)]),
    ({"$avg": "$quantity", "window": {"documents": [-1, 0]}},
     [(4, 162), (0, 141), (2, 132.5), (5, 134), (3, 119), (1, 122)]),
    ({"$max": "$quantity", "window": {"documents": ["current", "unbounded"]}},
     [(4, 162), (0, 145), (2, 145), (5, 140), (3, 140), (1, 140)]),
    ({"$push": "$_id", "window": {"documents": [1, 2]}},
     [(4, [0, 2]), (0, [2]), (2, []), (5, [3, 1]), (3, [1]), (1, [])]),
    ({"$first": "$_id", "window": {"documents": [1, 1]}},
     [(4, 0), (0, 2), (2, None), (5, 3), (3, 1), (1, None)]),
    ({"$push": "$_id", "window": {"range": ["unbounded", -10], "unit": "month"}},
     [(4, []), (0, [4]), (2, [4]), (5, []), (3, [5]), (1, [5, 3])]),
    ({"$count": {}, "window": {"documents": ["unbounded", "current"]}},
     [(4, 1), (0, 2), (2, 3), (5, 1), (3, 2), (1, 3)]),
    ({"$topN": {"n": 1, "sortBy": {"price": -1}, "output": "$price"}},
     [(4, [41]), (0, [41]), (2, [41]), (5, [43]), (3, [43]), (1, [43])]),
    ({"$documentNumber": {}}, [(4, 1), (0, 2), (2, 3), (5, 1), (3, 2), (1, 3)]),
    ({"$shift": {"output": "$quantity", "by": 1, "default": "none"}},
     [(4, 120), (0, 145), (2, "none"), (5, 104), (3, 140), (1, "none")]),
    ({"$shift": {"output": "$quantity", "by": -1}},
     [(4, None), (0, 162), (2, 120), (5, None), (3, 134), (1, 104)]),
    ({"$expMovingAvg": {"input": "$price", "N": 3}},
     [(4, 41), (0, 27.0), (2, 19.5), (5, 43), (3, 28.0), (1, 21.0)]),
    ({"$median": {"input": "$quantity", "method": "approximate"},
      "window": {"documents": ["unbounded", "unbounded"]}},
     [(4, 145), (0, 145), (2, 145), (5, 134), (3, 134), (1, 134)]),
])
def test_functions_over_windows(cakes, output, expected):
    assert window(cakes, output) == expected


@pytest.mark.parametrize("output, expected", [
    ({"$expMovingAvg": {"input": "$v", "N": 3}}, [None, 1.0, 1.0, 2.0, Decimal128("3.50")]),
    ({"$expMovingAvg": {"input": "$v", "alpha": 0.5}},
     [None, 1.0, 1.0, 2.0, Decimal128("3.500000000000000000000000000000")]),
    ({"$sum": 1, "window": {"documents": [{"$subtract": [0, 1]}, {"$add": [0, 0]}]}}, [1, 2, 2, 2, 2]),
    ({"$sum": 1, "window": {"range": [{"$subtract": [0, 1]}, "current"]}}, [1, 2, 2, 2, 2]),
    ({"$covariancePop": "$v"}, [None] * 5),
    ({"$stdDevPop": ["$v", 1]}, [None] * 5),
    ({"$stdDevPop": "$_id", "window": {"documents": [0, 0]}}, [0] * 5),
    ({"$stdDevPop": {"$multiply": ["$_id", 0]}, "window": {"documents": ["unbounded", 0]}}, [0.0] * 5),
    ({"$stdDevSamp": {"$divide": [{"$toDouble": "inf"}, {"$max": ["$_id", 1]}]},
      "window": {"documents": [-1, 0]}}, [None] * 5),
    ({"$setUnion": ["$_id", 7], "window": {"documents": [-1, 0]}},
     [[0, 7], [0, 7, 1], [1, 7, 2], [2, 7, 3], [3, 7, 4]]),
    ({"$concatArrays": ["$_id"], "window": {"documents": [0, 1]}}, [[0, 1], [1, 2], [2, 3], [3, 4], [4]]),
])
def test_what_is_no_number_leaves_the_average_and_bounds_are_computed(collection, output, expected):
    values = [None, 1, "x", 3, Decimal128("5")]
    collection.insert_many([{"_id": number, "v": v} for number, v in enumerate(values)])
    found = window(collection, output, partition=None, sort={"_id": 1})
    found = [value for _, value in found]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in expected]


@pytest.mark.parametrize("function, expected", [
    ("$rank", [1, 2, 2, 4]),
    ("$denseRank", [1, 2, 2, 3]),
    ("$documentNumber", [1, 2, 3, 4]),
])
def test_ranks(collection, function, expected):
    collection.insert_many([{"_id": number, "n": n} for number, n in enumerate([1, 3, 3, 5])])
    found = window(collection, {function: {}}, partition=None, sort={"n": 1})
    assert [rank for _, rank in found] == expected


@pytest.mark.parametrize("output, expected", [
    ({"$derivative": {"input": "$y"}, "window": {"documents": [-1, 0]}}, [None, 2.0, 4.0, 0.0]),
    ({"$integral": {"input": "$y"}, "window": {"documents": ["unbounded", "current"]}},
     [0, 2.0, 10.0, 16.0]),
    ({"$covariancePop": ["$x", "$y"], "window": {"documents": ["unbounded", "current"]}},
     [0.0, 0.5, pytest.approx(23 / 9), pytest.approx(3.25)]),
    ({"$covarianceSamp": ["$x", "$y"], "window": {"documents": ["unbounded", "current"]}},
     [None, 1.0, pytest.approx(23 / 6), pytest.approx(13 / 3)]),
    ({"$sum": "$y", "window": {"range": [-1, 1]}}, [4, 4, 12, 12]),
    ({"$sum": "$y", "window": {"range": ["current", "unbounded"]}}, [16, 15, 12, 6]),
    ({"$derivative": {"input": {"$add": [datetime.datetime(2020, 1, 1), {"$multiply": ["$y", 1000]}]}},
      "window": {"documents": [-1, 0]}}, [None, 2000.0, 4000.0, 0.0]),
])
def test_functions_of_numbers(collection, output, expected):
    points = [(0, 1), (1, 3), (3, 6), (4, 6)]
    if "$derivative" in output:
        points = [(0, 1), (1, 3), (2, 7), (4, 7)]
    if "$integral" in output:
        points = [(0, 1), (1, 3), (3, 5), (4, 7)]
    collection.insert_many([{"_id": number, "x": x, "y": y} for number, (x, y) in enumerate(points)])
    found = window(collection, output, partition=None, sort={"x": 1})
    assert [value for _, value in found] == expected


def test_several_fields_and_dotted_ones(cakes):
    rows = list(cakes.aggregate([{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
        "a.n": {"$documentNumber": {}},
        "a.total": {"$sum": "$quantity", "window": {"documents": ["unbounded", "current"]}},
    }}}, {"$project": {"a": 1}}]))
    assert rows[1] == {"_id": 1, "a": {"n": 2, "total": 260}}


def test_values_within_arrays_are_put_into_each_element(collection):
    """Regression: an array on the way to the field was replaced by a document."""
    rows = [{"_id": 1, "v": 2, "d": [{"x": 1, "v": 5}, {"y": 2}], "s": [1, [2]], "o": {"a": 1, "b": 2}, "p": 7},
            {"_id": 2, "d": [], "o": None}]
    collection.insert_many(rows)
    fields = ["d.v", "s.b", "o.a", "p.q.r", "new.n"]
    constant = [{"$addFields": {name: 3 for name in fields}}]
    expected = list(collection.aggregate(constant))
    assert expected[0]["d"] == [{"x": 1, "v": 3}, {"y": 2, "v": 3}]
    for output in [{"$max": 3}, {"$sum": {"$literal": 3}, "window": {"documents": [0, 0]}}]:
        stage = {"sortBy": {"_id": 1}, "output": {name: output for name in fields}}
        assert list(collection.aggregate([{"$setWindowFields": stage}])) == expected
    [row] = collection.aggregate([
        {"$match": {"_id": 1}}, {"$setWindowFields": {"output": {"s.b": {"$sum": 1}}}}, {"$project": {"s.b": 1}}])
    assert row == {"_id": 1, "s": [{"b": 1}, [{"b": 1}]]}


def test_filled_values_are_put_into_each_element(collection):
    collection.insert_many([{"_id": 1, "a": {"c": 1}}, {"_id": 2, "a": [{"x": 1}, {"y": 2}]}, {"_id": 3, "a": 5}])
    fill = {"sortBy": {"_id": 1}, "output": {"a.c": {"method": "locf"}}}
    found = [row["a"] for row in collection.aggregate([{"$fill": fill}])]
    assert found == [{"c": 1}, [{"x": 1, "c": []}, {"y": 2, "c": []}], {"c": []}]


TIES = [0, 100, 100, 101]


@pytest.mark.parametrize("window, expected", [
    (["current", "current"], [[0], [1], [2], [3]]),
    (["current", 1], [[0], [1, 2, 3], [2, 3], [3]]),
    (["current", 0], [[0], [1, 2], [2], [3]]),
    ([-1, "current"], [[0], [1], [1, 2], [1, 2, 3]]),
    ([0, "current"], [[0], [1], [1, 2], [3]]),
    (["unbounded", "current"], [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]),
    (["current", "unbounded"], [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]),
    ([0, 0], [[0], [1, 2], [1, 2], [3]]),
])
def test_current_is_the_document_itself_in_a_range_too(collection, window, expected):
    """Regression: `current` was taken for 0, so all documents with the same sort value were
    included."""
    day = datetime.timedelta(days=1)
    start = datetime.datetime(2020, 1, 1)
    collection.insert_many([{"_id": n, "x": x, "at": start + day * x} for n, x in enumerate(TIES)])
    for sort, range in [("x", {"range": window}), ("at", {"range": window, "unit": "day"})]:
        outputs = {"ids": {"$push": "$_id"}, "n": {"$count": {}}, "sum": {"$sum": "$_id"}, "last": {"$last": "$_id"},
                   "set": {"$addToSet": "$_id"}, "least": {"$min": "$_id"}, "mean": {"$avg": "$_id"},
                   "middle": {"$median": {"input": "$_id", "method": "approximate"}}}
        stage = {"sortBy": {sort: 1}, "output": {name: {**one, "window": range} for name, one in outputs.items()}}
        rows = list(collection.aggregate([{"$setWindowFields": stage}]))
        assert [row["ids"] for row in rows] == expected
        for row in rows:
            ids = row["ids"]
            assert (row["n"], row["sum"], row["last"], row["least"]) == (len(ids), sum(ids), ids[-1], ids[0])
            assert sorted(row["set"]) == ids and row["mean"] == sum(ids) / len(ids)
            assert row["middle"] == ids[(len(ids) - 1) // 2]


def test_a_shift_to_a_document_without_the_field_gives_the_default(collection):
    collection.insert_many([{"_id": 1, "b": 7}, {"_id": 2}, {"_id": 3, "b": None}])
    shift = {"output": "$b", "by": 1}
    found = window(collection, {"$shift": {**shift, "default": "c"}}, partition=None, sort={"_id": 1})
    assert found == [(1, "c"), (2, None), (3, "c")]
    assert window(collection, {"$shift": shift}, partition=None, sort={"_id": 1}) == [(1, None), (2, None), (3, None)]


def test_no_order_may_be_said_as_null(cakes):
    count = {"output": {"n": {"$sum": 1}}}
    rows = list(cakes.aggregate([{"$setWindowFields": {"sortBy": None} | count}]))
    assert rows and rows == list(cakes.aggregate([{"$setWindowFields": count}]))


@pytest.mark.parametrize("stage, code", [
    (1, 9),
    ({}, 40414),
    ({"output": {}, "x": 1}, 40415),
    ({"output": 1}, 14),
    ({"output": {"a": {"$nothing": 1}}}, 9),
    ({"output": {"a": {"$sum": 1, "x": 1}}}, 9),
    ({"output": {"a": {"$sum": 1, "window": {"documents": [0, 1]}}}}, 5339901),
    ({"sortBy": {"a": 1}, "output": {"a": {"$sum": 1, "window": {"documents": [1, 0]}}}}, 5339900),
    ({"sortBy": {"a": -1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, 8947401),
    ({"sortBy": {"a": 1, "b": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, 5339902),
    ({"sortBy": {"a": 1}, "output": {"a": {"$sum": 1, "window": {"documents": ["$b", 1]}}}}, 9),
    ({"sortBy": {"a": 1}, "output": {"a": {"$sum": 1, "window": {"documents": [0, 1.5]}}}}, 9),
    ({"sortBy": {"a": 1}, "output": {"a": {"$sum": 1, "window": {"documents": [0, 2 ** 40]}}}}, 9),
    ({"output": {"a": {"$rank": {}}}}, 5371602),
    ({"sortBy": {"a": 1}, "output": {"a": {"$rank": {"x": 1}}}}, 5371603),
    ({"sortBy": {"a": 1}, "output": {"a": {"$rank": {}, "x": 1}}}, 5371601),
    ({"sortBy": {"a": 1, "b": 1}, "output": {"a": {"$documentNumber": {}}}}, 5371602),
    ({"sortBy": {"a": 1}, "output": {"a": {"$rank": {}, "window": {"documents": [0, 1]}}}}, 5371601),
    ({"sortBy": {"a": 1}, "output": {"a": {"$derivative": {"input": "$b"}}}}, 9),
    ({"sortBy": {"a": 1}, "output": {"a": {"$derivative": {"input": "$b", "unit": "month"},
                                           "window": {"documents": [0, 1]}}}}, 5490710),
    ({"sortBy": {"a": 1, "b": 1}, "output": {"a": {"$integral": {"input": "$b"}}}}, 9),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$integral": {"input": "$tags"}}}}, 5423900),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$integral": {"input": 1, "unit": "day"}}}}, 5423901),
    ({"sortBy": {"at": 1}, "output": {"a": {"$integral": {"input": 1}}}}, 5423902),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$derivative": {"input": 1, "unit": "day"},
                                             "window": {"documents": [0, 1]}}}}, 5624900),
    ({"sortBy": {"at": 1}, "output": {"a": {"$derivative": {"input": 1},
                                            "window": {"documents": [0, 1]}}}}, 5624901),
    ({"sortBy": {"tags": 1}, "output": {"a": {"$derivative": {"input": 1},
                                              "window": {"documents": [0, 1]}}}}, 5624902),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$derivative": {"input": "$none"},
                                             "window": {"documents": [0, 1]}}}}, 5624903),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$derivative": {"input": "$tags"},
                                             "window": {"documents": [0, 1]}}}}, 16556),
    ({"sortBy": {"_id": 1}, "output": {"a": {"$linearFill": "$tags"}}}, 14),
    ({"sortBy": {"tags": 1}, "output": {"a": {"$linearFill": "$none"}}}, 14),
    ({"sortBy": {"a": 1}, "output": {"a": {"$expMovingAvg": {"input": "$b", "alpha": 1}}}}, 9),
    ({"partitionBy": "$tags", "output": {"a": {"$sum": 1}}}, 14),
    ({"sortBy": {"tags": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, 5429414),
    ({"output": {"a": {"$sum": 1}, "a.b": {"$sum": 1}}}, 6307900),
])
def test_what_is_wrong_is_refused(collection, stage, code):
    collection.insert_one({"_id": 1, "tags": ["a"], "at": datetime.datetime(2020, 1, 1)})
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([{"$setWindowFields": stage}]))
    assert failure.value.code == code, failure.value


NOON = datetime.datetime(2020, 1, 1, 12)


def densify(collection, stage):
    rows = collection.aggregate([{"$densify": stage}, {"$project": {"_id": 0}}])
    return list(rows)


COFFEES = [
    {"altitude": 600, "variety": "a"},
    {"altitude": 750, "variety": "a"},
    {"altitude": 950, "variety": "a"},
    {"altitude": 1250, "variety": "b"},
]


def test_densify_numbers(collection):
    collection.insert_many([dict(one) for one in COFFEES])
    full = densify(collection, {"field": "altitude", "partitionByFields": ["variety"],
                                "range": {"bounds": "full", "step": 200}})
    assert full == [
        {"altitude": 600, "variety": "a"},
        {"altitude": 750, "variety": "a"},
        {"variety": "a", "altitude": 800},
        {"altitude": 950, "variety": "a"},
        {"variety": "a", "altitude": 1000},
        {"variety": "a", "altitude": 1200},
        {"variety": "b", "altitude": 600},
        {"variety": "b", "altitude": 800},
        {"variety": "b", "altitude": 1000},
        {"variety": "b", "altitude": 1200},
        {"altitude": 1250, "variety": "b"},
    ]
    partition = densify(collection, {"field": "altitude", "partitionByFields": ["variety"],
                                     "range": {"bounds": "partition", "step": 200}})
    assert [row["altitude"] for row in partition] == [600, 750, 800, 950, 1250]
    explicit = densify(collection, {"field": "altitude", "range": {"bounds": [700, 1400], "step": 300}})
    assert [row["altitude"] for row in explicit] == [600, 700, 750, 950, 1000, 1250, 1300]


def test_densify_dates(collection):
    hour = datetime.datetime(2021, 5, 18)
    collection.insert_many([{"at": hour, "t": 12}, {"at": hour.replace(hour=4), "t": 11}])
    found = densify(collection, {"field": "at", "range": {
        "step": 2, "unit": "hour", "bounds": [hour, hour.replace(hour=8)]}})
    assert [row["at"].hour for row in found] == [0, 2, 4, 6]
    assert [row.get("t") for row in found] == [12, None, 11, None]


@pytest.mark.parametrize("stage, code", [
    (1, 9),
    ({"range": {"step": 1, "bounds": "full"}}, 40414),
    ({"field": "n"}, 40414),
    ({"field": "n", "range": {"step": 0, "bounds": "full"}}, 5733401),
    ({"field": "n", "range": {"step": 1, "bounds": "half"}}, 5946802),
    ({"field": "n", "range": {"step": 1, "bounds": [1]}}, 5733403),
    ({"field": "n", "range": {"step": 1, "bounds": [2, 1]}}, 5733402),
    ({"field": "n", "range": {"step": 1, "bounds": "partition"}}, 5733408),
    ({"field": "n", "range": {"step": 1, "bounds": 5}}, 5733404),
    ({"field": "n", "range": {"step": 1, "bounds": [1, NOON]}}, 5733406),
    ({"field": "n", "range": {"step": 1, "bounds": [NOON, 1], "unit": "day"}}, 5733402),
    ({"field": "n", "range": {"step": 1, "bounds": [1, 2], "unit": "day"}}, 5733409),
    ({"field": "n", "range": {"step": 1, "bounds": [NOON, NOON]}}, 5733410),
    ({"field": "n", "range": {"step": 1, "bounds": ["a", "b"]}}, 5946800),
    ({"field": "n", "range": {"step": 1.5, "bounds": [1, 2]}}, 5876900),
    ({"field": "n", "partitionByFields": ["n.a"], "range": {"step": 1, "bounds": "full"}}, 8993000),
    ({"field": "n.a", "partitionByFields": ["n"], "range": {"step": 1, "bounds": "full"}}, 9554500),
    ({"field": "n", "range": {"step": 1, "bounds": "full", "unit": "day"}}, 6053600),
    ({"field": "at", "range": {"step": 1, "bounds": "full"}}, 6053600),
    ({"field": "n", "range": {"step": 1.5, "unit": "day", "bounds": "full"}}, 6586400),
    ({"field": "s", "range": {"step": 1, "bounds": "full"}}, 5733201),
    ({"field": "n", "range": {"step": 1, "bounds": [0, 1000000]}}, 5897900),
])
def test_densify_refuses(collection, stage, code):
    collection.insert_one({"n": 1, "s": "x", "at": NOON})
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([{"$densify": stage}]))
    assert failure.value.code == code, failure.value


@pytest.mark.parametrize("stage, expected", [
    ({"output": {"n": {"value": 0}}}, [0, 2, 0, 0, 8, 0]),
    ({"sortBy": {"_id": 1}, "output": {"n": {"method": "locf"}}}, [None, 2, 2, 2, 8, 8]),
    ({"sortBy": {"_id": 1}, "output": {"n": {"method": "linear"}}}, [None, 2, 4.0, 6.0, 8, None]),
    ({"sortBy": {"_id": 1}, "partitionByFields": ["p"], "output": {"n": {"method": "locf"}}},
     [None, 2, 2, None, 8, 8]),
])
def test_fill(collection, stage, expected):
    values = [None, 2, None, None, 8, None]
    collection.insert_many([{"_id": number, "n": n, "p": number // 3} for number, n in enumerate(values)])
    rows = collection.aggregate([{"$fill": stage}, {"$sort": {"_id": 1}}])
    assert [row["n"] for row in rows] == expected


@pytest.mark.parametrize("stage, code", [
    (1, 9),
    ({}, 40414),
    ({"output": {}}, 6050203),
    ({"output": {"n": 1}}, 6050200),
    ({"output": {"n": {"value": 1, "method": "locf"}}}, 6050201),
    ({"output": {"n": {"method": "locf", "x": 1}}}, 40415),
    ({"output": {"n": {"method": "locf"}, "n.a": {"method": "locf"}}}, 6307900),
    ({"output": {"n": {"method": "x"}}}, 6050202),
    ({"output": {"n": {"method": "linear"}}}, 605001),
    ({"partitionBy": "$p", "partitionByFields": ["p"], "output": {"n": {"value": 1}}}, 6050204),
])
def test_fill_refuses(collection, stage, code):
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([{"$fill": stage}]))
    assert failure.value.code == code, failure.value


def test_documents_come_along(database):
    database.foreign.insert_one({"_id": 2, "name": "two"})
    stages = [{"$documents": [{"n": 1}, {"n": {"$add": [1, 1]}}]},
              {"$lookup": {"from": "foreign", "localField": "n", "foreignField": "_id", "as": "f"}}]
    assert list(database.aggregate(stages)) == [
        {"n": 1, "f": []}, {"n": 2, "f": [{"_id": 2, "name": "two"}]}]
    lookup = {"localField": "_id", "foreignField": "n", "as": "f",
              "pipeline": [{"$documents": [{"n": 1}, {"n": 2}]}]}
    assert list(database.foreign.aggregate([{"$lookup": lookup}])) == [
        {"_id": 2, "name": "two", "f": [{"n": 2}]}]
    for pipeline, code in [([{"$documents": 1}], 5858203), ([{"$documents": [1]}], 40228),
                           ([{"$limit": 1}, {"$documents": []}], 73)]:
        with pytest.raises(OperationFailure) as failure:
            list(database.aggregate(pipeline))
        assert failure.value.code == code, failure.value


def test_documents_within_other_stages(collection):
    collection.insert_one({"_id": 1})
    union = collection.aggregate([{"$unionWith": {"pipeline": [{"$documents": [{"x": 1}]}]}}])
    assert list(union) == [{"_id": 1}, {"x": 1}]
    looked_up = collection.aggregate([{"$lookup": {"pipeline": [{"$documents": [{"x": 1}]}], "as": "r"}}])
    assert list(looked_up) == [{"_id": 1, "r": [{"x": 1}]}]


def test_decimals_stay_decimals(collection):
    collection.insert_many([{"_id": n, "d": Decimal128(f"0.{n}")} for n in range(1, 4)])
    rows = window(collection, {"$sum": "$d", "window": {"documents": [-1, 0]}}, None, {"_id": 1})
    assert [value for _, value in rows] == [Decimal128("0.1"), Decimal128("0.3"), Decimal128("0.5")]


@pytest.mark.parametrize("window", [
    {"documents": [-70, 0]}, {"documents": [-3, 90]}, {"documents": [40, 100]},
    {"range": [-45, 45]}, {"range": ["unbounded", -50]}, {"range": [-45, "current"]}, {"range": ["current", 45]},
], ids=str)
def test_long_windows_have_what_short_ones_have(collection, window):
    """Long windows are not computed again for each document."""
    numbers = [(n * 7919 % 1009, n * n % 83) for n in range(400)]
    collection.insert_many(
        {"_id": n, "at": n * 2 // 3, "v": v, "w": w} for n, (v, w) in enumerate(numbers))
    outputs = {
        "sum": {"$sum": "$v"}, "average": {"$avg": "$v"}, "count": {"$count": {}},
        "least": {"$min": "$v"}, "greatest": {"$max": "$v"}, "deviation": {"$stdDevPop": "$v"},
        "first": {"$first": "$v"}, "last": {"$last": "$v"},
        "low": {"$minN": {"n": 3, "input": "$v"}}, "late": {"$lastN": {"n": 2, "input": "$v"}},
        "top": {"$topN": {"n": 2, "sortBy": {"w": 1, "v": 1}, "output": "$v"}},
        "bottom": {"$bottom": {"sortBy": {"w": 1, "v": 1}, "output": "$v"}},
        "all": {"$push": {"v": "$v", "w": "$w"}},
    }
    stage = {"sortBy": {"at": 1},
             "output": {name: {**output, "window": window} for name, output in outputs.items()}}
    lengths = set()
    for row in collection.aggregate([{"$setWindowFields": stage}]):
        all = [one["v"] for one in row["all"]]
        lengths.add(len(all))
        assert (row["sum"], row["count"]) == (sum(all), len(all))
        if not all:
            assert row["least"] is row["top"] is row["first"] is None or row["top"] == []
            continue
        mean = sum(all) / len(all)
        deviation = (sum((one - mean) ** 2 for one in all) / len(all)) ** 0.5
        assert row["average"] == pytest.approx(mean)
        assert row["deviation"] == pytest.approx(deviation)
        assert (row["least"], row["greatest"]) == (min(all), max(all))
        assert (row["first"], row["last"]) == (all[0], all[-1])
        assert row["low"] == sorted(all)[:3]
        assert row["late"] == all[-2:]
        ranked = [one["v"] for one in sorted(row["all"], key=lambda one: (one["w"], one["v"]))]
        assert row["top"] == ranked[:2]
        assert row["bottom"] == ranked[-1]
    assert max(lengths) > 60


MIXED = ["text", None, 7, Int64(2**40), 2.5, True, [3, "x"], {"a": 1}, Decimal128("1.25"), -4]


@pytest.mark.parametrize("window", [
    {"documents": [-60, 0]}, {"documents": [-40, 45]}, {"documents": [20, 90]}, {"documents": ["current", "unbounded"]},
], ids=str)
@pytest.mark.parametrize("count", [3, 50])
def test_long_windows_of_any_values_have_what_groups_have(collection, window, count):
    collection.insert_many(
        {"_id": n, "w": n * 31 % 11, **({"v": MIXED[n * 7 % 10]} if n % 6 else {})} for n in range(150))
    several, ranked = {"n": count, "input": "$v"}, {"sortBy": {"w": 1}, "output": "$v"}
    outputs = {
        "sum": {"$sum": "$v"}, "average": {"$avg": "$v"}, "least": {"$min": "$v"}, "greatest": {"$max": "$v"},
        "first": {"$first": "$v"}, "last": {"$last": "$v"},
        "early": {"$firstN": several}, "late": {"$lastN": several}, "low": {"$minN": several}, "high": {"$maxN": several},
        "top": {"$top": ranked}, "bottom": {"$bottom": ranked},
        "tops": {"$topN": {"n": count, **ranked}}, "bottoms": {"$bottomN": {"n": count, **ranked}},
    }
    stage = {"sortBy": {"_id": 1}, "output": {name: {**output, "window": window} for name, output in outputs.items()}}
    stage["output"]["ids"] = {"$push": "$_id", "window": window}
    rows = list(collection.aggregate([{"$setWindowFields": stage}]))
    for row in [row for row in rows if row["ids"]][::7]:
        [group] = collection.aggregate([
            {"$match": {"_id": {"$in": row["ids"]}}}, {"$sort": {"_id": 1}}, {"$group": {"_id": None, **outputs}}])
        assert {name: row[name] for name in outputs} == {name: group[name] for name in outputs}, row["_id"]


def test_deviations_and_averages_of_long_windows_are_not_rounded_on_the_way(collection):
    collection.insert_many([
        {"_id": n, "huge": 1e200 if n == 100 else "x", "long": Int64([2**62, 47, -2**62][n % 3]),
         **({"tenth": 0.1} if n % 7 else {})} for n in range(200)])
    stage = {"sortBy": {"_id": 1}, "output": {
        name: {function: f"${field}", "window": {"documents": [-41, 0]}} for name, function, field in [
            ("same", "$stdDevPop", "tenth"), ("alone", "$stdDevPop", "huge"), ("average", "$avg", "long")]}}
    rows = list(collection.aggregate([{"$setWindowFields": stage}]))[41:]
    assert {row["same"] for row in rows} == {0}
    assert [row["_id"] for row in rows if row["alone"] == 0] == list(range(100, 142))
    assert [row["alone"] for row in rows if row["alone"] != 0] == [None] * 117
    assert {row["average"] for row in rows} == {47 / 3}
