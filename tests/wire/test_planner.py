"""The choice of plans, measured by what they read."""

import pytest


@pytest.fixture
def collection(server):
    collection = server.client().choice.c
    collection.drop()
    collection.insert_many(
        {"_id": i, "g": i % 100, "h": i // 100 % 100, "k": (i * 7919) % 20_000}
        for i in range(20_000))
    for field in ("g", "h", "k"):
        collection.create_index(field)
    return collection


def stats(collection, filter, **options):
    command = {"explain": {"find": collection.name, "filter": filter, **options}}
    return collection.database.command(command)["executionStats"]


def test_a_limit_is_not_soon_reached_where_two_indexes_leave_little(collection):
    """Each index by itself predicts one document in a hundred, both together one in ten thousand.
    The index of the order would be read up to its middle."""
    found = stats(collection, {"g": {"$lt": 2}, "h": {"$lt": 2}}, sort={"k": 1}, limit=10)
    assert found["nReturned"] == 8
    assert found["totalDocsExamined"] <= 400


@pytest.mark.parametrize("count", [1000, 5000])
def test_a_long_list_of_values_is_read_value_by_value(collection, count):
    """Regression: lists of more than 4,096 values were checked key by key, each against all values.
    """
    values = list(range(0, 4 * count, 4))
    found = stats(collection, {"k": {"$in": values}}, projection={"_id": 0, "k": 1})
    assert found["nReturned"] == count
    assert found["totalKeysExamined"] <= count + 1
    other = list(range(count))
    both = {"k": {"$in": values}, "g": {"$in": other}}
    assert collection.count_documents(both, hint="k_1") == count


def test_a_long_list_is_counted_all_over(collection):
    """Regression: only the first values of the list were counted, which may all be missing in the
    collection."""
    values = [*range(-70, 0), *range(80)]
    found = stats(collection, {"g": {"$in": values}, "h": {"$lt": 3}})
    assert (found["nReturned"], found["totalDocsExamined"]) == (480, 600)
    found = stats(collection, {"k": {"$in": [*range(-100, 0), *range(0, 20_000, 2)]}}, sort={"h": 1}, limit=50)
    assert found["nReturned"] == 50
    assert found["totalDocsExamined"] < 200


def seeks(found):
    """A figure of the index scan below the last stage of a plan."""
    stage = found["executionStages"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    return stage["seeks"]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("key", ["s", "s_t"])
def test_values_that_an_index_does_not_have_are_passed_together(collection, key, order):
    """Regression: each value of a list was sought, even if many values lay between two keys of the
    index."""
    other = collection.database.other
    other.drop()
    other.insert_many({"_id": i, "s": i % 500 * 100, "t": i % 7} for i in range(5000))
    name = other.create_index([(field, 1) for field in key.split("_")])
    values = [*range(0, 100_000, 4), 100.5, 300]
    for filter in ({"s": {"$in": values}}, {"s": {"$in": [n + 1 for n in values]}},
                   {"s": {"$in": [n + 1 for n in values] + [700, 49_900]}},
                   {"s": {"$in": values}, "t": {"$gt": 2}},
                   {"s": {"$in": values}, "t": {"$in": [1, 5, 9]}},
                   {"s": {"$in": [*range(200)]}}, {"s": {"$in": [*range(49_850, 51_000)]}}):
        natural = sorted(one["_id"] for one in other.find(filter, hint={"$natural": 1}))
        sort = {field: order for field in key.split("_")}
        rows = list(other.find(filter, hint=name, sort=sort))
        assert sorted(one["_id"] for one in rows) == natural
        keys = [tuple(one[field] for field in sort) for one in rows]
        assert keys == sorted(keys, reverse=order < 0)
        found = stats(other, filter, hint=name, sort=sort)
        assert found["nReturned"] == len(natural)
        assert seeks(found) < 5000


def test_long_lists_are_checked_behind_the_first_field(collection):
    collection.create_index([("g", 1), ("k", -1)])
    values = list(range(0, 20_000, 4))
    filter = {"g": {"$in": list(range(0, 100, 2))}, "k": {"$in": values}}
    natural = sorted(one["_id"] for one in collection.find(filter, hint={"$natural": 1}))
    assert natural
    for order in (1, -1):
        found = collection.find(filter, hint="g_1_k_-1", sort=[("g", order), ("k", -order)])
        keys = [(one["g"], -one["k"], one["_id"]) for one in found]
        assert [(g, k) for g, k, _ in keys] == [(g, k) for g, k, _ in sorted(keys)][::order]
        assert sorted(key[2] for key in keys) == natural


def test_many_equalities_are_a_list(collection):
    """As in MongoDB, `$or` of equalities on one path is an `$in`. Regression: each branch had a
    plan of its own, and scanned documents were compared with one after the other."""
    branches = [{("k", "none")[i % 2]: i} for i in range(100)]
    command = {"explain": {"find": collection.name, "filter": {"$or": branches}}}
    parsed = collection.database.command(command)["queryPlanner"]["parsedQuery"]
    assert sorted(next(iter(one)) for one in parsed["$or"]) == ["k", "none"]
    assert all("$in" in next(iter(one.values())) for one in parsed["$or"])
    assert collection.count_documents({"$or": branches}) == 50
    found = stats(collection, {"$or": [{"k": i} for i in range(50)]})
    assert found["nReturned"] == 50
    assert found["totalKeysExamined"] <= 51
    nulls = [{"x": None}, *({"x": i} for i in range(50))]
    assert collection.count_documents({"$or": nulls}) == 20_000


def test_a_sparse_index_knows_which_documents_have_the_field(collection):
    """Regression: the sparse index was no candidate, because its bounds exclude nothing."""
    collection.update_many({"_id": {"$mod": [200, 0]}}, {"$set": {"rare": 1}})
    collection.create_index("rare", sparse=True)
    found = stats(collection, {"rare": {"$exists": True}})
    assert (found["nReturned"], found["totalDocsExamined"]) == (100, 100)
    found = stats(collection, {"rare": {"$exists": True}, "h": {"$lt": 5}}, sort={"k": 1}, limit=10)
    assert found["nReturned"] == 6
    assert found["totalDocsExamined"] <= 110
    assert stats(collection, {"rare": {"$exists": False}})["nReturned"] == 19_900
