"""How the arguments of commands are read: null is none, types are MongoDB's, what is unknown is refused."""

import pytest
from bson import Decimal128, Int64
from pymongo.errors import OperationFailure

NAN, INFINITE = float("nan"), float("inf")


def code(database, **command):
    """0 where the command succeeds."""
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
    for command in ({"find": "c", "readConcern": None}, {"find": "c", "maxTimeMS": None},
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
