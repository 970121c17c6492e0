"""Stages of pipelines, views, and other ways to another collection."""

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from logins import code


@pytest.fixture(scope="module")
def reader(root, login):
    """A user who may read the collection a of the database s, and nothing else."""
    for name in ["a", "b"]:
        root.s[name].insert_one({"x": 1})
    root.s.command("createRole", "of_a", roles=[], privileges=[
        {"resource": {"db": "s", "collection": "a"}, "actions": ["find"]}])
    return login("of_a", database="s")


def grant(root, actions, collection, role="of_a", database="s"):
    root[database].command("grantPrivilegesToRole", role, privileges=[
        {"resource": {"db": database, "collection": collection}, "actions": actions.split()}])


@pytest.fixture
def granting(root):
    """Grants further privileges for a test."""
    yield lambda actions, collection: grant(root, actions, collection)
    root.s.command("updateRole", "of_a", privileges=[
        {"resource": {"db": "s", "collection": "a"}, "actions": ["find"]}])


@pytest.mark.parametrize("stage", [
    {"$lookup": {"from": "b", "localField": "x", "foreignField": "x", "as": "y"}},
    {"$lookup": {"from": "b", "pipeline": [], "as": "y"}},
    {"$lookup": {"pipeline": [{"$documents": [{}]}, {"$unionWith": "b"}], "as": "y"}},
    {"$graphLookup": {"from": "b", "startWith": "$x", "connectFromField": "x",
                      "connectToField": "x", "as": "y"}},
    {"$unionWith": "b"},
    {"$unionWith": {"coll": "b", "pipeline": [{"$match": {}}]}},
    {"$facet": {"y": [{"$lookup": {"from": "b", "pipeline": [], "as": "y"}}]}},
    {"$facet": {"y": [{"$unionWith": {"coll": "a", "pipeline": [{"$unionWith": "b"}]}}]}},
])
def test_stages_read_other_collections(reader, granting, stage):
    for command in [{"aggregate": "a", "pipeline": [stage], "cursor": {}},
                    {"explain": {"aggregate": "a", "pipeline": [stage], "cursor": {}}},
                    {"aggregate": "a", "pipeline": [stage], "explain": True}]:
        assert code(reader.s.command, command) == 13
    granting("find", "b")
    list(reader.s.a.aggregate([stage]))


@pytest.mark.parametrize("stage, action", [
    ({"$collStats": {"count": {}}}, "collStats"),
    ({"$indexStats": {}}, "indexStats"),
    ({"$planCacheStats": {}}, "planCacheRead"),
    ({"$listSearchIndexes": {}}, "listSearchIndexes"),
])
def test_stages_about_a_collection(reader, granting, stage, action):
    assert code(reader.s.a.aggregate, [stage]) == 13
    assert code(reader.s.b.aggregate, [stage]) == 13
    granting(action, "b")
    # They do not read the documents.
    list(reader.s.b.aggregate([stage]))


def test_stages_about_another_collection(root, reader, granting):
    """A pipeline within a stage that begins with statistics needs no `find`, and reads no documents."""
    root.s.b.update_many({}, {"$set": {"secret": "s3cret"}})
    statistics = {"collStats": {"$collStats": {"storageStats": {}, "count": {}}},
                  "indexStats": {"$indexStats": {}},
                  "planCacheRead": {"$planCacheStats": {}},
                  "listSearchIndexes": {"$listSearchIndexes": {}}}
    join = {"localField": "x", "foreignField": "x"}
    outer = [lambda *stages: [{"$unionWith": {"coll": "b", "pipeline": [*stages]}}],
             lambda *stages: [{"$lookup": {"from": "b", "pipeline": [*stages], "as": "y"}}],
             lambda *stages: [{"$lookup": {"from": "b", "pipeline": [*stages], "as": "y", **join}}],
             lambda *stages: [{"$facet": {"y": [*stages]}}],
             lambda *stages: [{"$facet": {"y": [{"$unionWith": {
                 "coll": "b", "pipeline": [*stages]}}]}}]]

    def run(stages):
        try:
            return str(list(reader.s.a.aggregate(stages)))
        except OperationFailure as error:
            return f"error {error.code}"

    others = [{"$currentOp": {}}, {"$listSessions": {}}, {"$listLocalSessions": {}},
              {"$documents": [{"x": 1}]}, {"$changeStream": {}}, {"$listClusterCatalog": {}}]
    for action, first in [*statistics.items(), *((None, other) for other in others)]:
        for wrap in outer:
            if action and wrap is not outer[3]:
                assert run(wrap(first)) == "error 13"
        if action:
            granting(action, "b")
        for wrap in outer:
            for stages in [[first], [first, {"$match": {}}], [{"$match": {}}, first],
                           [first, {"$unionWith": "b"}],
                           [first, {"$lookup": {"from": "b", "pipeline": [], "as": "z"}}]]:
                assert "s3cret" not in run(wrap(*stages)), wrap(*stages)
    assert run(outer[0](statistics["collStats"])).count("storageStats") == 1
    granting("find", "b")
    assert "s3cret" in run(outer[0]())


def test_stages_that_write(root, reader, granting):
    out = [{"$out": "o"}]
    for actions in ["insert", "remove"]:
        assert code(reader.s.a.aggregate, out) == 13
        granting(actions, "o")
    list(reader.s.a.aggregate(out))
    assert code(reader.s.command, {"aggregate": "a", "pipeline": out, "cursor": {},
                                   "bypassDocumentValidation": True}) == 13
    merge = lambda **options: [{"$merge": {"into": "m", **options}}]
    granting("insert", "m")
    list(reader.s.a.aggregate(merge(whenMatched="keepExisting")))
    for options in [{}, {"whenMatched": "replace"}, {"whenMatched": [{"$set": {"y": 1}}]}]:
        assert code(reader.s.a.aggregate, merge(**options)) == 13
    granting("update", "m")
    list(reader.s.a.aggregate(merge()))
    assert code(reader.s.a.aggregate, [{"$merge": {"into": {"db": "s2", "coll": "m"}}}]) == 13
    # Writing to another collection that the user may only read.
    assert code(reader.s.a.aggregate, [{"$out": {"db": "s2", "coll": "o"}}]) == 13


def test_views(root, reader, granting):
    root.s.drop_collection("v")
    create = {"create": "v", "viewOn": "b", "pipeline": [{"$lookup": {
        "from": "a", "pipeline": [], "as": "y"}}]}
    assert code(reader.s.command, create) == 13
    granting("createCollection", "v")
    # A user that cannot read the view learns nothing from creating it. mongorestore with the role
    # restore does this.
    reader.s.command(create)
    assert code(reader.s.v.find_one) == 13
    root.s.drop_collection("v")
    granting("find", "v")
    # A view must not show what its creator cannot read.
    assert code(reader.s.command, create) == 13
    granting("find", "b")
    reader.s.command(create)
    assert reader.s.v.find_one()["x"] == 1
    granting("collMod", "v")
    assert code(reader.s.command, "collMod", "v", viewOn="c", pipeline=[]) == 13
    assert code(reader.s.command, "collMod", "v", viewOn="a", pipeline=[{"$unionWith": "c"}]) == 13
    # Options that are not given stay. The changed view must not show what its changer cannot read.
    assert code(reader.s.command, "collMod", "v", pipeline=[{"$unionWith": "c"}]) == 13
    root.s.command("revokePrivilegesFromRole", "of_a", privileges=[
        {"resource": {"db": "s", "collection": "b"}, "actions": ["find"]}])
    assert code(reader.s.command, "collMod", "v", pipeline=[]) == 13
    reader.s.command("collMod", "v", viewOn="a", pipeline=[])
    # A user that may read a view need not have the right to read its collection.
    root.s.command("createRole", "of_v", roles=[], privileges=[
        {"resource": {"db": "s", "collection": "v"}, "actions": ["find"]}])


def test_readers_of_a_view_need_only_the_view(root, login):
    root.s.hidden.insert_one({"_id": 1})
    root.s.command("create", "shown", viewOn="hidden", pipeline=[])
    root.s.command("createRole", "of_shown", roles=[], privileges=[
        {"resource": {"db": "s", "collection": "shown"}, "actions": ["find"]}])
    client = login("of_shown", database="s")
    assert client.s.shown.find_one() == {"_id": 1}
    assert client.s.shown.count_documents({}) == 1
    assert code(client.s.hidden.find_one) == 13
    assert code(client.s.shown.aggregate, [{"$unionWith": "hidden"}]) == 13


def test_writes(root, reader, granting):
    granting("update", "b")
    assert reader.s.command("update", "b", updates=[{"q": {"x": 2}, "u": {"$set": {"x": 3}}}])["ok"]
    assert code(reader.s.command, "update", "b",
                updates=[{"q": {"x": 9}, "u": {"$set": {"y": 1}}},
                         {"q": {"x": 9}, "u": {"$set": {"y": 1}}, "upsert": True}]) == 13
    modify = lambda **options: reader.s.command("findAndModify", "b", **options)
    assert code(modify, update={"$set": {"y": 1}}) == 13
    granting("find", "b")
    modify(update={"$set": {"y": 1}})
    assert code(modify, update={"$set": {"y": 1}}, query={"x": 9}, upsert=True) == 13
    assert code(modify, remove=True) == 13
    assert code(modify, update={"$set": {"y": 1}}, bypassDocumentValidation=True) == 13
    granting("insert", "b")
    modify(update={"$set": {"y": 1}}, query={"x": 9}, upsert=True)
    assert code(reader.s.command, "insert", "b", documents=[{}],
                bypassDocumentValidation=True) == 13
    assert code(reader.s.b.delete_one, {}) == 13


def bulk(client, operations, namespaces=("s.a", "s.b")):
    return client.admin.command("bulkWrite", 1, ops=operations,
                                nsInfo=[{"ns": name} for name in namespaces])


def test_bulk_writes(reader, granting):
    granting("insert", "b")
    bulk(reader, [{"insert": 1, "document": {}}])
    assert code(bulk, reader, [{"insert": 0, "document": {}}]) == 13
    assert code(bulk, reader, [{"insert": 1, "document": {}}, {"insert": 0, "document": {}}]) == 13
    update = {"update": 1, "filter": {}, "updateMods": {"$set": {"z": 1}}}
    assert code(bulk, reader, [update]) == 13
    assert code(bulk, reader, [{"delete": 1, "filter": {}}]) == 13
    granting("update", "b")
    bulk(reader, [update])


def test_collections_by_uuid(root, reader):
    uuids = {one["name"]: one["info"]["uuid"] for one in root.s.list_collections()
             if one["type"] == "collection"}
    for name in ["a", "b"]:
        assert code(reader.s.command, {"find": uuids[name]}) == 13
    root.admin.command("createRole", "by_uuid", roles=[], privileges=[
        {"resource": {"cluster": True}, "actions": ["useUUID"]}])
    root.s.command("grantRolesToUser", reader.admin.command(
        "connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"],
        roles=[{"role": "by_uuid", "db": "admin"}])
    reader.s.command({"find": uuids["a"]})
    assert code(reader.s.command, {"find": uuids["b"]}) == 13


def test_renaming(root, login):
    root.rename.a.insert_one({"secret": 1})
    root.rename.command("createRole", "writer", roles=[], privileges=[
        {"resource": {"db": "rename", "collection": "b"}, "actions": ["find", "insert"]},
        {"resource": {"db": "rename", "collection": ""}, "actions": ["renameCollectionSameDB"]}])
    client = login("writer", database="rename")
    # Otherwise the user could read the documents of a.
    rename = lambda source, target, **options: client.admin.command(
        "renameCollection", f"rename.{source}", to=f"rename.{target}", **options)
    assert code(rename, "a", "b") == 13
    rename("a", "c")
    assert code(rename, "c", "d", dropTarget=True) == 13
    assert code(client.admin.command, "renameCollection", "rename.c", to="other.c") == 13


def test_change_streams(root, login):
    stream = lambda client, collection, **options: client.streams.command(
        {"aggregate": collection, "pipeline": [{"$changeStream": options}], "cursor": {}})
    root.streams.c.insert_one({})
    root.streams.command("createRole", "of_c", roles=[], privileges=[
        {"resource": {"db": "streams", "collection": "c"}, "actions": ["find", "changeStream"]}])
    client = login("of_c", database="streams")
    stream(client, "c")
    assert code(stream, client, "b") == 13
    assert code(stream, client, 1) == 13
    whole = lambda client: client.admin.command(
        {"aggregate": 1, "pipeline": [{"$changeStream": {"allChangesForCluster": True}}],
         "cursor": {}})
    assert code(whole, client) == 13
    reader = login("read", database="streams")
    stream(reader, 1)
    assert code(whole, reader) == 13
    whole(login("readAnyDatabase"))


@pytest.mark.parametrize("stage, allowed", [
    ({"$listClusterCatalog": {}}, "clusterMonitor"),
    ({"$querySettings": {}}, "clusterManager"),
    ({"$currentOp": {"allUsers": True}}, "clusterMonitor"),
    ({"$listLocalSessions": {"allUsers": True}}, "clusterMonitor"),
])
def test_stages_about_the_server(login, stage, allowed):
    run = lambda client: list(client.admin.aggregate([stage]))
    assert code(run, login("readWriteAnyDatabase")) == 13
    run(login(allowed))


def test_system_collections(root, login):
    client = login("readWriteAnyDatabase", "dbAdminAnyDatabase")
    for name in ["system.users", "system.roles", "system.keys", "system.version"]:
        assert code(client.admin[name].find_one) == 13, name
        assert code(client.admin[name].insert_one, {}) == 13, name
        assert code(client.admin[name].drop) == 13, name
        assert code(client.admin.a.aggregate, [{"$unionWith": name}]) == 13, name
    assert root.admin["system.users"].find_one()
    assert code(root.admin["system.keys"].find_one) == 13


def twice(field, *pairs):
    """`{field: {…}}` with pairs whose names may be equal, which a dictionary cannot have."""
    elements = b"".join(bson.encode({name: value})[4:-1] for name, value in pairs)
    inner = (len(elements) + 5).to_bytes(4, "little") + elements + b"\0"
    element = b"\x03" + field.encode() + b"\0" + inner
    return RawBSONDocument((len(element) + 5).to_bytes(4, "little") + element + b"\0")


@pytest.mark.parametrize("stage", [
    twice("$out", ("db", "mine"), ("db", "victim"), ("coll", "a")),
    twice("$out", ("db", "mine"), ("coll", "a"), ("coll", "orders")),
    twice("$out", ("db", None), ("db", "victim"), ("coll", "a")),
    twice("$merge", ("into", "a"), ("into", {"db": "victim", "coll": "a"})),
    twice("$merge", ("into", "a"), ("whenMatched", "fail"), ("whenMatched", "replace")),
    {"$merge": {"into": twice("x", ("db", "mine"), ("db", "victim"), ("coll", "a"))["x"]}},
])
def test_a_target_that_is_given_twice_is_refused(login, root, stage):
    """Regression: of two fields with one name the check read the first, and the stage the last."""
    root.mine.source.insert_one({"a": 1})
    user = login({"role": "readWrite", "db": "mine"})
    with pytest.raises(OperationFailure) as error:
        user.mine.command({"aggregate": "source", "pipeline": [stage], "cursor": {}})
    assert error.value.code == 13
