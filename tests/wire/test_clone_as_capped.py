"""cloneCollectionAsCapped: a copy of the newest documents, complete or not at all."""

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def database(client):
    client.drop_database("clones")
    client.clones.c.insert_many({"_id": number, "t": "x" * 100} for number in range(200))
    client.clones.c.create_index("t")
    return client.clones


def code(database, source, target, **arguments):
    """The error code of a command, or 0 if it succeeds."""
    command = {"cloneCollectionAsCapped": source, "toCollection": target} | arguments
    try:
        database.command(command)
    except OperationFailure as error:
        return error.code
    return 0


def ids(collection):
    return [document["_id"] for document in collection.find()]


def test_a_clone_has_all_that_fits(database):
    assert code(database, "c", "all", size=1 << 20) == 0
    assert ids(database["all"]) == list(range(200))
    assert database["all"].options() == {"capped": True, "size": 1 << 20}
    assert list(database["all"].index_information()) == ["_id_"]
    assert ids(database.c) == list(range(200))


def test_a_clone_that_is_too_small_has_the_newest(database):
    assert code(database, "c", "some", size=4096) == 0
    found = ids(database.some)
    assert 20 < len(found) < 40 and found == list(range(200 - len(found), 200))


def test_documents_that_do_not_fit_alone_are_passed_over(database):
    database.c.insert_one({"_id": "large", "t": "x" * 5000})
    assert code(database, "c", "some", size=4096) == 0
    assert ids(database.some)[-1] == 199


def test_what_cannot_be_cloned(database):
    database.create_collection("v", viewOn="c", pipeline=[])
    for expected, source, target, size in ((26, "missing", "d", 4096), (48, "c", "c", 4096),
                                           (166, "v", "d", 4096), (166, "c", "v", 4096),
                                           (73, "", "d", 4096), (73, "c$", "d", 4096),
                                           (73, "c", ".d", 4096), (73, "c", "system.d", 4096),
                                           (14, 5, "d", 4096), (14, "c", None, 4096),
                                           (72, "c", "d", 0), (72, "c", "d", "x"),
                                           (72, "c", "d", 0.5), (2, "c", "d", 2**50 + 1)):
        assert code(database, source, target, size=size) == expected, (source, target, size)
    assert database.list_collection_names(filter={"name": {"$regex": "^(tmp|d)"}}) == []
