"""Index filters and notablescan: restrictions of plans."""

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def collection(server):
    collection = server.client().plans.c
    collection.drop()
    collection.insert_many({"_id": i, "a": i % 10, "b": i} for i in range(100))
    collection.create_index("a")
    collection.create_index("b")
    return collection


def planner(collection, query, **options):
    command = {"explain": {"find": collection.name, "filter": query, **options}}
    return collection.database.command(command)["queryPlanner"]


def indexes(plan):
    inner = plan.get("inputStages", [plan["inputStage"]] if "inputStage" in plan else [])
    own = {plan["indexName"]} if "indexName" in plan else set()
    return own.union(*(indexes(one) for one in inner))


def set_filter(collection, query, names, **parts):
    collection.database.command(
        {"planCacheSetFilter": collection.name, "query": query, "indexes": names, **parts})


def test_a_filter_keeps_queries_of_its_shape_to_its_indexes(collection):
    query = {"a": 1, "b": 1}
    assert "b_1" in indexes(planner(collection, query)["winningPlan"])
    set_filter(collection, {"a": 5, "b": 6}, ["a_1"])
    found = planner(collection, query)
    assert found["indexFilterSet"] and indexes(found["winningPlan"]) == {"a_1"}
    # A hint has no effect beside an index filter. Another shape has no filter.
    assert indexes(planner(collection, query, hint="b_1")["winningPlan"]) == {"a_1"}
    assert not planner(collection, {"b": 1})["indexFilterSet"]
    assert "b_1" in indexes(planner(collection, query, sort={"b": 1})["winningPlan"])
    assert list(collection.find(query)) == [{"_id": 1, "a": 1, "b": 1}]
    counted = collection.database.command("explain", {"count": "c", "query": query})
    assert counted["queryPlanner"]["indexFilterSet"]


def test_a_filter_of_no_index_leaves_the_collection(collection):
    set_filter(collection, {"a": 1}, [{"x": 1}])
    assert planner(collection, {"a": 3})["winningPlan"]["stage"] == "COLLSCAN"
    assert collection.count_documents({"a": 3}) == 10
    assert collection.update_many({"a": 3}, {"$set": {"c": 1}}).modified_count == 10


@pytest.mark.parametrize("parts", [
    {"query": 5}, {"query": {}, "sort": None}, {"query": {}, "projection": "x"}, {"sort": {"a": 1}},
    {"query": {}, "collation": {}}, {"query": {}, "collation": 5}, {"query": {}, "indexes": []},
    {"query": {}, "indexes": {"a": 1}}, {"query": {}, "indexes": [{}]}, {"query": {}, "indexes": [5]},
])
def test_a_filter_of_another_form_is_refused(collection, parts):
    command = {"planCacheSetFilter": "c", "indexes": ["a_1"], **parts}
    with pytest.raises(OperationFailure) as error:
        collection.database.command(command)
    assert error.value.code == 2, error.value


def test_an_array_is_an_object_of_a_filter(collection):
    set_filter(collection, [], ["a_1"], sort=[], projection=[])
    assert len(collection.database.command("planCacheListFilters", "c")["filters"]) == 1


def test_filters_are_listed_replaced_and_cleared(collection):
    command = collection.database.command
    set_filter(collection, {"a": 1}, ["b_1"], sort={"b": 1})
    set_filter(collection, {"a": 2}, [{"a": 1}], sort={"b": 1})
    set_filter(collection, {"b": 1}, ["b_1"])
    listed = command("planCacheListFilters", "c")["filters"]
    assert listed == [
        {"query": {"a": 2}, "sort": {"b": 1}, "projection": {}, "indexes": [{"a": 1}]},
        {"query": {"b": 1}, "sort": {}, "projection": {}, "indexes": ["b_1"]},
    ]
    command({"planCacheClearFilters": "c", "query": {"a": 9}, "sort": {"b": 1}})
    assert len(command("planCacheListFilters", "c")["filters"]) == 1
    command("planCacheClearFilters", "c")
    assert command("planCacheListFilters", "c")["filters"] == []
    set_filter(collection, {"b": 1}, ["b_1"])
    collection.drop()
    assert command("planCacheListFilters", "c")["filters"] == []


def other(collection):
    """Another collection with the same indexes."""
    other = collection.database.other
    other.drop()
    other.insert_many({"_id": i, "a": i % 10, "b": i} for i in range(100))
    other.create_index("a")
    other.create_index("b")
    return other


def rename(source, target, **options):
    names = [one.full_name for one in (source, target)]
    source.database.client.admin.command("renameCollection", names[0], to=names[1], **options)


@pytest.mark.parametrize("replace", [
    lambda c: c.database.client.drop_database(c.database),
    lambda c: rename(c, c.database.away),
    lambda c: rename(other(c), c, dropTarget=True),
    lambda c: c.database.command("convertToCapped", "c", size=1 << 20),
    lambda c: list(other(c).aggregate([{"$out": "c"}])),
    lambda c: c.drop(),
], ids=["dropDatabase", "rename", "rename onto", "convertToCapped", "$out", "drop"])
def test_filters_and_plans_end_with_their_collection(collection, replace):
    """Regression: filters and plans were kept by name and removed by `drop` alone. A collection
    that got the name by another command used the index filters of the one before."""
    command = collection.database.command
    collection.database.away.drop()
    set_filter(collection, {"a": 1, "b": 1}, ["a_1"])
    list(collection.find({"a": 1, "b": {"$gt": 1}}))
    assert len(list(collection.aggregate([{"$planCacheStats": {}}]))) == 1
    uuid = collection.database.list_collections(filter={"name": "c"}).next()["info"]["uuid"]
    replace(collection)
    collection.insert_one({"a": 1, "b": 1})
    assert command("planCacheListFilters", "c")["filters"] == []
    assert list(collection.aggregate([{"$planCacheStats": {}}])) == []
    assert not planner(collection, {"a": 1, "b": 1})["indexFilterSet"]
    after = collection.database.list_collections(filter={"name": "c"}).next()["info"]["uuid"]
    assert after != uuid


def test_filters_follow_a_collection_to_its_new_name(collection):
    """MongoDB keeps index filters with the collection, so a rename keeps them."""
    collection.database.away.drop()
    set_filter(collection, {"a": 1, "b": 1}, ["a_1"])
    rename(collection, collection.database.away)
    away = collection.database.away
    assert planner(away, {"a": 1, "b": 1})["indexFilterSet"]
    set_filter(away, {"b": 1}, ["b_1"])
    assert len(away.database.command("planCacheListFilters", "away")["filters"]) == 2


def test_notablescan_refuses_filters_without_an_index(collection):
    admin = collection.database.client.admin
    assert admin.command("setParameter", 1, notablescan=True)["was"] is False
    try:
        for refused in (lambda: list(collection.find({"x": 1})),
                        lambda: collection.count_documents({"x": 1}),
                        lambda: collection.update_one({"x": 1}, {"$set": {"y": 1}}),
                        lambda: collection.delete_many({"x": 1}),
                        lambda: list(collection.aggregate([{"$match": {"x": 1}}]))):
            with pytest.raises(OperationFailure) as error:
                refused()
            assert error.value.code == 291
        with pytest.raises(OperationFailure, match="hint .natural is not allowed") as error:
            list(collection.find({"a": 1}).hint([("$natural", 1)]))
        assert error.value.code == 291
        assert len(list(collection.find().hint([("$natural", 1)]))) == 100
        assert len(list(collection.find({"a": 1}))) == 10
        assert collection.find_one({"_id": 5})["b"] == 5
    finally:
        assert admin.command("setParameter", 1, notablescan=False)["was"] is True
    assert list(collection.find({"x": 1})) == []
