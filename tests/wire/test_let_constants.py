"""If a stage requires a constant, a variable of the command's `let` is one."""

import pytest
from pymongo.errors import OperationFailure

LET = {"ps": [0.5, 0.9], "p": 0.9, "n": 1, "d": "none", "low": 0, "high": 50}
# As a list, and composed of constants and variables.
POINTS = ["$$ps", [0.5, "$$p"], {"$concatArrays": [[0.5], ["$$p"]]}]


def run(collection, *stages, let=LET):
    return list(collection.aggregate(list(stages), let=let))


def percentile(points):
    return {"$percentile": {"input": "$v", "p": points, "method": "approximate"}}


@pytest.fixture
def numbers(collection):
    collection.insert_many([{"_id": n, "v": n} for n in range(1, 11)])
    return collection


@pytest.mark.parametrize("points", POINTS, ids=str)
def test_points_of_percentiles(numbers, points):
    [group] = run(numbers, {"$group": {"_id": None, "r": percentile(points)}})
    assert group["r"] == [5, 9]
    windows = run(numbers, {"$setWindowFields": {"output": {"r": percentile(points)}}})
    assert [row["r"] for row in windows] == [[5, 9]] * 10
    [bucket] = run(numbers, {"$bucketAuto": {"groupBy": "$v", "buckets": 1, "output": {"r": percentile(points)}}})
    assert bucket["r"] == [5, 9]
    expression = {"$percentile": {"input": list(range(1, 11)), "p": points, "method": "approximate"}}
    assert run(numbers, {"$limit": 1}, {"$project": {"_id": 0, "r": expression}}) == [{"r": [5, 9]}]


def test_the_default_of_a_shift(numbers):
    shift = {"$shift": {"output": "$v", "by": 9, "default": {"$concat": ["$$d", "!"]}}}
    rows = run(numbers, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": shift}}})
    assert [row["r"] for row in rows] == [10] + ["none!"] * 9


def test_bounds_of_windows(numbers):
    """A string is a keyword there, not a variable."""
    def stage(*bounds):
        output = {"r": {"$sum": 1, "window": {"documents": list(bounds)}}}
        return {"$setWindowFields": {"sortBy": {"_id": 1}, "output": output}}
    rows = run(numbers, stage({"$subtract": [0, "$$n"]}, "current"))
    assert [row["r"] for row in rows] == [1] + [2] * 9
    with pytest.raises(OperationFailure) as failure:
        run(numbers, stage("current", "$$n"))
    assert failure.value.code == 9


def test_boundaries_and_default_of_buckets(numbers):
    bucket = {"groupBy": "$v", "boundaries": ["$$low", {"$add": ["$$low", 5]}], "default": "$$high"}
    assert run(numbers, {"$bucket": bucket}) == [{"_id": 0, "count": 4}, {"_id": 50, "count": 6}]
    with pytest.raises(OperationFailure) as failure:
        run(numbers, {"$bucket": bucket}, let={"low": 7, "high": 8})
    assert failure.value.code == 40199


def test_of_finds_and_updates(numbers):
    """They are constants, as those of an update's statement are."""
    median = {"$percentile": {"input": [1, 2, 3], "p": "$$ps", "method": "approximate"}}
    found = numbers.find({"$expr": {"$eq": [median, [2, 3]]}}, {"r": median}, let=LET, limit=1)
    assert list(found) == [{"_id": 1, "r": [2, 3]}]
    numbers.update_one({"_id": 1}, [{"$set": {"v": median}}], let=LET)
    statement = {"q": {"_id": 2}, "u": [{"$set": {"v": median}}], "c": {"ps": [0.5, 0.1]}}
    numbers.database.command({"update": numbers.name, "updates": [statement]})
    assert [row["v"] for row in numbers.find().sort("_id").limit(2)] == [[2, 3], [2, 1]]


@pytest.mark.parametrize("stage, code", [
    ({"$group": {"_id": None, "r": percentile("$$ps")}}, 7750300),
    ({"$bucket": {"groupBy": "$v", "boundaries": ["$$low", 5]}}, 40191),
])
def test_variables_of_a_join_are_none(numbers, stage, code):
    """The variables of a join have another value for each document."""
    lookup = {"from": numbers.name, "let": {"ps": "$a", "low": "$b"}, "pipeline": [stage], "as": "r"}
    with pytest.raises(OperationFailure) as failure:
        run(numbers, {"$lookup": lookup})
    assert failure.value.code == code
