"""Filters behind renames and groups are moved to the front, use an index, and find the same
documents."""

import pytest


@pytest.fixture
def people(database):
    documents = [{"_id": n, "fullName": f"name {n % 50}", "address": {"city": f"city {n % 20}", "zip": [n % 7, n % 11]},
                  "tags": [n % 5, n % 13], "age": n % 40} for n in range(400)]
    documents += [{"_id": 400}, {"_id": 401, "fullName": None, "address": [{"city": "city 3"}, {"city": ["city 4"]}]},
                  {"_id": 402, "fullName": ["name 1", "name 2"], "address": []}, {"_id": 403, "fullName": 5, "tags": 5},
                  {"_id": 404, "fullName": 5.0, "tags": 5.0}]
    database.people.insert_many(documents)
    for path in ["fullName", "address.city", "tags", "age"]:
        database.people.create_index(path)
    return database.people


PLAIN = [{"$project": {"name": "$fullName", "city": "$address.city", "years": "$age", "home": {"town": "$$ROOT.address.city"}}}]
MADE = [{"$replaceWith": {"_id": "$_id", "person": {"name": "$fullName", "all": "$$ROOT"}}}]


@pytest.mark.parametrize("pipeline, query, expected, index", [
    (PLAIN, {"name": "name 7"}, 8, "fullName"),
    (PLAIN, {"name": None}, 2, "fullName"),
    (PLAIN, {"name": {"$exists": False}}, 1, "fullName"),
    (PLAIN, {"name": {"$size": 2}}, 1, None),
    (PLAIN, {"$or": [{"name": "name 1"}, {"name": {"$type": "number"}}]}, 11, "fullName"),
    (PLAIN, {"$expr": {"$eq": ["$name", 5]}}, 2, None),
    (PLAIN, {"$expr": {"$and": [{"$eq": ["$years", 5]}, {"$ne": ["$city", "city 3"]}]}}, 10, "age"),
    (PLAIN, {"city": "city 3"}, 21, "address.city"),
    (PLAIN, {"city": "city 4"}, 20, "address.city"),
    (PLAIN, {"city": {"$in": ["city 3", "city 4"]}, "_id": {"$gt": 300}}, 11, "address.city"),
    (PLAIN, {"city": ["city 4"]}, 1, None),
    (PLAIN, {"city": {"$ne": "city 4"}}, 385, None),
    (PLAIN, {"home.town": "city 3"}, 21, "address.city"),
    ([{"$set": {"name": "$fullName"}}, {"$unset": "fullName"}], {"name": "name 7"}, 8, "fullName"),
    (MADE, {"person.name": "name 7"}, 8, "fullName"),
    (MADE, {"person.all.address.city": "city 4"}, 21, "address.city"),
])
def test_a_view_that_renames_is_found_in_by_an_index(database, people, pipeline, query, expected, index):
    database.create_collection("v", viewOn="people", pipeline=pipeline)
    found = list(database.v.find(query))
    assert len(found) == expected
    assert database.v.count_documents(query) == expected
    assert database.command("count", "v", query=query)["n"] == expected
    assert sorted(database.v.distinct("_id", query)) == sorted(row["_id"] for row in found)
    assert len(list(people.aggregate([*pipeline, {"$match": query}]))) == expected
    # A stage that stops filters: the filter stays where it was written.
    behind = list(people.aggregate([*pipeline, {"$redact": "$$KEEP"}, {"$match": query}]))
    by_id = lambda rows: sorted(rows, key=lambda row: row["_id"])
    assert by_id(behind) == by_id(found)
    plan = str(database.command("explain", {"find": "v", "filter": query}, verbosity="queryPlanner"))
    assert ("IXSCAN" in plan) == (index is not None)
    assert index is None or f"'keyPattern': {{'{index}': 1}}" in plan


TAGS = {"$group": {"_id": "$tags", "count": {"$sum": 1}}}
BOTH = {"$group": {"_id": {"name": "$fullName", "t": "$tags"}, "count": {"$sum": 1}, "first": {"$first": "$_id"}}}


@pytest.mark.parametrize("stages, query, expected, is_ahead", [
    ([TAGS], {"_id": 3}, 17, True),
    ([TAGS], {"_id": 5}, 6, True),
    ([TAGS], {"_id": [1, 2]}, 1, True),
    ([TAGS], {"_id": None}, 1, True),
    ([TAGS], {"_id": {"$exists": True}}, 67, False),
    ([TAGS], {"_id": {"$type": "int"}}, 66, False),
    ([TAGS], {"count": {"$gt": 6}, "_id": 3}, 2, True),
    ([TAGS, {"$sort": {"count": -1}}], {"_id": 3}, 17, True),
    ([TAGS, {"$sort": {"_id": 1}}, {"$limit": 10}], {"_id": 3}, 1, False),
    ([BOTH], {"_id.name": "name 1"}, 9, True),
    ([BOTH], {"_id.name": {"$exists": False}}, 1, True),
    ([BOTH], {"_id": {"name": "name 1", "t": [1, 1]}}, 1, False),
    ([{"$group": {"_id": {"name": "$fullName"}}}], {"_id.name": {"$exists": False}}, 0, False),
    ([{"$group": {"_id": {"name": "$fullName"}}}], {"_id.name": 5}, 1, True),
    ([{"$group": {"_id": "$address.city"}}], {"_id": "city 4"}, 1, True),
    ([{"$sortByCount": "$fullName"}], {"_id": {"$in": ["name 1", 5]}}, 3, True),
])
def test_a_filter_of_groups_is_asked_of_an_index(database, people, stages, query, expected, is_ahead):
    behind = list(people.aggregate([*stages, {"$redact": "$$KEEP"}, {"$match": query}]))
    stages = [*stages, {"$match": query}]
    found = list(people.aggregate(stages))
    assert len(found) == len(behind) == expected
    assert all(row in behind for row in found)
    plan = database.command("aggregate", "people", pipeline=stages, explain=True)
    assert ("IXSCAN" in str(plan["stages"][0])) == is_ahead


def test_groups_of_a_view_are_found_by_an_index(database, people):
    database.create_collection("v", viewOn="people", pipeline=[*PLAIN, {"$group": {"_id": "$name", "n": {"$sum": 1}}}])
    assert list(database.v.find({"_id": "name 7"})) == [{"_id": "name 7", "n": 8}]
    plan = str(database.command("explain", {"find": "v", "filter": {"_id": "name 7"}}, verbosity="queryPlanner"))
    assert "'keyPattern': {'fullName': 1}" in plan


def test_a_filter_is_not_repeated_in_front_of_a_view(database, people):
    """A filter that is moved to the front is inserted once, however many pipelines are joined."""
    pipeline = [*PLAIN, {"$match": {"city": {"$gt": "city 1"}}}]
    database.create_collection("v", viewOn="people", pipeline=pipeline)
    database.create_collection("w", viewOn="v", pipeline=[{"$match": {"name": "name 7"}}])
    plan = database.command("explain", {"find": "w", "filter": {"name": {"$ne": 1}}}, verbosity="queryPlanner")
    query = plan["stages"][0]["$cursor"]["queryPlanner"]["parsedQuery"]
    assert [list(one) for one in query["$and"]].count(["address.city"]) == 1


@pytest.mark.parametrize("stages, query, expected", [
    # An array without documents gets documents, which lack the field.
    ([{"$addFields": {"p.q": 1}}], {"p.r": None}, [1, 2, 4]),
    ([{"$addFields": {"p.q": 1}}], {"p.0": 1}, []),
    ([{"$unset": "p.q"}], {"p.0.q": 5}, []),
    ([{"$lookup": {"from": "none", "pipeline": [], "as": "p.q"}}], {"p.r": 1}, []),
])
def test_what_a_stage_makes_of_an_array_is_seen(database, collection, stages, query, expected):
    """Regression: filters on paths beside a changed path moved in front of the stage, and found the
    old values."""
    collection.insert_many([{"_id": 1, "p": [1]}, {"_id": 2}, {"_id": 3, "p": [{"q": 5, "r": 1}]}, {"_id": 4, "p": 2}])
    assert sorted(row["_id"] for row in collection.aggregate([*stages, {"$match": query}])) == expected


SIZED = {"$expr": {"$gt": [{"$size": "$a"}, 0]}}
TYPED = {"$set": {"ok": {"$isArray": "$a"}}}


@pytest.mark.parametrize("stages, query, variables", [
    ([TYPED], {"ok": True, **SIZED}, {}),
    ([TYPED], {"$and": [{"ok": True}, SIZED]}, {}),
    ([{"$replaceWith": {"_id": "$_id", "a": "$a", "ok": {"$isArray": "$a"}}}], {"ok": True, **SIZED}, {}),
    ([{"$unwind": "$list"}, {"$project": {"x": "$a"}}], {"$expr": {"$in": [1, "$x"]}}, {}),
    ([{"$project": {"x": "$a", "ok": {"$isArray": "$a"}}}], {"ok": True, "$expr": {"$in": [1, "$x"]}}, {}),
    ([{"$set": {"y": "$$ROOT.b"}}], {"$or": [{"y": 77}, {"$expr": {"$eq": ["$y", 5]}}], "_id": 2}, {"CURRENT": {"y": 5}}),
])
def test_an_expression_stays_behind_what_keeps_documents_from_it(collection, stages, query, variables):
    collection.insert_many([{"_id": 1, "a": 5, "list": [], "b": 1}, {"_id": 2, "a": [1], "list": [1], "b": 2}])
    found = collection.aggregate([*stages, {"$match": query}], let=variables)
    assert [row["_id"] for row in found] == [2]


def test_many_fields_of_a_filter_are_written_anew_in_little_time(collection):
    fields = {f"r.f{number}": None for number in range(100_000)}
    assert list(collection.aggregate([{"$project": {"r": "$$ROOT"}}, {"$match": {"$or": [fields]}}], maxTimeMS=20_000)) == []
    collection.insert_one({"_id": 1})
    assert len(list(collection.aggregate([{"$project": {"r": "$$ROOT"}}, {"$match": {"$or": [fields]}}]))) == 1
