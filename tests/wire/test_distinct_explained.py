"""`explain` of a `distinct` shows what runs: by the keys of an index alone, value by value, if an
index has them. The profile and `currentOp` show the same."""

import random

import pytest
from pymongo.errors import OperationFailure

VALUES = 40
COUNT = 8_000
EN = {"locale": "en", "strength": 2}


@pytest.fixture
def collection(database):
    collection = database.c
    collection.insert_many({"_id": i, "k": i % VALUES, "s": "ab"[i % 2], "n": {"m": i % 5}, "l": [i % 3, 7]}
                           for i in range(COUNT))
    collection.create_index("k")
    collection.create_index([("s", 1), ("k", -1)])
    collection.create_index([("n.m", -1), ("_id", 1)])
    collection.create_index("l")
    return collection


def explained(collection, key, query=None, verbosity="executionStats", **options):
    command = {"distinct": collection.name, "key": key, "query": query or {}, **options}
    return collection.database.command("explain", command, verbosity=verbosity)


def stages(plan):
    """The stages from the outermost inwards."""
    found = []
    while plan:
        found.append(plan)
        plan = plan.get("inputStage")
    return found


def names(reply):
    return [stage["stage"] for stage in stages(reply["queryPlanner"]["winningPlan"])]


def looked_at(reply):
    stats = reply["executionStats"]
    return stats["nReturned"], stats["totalKeysExamined"], stats["totalDocsExamined"]


def test_a_scan_of_values_has_mongodbs_shape(collection):
    reply = explained(collection, "k")
    plan = reply["queryPlanner"]["winningPlan"]
    assert plan == {
        "isCached": False, "stage": "PROJECTION_COVERED", "transformBy": {"_id": 0, "k": 1},
        "inputStage": {
            "stage": "DISTINCT_SCAN", "keyPattern": {"k": 1}, "indexName": "k_1", "isMultiKey": False,
            "multiKeyPaths": {"k": []}, "isUnique": False, "isSparse": False, "isPartial": False,
            "indexVersion": 2, "direction": "forward", "indexBounds": {"k": ["[MinKey, MaxKey]"]},
        },
    }
    assert reply["queryPlanner"]["rejectedPlans"] == []
    returned, keys, documents = looked_at(reply)
    assert (returned, documents) == (VALUES, 0) and VALUES <= keys <= 5 * VALUES
    top, scan = stages(reply["executionStats"]["executionStages"])
    assert (top["stage"], top["nReturned"], top["isEOF"]) == ("PROJECTION_COVERED", VALUES, 1)
    assert (scan["stage"], scan["nReturned"], scan["keysExamined"]) == ("DISTINCT_SCAN", VALUES, keys)
    assert "seeks" not in scan and "docsExamined" not in scan
    assert scan["indexBounds"] == plan["inputStage"]["indexBounds"]


def test_every_verbosity_tells(collection):
    planned, ran, all_plans = (explained(collection, "k", verbosity=verbosity) for verbosity in (
        "queryPlanner", "executionStats", "allPlansExecution"))
    for reply in (planned, ran, all_plans):
        assert names(reply) == ["PROJECTION_COVERED", "DISTINCT_SCAN"]
    assert "executionStats" not in planned
    assert looked_at(ran) == looked_at(all_plans)
    assert all_plans["executionStats"]["allPlansExecution"] == []


COVERED = ["PROJECTION_COVERED", "DISTINCT_SCAN"]


@pytest.mark.parametrize("key, query, expected, index, bounds", [
    ("k", {"k": {"$gt": 30}}, COVERED, "k_1", {"k": ["(30, inf]"]}),
    ("k", {"k": {"$in": [3, 5]}}, COVERED, "k_1", {"k": ["[3, 3]", "[5, 5]"]}),
    ("k", {"s": "a"}, COVERED, "s_1_k_-1", {"s": ['["a", "a"]'], "k": ["[MaxKey, MinKey]"]}),
    ("s", {}, COVERED, "s_1_k_-1", {"s": ["[MinKey, MaxKey]"], "k": ["[MaxKey, MinKey]"]}),
    ("n.m", {}, COVERED, "n.m_-1__id_1", {"n.m": ["[MaxKey, MinKey]"], "_id": ["[MinKey, MaxKey]"]}),
    ("_id", {"_id": {"$lt": 5}}, COVERED, "_id_", {"_id": ["[-inf, 5)"]}),
    ("s", {"k": 7}, ["FETCH", "IXSCAN"], "k_1", {"k": ["[7, 7]"]}),
    ("l", {"l": 1}, ["FETCH", "IXSCAN"], "l_1", {"l": ["[1, 1]"]}),
    ("s", {"_id": 7}, ["IDHACK"], None, None),
    ("l", {}, ["COLLSCAN"], None, None),
    ("n", {"nowhere": 1}, ["COLLSCAN"], None, None),
    ("k.0", {}, ["COLLSCAN"], None, None),
])
def test_what_is_read_is_told(collection, key, query, expected, index, bounds):
    reply = explained(collection, key, query)
    assert names(reply) == expected
    last = stages(reply["queryPlanner"]["winningPlan"])[-1]
    assert last.get("indexName") == index
    if bounds:
        shown = {name: [one.replace(".0", "") for one in list_] for name, list_ in last["indexBounds"].items()}
        assert shown == bounds
    values = sorted(set(collection.distinct(key, query, hint={"$natural": 1})), key=str) if key != "n" else []
    assert sorted(collection.distinct(key, query), key=str) == values


def test_keys_that_have_a_value_behind_others_are_passed_over(collection):
    """Each value of `k` with "a" has four hundred entries."""
    returned, keys, documents = looked_at(explained(collection, "k", {"s": "a"}))
    assert (returned, documents) == (VALUES // 2, 0) and keys <= 5 * VALUES // 2


ARRAYS_BEHIND = [("a", 1), ("b", -1), ("l", 1)], [("b", 1), ("l.x", -1), ("a", 1)], [("a", 1), ("l", 1), ("b", 1)]


@pytest.fixture
def with_arrays(database):
    """In `l`: arrays of values and of documents, missing fields, and values that are no arrays."""
    numbers = random.Random(11)
    lists = [lambda: [], lambda: [1, 2, 2], lambda: numbers.randrange(4), lambda: [{"x": 1}, {"x": [2, 3]}, {}],
             lambda: {"x": numbers.randrange(4)}, lambda: None,
             lambda: [numbers.randrange(9) for _ in range(numbers.randrange(12))]]
    values = [None, 1, 2.5, "x", "y", True, {"c": 1}, 7, 7.0]

    def document(number):
        made = {"_id": number, "a": numbers.choice(values), "b": numbers.randrange(20), "l": numbers.choice(lists)()}
        return {name: value for name, value in made.items() if name == "_id" or numbers.random() < 0.95}

    database.c.insert_many(document(number) for number in range(3000))
    for index in ARRAYS_BEHIND:
        database.c.create_index(index)
    return database.c


def test_arrays_in_fields_behind_give_the_same_values(with_arrays):
    numbers = random.Random(12)

    def condition(name):
        one, other = numbers.randrange(9), numbers.choice([None, 1, 7, "x"])
        return numbers.choice([one, other, {"$gt": one}, {"$in": [one, other]}, {"$ne": one}, {"$gte": 1, "$lt": 8},
                               {"$exists": True}])

    for _ in range(400):
        names = numbers.sample(["a", "b", "l", "l.x"], numbers.randrange(3))
        query = {name: condition(name) for name in names}
        hint = numbers.choice([None, *ARRAYS_BEHIND])
        for key in ("a", "b", "l", "l.x"):
            found = with_arrays.distinct(key, query, **({"hint": hint} if hint else {}))
            natural = with_arrays.distinct(key, query, hint={"$natural": 1})
            # Like MongoDB's, a scan of keys shows a missing field as null.
            assert [one for one in found if one is not None] == [one for one in natural if one is not None], (
                key, query, hint)


@pytest.mark.parametrize("key, query, index, is_scanned", [
    ("a", {}, 0, True),
    ("b", {}, 1, True),
    ("a", {}, 2, True),
    ("b", {"a": 1}, 0, True),
    ("a", {"a": {"$gt": 1}}, 2, True),
    # In front of the field, and in the bounds.
    ("b", {"a": 1}, 2, False),
    ("a", {"b": 3}, 1, False),
    ("a", {"a": 1, "l": 1}, 2, False),
    ("l", {"a": 1}, 2, False),
])
def test_arrays_in_fields_behind_do_not_keep_from_a_scan_of_keys(with_arrays, key, query, index, is_scanned):
    reply = explained(with_arrays, key, query, hint=dict(ARRAYS_BEHIND[index]))
    assert (names(reply) == COVERED) == is_scanned
    if is_scanned:
        returned, keys, documents = looked_at(reply)
        assert documents == 0 and returned <= 21 and keys <= 6 * returned
        scan = stages(reply["queryPlanner"]["winningPlan"])[-1]
        assert scan["isMultiKey"] and scan["multiKeyPaths"][key] == []


def test_a_hint_names_the_index(collection):
    reply = explained(collection, "k", {"s": "a"}, hint="k_1")
    assert names(reply) == ["FETCH", "IXSCAN"]
    assert stages(reply["queryPlanner"]["winningPlan"])[0]["filter"] == {"s": {"$eq": "a"}}
    assert names(explained(collection, "k", hint={"k": 1})) == COVERED
    assert names(explained(collection, "k", hint={"$natural": 1})) == ["COLLSCAN"]
    assert collection.distinct("k", hint="k_1") == list(range(VALUES))
    for run in (lambda: explained(collection, "k", hint="none"),
                lambda: collection.distinct("k", hint="none")):
        with pytest.raises(OperationFailure) as refused:
            run()
        assert refused.value.code == 2


def test_a_hinted_index_that_leaves_documents_out_answers(collection):
    collection.create_index("t", sparse=True)
    collection.update_many({"_id": {"$lt": 3}}, [{"$set": {"t": "$_id"}}])
    assert names(explained(collection, "t")) == ["COLLSCAN"]
    assert names(explained(collection, "t", hint="t_1")) == COVERED
    assert collection.distinct("t", hint="t_1") == collection.distinct("t") == [0, 1, 2]


def test_a_collation_goes_by_documents(collection):
    assert names(explained(collection, "s", collation=EN)) == ["COLLSCAN"]
    assert collection.distinct("s", collation=EN) == ["a", "b"]
    collection.create_index("s", collation=EN, name="collated")
    reply = explained(collection, "s", {"s": "A"}, collation=EN)
    assert names(reply) == ["FETCH", "IXSCAN"]
    assert collection.distinct("s", {"s": "A"}, collation=EN) == ["a"]


def test_an_index_filter_and_a_hidden_index_are_heeded(collection):
    command = collection.database.command
    command("planCacheSetFilter", "c", query={"k": 1}, indexes=[{"s": 1, "k": -1}])
    reply = explained(collection, "k", {"k": 1})
    assert reply["queryPlanner"]["indexFilterSet"] and "DISTINCT_SCAN" not in str(reply["queryPlanner"])
    command("planCacheClearFilters", "c")
    command("collMod", "c", index={"name": "k_1", "hidden": True})
    assert names(explained(collection, "k")) == ["COLLSCAN"]


def test_a_view_is_explained_as_an_aggregate(collection):
    database = collection.database
    database.create_collection("v", viewOn="c", pipeline=[{"$match": {"k": {"$lt": 3}}}])
    reply = explained(database.v, "k")
    assert "IXSCAN" in str(reply) and reply["command"]["distinct"] == "v"
    assert database.v.distinct("k") == [0, 1, 2]


def test_what_is_not_there_has_no_values(database):
    assert names(explained(database.gone, "k")) == ["EOF"]


@pytest.mark.parametrize("name, key, query", [
    ("c", "k", {}), ("c", "k", {"s": "a"}), ("c", "s", {"k": 7}), ("c", "l", {}), ("v", "k", {}),
])
def test_the_profile_agrees(collection, name, key, query):
    database = collection.database
    database.create_collection("v", viewOn="c", pipeline=[{"$match": {"k": {"$lt": 3}}}])
    reply = explained(database[name], key, query)
    database.command("profile", 2)
    database.command("distinct", name, key=key, query=query, comment="told")
    database.command("profile", 0)
    told = database["system.profile"].find_one({"command.comment": "told"})
    cursor = reply.get("stages", [{}])[0].get("$cursor", reply)
    assert (told["keysExamined"], told["docsExamined"]) == looked_at(cursor)[1:]
    last = stages(cursor["queryPlanner"]["winningPlan"])[-1]
    pattern = ", ".join(f"{field}: {way}" for field, way in last.get("keyPattern", {}).items())
    assert told["planSummary"] == (f"{last['stage']} {{ {pattern} }}" if pattern else last["stage"])
    assert told["planCacheKey"] and told["queryHash"] == cursor["queryPlanner"]["queryHash"]


def test_a_group_by_keys_is_summed_up_alike(collection):
    database = collection.database
    database.command("profile", 2)
    list(collection.aggregate([{"$group": {"_id": "$k"}}], comment="told"))
    database.command("profile", 0)
    told = database["system.profile"].find_one({"command.comment": "told"})
    assert told["planSummary"] == "DISTINCT_SCAN { k: 1 }"


def test_values_of_a_clustered_collection_come_in_order(database):
    collection = database.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    collection.insert_many({"_id": one, "k": one % 3} for one in (5, 3, 9, 1))
    collection.create_index("k")
    assert collection.distinct("_id") == [1, 3, 5, 9]
    assert collection.distinct("_id", {"_id": {"$gt": 3}}) == [5, 9]
    assert names(explained(collection, "_id")) == ["COLLSCAN"]
    assert names(explained(collection, "k")) == COVERED
    assert collection.distinct("k") == [0, 1, 2]


def test_names_that_no_projection_may_have(database):
    """The fields of a reference begin with a dollar sign."""
    database.c.insert_many({"_id": one, "r": {"$ref": "x", "$id": one % 3}} for one in range(9))
    database.c.create_index("r.$id")
    assert "DISTINCT_SCAN" in names(explained(database.c, "r.$id"))
    assert database.c.distinct("r.$id") == [0, 1, 2]
