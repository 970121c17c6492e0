"""Compound wildcard indexes: which are accepted, their entries, and the queries that use them."""

import pytest
from pymongo.errors import OperationFailure

from answers import ids


@pytest.fixture
def collection(server):
    collection = server.client().wild.c
    collection.drop()
    collection.insert_many(
        [{"_id": i, "tenant": i % 5, "attributes": {"color": f"c{i % 7}", "sizes": [i % 3, i]}}
         for i in range(100)]
        + [{"_id": 100, "tenant": 1}, {"_id": 101, "attributes": {"color": "c1"}},
           {"_id": 102, "tenant": 1, "attributes": {}}, {"_id": 103, "tenant": 1, "attributes": "c1"}])
    collection.create_index([("tenant", 1), ("attributes.$**", 1)], name="w")
    return collection


def plan(collection, query, **options):
    command = {"explain": {"find": collection.name, "filter": query, **options},
               "verbosity": "executionStats"}
    return collection.database.command(command)


def scan(explained):
    stage = explained["queryPlanner"]["winningPlan"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    return stage


QUERIES = [
    ({"tenant": 1, "attributes.color": "c1"}, True),
    ({"tenant": {"$in": [1, 2]}, "attributes.color": {"$gte": "c5"}}, True),
    ({"tenant": 1, "attributes.sizes": 2}, True),
    ({"tenant": 1, "attributes.sizes": {"$gt": 5, "$lt": 3}}, True),
    ({"tenant": 1}, True),
    ({"tenant": {"$gte": 3}}, True),
    ({"tenant": None}, True),
    ({"tenant": 1, "attributes.color": None}, True),
    ({"tenant": 1, "attributes.color": {"$exists": False}}, True),
    ({"tenant": 1, "attributes": {}}, True),
    ({"tenant": 1, "other": 5}, True),
    ({"tenant": {"$exists": True}}, False),
    ({"attributes.color": "c1"}, False),
    ({}, False),
]


@pytest.mark.parametrize("query, is_used", QUERIES, ids=[str(query) for query, _ in QUERIES])
def test_it_answers_like_a_scan(collection, query, is_used):
    def ids(**options):
        return sorted(one["_id"] for one in collection.find(query, **options))

    assert ids() == ids(hint=[("$natural", 1)])
    found = scan(plan(collection, query))
    assert (found.get("indexName") == "w") == is_used
    assert collection.count_documents(query) == len(ids())


def test_the_plan_shows_the_path(collection):
    explained = plan(collection, {"tenant": 1, "attributes.color": "c1"})
    found = scan(explained)
    assert found["keyPattern"] == {"tenant": 1, "$_path": 1, "attributes.color": 1}
    assert found["indexBounds"] == {
        "tenant": ["[1, 1]"], "$_path": ['["attributes.color", "attributes.color"]'],
        "attributes.color": ['["c1", "c1"]']}
    stats = explained["executionStats"]
    assert stats["totalKeysExamined"] <= stats["nReturned"] + 1
    found = scan(plan(collection, {"tenant": 1}))
    assert found["keyPattern"] == {"tenant": 1, "$_path": 1}
    assert found["indexBounds"]["$_path"] == ["[MinKey, MinKey]", '["", {})']


def test_writes_keep_it(collection):
    collection.delete_one({"_id": 103})
    collection.update_many({"tenant": 1}, {"$set": {"attributes.new": 1}, "$inc": {"tenant": 10}})
    collection.delete_many({"tenant": 2, "attributes.color": "c2"})
    for query in ({"tenant": 11, "attributes.new": 1}, {"tenant": 1}, {"tenant": 2}):
        wild = sorted(one["_id"] for one in collection.find(query))
        assert wild == sorted(one["_id"] for one in collection.find(query, hint=[("$natural", 1)]))
    validated = collection.database.command("validate", collection.name, full=True)
    assert validated["valid"] and validated["keysPerIndex"]["w"] > 100


def test_a_field_beside_the_wildcard_holds_no_array(collection):
    with pytest.raises(OperationFailure) as refused:
        collection.update_one({"_id": 1}, {"$set": {"tenant": [1, 2]}})
    assert refused.value.code == 7246301
    # The same applies if no document has the path.
    with pytest.raises(OperationFailure) as refused:
        collection.insert_one({"_id": 201, "tenant": [1]})
    assert refused.value.code == 7246301
    collection.drop_index("w")
    collection.insert_one({"_id": 200, "tenant": [1]})
    with pytest.raises(OperationFailure) as refused:
        collection.create_index([("tenant", 1), ("attributes.$**", 1)])
    assert refused.value.code == 7246301


def test_a_wildcard_of_everything_leaves_its_neighbours_out(collection):
    collection.drop_indexes()
    name = collection.create_index(
        [("$**", 1), ("tenant", -1)], wildcardProjection={"tenant": 0})
    assert name == "$**_1_tenant_-1"
    found = scan(plan(collection, {"attributes.color": "c1", "tenant": {"$gt": 2}}))
    assert found["indexName"] == name
    query = {"attributes.color": "c1", "tenant": {"$gt": 2}}
    assert collection.count_documents(query) == len(
        list(collection.find(query, hint=[("$natural", 1)])))


def test_values_beside_other_fields_may_descend(collection):
    collection.drop_indexes()
    name = collection.create_index([("tenant", 1), ("attributes.$**", -1)])
    assert collection.index_information()[name]["key"] == [("tenant", 1), ("attributes.$**", -1)]
    query = {"tenant": 3, "attributes.color": {"$gte": "c"}}
    expected = sorted((one["attributes"]["color"] for one in collection.find(query, hint=[("$natural", 1)])), reverse=True)
    assert expected
    found = scan(plan(collection, query))
    assert found["keyPattern"] == {"tenant": 1, "$_path": 1, "attributes.color": -1}
    assert [one["attributes"]["color"] for one in collection.find(query, hint=name)] == expected
    ordered = collection.find(query, hint=name).sort("attributes.color", -1)
    assert "SORT" not in str(ordered.explain()["queryPlanner"]["winningPlan"])
    assert [one["attributes"]["color"] for one in ordered] == expected


def test_values_of_a_wildcard_alone_may_descend(collection):
    collection.drop_indexes()
    queries = [{"attributes.color": "c1"}, {"attributes.color": {"$gte": "c"}}, {"tenant": {"$lt": 3}},
               {"attributes.color": {"$exists": True}}, {"attributes.color": {"$in": ["c1", None]}}]
    expected = [ids(collection.find(query).hint([("$natural", 1)])) for query in queries]
    assert all(expected)
    name = collection.create_index([("$**", -1)])
    assert name == "$**_-1" and collection.index_information()[name]["key"] == [("$**", -1)]
    assert [sorted(ids(collection.find(query))) for query in queries] == expected
    assert scan(plan(collection, queries[0]))["keyPattern"] == {"$_path": 1, "attributes.color": -1}
    for query in queries[:3]:
        [field] = query
        for direction in (1, -1):
            ordered = collection.find(query, hint=name).sort(field, direction)
            assert "SORT" not in str(ordered.explain()["queryPlanner"]["winningPlan"])
            values = [at(one, field) for one in ordered]
            assert values == sorted(values, reverse=direction < 0)
    assert collection.database.command("validate", "c")["valid"]


def at(document, path):
    for name in path.split("."):
        document = document[name]
    return document


@pytest.mark.parametrize("keys, options, code", [
    ([("tenant", 1), ("$**", 1)], {}, 67),
    ([("a.$**", 1), ("b.$**", 1)], {}, 67),
    ([("attributes.color", 1), ("attributes.$**", 1)], {}, 7246204),
    ([("tenant", "hashed"), ("attributes.$**", 1)], {}, 67),
    ([("tenant", 1), ("attributes.$**", 1)], {"unique": True}, 67),
    ([("tenant", 1), ("attributes.$**", 1)], {"sparse": True}, 67),
    ([("tenant", 1), ("attributes.$**", 1)], {"expireAfterSeconds": 5}, 67),
])
def test_what_is_no_such_index(collection, keys, options, code):
    with pytest.raises(OperationFailure) as refused:
        collection.create_index(keys, name="other", **options)
    assert refused.value.code == code


def test_keys_alone_answer_return_key(server):
    collection = server.client().wild.keys
    collection.drop()
    collection.insert_many({"_id": i, "a": i % 3, "b": i} for i in range(30))
    collection.create_index([("a", 1), ("b", 1)])
    found = list(collection.find({"a": 1}, hint="a_1_b_1", return_key=True))
    assert found == [{"a": 1, "b": b} for b in range(1, 30, 3)]
    explained = plan(collection, {"a": 1}, hint="a_1_b_1", returnKey=True)
    assert explained["executionStats"]["totalDocsExamined"] == 0
    explained = plan(collection, {"a": 1, "x": None}, hint="a_1_b_1", returnKey=True)
    assert explained["executionStats"]["totalDocsExamined"] == 10


def test_many_patterns_in_one_set_are_quick(server):
    collection = server.client().wild.texts
    collection.drop()
    collection.insert_many({"_id": i, "s": f"name{i} of place{i % 97}"} for i in range(2000))
    import re
    import time
    for make in (lambda i: f"name{i} .*place", lambda i: f"^name{i} ", lambda i: f"ce{i}$"):
        patterns = [re.compile(make(i)) for i in range(0, 2000, 2)]
        started = time.monotonic()
        found = {one["_id"] for one in collection.find({"s": {"$in": patterns}})}
        took = time.monotonic() - started
        expected = {i for i in range(2000) if any(
            re.search(make(j), f"name{i} of place{i % 97}") for j in (i, i % 97) if j % 2 == 0)}
        assert found == expected
        assert took < 20
