"""Views: read like collections, through their pipelines, and never written to."""

import pytest
from pymongo.errors import BulkWriteError, WriteError

from answers import ids, refused
from windrow_server import Server


@pytest.fixture
def view(database):
    """The even numbers, with one more field."""
    database.c.insert_many([{"_id": number, "n": number % 4, "tags": ["x", number]}
                            for number in range(10)])
    pipeline = [{"$match": {"n": {"$in": [0, 2]}}}, {"$addFields": {"m": {"$multiply": ["$n", 10]}}}]
    database.create_collection("v", viewOn="c", pipeline=pipeline)
    return database.v


def test_a_view_is_found_in(view):
    assert ids(view.find()) == [0, 2, 4, 6, 8]
    assert ids(view.find({"m": 20})) == [2, 6]
    assert ids(view.find(sort=[("_id", -1)], skip=1, limit=2)) == [6, 4]
    assert ids(view.find(sort=[("$natural", -1)])) == [8, 6, 4, 2, 0]
    assert list(view.find({"_id": 2}, {"m": 1})) == [{"_id": 2, "m": 20}]
    assert ids(view.find(batch_size=2)) == [0, 2, 4, 6, 8]


def test_a_view_is_counted(view):
    assert view.count_documents({}) == 5
    assert view.estimated_document_count() == 5
    assert view.database.command("count", "v", query={"m": 20}, skip=1)["n"] == 1
    assert view.database.command("count", "v", limit=-3)["n"] == 3


def test_a_view_has_distinct_values(view):
    assert view.distinct("m") == [0, 20]
    assert view.distinct("tags", {"_id": {"$lt": 3}}) == [0, 2, "x"]


def test_a_view_is_aggregated(view):
    grouped = view.aggregate([{"$group": {"_id": "$m", "count": {"$sum": 1}}}, {"$sort": {"_id": 1}}])
    assert list(grouped) == [{"_id": 0, "count": 3}, {"_id": 20, "count": 2}]


def test_stages_read_views(view):
    c = view.database.c
    looked_up = c.aggregate([{"$match": {"_id": {"$lt": 3}}},
                             {"$lookup": {"from": "v", "localField": "_id", "foreignField": "_id", "as": "r"}}])
    assert [ids(one["r"]) for one in looked_up] == [[0], [], [2]]
    inner = {"from": "v", "let": {"n": "$n"}, "as": "r",
             "pipeline": [{"$match": {"$expr": {"$eq": ["$m", {"$multiply": ["$$n", 10]}]}}}]}
    looked_up = c.aggregate([{"$match": {"_id": {"$lt": 3}}}, {"$lookup": inner}])
    assert [ids(one["r"]) for one in looked_up] == [[0, 4, 8], [], [2, 6]]
    united = c.aggregate([{"$limit": 1}, {"$unionWith": {"coll": "v", "pipeline": [{"$match": {"m": 20}}]}}])
    assert ids(united) == [0, 2, 6]
    walked = c.aggregate([{"$match": {"_id": 2}}, {"$graphLookup": {
        "from": "v", "startWith": "$n", "connectFromField": "x", "connectToField": "n", "as": "r"}}])
    assert sorted(ids(next(walked)["r"])) == [2, 6]


def test_a_filter_reaches_the_index_below(view):
    view.database.c.create_index("n")
    explained = view.find({"_id": 2}).explain()
    assert "IXSCAN" in str(explained) or "IDHACK" in str(explained), explained


def test_a_view_of_a_view(view):
    view.database.create_collection("w", viewOn="v", pipeline=[{"$match": {"m": 0}}])
    assert ids(view.database.w.find()) == [0, 4, 8]
    assert ids(view.database.w.find({"_id": {"$gt": 0}})) == [4, 8]
    view.database.v.drop()
    assert list(view.database.w.find()) == []


def tower(database, height):
    """Views that each read the next one three times."""
    database.base.insert_one({"_id": 1})
    for number in range(height):
        below = f"t{number + 1}" if number + 1 < height else "base"
        database.create_collection(f"t{number}", viewOn="base", pipeline=[{"$unionWith": below}] * 3)


def test_views_that_read_others_many_times_end_in_time(database):
    tower(database, 18)
    assert database.command("count", "t14")["n"] == 121
    for command in ({"count": "t0"}, {"aggregate": "t0", "pipeline": [{"$count": "n"}], "cursor": {}}, {"distinct": "t0", "key": "a"}):
        refused(lambda: database.command(command, maxTimeMS=300), 50)
    explain = {"aggregate": "t8", "pipeline": [], "cursor": {}}
    refused(lambda: database.command("explain", explain, verbosity="queryPlanner"), 10334)
    database.command("ping")


def test_towers_of_pipelines_within_each_other_have_an_end(database):
    database.base.insert_one({"_id": 1})
    for number in reversed(range(20)):
        below = f"u{number + 1}" if number < 19 else "base"
        database.create_collection(f"u{number}", viewOn="base", pipeline=[{"$unionWith": below}])
    assert database.command("count", "u0")["n"] == 21
    join = {"$lookup": {"from": "u0", "pipeline": [], "as": "all"}}
    refused(lambda: list(database.base.aggregate([join])), 232)


def test_circles_and_towers_are_refused(view):
    make = view.database.create_collection
    refused(lambda: make("s", viewOn="s"), 5)
    make("a", viewOn="b")
    refused(lambda: make("b", viewOn="c", pipeline=[{"$unionWith": "a"}]), 5)
    refused(lambda: view.database.command("collMod", "v", viewOn="v", pipeline=[]), 5)
    make("tower1", viewOn="v")
    for number in range(2, 20):
        make(f"tower{number}", viewOn=f"tower{number - 1}")
    refused(lambda: make("tower20", viewOn="tower19"), 165)
    assert view.database.tower19.count_documents({}) == 5


def test_a_view_put_under_others_counts_them(database):
    """Views may be created before what they read. Regression: only the views below a new one were
    checked."""
    make = database.create_collection
    for number in range(1, 21):
        make(f"tower{number}", viewOn=f"tower{number + 1}")
    refused(lambda: make("tower21", viewOn="c"), 165)
    french = {"locale": "fr"}
    make("above", viewOn="c", pipeline=[{"$lookup": {
        "from": "below", "localField": "a", "foreignField": "a", "as": "b"}}], collation=french)
    refused(lambda: make("below", viewOn="c"), 167)
    make("below", viewOn="c", collation=french)


def test_a_pipeline_makes_no_collection(database):
    """Regression: `create` with a pipeline that read nothing created an ordinary collection."""
    refused(lambda: database.command("create", "w", pipeline=[{"$match": {"a": 1}}]), 72)
    assert database.list_collection_names() == []


def test_a_view_is_not_written_to(view):
    with pytest.raises((WriteError, BulkWriteError)) as error:
        view.insert_one({"_id": 99})
    assert error.value.code == 166
    for write in [lambda: view.update_one({}, {"$set": {"a": 1}}),
                  lambda: view.update_one({}, {"$set": {"a": 1}}, upsert=True),
                  lambda: view.delete_many({}),
                  lambda: view.find_one_and_update({}, {"$set": {"a": 1}}),
                  lambda: view.create_index("a"), lambda: view.drop_indexes(),
                  lambda: list(view.list_indexes()), lambda: view.rename("x"),
                  lambda: view.database.command("collStats", "v")]:
        refused(write, 166)
    assert view.database.c.count_documents({}) == 10


def test_what_pipelines_cannot_do_is_refused(view):
    refused(lambda: list(view.find(show_record_id=True)), 168)
    refused(lambda: list(view.find(return_key=True)), 168)
    refused(lambda: list(view.find({}, {"tags": {"$elemMatch": {"$eq": "x"}}})), 168)
    for stage in ["$out", "$merge"]:
        refused(lambda: view.database.create_collection("w", viewOn="c", pipeline=[{stage: "d"}]), 167)


def test_views_are_listed_changed_and_dropped(view):
    database = view.database
    found = {one["name"]: one for one in database.list_collections()}
    assert found["v"]["type"] == "view" and found["v"]["info"] == {"readOnly": True}
    assert found["v"]["options"]["viewOn"] == "c"
    assert set(found) == {"c", "v", "system.views"}
    database.command("collMod", "v", viewOn="c", pipeline=[{"$match": {"_id": 3}}])
    assert ids(view.find()) == [3]
    refused(lambda: database.create_collection("v", viewOn="c", check_exists=False), 48)
    refused(lambda: database.command("create", "v"), 48)
    assert database.command("drop", "v") == {"ns": view.full_name, "ok": 1.0}
    assert list(database.list_collection_names(filter={"type": "view"})) == []
    view.insert_one({"_id": 1})
    assert ids(view.find()) == [1]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_views_outlive_the_process(tmp_path, end):
    with Server(tmp_path) as server:
        database = server.client().d
        database.c.insert_many([{"_id": number} for number in range(5)])
        database.create_collection("v", viewOn="c", pipeline=[{"$match": {"_id": {"$gt": 2}}}])
        getattr(server, end)()
        server.start()
        assert ids(server.client().d.v.find()) == [3, 4]


def test_a_join_asks_the_view_not_the_collection(view):
    """More documents than a hash table takes are looked up one by one. The filter of the view still
    applies."""
    c = view.database.c
    stages = [{"$match": {"_id": {"$lt": 4}}},
              {"$lookup": {"from": "v", "localField": "n", "foreignField": "n", "as": "r"}}]
    assert [ids(one["r"]) for one in c.aggregate(stages)] == [[0, 4, 8], [], [2, 6], []]


def test_the_stages_of_a_view_compare_as_it_does(database):
    """Regression: the stages of a view compared by bytes, whatever its collation, unless a filter
    from outside was added."""
    insensitive = {"locale": "en", "strength": 2}
    database.c.insert_many([{"_id": 1, "s": "A"}, {"_id": 2, "s": "a"}, {"_id": 3, "s": "b"}])
    for name, stage in (("matched", {"$match": {"s": "A"}}), ("compared", {"$set": {"is": {"$eq": ["$s", "A"]}}}),
                        ("grouped", {"$group": {"_id": "$s"}}), ("sorted", {"$sort": {"s": -1, "_id": 1}})):
        database.create_collection(name, viewOn="c", pipeline=[stage], collation=insensitive)
    assert [one["_id"] for one in database.matched.find()] == [1, 2]
    assert [one["is"] for one in database.compared.find()] == [True, True, False]
    assert database.grouped.count_documents({}) == 2
    assert [one["_id"] for one in database.sorted.find()] == [3, 1, 2]
    database.create_collection("above", viewOn="matched", pipeline=[{"$match": {"s": "A"}}], collation=insensitive)
    assert database.above.count_documents({}) == len(list(database.above.find())) == 2
    within = {"from": "matched", "pipeline": [], "as": "x"}
    assert len(database.c.aggregate([{"$lookup": within}], collation=insensitive).next()["x"]) == 2
