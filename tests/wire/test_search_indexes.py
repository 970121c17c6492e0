"""Search indexes: created, listed, updated and dropped; invisible to all that shows other indexes."""

import threading
import time

import pytest
from bson import ObjectId
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from windrow_server import Server

DYNAMIC = {"mappings": {"dynamic": True}}


def of_field(name, **options):
    return {"mappings": {"dynamic": False, "fields": {name: options}}}


def validate(collection):
    found = collection.database.command({"validate": collection.name, "full": True})
    assert found["valid"], found
    return found


def keys_of(collection, name, version=0):
    """The number of entries of a search index."""
    return validate(collection)["keysPerIndex"][f"$search.{name}.{version}"]


def listed(collection, name=None):
    return list(collection.list_search_indexes(name))


def test_a_search_index_is_created_and_listed(collection):
    collection.insert_many([{"_id": number, "title": f"The fox {number}"} for number in range(100)])
    assert collection.create_search_index({"definition": DYNAMIC}) == "default"
    [index] = listed(collection)
    assert ObjectId.is_valid(index["id"])
    assert (index["name"], index["type"], index["status"]) == ("default", "search", "READY")
    assert index["queryable"] is True
    assert index["latestDefinition"] == DYNAMIC
    assert index["latestDefinitionVersion"]["version"] == 0
    [detail] = index["statusDetail"]
    assert detail["mainIndex"]["definition"] == DYNAMIC and "stagedIndex" not in detail
    # Each document has its _id and that it is there, three words and that the title is there.
    assert keys_of(collection, "default") == 100 * 6


def test_models_and_names(collection):
    collection.insert_one({"a": 1})
    models = [SearchIndexModel(DYNAMIC, name="one"),
              SearchIndexModel(of_field("a", type="number"), name="two", type="search")]
    assert collection.create_search_indexes(models) == ["one", "two"]
    assert [index["name"] for index in listed(collection)] == ["one", "two"]
    [two] = listed(collection, "two")
    assert two["latestDefinition"] == of_field("a", type="number")
    assert listed(collection, "three") == []
    by_id = list(collection.aggregate([{"$listSearchIndexes": {"id": two["id"]}},
                                       {"$project": {"name": 1, "_id": 0}}]))
    assert by_id == [{"name": "two"}]


def test_no_list_of_other_indexes_shows_it(collection):
    collection.insert_many([{"a": number, "t": "fox"} for number in range(10)])
    collection.create_index("a")
    collection.create_search_index({"definition": DYNAMIC})
    assert sorted(collection.index_information()) == ["_id_", "a_1"]
    assert {one["name"] for one in collection.aggregate([{"$indexStats": {}}])} == {"_id_", "a_1"}
    statistics = collection.database.command("collStats", "c")
    assert statistics["nindexes"] == len(statistics["indexSizes"]) == 2
    assert all(size > 0 for size in statistics["windrow"]["searchIndexSizes"].values())
    # The planner does not use it, and a hint does not find it.
    plan = collection.find({"t": "fox"}).explain()["queryPlanner"]["winningPlan"]
    assert plan["stage"] == "COLLSCAN"
    for hint in ("default", "$search.default.0", [("_search", "search")]):
        with pytest.raises(OperationFailure):
            list(collection.find({"t": "fox"}).hint(hint))
    with pytest.raises(OperationFailure):
        collection.drop_index("$search.default.0")
    with pytest.raises(OperationFailure):
        collection.drop_index([("_search", "search")])
    with pytest.raises(OperationFailure):
        collection.database.command({"collMod": "c", "index": {"name": "$search.default.0",
                                                               "hidden": True}})
    collection.drop_indexes()
    assert sorted(collection.index_information()) == ["_id_"]
    assert len(listed(collection)) == 1
    assert keys_of(collection, "default") == 10 * 6
    # An ordinary index may have its name.
    collection.create_index("t", name="default")
    collection.drop_search_index("default")
    assert sorted(collection.index_information()) == ["_id_", "default"]
    assert listed(collection) == []


def test_writes_change_its_entries(collection):
    collection.insert_one({"_id": 1, "t": "one two", "n": 5})
    collection.create_search_index({"definition": DYNAMIC})
    # _id: 2, t: 3, n: 2
    assert keys_of(collection, "default") == 7
    collection.update_one({"_id": 1}, {"$set": {"n": 6}})
    assert keys_of(collection, "default") == 7
    collection.update_one({"_id": 1}, {"$set": {"t": "one two three"}, "$unset": {"n": 1}})
    assert keys_of(collection, "default") == 6
    collection.insert_many([{"_id": number, "t": ["a b", "c"], "d": {"e": True}}
                            for number in range(2, 52)])
    assert keys_of(collection, "default") == 6 + 50 * (2 + 4 + 1 + 2)
    collection.delete_many({"_id": {"$gt": 1}})
    assert keys_of(collection, "default") == 6
    collection.replace_one({"_id": 1}, {"x": None})
    assert keys_of(collection, "default") == 4


def test_static_mappings(collection):
    collection.insert_many([
        {"_id": 1, "title": "Running foxes", "tags": ["A", "b"], "year": 1999, "other": "x"},
        {"_id": 2, "title": ["x", "y"], "tags": "A", "year": 1.5, "meta": {"deep": {"k": "v"}}},
    ])
    definition = {
        "analyzer": "lucene.english",
        "mappings": {"fields": {
            "title": [{"type": "string", "multi": {"exact": {
                "type": "string", "analyzer": "lucene.keyword"}}}, {"type": "token"}],
            "tags": {"type": "stringFacet"},
            "year": [{"type": "number"}, {"type": "numberFacet"}],
            "meta": {"type": "document", "dynamic": True},
        }},
    }
    collection.create_search_index({"definition": definition, "name": "s"})
    # 1: title 3 + value 1 + exact 2, tags 3, year 2. 2: title 3 + 2 + 3, tags 2, year 2, meta 1 + 1 + 2.
    assert keys_of(collection, "s") == 11 + 16


def test_edges_of_documents(collection):
    collection.insert_one({"_id": 0})
    collection.create_search_index({"definition": DYNAMIC})
    documents = [
        {"_id": 1, "n": "a\0b", "e": ""},
        {"_id": 2, "d": [{"a": [{"b": "x"}, {"b": ["y", {"c": 1}]}]}, "z", 7, [["q"]]]},
        {"_id": 3, **{f"f{number}": number for number in range(1_000)}},
        {"_id": 4, "a.b": "literal", "a": {"b": "nested"}},
        {"_id": 5, "t": "x" * 100_000, "u": "word " * 100_000},
        {"_id": 6, "": "empty name", "\x01": "x"},
        {"_id": 7, "deep": {}},
    ]
    collection.insert_many(documents)
    validate(collection)
    for number in range(1, 8):
        collection.update_one({"_id": number}, {"$set": {"new": "word"}})
    validate(collection)
    collection.delete_many({"_id": {"$gt": 0}})
    assert keys_of(collection, "default") == 2


def test_an_update_replaces_the_definition(collection):
    collection.insert_many([{"_id": number, "a": "x", "b": number} for number in range(50)])
    collection.create_search_index({"definition": of_field("a", type="string"), "name": "s"})
    [before] = listed(collection)
    assert keys_of(collection, "s") == 100
    collection.update_search_index("s", of_field("b", type="number"))
    [after] = listed(collection)
    assert after["id"] == before["id"]
    assert after["latestDefinition"] == of_field("b", type="number")
    assert after["latestDefinitionVersion"]["version"] == 1
    assert (after["status"], after["queryable"]) == ("READY", True)
    assert keys_of(collection, "s", 1) == 100
    assert [name for name in validate(collection)["keysPerIndex"] if "search" in name] == [
        "$search.s.1"]
    # The same definition again changes nothing.
    collection.update_search_index("s", of_field("b", type="number"))
    assert listed(collection)[0]["latestDefinitionVersion"]["version"] == 1
    # A definition that is refused leaves the old one.
    with pytest.raises(OperationFailure):
        collection.update_search_index("s", of_field("b", type="vector"))
    assert listed(collection) == [after]
    collection.database.command({"updateSearchIndex": "c", "id": after["id"], "definition": DYNAMIC})
    assert listed(collection)[0]["latestDefinition"] == DYNAMIC
    collection.database.command({"dropSearchIndex": "c", "id": after["id"]})
    assert listed(collection) == []


def refused(run, code, part):
    with pytest.raises(OperationFailure) as error:
        run()
    assert (error.value.code, part in str(error.value)) == (code, True), str(error.value)


def test_errors(collection, database):
    def create(*indexes):
        return lambda: database.command({"createSearchIndexes": "c", "indexes": list(indexes)})

    index = {"name": "s", "definition": DYNAMIC}
    refused(create(index), 26, "does not exist")
    refused(lambda: database.command({"updateSearchIndex": "c", "name": "s", "definition": DYNAMIC}),
            26, "does not exist")
    refused(lambda: database.command({"dropSearchIndex": "c", "name": "s"}), 26, "does not exist")
    # PyMongo's helpers pass over a missing collection.
    collection.drop_search_index("s")
    assert listed(collection) == []
    collection.insert_one({})
    refused(create(), 2, "at least one")
    refused(lambda: database.command({"createSearchIndexes": "c"}), 40414, "indexes")
    refused(create({"name": "s"}), 40414, "definition")
    refused(create({**index, "x": 1}), 40415, "x")
    refused(create({**index, "type": "vectorSearch"}), 238, "vectorSearch")
    refused(create({**index, "type": "other"}), 2, "other")
    refused(create({**index, "name": ""}), 2, "empty")
    refused(create(index, index), 68, "already exists")
    refused(create({"definition": {}}), 9, '"mappings" is required')
    refused(create({"definition": of_field("a", type="vector")}), 238,
            '"mappings.fields.a" type "vector"')
    refused(create({"definition": {**DYNAMIC, "analyzer": "lucene.klingon"}}), 238, "klingon")
    assert listed(collection) == []
    create(index)()
    refused(create(index), 68, "already exists")
    refused(lambda: database.command({"dropSearchIndex": "c", "name": "x"}), 27, "not found")
    refused(lambda: database.command({"dropSearchIndex": "c"}), 72, "either")
    refused(lambda: database.command({"dropSearchIndex": "c", "name": "s", "id": "x"}), 72, "both")
    refused(lambda: database.command({"updateSearchIndex": "c", "name": "x", "definition": DYNAMIC}),
            27, "not found")
    for stage in ({"name": 1}, {"id": 1}):
        refused(lambda: list(collection.aggregate([{"$listSearchIndexes": stage}])), 14, "$list")
    refused(lambda: list(collection.aggregate([{"$listSearchIndexes": {"name": "a", "id": "b"}}])),
            72, "both")
    refused(lambda: list(collection.aggregate([{"$match": {}}, {"$listSearchIndexes": {}}])),
            40602, "first")
    refused(lambda: collection.create_index("a", name="$search.s.0"), 67, "reserved")
    database.command({"create": "v", "viewOn": "c", "pipeline": []})
    refused(lambda: database.command({"createSearchIndexes": "v", "indexes": [index]}), 166, "view")


def test_it_stays_with_its_collection(collection, database):
    collection.insert_many([{"_id": number, "t": "fox"} for number in range(10)])
    collection.create_search_index({"definition": DYNAMIC})
    collection.rename("other")
    assert len(listed(database.other)) == 1 and listed(collection) == []
    assert keys_of(database.other, "default") == 40
    # $out keeps the indexes of the collection that it replaces.
    database.source.insert_one({"_id": 1, "t": "owl"})
    list(database.source.aggregate([{"$out": "other"}]))
    assert len(listed(database.other)) == 1
    assert keys_of(database.other, "default") == 4
    database.other.drop()
    assert listed(database.other) == []


def test_change_streams_do_not_show_it(collection):
    """Change streams with expanded events show indexes that are made and dropped. A search index is
    none of them: its specification is Windrow's own."""
    collection.insert_one({"_id": 0, "a": "x"})
    with collection.watch(show_expanded_events=True) as stream:
        collection.create_search_index({"definition": DYNAMIC})
        collection.update_search_index("default", of_field("a", type="string"))
        collection.drop_search_index("default")
        collection.create_index("a")
        assert stream.next()["operationType"] == "createIndexes"


def test_transactions_write_into_it(client, collection):
    collection.insert_one({"_id": 0, "t": "fox"})
    collection.create_search_index({"definition": DYNAMIC})
    with client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1, "t": "owl"}, session=session)
        with pytest.raises(OperationFailure):
            collection.create_search_index({"definition": DYNAMIC, "name": "x"}, session=session)
    assert keys_of(collection, "default") == 4
    with client.start_session() as session, session.start_transaction():
        collection.insert_one({"_id": 1, "t": "owl"}, session=session)
        collection.update_one({"_id": 0}, {"$set": {"t": "red fox"}}, session=session)
    assert keys_of(collection, "default") == 5 + 4


def test_clustered_and_capped_collections_have_search_indexes(database):
    clustered = database.create_collection("k", clusteredIndex={"key": {"_id": 1}, "unique": True})
    capped = database.create_collection("p", capped=True, size=100_000, max=5)
    for collection in (clustered, capped):
        collection.insert_one({"_id": 0, "t": "fox"})
        collection.create_search_index({"definition": DYNAMIC})
        collection.insert_many([{"_id": number, "t": "fox"} for number in range(1, 10)])
        assert keys_of(collection, "default") == 4 * collection.count_documents({})


def test_it_is_there_after_a_restart(tmp_path):
    with Server(tmp_path) as server:
        c = server.client().d.c
        c.insert_many([{"_id": number, "t": f"fox {number}"} for number in range(3_000)])
        c.create_search_index({"definition": DYNAMIC})
        c.insert_many([{"_id": number, "t": f"owl {number}"} for number in range(3_000, 4_000)])
        before = listed(c)
        for end in (server.kill, server.stop):
            end()
            server.start()
            c = server.client().d.c
            assert listed(c) == before
            assert keys_of(c, "default") == 4_000 * 5
            c.update_one({"_id": 1}, {"$set": {"t": "cat 1"}})


@pytest.mark.parametrize("changed", ["created", "updated"])
def test_a_build_is_continued_after_a_kill(tmp_path, changed):
    with Server(tmp_path) as server:
        c = server.client().d.c
        text = " ".join(f"word{number}" for number in range(200))
        for start in range(0, 20_000, 5_000):
            c.insert_many([{"_id": number, "t": f"{text} {number}"}
                           for number in range(start, start + 5_000)])
        if changed == "updated":
            c.create_search_index({"definition": of_field("_id", type="number")})

        def build():
            # The server is killed meanwhile.
            try:
                if changed == "updated":
                    c.update_search_index("default", DYNAMIC)
                else:
                    c.create_search_index({"definition": DYNAMIC})
            except Exception:
                pass

        thread = threading.Thread(target=build)
        thread.start()
        other = server.client().d.c
        while len(listed(other)) == 0 or listed(other)[0]["status"] != "BUILDING":
            assert thread.is_alive(), "the build ended before the kill"
            time.sleep(0.01)
        [index] = listed(other)
        assert index["queryable"] is (changed == "updated")
        server.kill()
        thread.join()
        server.start()
        c = server.client().d.c
        deadline = time.monotonic() + 120
        while listed(c)[0]["status"] != "READY":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        [index] = listed(c)
        assert index["latestDefinition"] == DYNAMIC
        version = 1 if changed == "updated" else 0
        deadline = time.monotonic() + 10
        while [name for name in validate(c)["keysPerIndex"] if "search" in name] != [
                f"$search.default.{version}"]:
            assert time.monotonic() < deadline
        assert keys_of(c, "default", version) == 20_000 * (2 + 1 + 201)
