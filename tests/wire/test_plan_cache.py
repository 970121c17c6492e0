"""The plan cache: its entries, how they are shown, used and removed."""

import pytest
from pymongo.collation import Collation
from pymongo.errors import OperationFailure


@pytest.fixture
def collection(server):
    collection = server.client().remembered.c
    collection.drop()
    collection.insert_many(
        {"_id": i, "a": i % 10, "b": i % 50, "p": i} for i in range(500))
    collection.create_index("a")
    collection.create_index("b")
    collection.create_index(
        [("a", 1), ("p", 1)], name="partial", partialFilterExpression={"p": {"$gt": 300}})
    return collection


def stats(collection, *stages):
    return list(collection.aggregate([{"$planCacheStats": {}}, *stages]))


def planner(collection, query, **options):
    command = {"explain": {"find": collection.name, "filter": query, **options}}
    return collection.database.command(command)["queryPlanner"]


def test_an_entry_says_what_it_was_made_of(collection):
    assert stats(collection) == []
    for is_active in (False, True, True):
        assert len(list(collection.find({"a": 3, "b": 13}, {"p": 1}).sort("p", 1))) == 10
        [entry] = stats(collection)
        assert entry["isActive"] is is_active
    assert entry["createdFromQuery"] == {
        "query": {"$and": [{"a": {"$eq": 3}}, {"b": {"$eq": 13}}]},
        "sort": {"p": 1}, "projection": {"p": 1}}
    planned = planner(collection, {"a": 1, "b": 2}, sort={"p": 1}, projection={"p": 1})
    for name in ("queryHash", "planCacheShapeHash", "planCacheKey"):
        assert len(entry[name]) == 8 and entry[name] == planned[name]
    assert planned["winningPlan"].pop("isCached") is True
    assert "b_1" in str(entry["cachedPlan"])
    assert entry["version"] == "1" and entry["works"] > 0 and entry["estimatedSizeBytes"] > 0
    assert entry["indexFilterSet"] is False and ":" in entry["host"]
    assert len(entry["creationExecStats"]) == len(entry["candidatePlanScores"]) > 1
    assert entry["creationExecStats"][0]["executionStages"] == entry["cachedPlan"]
    assert entry["timeOfCreation"]
    shape = entry["planCacheShapeHash"]
    assert len(stats(collection, {"$match": {"planCacheShapeHash": shape}})) == 1


def test_one_index_alone_is_not_remembered(collection):
    for query in ({"_id": 3}, {"b": 3}, {"x": 1}, {}):
        list(collection.find(query))
    assert stats(collection) == []


def test_every_command_that_plans_remembers(collection):
    runs = [
        lambda query: collection.count_documents(query),
        lambda query: collection.distinct("p", query),
        lambda query: list(collection.aggregate([{"$match": query}, {"$limit": 1}])),
        lambda query: collection.update_many(query, {"$set": {"x": 1}}),
        lambda query: collection.find_one_and_update(query, {"$set": {"x": 2}}),
        lambda query: collection.delete_many(query),
    ]
    for run in runs:
        collection.database.command("planCacheClear", collection.name)
        run({"a": 2, "b": 2})
        assert len(stats(collection)) == 1


def test_other_constants_find_what_there_is(collection):
    for _ in range(3):
        assert collection.count_documents({"a": 6, "p": {"$gt": 400}}) == 10
    assert collection.count_documents({"a": 6, "p": {"$gt": 4}}) == 50
    keys = {entry["planCacheKey"] for entry in stats(collection)}
    shapes = {entry["queryHash"] for entry in stats(collection)}
    assert len(shapes) <= 1 and len(keys) <= 2
    one, other = (planner(collection, {"a": 6, "b": 1, "p": {"$gt": p}}) for p in (400, 4))
    assert one["queryHash"] == other["queryHash"]
    assert one["planCacheKey"] != other["planCacheKey"]


def test_the_cache_is_cleared(collection):
    command = collection.database.command
    queries = [({"a": 1, "b": 1}, {}), ({"a": 1, "b": 1}, {"sort": {"p": 1}}),
               ({"a": 1, "b": {"$gt": 1}}, {}), ({"a": 1, "b": "x"}, {"collation": {"locale": "fr"}})]

    def fill():
        command("planCacheClear", collection.name)
        for query, options in queries:
            command("find", collection.name, filter=query, **options)
        assert len(stats(collection)) == len(queries)

    for number, (query, options) in enumerate(queries):
        fill()
        command("planCacheClear", collection.name, query=query, **options)
        left = stats(collection)
        assert len(left) == len(queries) - 1, number
    fill()
    command("planCacheClear", collection.name, query={"a": 1})
    assert len(stats(collection)) == len(queries)
    command("planCacheSetFilter", collection.name, query={"a": 9, "b": 9}, indexes=["a_1", "b_1"])
    assert len(stats(collection)) == len(queries) - 1
    command("find", collection.name, filter={"a": 1, "b": 1})
    assert [one["indexFilterSet"] for one in stats(collection)].count(True) == 1
    command("planCacheClearFilters", collection.name)
    assert stats(collection) == []


@pytest.mark.parametrize("change", [
    lambda collection: collection.create_index("c"),
    lambda collection: collection.drop_index("a_1"),
    lambda collection: collection.database.command(
        "collMod", collection.name, index={"name": "a_1", "hidden": True}),
    lambda collection: collection.database.command("reIndex", collection.name),
    lambda collection: (collection.drop(), collection.insert_one({})),
])
def test_a_change_of_the_indexes_clears_the_cache(collection, change):
    list(collection.find({"a": 1, "b": 1}))
    assert len(stats(collection)) == 1
    change(collection)
    assert stats(collection) == []


def test_the_collation_of_the_query_is_shown(collection):
    list(collection.find({"a": 1, "b": 1}).collation(Collation("fr")))
    [entry] = stats(collection)
    assert entry["createdFromQuery"]["collation"]["locale"] == "fr"


@pytest.mark.parametrize("options, code", [
    (5, 9), ({"allHosts": True}, 4503200), ({"allHosts": 1}, 13111), ({"x": 1}, 9),
])
def test_bad_arguments_are_refused(collection, options, code):
    with pytest.raises(OperationFailure) as refused:
        list(collection.aggregate([{"$planCacheStats": options}]))
    assert refused.value.code == code


def test_a_single_server_takes_all_hosts_false(collection):
    assert list(collection.aggregate([{"$planCacheStats": {"allHosts": False}}])) == []


@pytest.mark.parametrize("stage, same", [
    ({"$group": {"_id": "$b"}}, False), ({"$count": "n"}, True), ({"$project": {"a": 1}}, False),
    ({"$limit": 5}, True), ({"$addFields": {"x": 1}}, True), ({"$unwind": "$b"}, True),
])
def test_what_later_stages_need_is_part_of_a_shape(collection, stage, same):
    def shape(*stages):
        command = {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, *stages], "cursor": {}}
        explained = collection.database.command("explain", command, verbosity="queryPlanner")
        [first, *_] = explained.get("stages", [{"$cursor": explained}])
        return first["$cursor"]["queryPlanner"]["planCacheShapeHash"]

    assert (shape() == shape(stage)) is same


def test_a_limited_query_is_not_run_as_one_that_ended_early(server):
    """Regression: a query with an order and a limit was planned by the number of matching entries
    of an index, and the plan was cached. For the next query of the shape only the cached index was
    counted. A query without matches then read the whole collection in the requested order."""
    collection = server.client().remembered.limited
    collection.drop()
    collection.insert_many({"_id": i, "s": i % 2, "p": i} for i in range(20_000))
    collection.create_index("s")
    query = {"sort": {"_id": 1}, "limit": 10}

    def examined(filter):
        command = {"explain": {"find": "limited", "filter": filter, **query}}
        stats = collection.database.command(command)["executionStats"]
        return stats["nReturned"], stats["totalDocsExamined"]

    for _ in range(3):
        assert len(list(collection.find({"s": 1}, sort=[("_id", 1)], limit=10))) == 10
    assert examined({"s": 1})[1] <= 40
    assert examined({"s": 5}) == (0, 0)
