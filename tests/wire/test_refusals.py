"""Requests that MongoDB refuses. Earlier drafts accepted them. Each is refused with MongoDB's code.
"""

import pymongo
import pytest
from answers import ids, refused
from bson import Int64, Timestamp
from pymongo.errors import OperationFailure
from windrow_server import Server


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    """A client of a server that is a replica set of one."""
    options = ("--replica-set", "rs0")
    with Server(tmp_path_factory.mktemp("member"), options=options) as server:
        with pymongo.MongoClient(f"mongodb://127.0.0.1:{server.port}/?replicaSet=rs0") as client:
            yield client


def code(database, command, **options):
    try:
        reply = database.command(command, **options)
    except OperationFailure as error:
        return error.code
    errors = reply.get("writeErrors", []) + [reply.get("writeConcernError", {"code": 0})]
    return errors[0]["code"]


def test_a_natural_hint_against_a_natural_sort(collection):
    """Regression: the sort decided the direction, and the hint had no effect."""
    collection.insert_many([{"_id": 1}, {"_id": 2}])
    for sorted_by, hinted, expected in ((1, 1, [1, 2]), (-1, -1, [2, 1]), (1, -1, None), (-1, 1, None)):
        def read():
            return ids(collection.find(sort=[("$natural", sorted_by)], hint=[("$natural", hinted)]))
        if expected is None:
            refused(read, 2)
        else:
            assert read() == expected
    refused(lambda: ids(collection.database.missing.find(
        sort=[("$natural", 1)], hint=[("$natural", -1)])), 2)


@pytest.mark.parametrize("view, expected", [
    ({"viewOn": "c"}, 0),
    ({"viewOn": "$x"}, 73), ({"viewOn": "a$x"}, 73),
    ({"viewOn": "c", "size": 4096}, 72), ({"viewOn": "c", "max": 5}, 72),
    ({"viewOn": "c", "capped": True}, 72),
    # MongoDB only checks whether the options fit together.
    ({"viewOn": "c", "capped": True, "size": 4096}, 0),
])
def test_views_with_options_of_capped_collections(database, view, expected):
    """Regression: a view on an invalid collection name was created, and one with a size."""
    assert code(database, {"create": "v", "pipeline": [], **view}) == expected


def test_a_view_is_not_changed_to_a_name_that_no_collection_has(database):
    """Regression: `collMod` had as few checks as `create`."""
    assert code(database, {"create": "v", "viewOn": "c", "pipeline": []}) == 0
    assert code(database, {"collMod": "v", "viewOn": "$x", "pipeline": []}) == 73


@pytest.mark.parametrize("identifier, expected", [
    ({"a": {"b": 1}}, 0), ({"$id": 1}, 0), ({"a": {"$ref": "c", "$id": 1}}, 0),
    ({"$b": 1}, 52), ({"a": {"$b": 1}}, 52), ({"a": [{"b": {"$c": 1}}]}, 52),
])
def test_names_with_a_dollar_deep_in_an_id(database, identifier, expected):
    """Regression: only the first level of an `_id` was checked."""
    assert code(database, {"insert": "c", "documents": [{"_id": identifier}]}) == expected


def test_empty_options_of_a_storage_engine(database):
    """Regression: an index with `storageEngine: {}` was built."""
    index = {"key": {"a": 1}, "name": "a_1", "storageEngine": {}}
    assert code(database, {"createIndexes": "c", "indexes": [index]}) == 67
    # Collections accept such options, as in MongoDB.
    assert code(database, {"create": "d", "storageEngine": {}}) == 0


def test_a_projection_beside_a_wildcard_path(database):
    """A path that ends in a wildcard below a field cannot have a projection."""
    for key in ({"a.$**": 1}, {"x": 1, "a.$**": 1}):
        index = {"key": key, "name": "w", "wildcardProjection": {"b": 1}}
        assert code(database, {"createIndexes": "c", "indexes": [index]}) == 9


def test_write_concerns_that_the_set_cannot_satisfy(member):
    """Regression: a write concern by tags that no member has was reported as satisfied."""
    for concern, expected in (({"w": {"rack": 1}}, 4), ({"w": "mode"}, 79), ({"w": None}, 0)):
        insert = {"insert": "c", "documents": [{}], "writeConcern": concern}
        assert code(member.refusals, insert) == expected, concern


def test_both_numbers_of_statements(member):
    """Regression: `stmtIds` beside `stmtId` was ignored."""
    insert = {"insert": "c", "documents": [{}], "txnNumber": Int64(1)}
    with member.start_session() as session:
        both = {**insert, "stmtId": 1, "stmtIds": [1]}
        assert code(member.refusals, both, session=session) == 72
        assert code(member.refusals, {**insert, "stmtId": 1}, session=session) == 0


def test_a_deletion_sent_again_as_find_and_modify(member):
    """Regression: `findAndModify` answered a statement that had been a `delete` as if it had found
    nothing. The deleted document is not stored, so there is no answer."""
    database = member.refusals
    database.d.insert_one({"_id": 1})
    # Drivers reuse sessions. No other test uses this number.
    number = {"txnNumber": Int64(7)}
    delete = {"delete": "d", "deletes": [{"q": {"_id": 1}, "limit": 1}], **number}
    again = {"findAndModify": "d", "query": {"_id": 1}, **number}
    with member.start_session() as session:
        assert code(database, delete, session=session) == 0
        assert code(database, {**again, "remove": True}, session=session) == 40607
        assert code(database, {**again, "update": {"$set": {"a": 1}}}, session=session) == 40606
        assert code(database, delete, session=session) == 0


def test_numbers_of_statements_that_find_and_modify_does_not_have(member):
    """Regression: an empty `stmtIds` was ignored, and the statement got the number 0."""
    # Drivers reuse sessions. No other test uses this number.
    modify = {"findAndModify": "c", "query": {}, "remove": True, "txnNumber": Int64(8)}
    with member.start_session() as session:
        for numbers in ([], [1, 2]):
            found = code(member.refusals, {**modify, "stmtIds": numbers}, session=session)
            assert found == 16, numbers
        assert code(member.refusals, {**modify, "stmtIds": [3]}, session=session) == 0


def test_a_read_after_no_time(member):
    """Regression: a read after cluster time zero was answered."""
    for time, expected in ((Timestamp(0, 0), 72), (Timestamp(0, 1), 0), (Timestamp(1, 1), 0)):
        find = {"find": "c", "readConcern": {"level": "local", "afterClusterTime": time}}
        assert code(member.refusals, find) == expected, time
