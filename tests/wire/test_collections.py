"""Collections and their changes: names, options, options of indexes, sizes."""

import time

from answers import refused


def listed(database):
    return {one["name"]: one for one in database.list_collections()}


def test_a_collection_is_renamed(client, database):
    database.c.insert_many([{"_id": 1}, {"_id": 2}])
    database.c.create_index("a")
    database.e.insert_one({"_id": 9})
    admin = client.admin
    name = database.name
    refused(lambda: database.c.rename("e"), 48)
    refused(lambda: database.missing.rename("f"), 26)
    refused(lambda: admin.command("renameCollection", f"{name}.c", to=f"{name}.c"), 20)
    refused(lambda: database.command("renameCollection", f"{name}.c", to=f"{name}.f"), 13)
    database.c.rename("e", dropTarget=True)
    assert [one["_id"] for one in database.e.find()] == [1, 2]
    assert set(database.e.index_information()) == {"_id_", "a_1"}
    assert set(listed(database)) == {"e"}


def test_a_collection_moves_to_another_database(client, database):
    database.c.insert_one({"_id": 1})
    other = client["rename_target"]
    client.drop_database(other)
    client.admin.command("renameCollection", f"{database.name}.c", to="rename_target.d")
    assert database.list_collection_names() == []
    assert other.d.find_one() == {"_id": 1}
    client.drop_database(other)


def test_names_of_databases_differ_in_more_than_case(client, database):
    """Regression: two databases whose names differ only in case could exist. MongoDB refuses the
    second one."""
    other = client[database.name.swapcase()]
    database.c.insert_one({"_id": 1})
    message = (f"db already exists with different case already have: [{database.name}] trying to create"
               f" [{other.name}]")
    index = {"key": {"a": 1}, "name": "a_1"}
    for command in ({"create": "c"}, {"create": "v", "viewOn": "c", "pipeline": []},
                    {"createIndexes": "c", "indexes": [index]},
                    {"findAndModify": "c", "query": {}, "update": {"a": 1}, "upsert": True}):
        assert refused(lambda: other.command(command), 13297)["errmsg"] == message
    upsert = {"q": {"a": 1}, "u": {"a": 2}, "upsert": True}
    for command in ({"insert": "c", "documents": [{}, {}]}, {"update": "c", "updates": [upsert]}):
        for ordered in (True, False):
            errors = other.command(command, ordered=ordered)["writeErrors"]
            count = 2 if "insert" in command and not ordered else 1
            assert [(one["code"], one["errmsg"]) for one in errors] == [(13297, message)] * count
    refused(lambda: client.admin.command("renameCollection", f"{database.name}.c", to=f"{other.name}.c"), 13297)
    out = {"$out": {"db": other.name, "coll": "c"}}
    refused(lambda: database.c.aggregate([out]), 13297)
    assert (other.list_collection_names(), list(other.c.find())) == ([], [])
    client.drop_database(database)
    other.c.insert_one({"_id": 1})
    refused(lambda: database.create_collection("c"), 13297)
    client.drop_database(other)


def test_a_renamed_collection_ends_cursors(database):
    database.c.insert_many([{"_id": number} for number in range(10)])
    cursor = database.c.find(batch_size=2)
    next(cursor)
    database.c.rename("d")
    refused(lambda: list(cursor), 175)


def test_an_index_is_hidden(collection):
    collection.insert_many([{"a": number} for number in range(10)])
    collection.create_index("a", name="a")
    change = collection.database.command
    assert change("collMod", "c", index={"name": "a", "hidden": True}) == {
        "hidden_old": False, "hidden_new": True, "ok": 1.0}
    assert collection.index_information()["a"]["hidden"] is True
    refused(lambda: list(collection.find({"a": 1}).hint("a")), 2)
    assert change("collMod", "c", index={"keyPattern": {"a": 1}, "hidden": False})["ok"] == 1
    assert len(list(collection.find({"a": 1}).hint("a"))) == 1


def test_a_hidden_index_is_counted_anew(collection):
    collection.insert_many([{"a": number} for number in range(10)])
    collection.create_index("a", name="a")

    def used():
        stats = next(collection.aggregate([{"$indexStats": {}}, {"$match": {"name": "a"}}]))
        return stats["accesses"]["ops"], stats["accesses"]["since"]

    def hide(hidden):
        collection.database.command("collMod", "c", index={"name": "a", "hidden": hidden})

    assert len(list(collection.find({"a": 1}).hint("a"))) == 1
    ops, made = used()
    assert ops == 1
    # The index is not hidden, so nothing changes.
    hide(False)
    assert used() == (1, made)
    time.sleep(0.01)
    hide(True)
    ops, hidden = used()
    assert ops == 0 and hidden > made
    hide(True)
    assert used() == (0, hidden)
    time.sleep(0.01)
    hide(False)
    ops, shown = used()
    assert ops == 0 and shown > hidden
    assert len(list(collection.find({"a": 1}).hint("a"))) == 1
    assert used() == (1, shown)


def test_an_index_that_has_all_distinct_values_is_counted(collection):
    collection.insert_many([{"a": number % 3} for number in range(10)])
    collection.create_index("a", name="a")
    for place, query in enumerate(({}, {"a": {"$gt": 0}})):
        assert len(collection.distinct("a", query)) == 3 - place
        [stats] = collection.aggregate([{"$indexStats": {}}, {"$match": {"name": "a"}}])
        assert stats["accesses"]["ops"] == place + 1


def test_options_are_shown(database):
    database.create_collection("c", validationLevel="moderate")
    database.command("collMod", "c", validationAction="warn")
    options = {"validationLevel": "moderate", "validationAction": "warn"}
    assert listed(database)["c"]["options"] == options


def test_the_size_of_data(collection):
    collection.insert_many([{"_id": number} for number in range(10)])
    collection.create_index("a")
    size = collection.database.command
    name = collection.full_name
    whole = size("dataSize", name)
    assert (whole["size"], whole["numObjects"]) == (140, 10)
    some = size("dataSize", name, keyPattern={"_id": 1}, min={"_id": 2}, max={"_id": 5})
    assert (some["size"], some["numObjects"]) == (42, 3)
    few = size("dataSize", name, maxObjects=4)
    assert few["maxReached"] and few["numObjects"] == 5
    assert size("dataSize", "nothing.here")["size"] == 0


def test_documents_are_compressed_as_the_collection_says(database):
    """The same documents. Zstandard compresses them better than LZ4."""
    words = [f"{word * 7919 % 1000:03x}" for word in range(5_000)]
    sizes = {}
    for compressor in ["zstd", "lz4", "none"]:
        engine = {"wiredTiger": {"configString": f"block_compressor={compressor}"}}
        collection = database.create_collection(compressor, storageEngine=engine)
        collection.insert_many([{"_id": number, "text": " ".join(words[number:number + 300])}
                                for number in range(500)])
        database.command("compact", compressor)
        sizes[compressor] = database.command("collStats", compressor)["storageSize"]
        listed = next(database.list_collections(filter={"name": compressor}))
        assert listed["options"] == {"storageEngine": engine}
        assert database.command("validate", compressor, full=True)["valid"]
    assert sizes["zstd"] < sizes["lz4"] < sizes["none"], sizes
    for text in ["block_compressor=snappy", "type=lsm"]:
        engine = {"wiredTiger": {"configString": text}}
        refused(lambda: database.create_collection("refused", storageEngine=engine), 72)
