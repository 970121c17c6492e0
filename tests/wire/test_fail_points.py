"""Fail points: commands that fail, wait or lose their connection on request."""

import time

import pytest
from answers import refused
from bson import Int64
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect, ConnectionFailure, NotPrimaryError, OperationFailure, WriteConcernError)
from windrow_server import Server


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    options = ["--set-parameter", "enableTestCommands=1", "--setParameter", "notablescan=false",
               "--replica-set", "rs0"]
    with Server(tmp_path_factory.mktemp("failing"), options=options) as server:
        yield server
        assert server.process.poll() is None and "panicked" not in server.log()


@pytest.fixture
def collection(failing):
    with MongoClient("127.0.0.1", failing.port, directConnection=True, retryReads=False,
                     retryWrites=False) as client:
        client.drop_database("d")
        yield client.d.c
        for name in ["failCommand", "maxTimeAlwaysTimeOut", "onPrimaryTransactionalWrite",
                     "failGetMoreAfterCursorCheckout"]:
            client.admin.command("configureFailPoint", name, mode="off")


def fail(collection, name="failCommand", mode=None, **data):
    admin = collection.database.client.admin
    return admin.command("configureFailPoint", name, mode=mode or {"times": 1}, data=data)


def test_a_server_that_is_not_told_so_has_none(client):
    refused(lambda: client.admin.command("configureFailPoint", "failCommand", mode="off"), 59)
    assert "configureFailPoint" not in client.admin.command("listCommands")["commands"]
    shown = client.admin.command("getParameter", {"showDetails": True}, enableTestCommands=1)
    assert shown["enableTestCommands"] == {
        "value": False, "settableAtRuntime": False, "settableAtStartup": True}
    refused(lambda: client.admin.command("setParameter", 1, enableTestCommands=True), 20)


def test_a_command_fails_so_many_times(collection):
    assert fail(collection, failCommands=["insert"], errorCode=8, mode={"times": 2})["count"] == 0
    for _ in range(2):
        refused(lambda: collection.insert_one({"_id": 1}), 8)
    collection.insert_one({"_id": 1})
    assert fail(collection, failCommands=["insert"], errorCode=2, mode={"skip": 1})["count"] == 2
    collection.insert_one({"_id": 2})
    refused(lambda: collection.insert_one({"_id": 3}), 2)
    assert [one["_id"] for one in collection.find()] == [1, 2]
    fail(collection, failCommands=["insert"], errorCode=2, mode="off")
    collection.insert_one({"_id": 3})
    fail(collection, failCommands=["insert"], errorCode=2, mode={"activationProbability": 0})
    collection.insert_one({"_id": 4})
    fail(collection, failCommands=["insert"], errorCode=2, mode={"activationProbability": 1.0})
    refused(lambda: collection.insert_one({"_id": 5}), 2)


def test_it_fails_of_a_collection_or_an_application(failing, collection):
    fail(collection, failCommands=["find", "getMore"], errorCode=2, namespace="d.c", mode="alwaysOn")
    list(collection.database.other.find())
    refused(lambda: list(collection.find()), 2)
    fail(collection, failCommands=["ping"], errorCode=2, namespace="other", mode="alwaysOn")
    collection.database.command("ping")
    fail(collection, failCommands=["find"], errorCode=2, appName="a", mode="alwaysOn")
    list(collection.find())
    with MongoClient("127.0.0.1", failing.port, directConnection=True, appname="a",
                     retryReads=False) as named:
        refused(lambda: list(named.d.c.find()), 2)


def test_errors_have_the_labels_that_are_asked_for(collection):
    fail(collection, failCommands=["ping"], errorCode=10107, errorLabels=["A", "B"],
         errorExtraInfo={"x": 1})
    with pytest.raises(NotPrimaryError) as failed:
        collection.database.command("ping")
    refusal = failed.value.details
    assert (refusal["errorLabels"], refusal["x"]) == (["A", "B"], 1)
    assert refusal["topologyVersion"] == collection.database.command("hello")["topologyVersion"]
    fail(collection, failCommands=["ping"], errorCode=91)
    with pytest.raises(NotPrimaryError) as failed:
        collection.database.command("ping")
    assert not failed.value.details.keys() & {"errorLabels", "topologyVersion"}
    with collection.database.client.start_session() as session:
        session.start_transaction()
        fail(collection, failCommands=["insert"], errorCode=112)
        with pytest.raises(OperationFailure) as failed:
            collection.insert_one({}, session=session)
        assert failed.value.has_error_label("TransientTransactionError")


def test_what_is_done_may_have_an_error_of_its_concern(collection):
    fail(collection, failCommands=["insert"], writeConcernError={"code": 91, "errmsg": "x"})
    with pytest.raises(WriteConcernError) as failed:
        collection.insert_one({"_id": 1})
    assert failed.value.code == 91 and collection.count_documents({}) == 1


def test_a_connection_is_closed_without_a_reply(collection):
    fail(collection, failCommands=["insert"], closeConnection=True)
    with pytest.raises(ConnectionFailure):
        collection.insert_one({"_id": 1})
    assert collection.count_documents({}) == 0


def test_a_command_waits(collection):
    fail(collection, failCommands=["ping"], blockConnection=True, blockTimeMS=300)
    started = time.monotonic()
    collection.database.command("ping")
    assert time.monotonic() - started >= 0.3
    fail(collection, failCommands=["find"], blockConnection=True, blockTimeMS=60_000)
    refused(lambda: list(collection.find().max_time_ms(100)), 50)


def test_limits_of_time_are_over_at_once(collection):
    collection.insert_many([{} for _ in range(3)])
    limited = collection.find(batch_size=2).max_time_ms(100_000)
    next(limited)
    fail(collection, "maxTimeAlwaysTimeOut", mode="alwaysOn")
    list(collection.find())
    refused(lambda: list(collection.find().max_time_ms(100_000)), 50)
    refused(lambda: collection.drop_indexes(maxTimeMS=1), 50)
    refused(lambda: list(limited), 50)


def test_a_get_more_fails_behind_its_cursor(collection):
    collection.insert_many([{} for _ in range(3)])
    fail(collection, "failGetMoreAfterCursorCheckout", errorCode=6)
    with collection.database.client.start_session() as session:
        def ask(command, **arguments):
            return collection.database.command({command: arguments.pop("of", "c"), **arguments},
                                               session=session)

        opened = ask("aggregate", pipeline=[{"$changeStream": {}}], cursor={})["cursor"]["id"]
        refused(lambda: ask("getMore", of=Int64(5), collection="c"), 43)
        refusal = refused(lambda: ask("getMore", of=Int64(opened), collection="c"), 6)
        assert refusal["errorLabels"] == ["ResumableChangeStreamError"]
        refused(lambda: ask("getMore", of=Int64(opened), collection="c"), 43)


def test_a_get_more_of_a_transaction_has_its_label(collection):
    collection.insert_many([{} for _ in range(3)])
    with collection.database.client.start_session() as session:
        session.start_transaction()
        cursor = collection.find(batch_size=1, session=session)
        next(cursor)
        fail(collection, failCommands=["getMore"], errorCode=112)
        with pytest.raises(OperationFailure) as failed:
            list(cursor)
        assert failed.value.has_error_label("TransientTransactionError")


@pytest.mark.parametrize("data, saved", [({}, 1), ({"failBeforeCommitExceptionCode": 1}, 0)])
def test_retryable_writes_lose_their_connection(collection, data, saved):
    command = {"insert": "c", "documents": [{"_id": 1}], "txnNumber": Int64(1)}
    fail(collection, "onPrimaryTransactionalWrite", **data)
    with collection.database.client.start_session() as session:
        with pytest.raises(AutoReconnect):
            collection.database.command(command, session=session)
        assert collection.count_documents({}) == saved
        again = collection.database.command(command, session=session)
    assert (again["n"], again.get("retriedStmtIds")) == (1, [0] if saved else None)
    assert collection.count_documents({}) == 1


@pytest.mark.parametrize("arguments, code", [
    ({"configureFailPoint": "unknown", "mode": "off"}, 266),
    ({"configureFailPoint": "failCommand"}, 20),
    ({"configureFailPoint": "failCommand", "mode": "on"}, 2),
    ({"configureFailPoint": "failCommand", "mode": 1}, 14),
    ({"configureFailPoint": "failCommand", "mode": {}}, 2),
    ({"configureFailPoint": "failCommand", "mode": {"times": -1}}, 2),
    ({"configureFailPoint": "failCommand", "mode": {"times": 2 ** 40}}, 2),
    ({"configureFailPoint": "failCommand", "mode": {"activationProbability": 2}}, 2),
    ({"configureFailPoint": "failCommand", "mode": {"activationProbability": "x"}}, 14),
    ({"configureFailPoint": "failCommand", "mode": "off", "data": 1}, 14),
    ({"configureFailPoint": "failCommand", "mode": "off", "data": {"unknown": 1}}, 40415),
    ({"configureFailPoint": "failCommand", "mode": "off", "data": {"failCommands": [1]}}, 14),
    ({"configureFailPoint": "failCommand", "mode": "off", "data": {"errorCode": 2 ** 40}}, 2),
    ({"configureFailPoint": "failCommand", "mode": "off", "data": {"blockTimeMS": -1}}, 2),
])
def test_what_no_fail_point_can_be_is_refused(collection, arguments, code):
    refused(lambda: collection.database.client.admin.command(arguments), code)


def test_a_modification_that_is_sent_again_says_which_it_was(collection):
    collection.insert_one({"_id": 1})
    command = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}},
               "txnNumber": Int64(1), "stmtId": 7}
    with collection.database.client.start_session() as session:
        first, again = (collection.database.command(command, session=session) for _ in range(2))
    assert "retriedStmtId" not in first and again["retriedStmtId"] == 7
    assert collection.find_one() == {"_id": 1, "n": 1}


def test_parameters_that_are_none_keep_a_server_from_starting(tmp_path):
    with pytest.raises(Exception, match="unrecognized parameter"):
        with Server(tmp_path, options=["--set-parameter", "unknown=1"]):
            pass
