"""Arguments of commands: null counts as absent, types are checked as in MongoDB, unknown names are
refused."""

import pytest
from bson import Binary, Decimal128, Int64
from pymongo.errors import OperationFailure

NAN, INFINITE = float("nan"), float("inf")


def code(database, **command):
    """The error code of a command, or 0 if it succeeds."""
    try:
        database.command(command)
    except OperationFailure as error:
        return error.code
    return 0


@pytest.fixture
def database(client):
    client.drop_database("arguments")
    client.arguments.c.insert_many({"a": number} for number in range(3))
    client.arguments.c.create_index("a", name="a_1", expireAfterSeconds=100)
    return client.arguments


def test_null_is_as_if_it_were_not_given(database):
    for command in ({"find": "c", "readConcern": None}, {"find": "c", "maxTimeMS": None}, {"find": "c", "let": None},
                    {"listCollections": 1, "filter": None, "nameOnly": None, "writeConcern": None},
                    {"create": "d", "validator": None, "viewOn": None, "pipeline": None},
                    {"collMod": "c", "validator": None, "index": None, "cappedSize": None},
                    {"compact": "c", "force": None, "dryRun": None}):
        assert code(database, **command) == 0, command


def test_an_index_is_changed_by_numbers_and_booleans(database):
    def changed(expected, **index):
        assert code(database, collMod="c", index={"name": "a_1"} | index) == expected, index

    changed(0, hidden=0)
    changed(0, prepareUnique=Decimal128("0"))
    changed(0, expireAfterSeconds=Decimal128("50.5"))
    assert database.c.index_information()["a_1"]["expireAfterSeconds"] == 50
    changed(0, expireAfterSeconds=INFINITE)
    assert database.c.index_information()["a_1"]["expireAfterSeconds"] == 2**31 - 1
    changed(0, expireAfterSeconds=NAN)
    assert database.c.index_information()["a_1"]["expireAfterSeconds"] == 0
    changed(72, expireAfterSeconds=-1)
    changed(2, unique=0)
    for wrong in ({"hidden": "x"}, {"unique": [True]}, {"expireAfterSeconds": "1"}):
        changed(14, **wrong)
    changed(40415, other=1)


def test_what_collmod_takes(database):
    for expected, arguments in ((40415, {"other": 1}), (40415, {"Validator": {}}),
                                (14, {"validator": 1}), (14, {"index": "a_1"}),
                                (14, {"validationLevel": 1}), (2, {"validationLevel": "x"}),
                                (14, {"pipeline": {}}), (14, {"viewOn": 1}),
                                (72, {"viewOn": "d"}), (72, {"pipeline": []}),
                                (14, {"cappedSize": "x"}), (72, {"cappedSize": Int64(2**50)})):
        assert code(database, collMod="c", **arguments) == expected, arguments


def test_one_is_what_drops_a_database(database):
    for expected, value in ((20, "x"), (20, 2), (20, None), (0, 1.5)):
        assert code(database, dropDatabase=value) == expected, value


def test_what_renames_take(database, client):
    def renamed(expected, target="arguments.d", **arguments):
        found = code(client.admin, renameCollection="arguments.c", to=target, **arguments)
        assert found == expected, arguments

    uuid = next(database.list_collections(filter={"name": "c"}))["info"]["uuid"]
    other = Binary(b"0" * 16, 4)
    for wrong in ({"to": 1}, {"dropTarget": 1}, {"stayTemp": 1}, {"collectionUUID": "x"}):
        renamed(14, **({"target": 1} if "to" in wrong else wrong))
    renamed(207, collectionUUID=Binary(b"0", 4))
    renamed(207, dropTarget=Binary(b"0" * 16, 0))
    renamed(361, collectionUUID=other)
    renamed(361, dropTarget=other)
    renamed(72, target="elsewhere.d", dropTarget=other)
    database.d.insert_one({})
    there = next(database.list_collections(filter={"name": "d"}))["info"]["uuid"]
    renamed(48, collectionUUID=uuid)
    renamed(0, collectionUUID=uuid, dropTarget=there)
    assert database.list_collection_names() == ["d"]


def test_what_a_collation_takes(database):
    for expected, collation in ((2, {}), (2, {"strength": 1}), (14, {"locale": 5}),
                                (0, {"locale": "en", "strength": None, "caseLevel": None}),
                                (9, {"locale": "en", "strength": 6}),
                                (9, {"locale": "en", "alternate": "x"}),
                                (14, {"locale": "en", "version": 5}),
                                (161, {"locale": "en", "version": "0.1"}),
                                (9, {"locale": "en", "Strength": 1})):
        assert code(database, create="collated", collation=collation) == expected, collation


def test_what_is_outside_of_the_stable_api_is_listed(database, client):
    database.t.create_index([("a", "text")], name="words")
    database.t.create_index("b", sparse=True, name="few")
    database.create_collection("v", viewOn="c", pipeline=[])

    def listed(**arguments):
        parameters = {"version": "1", "strict": True}
        command = {"validateDBMetadata": 1, "apiParameters": parameters, "db": "arguments"}
        return client.admin.command(command | arguments)["apiVersionErrors"]

    found = listed()
    assert [error["errmsg"].split()[4] for error in found] == ["words", "few"]
    assert {(error["ns"], error["code"]) for error in found} == {("arguments.t", 323)}
    assert listed(collection="c") == listed(db="other") == []
    assert listed(apiParameters={"version": "1"}) == listed(apiParameters={"version": "2"}) == []
    for expected, arguments in ((40414, {}), (40414, {"apiParameters": {}}),
                                (40415, {"apiParameters": {"version": "1", "x": 1}}),
                                (14, {"apiParameters": {"version": "1", "strict": None}}),
                                (14, {"apiParameters": 1}),
                                (73, {"apiParameters": {"version": "1"}, "db": "a.b"}),
                                (73, {"apiParameters": {"version": "1"}, "collection": ""})):
        assert code(client.admin, validateDBMetadata=1, **arguments) == expected, arguments


def test_what_lists_take(database, client):
    for name, of in (("listCollections", database), ("listDatabases", client.admin)):
        authorized = "authorized" + name.removeprefix("list")
        for expected, arguments in ((0, {authorized: True}), (14, {authorized: 1}), (14, {"nameOnly": "x"}),
                                    (2, {"filter": {"$text": {"$search": "x"}}}),
                                    (5626500, {"filter": {"name": {"$near": [0, 0]}}}),
                                    (0, {"filter": {"name": {"$geoWithin": {"$center": [[0, 0], 1]}}}})):
            assert code(of, **{name: 1}, **arguments) == expected, (name, arguments)


def test_commands_of_administration_refuse_what_they_do_not_know(database, client):
    database.create_collection("t").create_index("a")
    key = {"query": {"a": 1}}
    for command in ({"drop": "t"}, {"dropDatabase": 1}, {"listCollections": 1}, {"validate": "t"}, {"collStats": "t"},
                    {"dbHash": 1},
                    {"convertToCapped": "t", "size": 4096}, {"planCacheClear": "t"}, {"planCacheListFilters": "t"},
                    {"cloneCollectionAsCapped": "t", "toCollection": "other", "size": 4096},
                    {"planCacheSetFilter": "t", "indexes": ["a_1"], **key}, {"planCacheClearFilters": "t", **key}):
        assert code(database, **command, other=1) == 40415, command
        assert code(database, **command, comment="x", maxTimeMS=9_000, Full=True) == 40415, command
    for command in ({"top": 1}, {"killOp": 1, "op": 1 << 20}, {"getClusterParameter": "*"}):
        assert code(client.admin, **command, other=1) == 40415, command
        assert code(client.admin, **command) == 0, command
    assert database.list_collection_names() == ["c", "t"] and len(list(database.t.list_indexes())) == 2
    # Drivers send these to all servers.
    assert code(database, validate="t", scandata=False, full=False) == 0
    assert code(database, listIndexes="t", cursor={}) == code(database, collStats="t", scale=1024, verbose=True) == 0
    assert code(database, dropIndexes="t", index="a_1", writeConcern={"w": 1}, comment=1) == 0
    assert code(database, drop="t", writeConcern={"w": 1}, comment=1) == 0


def test_what_removes_a_document_is_a_boolean_or_a_number(database):
    for expected, value in ((14, "x"), (14, {}), (14, []), (0, 0), (0, 0.0), (0, False), (0, None)):
        asked = {"query": {"a": 7}, "update": {"$set": {"b": 1}}, "remove": value}
        assert code(database, findAndModify="c", **asked) == expected, asked
    assert code(database, findAndModify="c", query={"a": 1}, remove=Decimal128("1")) == 0
    assert database.c.count_documents({"a": 1}) == 0


def test_where_concerns_come_from(database):
    for concern, command in (("readConcern", {"find": "c"}),
                             ("writeConcern", {"insert": "c", "documents": [{}]})):
        for expected, provenance in ((0, "clientSupplied"), (0, "customDefault"), (0, None),
                                     (2, "ClientSupplied"), (14, 1), (14, {})):
            found = code(database, **command, **{concern: {"provenance": provenance}})
            assert found == expected, (concern, provenance)


def test_options_of_new_collections(database):
    usual = {"key": {"_id": 1}, "name": "_id_"}
    for expected, arguments in ((9, {"idIndex": {"key": {"_id": 1}}}), (67, {"idIndex": usual | {"name": ""}}),
                                (14, {"idIndex": usual | {"name": None}}), (67, {"idIndex": usual | {"v": 3}}),
                                (67, {"idIndex": usual | {"v": 1.5}}), (14, {"idIndex": usual | {"v": "2"}}),
                                (0, {"idIndex": usual | {"v": 2}}),
                                (0, {"clusteredIndex": 0}), (0, {"clusteredIndex": Decimal128("-0")}),
                                (5979703, {"clusteredIndex": 1}), (14, {"clusteredIndex": None})):
        database.drop_collection("made")
        assert code(database, create="made", **arguments) == expected, arguments
        if expected == 0:
            assert "clusteredIndex" not in next(database.list_collections(filter={"name": "made"}))["options"]


def test_preparing_for_uniqueness_is_a_change_of_its_own(database):
    for other in ({"hidden": True}, {"expireAfterSeconds": 50}):
        assert code(database, collMod="c", index={"name": "a_1", "prepareUnique": True, **other}) == 72
        assert code(database, collMod="c", index={"name": "a_1", "prepareUnique": False, **other}) == 0
    index = database.c.index_information()["a_1"]
    assert (index["hidden"], index["expireAfterSeconds"], "prepareUnique" in index) == (True, 50, False)


def test_a_list_may_mean_all_indexes(database):
    database.c.create_index("b")
    assert code(database, dropIndexes="c", index=["*", "b_1"]) == 27
    assert code(database, dropIndexes="c", index=["*"]) == 0
    assert list(database.c.index_information()) == ["_id_"]


def test_what_changed_has_no_place_of_what_was_found(database):
    asked = {"query": {"a": 7}, "update": {"$set": {"b": 1}}, "fields": {"a.$": 1}}
    assert code(database, findAndModify="c", **asked) == 0
    assert code(database, findAndModify="c", **asked, new=True) == 2


def test_arguments_of_the_stable_api_are_booleans(database):
    for expected, arguments in ((0, {"apiStrict": True, "apiDeprecationErrors": False}),
                                (14, {"apiDeprecationErrors": "false"}), (14, {"apiStrict": "true"})):
        assert code(database, ping=1, apiVersion="1", **arguments) == expected, arguments
    for name in ("apiStrict", "apiDeprecationErrors"):
        assert code(database, ping=1, **{name: False}) == 4886600


def test_what_the_server_knows_is_not_changed_by_writes(database):
    """Regression: an update of `system.views` stored a document that is no view."""
    database.create_collection("v", viewOn="c", pipeline=[])
    statement = {"q": {}, "u": {"$set": {"pipeline": 5}}}
    for name in ("system.views", "system.profile"):
        for command in ({"update": name, "updates": [statement]}, {"delete": name, "deletes": [{"q": {}, "limit": 0}]}):
            [error] = database.command(command)["writeErrors"]
            assert error["code"] == 73, command
        assert code(database, findAndModify=name, query={}, remove=True) == 73
        assert code(database, findAndModify=name, query={}, update=statement["u"]) == 73
    assert database.v.count_documents({}) == 3
