"""`collectionUUID`: commands check that the collection with their name has this UUID."""

import uuid

import pytest
from answers import refused
from bson import Binary
from pymongo.errors import OperationFailure

OTHER = Binary(uuid.UUID("0c5b7d5f-5c3f-4b1e-9a69-0d2f6d4a7f10").bytes, 4)


def uuid_of(database, name):
    return next(database.list_collections(filter={"name": name}))["info"]["uuid"]


def details(name, expected, actual, database):
    return {"db": database.name, "collectionUUID": expected, "expectedCollection": name, "actualCollection": actual}


def told(error):
    return {name: error[name] for name in ("db", "collectionUUID", "expectedCollection", "actualCollection")}


@pytest.fixture
def known(database):
    """The UUID of the collection "c"."""
    database.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    database.d.insert_one({"_id": 1})
    database.c.create_index("b")
    database.command("create", "v", viewOn="c", pipeline=[])
    return uuid_of(database, "c")


COMMANDS = [
    {"find": "c"},
    {"aggregate": "c", "pipeline": [], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}},
    {"explain": {"find": "c"}},
    {"explain": {"aggregate": "c", "pipeline": [], "cursor": {}}},
    {"explain": {"delete": "c", "deletes": [{"q": {}, "limit": 1}]}},
    {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]},
    {"dropIndexes": "c", "index": "b_1"},
    {"collMod": "c", "validationLevel": "strict"},
    {"drop": "c"},
]


def sent(database, command, name, expected):
    """The command with the name of another collection."""
    within = command.get("explain")
    if within is not None:
        database.command("explain", {**within, next(iter(within)): name, "collectionUUID": expected})
    else:
        database.command({**command, next(iter(command)): name, "collectionUUID": expected})


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command)[:40])
def test_another_collection_is_refused(database, known, command):
    for name, expected, actual in (("c", OTHER, None), ("d", known, "c"), ("missing", known, "c"), ("v", known, "c")):
        error = refused(lambda: sent(database, command, name, expected), 361)
        assert told(error) == details(name, expected, actual, database)
    # No collection was created or dropped.
    assert {"c", "d", "v"} == {one["name"] for one in database.list_collections()} - {"system.views"}
    refused(lambda: sent(database, command, "c", "text"), 14)
    sent(database, command, "c", known)


WRITES = [
    {"insert": "c", "documents": [{"_id": 8}, {"_id": 9}]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"z": 1}}}, {"q": {}, "u": {"$set": {"z": 1}}}]},
    {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}, {"q": {"_id": 2}, "limit": 1}]},
]


@pytest.mark.parametrize("command", WRITES, ids=lambda command: next(iter(command)))
def test_writes_to_another_collection_fail_one_by_one(database, known, command):
    name = next(iter(command))
    for ordered in (True, False):
        wanted = {**command, name: "d", "collectionUUID": known, "ordered": ordered}
        reply = database.command(wanted, check=False)
        assert (reply["ok"], reply["n"]) == (1, 0)
        assert [error["index"] for error in reply["writeErrors"]] == ([0] if ordered else [0, 1])
        for error in reply["writeErrors"]:
            assert error["code"] == 361
            assert told(error) == details("d", known, "c", database)
    database.command({**command, name: "missing", "collectionUUID": known}, check=False)
    assert "missing" not in database.list_collection_names()
    assert database.command({**command, "collectionUUID": known})["n"] == 2


def test_a_bulk_write_names_the_collections(client, database, known):
    def write(expected):
        place = {"ns": f"{database.name}.c", "collectionUUID": expected}
        operations = [{"insert": 0, "document": {"_id": 7}}, {"update": 0, "filter": {}, "updateMods": {"$set": {"z": 1}}},
                      {"delete": 0, "filter": {"_id": 2}}]
        return client.admin.command("bulkWrite", 1, ops=operations, nsInfo=[place], ordered=False)

    reply = write(OTHER)
    assert reply["nErrors"] == 3
    for result in reply["cursor"]["firstBatch"]:
        assert result["code"] == 361
        assert told(result) == details("c", OTHER, None, database)
    assert write(known)["nErrors"] == 0


def test_what_has_no_collection_has_no_uuid(client, database, known):
    def aggregate(place, stages, name):
        return lambda: place.command("aggregate", name, pipeline=stages, cursor={}, collectionUUID=known)

    refused(aggregate(database, [{"$changeStream": {}}], "c"), 4928900)
    refused(aggregate(database, [{"$documents": [{}]}], 1), 4928901)
    refused(aggregate(client.admin, [{"$currentOp": {}}], 1), 4928901)


def test_a_renamed_collection_is_the_one_that_is_meant(client, database, known):
    names = {"to": f"{database.name}.e"}
    error = refused(lambda: client.admin.command(
        "renameCollection", f"{database.name}.d", **names, collectionUUID=known), 361)
    assert told(error) == details("d", known, "c", database)
    error = refused(lambda: client.admin.command(
        "renameCollection", f"{database.name}.c", to=f"{database.name}.d", dropTarget=OTHER), 361)
    assert told(error) == details("d", OTHER, None, database)


def test_readers_take_a_uuid_for_the_name(client, database, known):
    """Regression: readers refused a UUID in place of a name. MongoDB finds the collection that has
    it."""
    name = f"{database.name}.c"
    found = database.command("find", known, sort={"_id": 1}, batchSize=1)["cursor"]
    assert (found["ns"], found["firstBatch"]) == (name, [{"_id": 1, "a": 1}])
    rest = database.command("getMore", found["id"], collection="c")["cursor"]
    assert rest["nextBatch"] == [{"_id": 2, "a": 2}]
    assert database.command("count", known, query={"a": 2})["n"] == 1
    assert database.command("distinct", known, key="a")["values"] == [1, 2]
    listed = database.command("listIndexes", known)["cursor"]
    assert (listed["ns"], [one["name"] for one in listed["firstBatch"]]) == (name, ["_id_", "b_1"])
    for command in ({"find": known}, {"count": known}, {"distinct": known, "key": "a"}):
        explained = database.command("explain", command, verbosity="queryPlanner")
        assert explained["queryPlanner"]["namespace"] == name
    text = "Unable to resolve 0c5b7d5f-5c3f-4b1e-9a69-0d2f6d4a7f10"
    for command in ({"find": OTHER}, {"count": OTHER}, {"distinct": OTHER, "key": "a"}, {"listIndexes": OTHER},
                    {"explain": {"find": OTHER}}):
        assert refused(lambda: database.command(command), 26)["errmsg"] == text
    refused(lambda: client["another"].command("find", known), 26)
    refused(lambda: database.command("find", Binary(bytes(16), 5)), 9)
    for command in ({"aggregate": known, "pipeline": [], "cursor": {}}, {"drop": known},
                    {"insert": known, "documents": [{}]}):
        with pytest.raises(OperationFailure):
            database.command(command)
    assert database.c.count_documents({}) == 2


def test_other_commands_take_no_uuid(database, known):
    for command in ({"count": "c"}, {"distinct": "c", "key": "a"}):
        refused(lambda: database.command({**command, "collectionUUID": known}), 40415)


def test_it_is_no_part_of_the_stable_api(database, known):
    for command in COMMANDS[:2] + COMMANDS[7:] + WRITES:
        strict = {**command, "collectionUUID": known, "apiVersion": "1", "apiStrict": True}
        refused(lambda: database.command(strict), 323)
