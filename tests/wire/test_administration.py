"""Administration: reIndex, compact, profiling, plans, and the end of dropped indexes."""

import bson
from bson.raw_bson import RawBSONDocument

from answers import refused


def test_indexes_are_built_anew(collection):
    collection.insert_many([{"_id": number, "a": number % 5, "u": number} for number in range(50)])
    collection.create_index("a")
    collection.create_index("u", unique=True, sparse=True)
    reply = collection.database.command("reIndex", collection.name)
    assert (reply["nIndexesWas"], reply["nIndexes"]) == (3, 3)
    assert [one["name"] for one in reply["indexes"]] == ["_id_", "a_1", "u_1"]
    assert len(list(collection.find({"a": 2}).hint("a_1"))) == 10
    refused(lambda: collection.insert_one({"u": 7}), 11000)
    assert collection.database.command("validate", collection.name)["valid"]
    refused(lambda: collection.database.command("reIndex", "missing"), 26)


def test_space_is_given_back(collection):
    collection.insert_many([{"_id": number, "text": "x" * 1000} for number in range(200)])
    collection.delete_many({"_id": {"$gte": 10}})
    assert collection.database.command("compact", collection.name)["bytesFreed"] >= 0
    assert collection.count_documents({}) == 10
    refused(lambda: collection.database.command("compact", "missing"), 26)
    refused(lambda: collection.database.command("compact", collection.name, dryRun=True), 238)


def test_all_operations_are_kept(database):
    collection = database.c
    collection.insert_many([{"_id": number, "a": number} for number in range(5)])
    collection.create_index("a")
    assert database.command("profile", -1) == {"was": 0, "slowms": 100, "sampleRate": 1.0, "ok": 1.0}
    assert database.command("profile", 2)["was"] == 0
    assert len(list(collection.find({"a": {"$gte": 3}}, comment="looked for"))) == 2
    collection.update_one({"a": 1}, {"$set": {"b": 1}})
    refused(lambda: list(collection.find({"$foo": 1})), 2)
    refused(lambda: database.drop_collection("system.profile") or database.command("drop", "system.profile"), 20)
    assert database.command("profile", 0)["was"] == 2
    found = database["system.profile"].find_one({"command.comment": "looked for"})
    assert (found["op"], found["ns"], found["nreturned"]) == ("query", f"{database.name}.c", 2)
    assert (found["planSummary"], found["keysExamined"], found["docsExamined"]) == ("IXSCAN { a: 1 }", 2, 2)
    assert {"millis", "ts", "client", "responseLength", "protocol"} <= set(found)
    assert database["system.profile"].find_one({"op": "update"})["nModified"] == 1
    assert database["system.profile"].find_one({"errCode": 2})["op"] == "query"
    assert database["system.profile"].options()["capped"]
    kept = database["system.profile"].count_documents({})
    list(collection.find())
    assert database["system.profile"].count_documents({}) == kept


def test_what_is_kept_of_reads_of_the_profile_and_of_comments(database):
    """A client that counts profiled operations subtracts its own counts, which are not profiled.
    Regression: the comment of an update or a deletion was missing."""
    database.c.insert_one({"a": 1})
    database.command("profile", 2)
    assert [database["system.profile"].count_documents({}) for _ in range(3)] == [0, 1, 2]
    database.c.update_one({"a": 1}, {"$set": {"b": 1}}, comment="of an update")
    database.c.delete_many({"a": 2}, comment={"of": "a deletion"})
    database.command("profile", 0)
    comments = [database["system.profile"].find_one({"op": op})["command"]["comment"]
                for op in ("update", "remove")]
    assert comments == ["of an update", {"of": "a deletion"}]


def test_the_comment_of_a_long_command_is_kept(database):
    """Regression: the comment of a command of more than 4 KB was lost if it came in one piece, as
    most drivers send it."""
    statements = [{"q": {"a": "x" * 5000}, "u": {"$set": {"b": 1}}}]
    database.command("profile", 2)
    database.command({"update": "c", "updates": statements, "comment": "of a long one"})
    database.command({"update": "c", "updates": statements, "comment": "y" * 5000})
    database.command("profile", 0)
    kept = database["system.profile"].find({"op": "update"})
    assert [one["command"].get("comment") for one in kept] == ["of a long one", None]


def test_what_is_of_no_collection_is_not_kept(client, database):
    """Regression: the first profiled document was always the command that switched the profiler on.
    """
    database.c.insert_one({})
    database.command("profile", 2)
    database.command("ping")
    assert database.list_collection_names(filter={"name": "c"}) == ["c"]
    database.command({"find": "c", "comment": "kept"})
    database.command("profile", 0)
    kept = database["system.profile"].find()
    assert [next(iter(one["command"])) for one in kept] == ["find"]
    database.command("profile", 2)
    client.drop_database(database.name)
    assert database.name not in client.list_database_names()
    assert database.command("profile", -1)["was"] == 0


def test_large_statements_are_kept_without_their_text(database):
    """Regression: large statements did not fit into the profile, and nothing of them was recorded.
    """
    text = "x" * 2_000_000
    database.c.insert_many([{"_id": one, "a": text} for one in range(4)])
    database.command("profile", 2)
    database.c.update_one({"a": text}, {"$set": {"b": 1}})
    assert len(list(database.c.find({"a": text}, batch_size=2, comment="long"))) == 4
    database.command("profile", 0)
    kept = {one["op"]: one for one in database["system.profile"].find()}
    assert list(kept["update"]["command"]) == ["$truncated"] and kept["update"]["nMatched"] == 1
    assert 40_000 < len(kept["update"]["command"]["$truncated"]) < 60_000
    assert list(kept["getmore"]["originatingCommand"]) == ["$truncated", "comment"]


def test_slow_operations_are_logged_and_kept(database, server):
    database.c.insert_one({"a": 1})
    try:
        database.command("profile", 1, slowms=-1)
        list(database.c.find({"a": 1}, comment="slow one"))
        database.command("profile", 1, slowms=100_000)
        list(database.c.find({"a": 1}, comment="fast one"))
        database.command("profile", 1, filter={"command.comment": "chosen"})
        list(database.c.find({"a": 1}, comment="chosen"))
        assert database.command("profile", -1)["filter"] == {"command.comment": {"$eq": "chosen"}}
    finally:
        database.command("profile", 0, slowms=100, filter="unset")
    kept = [one["command"].get("comment") for one in database["system.profile"].find({"op": "query"})]
    assert kept == ["slow one", "chosen"]
    lines = database.client.admin.command("getLog", "global")["log"]
    assert any('"Slow query"' in line and "slow one" in line and "COLLSCAN" in line for line in lines)
    refused(lambda: database.command("profile", 0, sampleRate=2), 2)
    refused(lambda: database.command("profile", "x"), 14)


def test_a_cursor_ends_with_its_index(collection):
    collection.insert_many([{"_id": number, "a": number} for number in range(10)])
    collection.create_index("a")
    using, other = collection.find({"a": {"$gte": 0}}, batch_size=2), collection.find(batch_size=2)
    assert (next(using)["_id"], next(other)["_id"]) == (0, 0)
    collection.drop_index("a_1")
    refused(lambda: list(using), 175)
    assert len(list(other)) == 9


def test_plans_are_not_kept(collection):
    collection.insert_one({"a": 1})
    run = collection.database.command
    assert run("planCacheClear", collection.name)["ok"] == 1
    assert run("planCacheListFilters", collection.name)["filters"] == []
    assert run("planCacheClearFilters", collection.name, query={"a": 1})["ok"] == 1
    refused(lambda: run("planCacheClear", collection.name, sort={"a": 1}), 2)
    refused(lambda: run("planCacheSetFilter", collection.name, query={"a": 1}), 2)
    assert run("planCacheSetFilter", collection.name, query={"a": 1}, indexes=["a_1"])["ok"] == 1


def test_the_key_of_a_hashed_index_is_told(collection):
    collection.insert_one({"_id": 1, "s": "string to hash"})
    stages = [{"$project": {"hash": {"$toHashedIndexKey": "$s"}, "none": {"$toHashedIndexKey": "$missing"}}}]
    found = collection.aggregate(stages).next()
    assert found["hash"] == 763543691661428748
    assert found["none"] == collection.aggregate([{"$project": {"x": {"$toHashedIndexKey": None}}}]).next()["x"]


def test_the_use_of_collections_is_told(database):
    database.c.insert_one({"a": 1})
    for _ in range(3):
        list(database.c.find())
    totals = database.client.admin.command("top")["totals"]
    spent = totals[f"{database.name}.c"]
    assert (spent["queries"]["count"], spent["insert"]["count"]) == (3, 1)
    assert spent["total"]["time"] >= spent["queries"]["time"]
    database.drop_collection("c")
    assert f"{database.name}.c" not in database.client.admin.command("top")["totals"]
    refused(lambda: database.command("top"), 13)


def test_top_counts_all_collections_that_a_pipeline_reads(database):
    """Regression: `top` counted the collection that the command names, and none of those that its
    stages read."""
    for name in ("c", "d", "e", "f", "g"):
        database[name].insert_many([{"_id": 1, "a": 2}, {"_id": 2, "a": 1}])

    def counts():
        totals = database.client.admin.command("top")["totals"]
        return {name: totals[f"{database.name}.{name}"]["commands"]["count"] for name in "cdefg"}

    before = counts()
    lookup = {"$lookup": {"from": "d", "localField": "a", "foreignField": "_id", "as": "d"}}
    graph = {"$graphLookup": {"from": "e", "startWith": "$a", "connectFromField": "a", "connectToField": "_id",
                              "as": "e"}}
    within = {"$lookup": {"from": "f", "localField": "a", "foreignField": "_id", "as": "f"}}
    union = {"$unionWith": {"coll": "f", "pipeline": [{"$facet": {"g": [within]}}]}}
    list(database.c.aggregate([lookup, graph, lookup, union]))
    after = counts()
    assert {name: after[name] - before[name] for name in "cdefg"} == {"c": 1, "d": 1, "e": 1, "f": 1, "g": 0}
    totals = database.client.admin.command("top")["totals"]
    assert totals[f"{database.name}.d"]["commands"]["time"] > 0


def test_validate_tells_what_was_asked_for(database):
    database.c.create_index("a")
    database.c.insert_many([{"a": one} for one in range(10)])
    for options in [{}, {"full": True}, {"background": True}, {"repair": True}]:
        found = database.command({"validate": "c", **options})
        assert found["valid"] and not found["repaired"], options
        assert found["keysPerIndex"] == {"_id_": 10, "a_1": 10}, options
        assert found["missingIndexEntries"] == found["extraIndexEntries"] == [], options
        assert found["corruptRecords"] == found["warnings"] == [], options
    found = database.command({"validate": "c", "metadata": True})
    assert found["valid"] and found["nIndexes"] == 2
    for options in [{"background": True, "full": True}, {"background": True, "repair": True},
                    {"metadata": True, "full": True},
                    {"checkBSONConformance": True, "repair": True}]:
        refused(lambda: database.command({"validate": "c", **options}), 72)


def test_documents_that_bson_would_have_otherwise_are_counted(database):
    fields = bson.encode({"_id": 1})[4:-1] + 2 * bson.encode({"a": 1})[4:-1]
    twice = (len(fields) + 5).to_bytes(4, "little") + fields + b"\0"
    database.c.insert_one(RawBSONDocument(twice))
    database.c.insert_one({"a": 1})
    assert database.command("validate", "c")["warnings"] == []
    found = database.command("validate", "c", checkBSONConformance=True)
    assert found["valid"] and found["nNonCompliantDocuments"] == 1
    assert "the field 'a' is there twice" in found["warnings"][0]


def test_documents_that_the_validator_refuses_are_counted(database):
    database.c.insert_many([{"a": 1}, {"a": "x"}, {}])
    for action in ["error", "warn"]:
        database.command("collMod", "c", validator={"$expr": {"$gt": [{"$add": ["$a", 1]}, 1]}},
                         validationAction=action)
        found = database.command("validate", "c")
        assert found["valid"] and found["nInvalidDocuments"] == 0
        assert found["nNonCompliantDocuments"] == 2
        assert "not compliant with the collection's schema: 2," in found["warnings"][0]
    database.command("collMod", "c", validationLevel="off")
    found = database.command("validate", "c")
    assert (found["nNonCompliantDocuments"], found["warnings"]) == (0, [])


def test_an_index_made_anew_is_the_same(database):
    """Regression: reIndex dropped the indexes before it built them, so a server that ended in
    between had lost them."""
    database.c.create_index("a", unique=True)
    database.c.create_index([("b", 1)], sparse=True)
    database.c.insert_many([{"a": one, "b": [one, -one]} for one in range(1, 100)])
    before = list(database.c.list_indexes())
    made = database.command("reIndex", "c")
    assert (made["nIndexesWas"], made["nIndexes"]) == (3, 3)
    assert list(database.c.list_indexes()) == before
    assert database.command("validate", "c", full=True)["keysPerIndex"]["b_1"] == 198
    refused(lambda: database.c.insert_one({"a": 5}), 11000)
