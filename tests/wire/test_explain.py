"""`explain` shows the stages in MongoDB's words, bounds, and the numbers of examined keys and
documents."""

import pytest
from bson import MaxKey, MinKey
from pymongo import TEXT, IndexModel
from pymongo.errors import OperationFailure


@pytest.fixture
def filled(collection):
    collection.insert_many({"_id": one, "a": one % 100, "b": one, "t": [one, -one], "s": f"word{one}"}
                           for one in range(1_000))
    collection.create_index("a")
    collection.create_index([("a", 1), ("b", -1)])
    collection.create_index("t")
    collection.create_index([("s", TEXT)])
    return collection


def explained(collection, verbosity="executionStats", **find):
    command = {"find": collection.name, **find}
    return collection.database.command({"explain": command, "verbosity": verbosity})


def stages(plan):
    """The stages' names from the outermost to the innermost first input."""
    names = []
    while plan:
        names.append(plan["stage"])
        plan = plan.get("inputStage") or (plan.get("inputStages") or [None])[0]
    return names


def stage(plan, name):
    while plan["stage"] != name:
        plan = plan.get("inputStage") or plan["inputStages"][0]
    return plan


@pytest.mark.parametrize("find, expected", [
    ({}, ["COLLSCAN"]),
    ({"filter": {"s": "x"}}, ["COLLSCAN"]),
    ({"filter": {"a": 5, "b": {"$gt": 100}}}, ["FETCH", "IXSCAN"]),
    ({"filter": {"t": 5}}, ["FETCH", "IXSCAN"]),
    ({"sort": {"a": 1, "b": -1}}, ["FETCH", "IXSCAN"]),
    ({"sort": {"s": 1}}, ["SORT", "COLLSCAN"]),
    ({"filter": {"a": 5}, "limit": 3, "hint": "a_1"}, ["LIMIT", "FETCH", "IXSCAN"]),
    ({"filter": {"a": 5}, "projection": {"_id": 0, "a": 1}, "hint": "a_1"},
     ["PROJECTION_COVERED", "IXSCAN"]),
    ({"filter": {"a": 5}, "projection": {"b": 1}, "hint": "a_1"},
     ["PROJECTION_SIMPLE", "FETCH", "IXSCAN"]),
    ({"filter": {"$text": {"$search": "word5"}}}, ["TEXT_MATCH"]),
])
def test_stages_have_mongodbs_names(filled, find, expected):
    plan = explained(filled, **find)["queryPlanner"]["winningPlan"]
    found = stages(plan)
    if expected == ["TEXT_MATCH"]:
        assert "TEXT_MATCH" in found
    else:
        assert found == expected


def test_an_id_is_looked_up_by_its_index(filled):
    plan = explained(filled, filter={"_id": 5})["queryPlanner"]["winningPlan"]
    assert stages(plan) in (["IDHACK"], ["EXPRESS_IXSCAN"], ["FETCH", "IXSCAN"])


def test_the_planner_part(filled):
    reply = explained(filled, verbosity="queryPlanner", filter={"a": 5, "b": 105})
    planner = reply["queryPlanner"]
    assert planner["namespace"] == f"{filled.database.name}.c"
    assert planner["parsedQuery"] == {"$and": [{"a": {"$eq": 5}}, {"b": {"$eq": 105}}]}
    assert isinstance(planner["rejectedPlans"], list)
    assert "executionStats" not in reply and reply["ok"] == 1
    scan = stage(planner["winningPlan"], "IXSCAN")
    assert (scan["indexName"], scan["keyPattern"]) == ("a_1_b_-1", {"a": 1, "b": -1})
    assert (scan["isMultiKey"], scan["isUnique"], scan["direction"]) == (False, False, "forward")
    assert scan["indexBounds"] == {"a": ["[5, 5]"], "b": ["[105, 105]"]}


@pytest.mark.parametrize("query, hint, bounds", [
    ({"a": {"$gt": 5}}, "a_1", {"a": ["(5, inf.0]"]}),
    ({"a": {"$gte": 5, "$lt": 7}}, "a_1", {"a": ["[5, 7)"]}),
    ({"a": {"$in": [1, 3]}}, "a_1", {"a": ["[1, 1]", "[3, 3]"]}),
    ({"a": "x"}, "a_1", {"a": ['["x", "x"]']}),
    ({"a": 5}, "a_1_b_-1", {"a": ["[5, 5]"], "b": ["[MaxKey, MinKey]"]}),
])
def test_bounds(filled, query, hint, bounds):
    plan = explained(filled, filter=query, hint=hint)["queryPlanner"]["winningPlan"]
    assert stage(plan, "IXSCAN")["indexBounds"] == bounds


def test_a_multikey_index_says_so(filled):
    plan = explained(filled, filter={"t": 5})["queryPlanner"]["winningPlan"]
    assert stage(plan, "IXSCAN")["isMultiKey"] is True


def test_a_multikey_index_forgets_its_last_array(database):
    things = database.healing
    things.create_index({"a.b": 1, "c": 1})
    things.insert_many([{"_id": number, "a": {"b": number}, "c": 1} for number in range(20)])
    query = {"a.b": {"$gt": 3, "$lt": 6}}

    def check(paths, bounds):
        command = {"find": "healing", "filter": query, "hint": "a.b_1_c_1"}
        reply = database.command("explain", command)
        scan = stage(reply["queryPlanner"]["winningPlan"], "IXSCAN")
        assert (scan["isMultiKey"], scan["multiKeyPaths"]) == (any(paths.values()), paths)
        assert scan["indexBounds"]["a.b"] == [bounds]
        assert [found["_id"] for found in things.find(query, sort=[("_id", 1)])] == expected

    expected = [4, 5]
    check({"a.b": [], "c": []}, "(3, 6)")
    expected = [4, 5, 9]
    things.update_one({"_id": 9}, {"$set": {"a": [{"b": 1}, {"b": 9}]}})
    check({"a.b": ["a"], "c": []}, "(3, inf.0]")
    things.update_one({"_id": 2}, {"$set": {"c": [1, 2]}})
    check({"a.b": ["a"], "c": ["c"]}, "(3, inf.0]")
    things.update_one({"_id": 2}, {"$set": {"c": 5}})
    check({"a.b": ["a"], "c": []}, "(3, inf.0]")
    expected = [4, 5]
    things.delete_one({"_id": 9})
    check({"a.b": [], "c": []}, "(3, 6)")
    assert things.database.command("validate", "healing")["keysPerIndex"]["a.b_1_c_1"] == 19


@pytest.mark.parametrize("find, returned, keys, documents", [
    ({"filter": {"a": 5}, "hint": "a_1"}, 10, 10, 10),
    ({"filter": {"s": "none"}}, 0, 0, 1_000),
    ({"filter": {"a": 5}, "projection": {"_id": 0, "a": 1}, "hint": "a_1"}, 10, 10, 0),
    ({"filter": {"a": 5, "b": {"$gte": 505}}, "hint": "a_1_b_-1"}, 5, 5, 5),
])
def test_what_was_examined(filled, find, returned, keys, documents):
    stats = explained(filled, **find)["executionStats"]
    assert stats["executionSuccess"] is True
    assert stats["nReturned"] == returned
    # One more key shows that the range has ended.
    assert stats["totalKeysExamined"] in (keys, keys + 1)
    assert stats["totalDocsExamined"] == documents
    assert isinstance(stats["executionTimeMillis"], int) and "stage" in stats["executionStages"]


def test_the_cheaper_index_is_taken(collection):
    collection.insert_many({"many": one % 2, "few": one % 500} for one in range(2_000))
    collection.create_index("many")
    collection.create_index("few")
    plan = explained(collection, filter={"many": 1, "few": 7})["queryPlanner"]["winningPlan"]
    assert stage(plan, "IXSCAN")["indexName"] == "few_1"


EXPLAINED = [
    {"count": "c", "query": {"a": 5}}, {"distinct": "c", "key": "a"},
    {"aggregate": "c", "pipeline": [{"$match": {"a": 5}}], "cursor": {}},
    {"update": "c", "updates": [{"q": {"a": 5}, "u": {"$set": {"x": 1}}}]},
    {"delete": "c", "deletes": [{"q": {"a": 5}, "limit": 0}]},
    {"findAndModify": "c", "query": {"a": 5}, "remove": True},
]


@pytest.mark.parametrize("command", [*EXPLAINED, {"find": "c", "filter": {"a": 5}}])
def test_what_a_command_does_not_take_its_explain_refuses(filled, command):
    database = filled.database
    with pytest.raises(OperationFailure) as refused:
        database.command({**command, "bogus": 1})
    with pytest.raises(OperationFailure) as refused_to_explain:
        database.command({"explain": {**command, "bogus": 1}, "verbosity": "queryPlanner"})
    assert refused_to_explain.value.code == refused.value.code
    assert refused_to_explain.value.details["errmsg"] == refused.value.details["errmsg"]
    general = {"comment": "told", "maxTimeMS": 10_000, "$db": database.name}
    assert database.command({"explain": {**command, **general}, "verbosity": "queryPlanner"})["ok"] == 1


@pytest.mark.parametrize("command", EXPLAINED)
def test_other_commands_are_explained_and_not_done(filled, command):
    reply = filled.database.command({"explain": command, "verbosity": "queryPlanner"})
    assert reply["ok"] == 1 and "winningPlan" in str(reply)
    assert filled.count_documents({"x": {"$exists": False}}) == 1_000


def test_a_collection_that_is_not_there(database):
    plan = explained(database.gone, filter={"a": 1})["queryPlanner"]["winningPlan"]
    assert plan["stage"] == "EOF"


@pytest.mark.parametrize("database_name, name, stage, count", [
    ("admin", 1, {"$currentOp": {"allUsers": True}}, None),
    ("admin", 1, {"$listLocalSessions": {}}, None),
    ("config", "system.sessions", {"$listSessions": {}}, None),
    (None, "c", {"$indexStats": {}}, 2),
    (None, "c", {"$collStats": {"count": {}}}, 1),
    (None, "c", {"$planCacheStats": {}}, 0),
])
def test_stages_of_what_the_server_knows_are_explained(client, collection, database_name, name, stage, count):
    collection.insert_one({"a": 1})
    collection.create_index("a")
    database = client[database_name] if database_name else collection.database
    stages = [stage, {"$match": {"nothing": 1}}, {"$limit": 3}]

    def explained(verbosity):
        command = {"aggregate": name, "pipeline": stages, "cursor": {}}
        return database.command("explain", command, verbosity=verbosity)

    assert explained("queryPlanner")["stages"] == stages
    ran = explained("executionStats")
    assert [{key: value for key, value in one.items() if key.startswith("$")} for one in ran["stages"]] == stages
    if count is not None:
        assert [one["nReturned"] for one in ran["stages"]] == [count, 0, 0]
    assert "queryPlanner" not in str(ran["stages"])


@pytest.mark.parametrize("stage, code", [({"$collStats": {"count": {}}}, 40481), ({"$planCacheStats": {}}, 50933)])
def test_a_stage_of_a_missing_collection_is_explained_until_it_runs(collection, stage, code):
    command = {"aggregate": "missing", "pipeline": [stage], "cursor": {}}
    explain = collection.database.command
    assert explain("explain", command, verbosity="queryPlanner")["stages"] == command["pipeline"]
    with pytest.raises(OperationFailure) as failure:
        explain("explain", command, verbosity="executionStats")
    assert failure.value.code == code


def test_the_options_of_a_stage_are_checked_though_it_does_not_run(collection):
    command = {"aggregate": "missing", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}
    explain = collection.database.command
    wrong = {**command, "pipeline": [{"$collStats": {"x": 1}}]}
    with pytest.raises(OperationFailure) as failure:
        explain("explain", wrong, verbosity="queryPlanner")
    assert failure.value.code == 40415


def explained_pipeline(database, stages, verbosity="queryPlanner"):
    command = {"aggregate": "c", "pipeline": stages, "cursor": {}}
    return database.command("explain", command, verbosity=verbosity)


def test_a_pipeline_that_is_one_query_says_so(filled):
    explained = explained_pipeline(filled.database, [{"$match": {"a": 5}}, {"$sort": {"b": 1}}])
    assert explained["queryPlanner"]["optimizedPipeline"] is True
    explained = explained_pipeline(filled.database, [{"$group": {"_id": "$a"}}])
    assert "optimizedPipeline" not in explained["stages"][0]["$cursor"]["queryPlanner"]
    find = filled.database.command("explain", {"find": "c", "filter": {"a": 5}})
    assert "optimizedPipeline" not in find["queryPlanner"]


@pytest.mark.parametrize("stage, shown", [
    ({"$out": "d"}, {"$out": {"coll": "d", "db": "NAME"}}),
    ({"$out": {"db": "e", "coll": "d"}}, {"$out": {"coll": "d", "db": "e"}}),
    ({"$merge": "d"}, {"$merge": {"into": {"db": "NAME", "coll": "d"}, "on": "_id", "whenMatched": "merge",
                                  "whenNotMatched": "insert"}}),
    ({"$merge": {"into": {"db": "e", "coll": "d"}, "on": ["b", "a"], "let": {"x": 1},
                 "whenMatched": [{"$set": {"x": "$$x"}}], "whenNotMatched": "discard"}},
     {"$merge": {"into": {"db": "e", "coll": "d"}, "on": ["b", "a"], "let": {"x": 1, "new": "$$ROOT"},
                 "whenMatched": [{"$set": {"x": "$$x"}}], "whenNotMatched": "discard"}}),
])
def test_what_would_be_written_is_told_and_not_written(filled, stage, shown):
    database = filled.database
    last = explained_pipeline(database, [stage])["stages"][-1]
    assert str(last) == str(shown).replace("NAME", database.name)
    last = explained_pipeline(database, [stage], "executionStats")["stages"][-1]
    assert last["nReturned"] == 0
    assert "d" not in database.list_collection_names()


def test_a_million_values_are_explained(collection):
    """Regression: the bounds of so many values were more bytes than a message can have, and the
    connection was closed."""
    collection.create_index("a")

    def of_values(count):
        return explained(collection, filter={"a": {"$in": [float(one) for one in range(count)]}})

    some = of_values(200_000)
    assert stage(some["queryPlanner"]["winningPlan"], "IXSCAN")["warning"].startswith("index bounds omitted")
    assert "indexBounds" not in stage(some["executionStats"]["executionStages"], "IXSCAN")
    assert some["command"]["find"] == collection.name
    many = of_values(700_000)
    for plan in (many["queryPlanner"]["winningPlan"], many["executionStats"]["executionStages"]):
        assert plan["warning"] == "stats tree exceeded BSON size limit for explain"
    assert many["executionStats"]["nReturned"] == 0
    assert "command" not in many and "'command' has been omitted" in many["warning"]


@pytest.mark.parametrize("arguments, returned, counts", [
    ({"query": {"_id": 5}, "remove": True}, 1, {"nWouldDelete": 1}),
    ({"query": {"_id": -1}, "remove": True}, 0, {"nWouldDelete": 0}),
    ({"query": {"_id": 5}, "update": {"$set": {"x": 1}}}, 1, {"nMatched": 1, "nWouldModify": 1, "nWouldUpsert": 0}),
    ({"query": {"_id": -1}, "update": {"$set": {"x": 1}}, "new": True}, 0, {"nMatched": 0, "nWouldUpsert": 0}),
    ({"query": {"_id": -1}, "update": {"$set": {"x": 1}}, "upsert": True}, 0, {"nWouldModify": 0, "nWouldUpsert": 1}),
    ({"query": {"_id": -1}, "update": {"$set": {"x": 1}}, "upsert": True, "new": True}, 1, {"nWouldUpsert": 1}),
])
def test_a_find_and_modify_is_explained_as_what_it_would_do(filled, arguments, returned, counts):
    stats = filled.database.command("explain", {"findAndModify": "c", **arguments},
                                    verbosity="executionStats")["executionStats"]
    top = stats["executionStages"]
    assert (stats["nReturned"], top["nReturned"]) == (returned, returned)
    assert {name: top[name] for name in counts} == counts
    shown = filled.database.command("explain", {"findAndModify": "c", **arguments, "fields": {"i": 0}},
                                    verbosity="executionStats")
    stats = shown["executionStats"]
    assert (stats["nReturned"], stats["executionStages"]["nReturned"]) == (returned, returned)
    for plan in (stats["executionStages"], shown["queryPlanner"]["winningPlan"]):
        assert (plan["stage"], plan["transformBy"]) == ("PROJECTION_DEFAULT", {"i": 0})
        assert plan["inputStage"]["stage"] == top["stage"]
    assert stats["executionStages"]["inputStage"] == top
    assert filled.count_documents({}) == 1000 and filled.count_documents({"x": 1}) == 0


def test_an_update_is_explained_with_what_it_would_insert(filled):
    def stages_of(upsert):
        statement = {"q": {"_id": -1}, "u": {"$set": {"x": 1}}, "upsert": upsert}
        command = {"update": "c", "updates": [statement]}
        reply = filled.database.command("explain", command, verbosity="executionStats")
        return reply["executionStats"]["executionStages"]

    assert [stages_of(upsert)["nWouldUpsert"] for upsert in (True, False)] == [1, 0]


@pytest.mark.parametrize("command, outer, documents", [
    ({"update": "c", "updates": [{"q": {"x": None}, "u": {"$set": {"y": 1}}}]}, "UPDATE", 1),
    ({"update": "c", "updates": [{"q": {"x": None}, "u": {"$set": {"y": 1}}, "multi": True}]}, "UPDATE", 1000),
    ({"delete": "c", "deletes": [{"q": {"x": None}, "limit": 1}]}, "DELETE", 1),
    ({"delete": "c", "deletes": [{"q": {"x": None}, "limit": 0}]}, "DELETE", 1000),
    ({"findAndModify": "c", "query": {"x": None}, "update": {"$set": {"y": 1}}}, "UPDATE", 1),
])
def test_a_write_of_one_document_ends_with_the_first(filled, command, outer, documents):
    explained = filled.database.command("explain", command, verbosity="executionStats")
    plans = explained["queryPlanner"]["winningPlan"], explained["executionStats"]["executionStages"]
    assert [(plan["stage"], plan["inputStage"]["stage"]) for plan in plans] == [(outer, "COLLSCAN")] * 2
    assert explained["executionStats"]["totalDocsExamined"] == documents


def test_no_plan_of_a_write_has_a_stage_for_its_limit(collection):
    collection.insert_many([{"a": i % 50, "b": i % 40} for i in range(400)])
    collection.create_indexes([IndexModel("a"), IndexModel("b")])
    command = {"delete": collection.name, "deletes": [{"q": {"a": 1, "b": 1}, "limit": 1}]}
    planner = collection.database.command("explain", command, verbosity="queryPlanner")["queryPlanner"]
    assert planner["winningPlan"]["inputStage"]["stage"] != "LIMIT"
    assert planner["rejectedPlans"] and all(plan["stage"] != "LIMIT" for plan in planner["rejectedPlans"])


FRENCH = {"locale": "fr", "caseLevel": False, "caseFirst": "off", "strength": 3, "numericOrdering": False,
          "alternate": "non-ignorable", "maxVariable": "punct", "normalization": False, "backwards": False,
          "version": "57.1"}


def test_collations_are_told_as_they_were_resolved(database):
    """Regression: neither the collation of the query nor that of the index was shown."""
    collated = database.create_collection("c", collation={"locale": "fr"})
    collated.create_index("a")
    for find in ({}, {"collation": {"locale": "fr"}}):
        planner = explained(collated, filter={"a": "x"}, **find)["queryPlanner"]
        names = list(planner)
        assert planner["collation"] == FRENCH
        assert names[names.index("parsedQuery") + 1] == "collation"
        scan = stage(planner["winningPlan"], "IXSCAN")
        assert scan["collation"] == FRENCH
        assert list(scan)[list(scan).index("indexName") + 1] == "collation"
    planner = explained(collated, filter={"a": 1}, collation={"locale": "simple"})["queryPlanner"]
    assert "collation" not in planner
    assert stage(planner["winningPlan"], "IXSCAN")["collation"] == FRENCH
    assert "collation" in explained(collated)["queryPlanner"]
    counted = database.command("explain", {"count": "c", "query": {"a": "x"}}, verbosity="queryPlanner")
    assert counted["queryPlanner"]["collation"] == FRENCH
    pipeline = {"aggregate": "c", "pipeline": [{"$match": {"a": "x"}}], "cursor": {}}
    assert database.command("explain", pipeline)["queryPlanner"]["collation"] == FRENCH
    database.plain.insert_one({})
    assert "collation" not in explained(database.plain)["queryPlanner"]


MIN, MAX = MinKey(), MaxKey()


@pytest.mark.parametrize("query, hint, keys, counted", [
    ({"a": 5}, {"a": 1}, ({"a": 5}, True, {"a": 5}, True), 10),
    ({"a": {"$gt": 97}}, {"a": 1}, ({"a": 97}, False, {"a": float("inf")}, True), 20),
    ({"a": 5}, {"a": 1, "b": -1}, ({"a": 5, "b": MAX}, True, {"a": 5, "b": MIN}, True), 10),
    ({"a": {"$gt": 97}}, {"a": 1, "b": -1},
     ({"a": 97, "b": MIN}, False, {"a": float("inf"), "b": MIN}, True), 20),
    ({"a": 5, "b": {"$gt": 105, "$lte": 305}}, {"a": 1, "b": -1},
     ({"a": 5, "b": 305}, True, {"a": 5, "b": 105}, False), 2),
    ({}, {"a": 1}, ({"a": MIN}, True, {"a": MAX}, True), 1000),
    # Without several intervals, tests of keys, and documents.
    ({"a": {"$in": [5, 7]}}, {"a": 1}, None, 20),
    ({"a": {"$gt": 97}, "b": 198}, {"a": 1, "b": -1}, None, 1),
    ({"a": 5, "x": None}, {"a": 1}, None, 10),
])
def test_a_count_of_one_interval_of_an_index(filled, query, hint, keys, counted):
    command = {"count": "c", "query": query, "hint": hint}
    assert filled.database.command(command)["n"] == counted
    explained = filled.database.command("explain", command, verbosity="executionStats")
    for top in (explained["queryPlanner"]["winningPlan"], explained["executionStats"]["executionStages"]):
        assert top["stage"] == "COUNT"
        scan = top["inputStage"]
        if keys is None:
            assert scan["stage"] in ("FETCH", "IXSCAN")
            continue
        assert (scan["stage"], scan["keyPattern"], scan["isMultiKey"]) == ("COUNT_SCAN", hint, False)
        names = ("startKey", "startKeyInclusive", "endKey", "endKeyInclusive")
        assert scan["indexBounds"] == dict(zip(names, keys)) and list(scan["indexBounds"]) == list(names)
    assert top["nCounted"] == counted


def test_a_command_for_another_database_is_not_explained(filled):
    with pytest.raises(OperationFailure) as failure:
        filled.database.command("explain", {"find": "c", "$db": "elsewhere"})
    assert failure.value.code == 73


@pytest.mark.parametrize("index, query, fetched", [
    ({"t": 1}, {"t": {"$regex": "7"}}, "matching"),
    ({"t": -1}, {"t": {"$regex": "7"}, "b": {"$gte": 0}}, "matching"),
    ({"b": 1, "t": 1}, {"b": {"$gte": 0}, "t": {"$regex": "7"}}, "matching"),
    ({"n.b": 1}, {"n.b": {"$mod": [7, 1]}}, "matching"),
    # A missing field is null in an index, and an element of an array is not the array.
    ({"gone": 1}, {"gone": {"$exists": True}}, "all"),
    ({"list": 1}, {"list": {"$regex": "7"}}, "all"),
    ({"list": 1, "t": 1}, {"t": {"$regex": "7"}}, "matching"),
])
def test_who_does_not_match_by_his_key_is_not_fetched(collection, index, query, fetched):
    documents = [{"_id": i, "b": i, "t": f"text {i}", "n": {"b": i}, "list": [f"{i}", "x"]} for i in range(200)]
    collection.insert_many(documents + [{"_id": 200, "gone": 1}])
    collection.create_index(list(index.items()), name="i")
    stats = explained(collection, filter=query, hint="i")["executionStats"]
    found = list(collection.find(query).hint("i").sort("_id"))
    assert found == list(collection.find(query).hint({"$natural": 1}).sort("_id"))
    assert stats["nReturned"] == len(found) > 0
    expected = len(found) if fetched == "matching" else stats["totalKeysExamined"]
    # The document with an array is found by several elements and fetched once.
    expected = min(expected, 200) if "list" in index else expected
    assert stats["totalDocsExamined"] == expected
    window = collection.find(query).hint("i").skip(1).limit(2)
    assert [one["_id"] for one in window] == [one["_id"] for one in collection.find(query).hint("i")][1:3]


@pytest.fixture(scope="module")
def large(client):
    client.drop_database("test_explain_large")
    collection = client["test_explain_large"]["c"]
    collection.create_indexes([IndexModel("t"), IndexModel([("b", 1), ("n", 1)]), IndexModel("list")])
    for start in range(0, 30_000, 10_000):
        collection.insert_many({"_id": i, "t": f"text {i}", "b": i % 5, "n": i, "list": [f"{i}", "x"]}
                               for i in range(start, start + 10_000))
    yield collection
    client.drop_database("test_explain_large")


@pytest.mark.parametrize("query, expected", [
    ({"t": {"$regex": "99$"}}, ["FETCH", "IXSCAN"]),
    ({"t": {"$regex": "99$", "$gte": "text 2"}}, ["FETCH", "IXSCAN"]),
    ({"t": {"$gte": "text 2", "$not": {"$regex": "99$"}}}, ["COLLSCAN"]),
    ({"t": {"$regex": "[0-9]"}}, ["COLLSCAN"]),
    ({"t": {"$regex": "[0-9]", "$in": ["text 7", "text 8"]}}, ["FETCH", "IXSCAN"]),
    ({"b": {"$gte": 0}, "n": {"$mod": [100, 7]}}, ["FETCH", "IXSCAN"]),
    ({"b": {"$gte": 0}, "n": {"$mod": [2, 1]}}, ["COLLSCAN"]),
    ({"$or": [{"t": {"$regex": "99$"}}, {"b": 3, "n": {"$mod": [100, 3]}}]}, ["FETCH", "OR", "IXSCAN"]),
    # An element whose key does not match may be in one array with one that does.
    ({"list": {"$regex": "99$"}}, ["COLLSCAN"]),
])
def test_keys_tell_how_many_of_a_large_collection_match(large, query, expected):
    plan = explained(large, filter=query)
    assert stages(plan["queryPlanner"]["winningPlan"]) == expected
    found = list(large.find(query).sort("_id"))
    assert found == list(large.find(query).hint({"$natural": 1}).sort("_id"))
    assert plan["executionStats"]["nReturned"] == len(found) > 0
    if expected[0] == "FETCH":
        assert plan["executionStats"]["totalDocsExamined"] == len(found)


def test_who_is_found_by_a_key_is_not_tested_again(large):
    query = {"b": {"$gte": 3}, "n": {"$mod": [100, 7]}, "t": {"$regex": "7$"}}
    plan = explained(large, filter=query, hint="b_1_n_1")["queryPlanner"]["winningPlan"]
    assert plan["filter"] == {"t": {"$regex": "7$"}}
    assert plan["inputStage"]["filter"] == {"n": {"$mod": [100, 7]}}


def stages_of(collection, pipeline, verbosity):
    command = {"aggregate": collection.name, "pipeline": pipeline, "cursor": {}}
    return collection.database.command({"explain": command, "verbosity": verbosity})["stages"]


@pytest.fixture
def joined(collection):
    other = collection.database["other"]
    other.create_index("k")
    other.insert_many({"_id": i, "k": i % 5, "n": i} for i in range(20))
    collection.insert_many({"_id": i, "k": i} for i in range(3))
    collection.database.create_collection("seen", viewOn="other", pipeline=[{"$match": {"k": 1}}])
    return collection


@pytest.mark.parametrize("verbosity", ["queryPlanner", "executionStats", "allPlansExecution"])
def test_the_pipeline_of_a_union_is_explained(joined, verbosity):
    inner = [{"$match": {"k": 1}}, {"$group": {"_id": "$n"}}]
    union = {"$unionWith": {"coll": "other", "pipeline": inner}}
    shown = stages_of(joined, [union, {"$limit": 5}], verbosity)[1]
    assert shown["$unionWith"]["coll"] == "other"
    cursor, group = shown["$unionWith"]["pipeline"]
    assert stages(cursor["$cursor"]["queryPlanner"]["winningPlan"])[-1] == "IXSCAN"
    assert group["$group"] == {"_id": "$n"}
    runs = verbosity != "queryPlanner"
    assert ("executionStats" in cursor["$cursor"]) == ("nReturned" in group) == ("nReturned" in shown) == runs
    if runs:
        assert (shown["nReturned"], group["nReturned"], cursor["nReturned"]) == (5, 4, 4)
    # The whole pipeline is a query, here of a view.
    [cursor] = stages_of(joined, [{"$unionWith": "seen"}], verbosity)[1]["$unionWith"]["pipeline"]
    assert stages(cursor["$cursor"]["queryPlanner"]["winningPlan"]) == ["FETCH", "IXSCAN"]
    # The pipeline has its own documents.
    brought = {"$unionWith": {"pipeline": [{"$documents": [{"a": 1}]}]}}
    [documents] = stages_of(joined, [brought], verbosity)[1]["$unionWith"]["pipeline"]
    assert "$documents" in documents and ("nReturned" in documents) == runs
    # The collection behind it is not read.
    behind = stages_of(joined, [union, {"$limit": 2}], verbosity)[1]["$unionWith"]["pipeline"]
    assert ("$cursor" in behind[0]) == (not runs)


@pytest.mark.parametrize("skip, limit, filter, keys", [
    (0, 1, {}, 1), (0, 2, {}, 2), (0, 5, {}, 5), (0, 100, {}, 100), (3, 70, {}, 73),
    (0, 1, {"n": {"$gte": 6}}, 7), (0, 9, {"n": {"$ne": 3}}, 10), (0, 40, {"odd": 1}, 80),
])
def test_a_fetch_reads_no_keys_ahead_of_a_limit(collection, skip, limit, filter, keys):
    collection.insert_many([{"_id": i, "k": i, "n": i, "odd": i % 2} for i in range(300)])
    collection.create_index("k")
    plan = {"filter": {"k": {"$gte": 0}, **filter}, "hint": "k_1", "skip": skip, "limit": limit}
    stats = explained(collection, **plan)["executionStats"]
    assert stats["nReturned"] == limit
    assert stats["totalKeysExamined"] == keys
    assert stats["totalDocsExamined"] == keys - skip
    all_found = list(collection.find(filter).hint({"$natural": 1}))
    assert list(collection.find(**plan)) == all_found[skip:skip + limit]


@pytest.mark.parametrize("lookup, expected", [
    ({"localField": "k", "foreignField": "k"}, (12, 12, 0, ["k_1"])),
    ({"localField": "k", "foreignField": "k", "pipeline": [{"$match": {"n": {"$gt": 4}}}]}, (12, 12, 0, ["k_1"])),
    ({"let": {"k": "$k"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$n", "$$k"]}}}]}, (60, 0, 3, [])),
    ({"let": {"k": "$k"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$k", "$$k"]}}}]}, (12, 12, 0, ["k_1"])),
    ({"pipeline": [{"$match": {"k": 2}}]}, (4, 4, 0, ["k_1"])),
    ({"localField": "k", "foreignField": "n"}, (20, 0, 1, [])),
])
def test_a_lookup_tells_what_it_read(joined, lookup, expected):
    stage = {"$lookup": {"from": "other", "as": "found", **lookup}}
    names = ("totalDocsExamined", "totalKeysExamined", "collectionScans", "indexesUsed")
    assert not set(names) & set(stages_of(joined, [stage], "queryPlanner")[1])
    for pipeline in ([stage], [stage, {"$unwind": "$found"}]):
        shown = stages_of(joined, pipeline, "executionStats")[1]
        assert tuple(shown[name] for name in names) == expected


def test_a_large_collection_without_an_index_is_read_once_for_all_rows(database):
    """Regression: above 100 MB of documents there was no hash table of them, and each row read the
    whole collection."""
    text = "x" * 400_000
    database.large.insert_many([{"_id": one, "by": [one % 7, "b"], "text": text} for one in range(300)])
    database.large.insert_many([{"_id": 300}, {"_id": 301, "by": None}])
    rows = [{"_id": one, "wanted": one} for one in range(9)] + [{"_id": 9, "wanted": [1, 2]}, {"_id": 10}]
    database.rows.insert_many(rows)
    project = {"$project": {"found": "$found._id"}}
    lookup = {"from": "large", "localField": "wanted", "foreignField": "by", "as": "found"}
    found = {one["_id"]: one["found"] for one in database.rows.aggregate([{"$lookup": lookup}, project])}
    of = [[one for one in range(300) if one % 7 == wanted] for wanted in range(7)]
    expected = of + [[], [], sorted(of[1] + of[2]), [300, 301]]
    assert [found[one] for one in range(11)] == expected
    stage = database.command("explain", {"aggregate": "rows", "pipeline": [{"$lookup": lookup}], "cursor": {}},
                             verbosity="executionStats")["stages"][1]
    counts = (stage["collectionScans"], stage["totalDocsExamined"])
    assert counts == (1, 302 + sum(map(len, expected)))
