"""Primaries that step down on request, and reads that prove which server is the primary."""

import signal
import threading
import time

import pymongo
import pytest
from pymongo.read_concern import ReadConcern

from object_store import ELECTION_SECONDS, StoreServer
from windrow_server import wait_until


def members(server):
    return server.client().admin.command("replSetGetStatus")["members"]


def test_primary_steps_down_for_a_follower(pair):
    one, two = pair
    hosts = f"127.0.0.1:{one.port},127.0.0.1:{two.port}"
    client = pymongo.MongoClient(f"mongodb://{hosts}/?replicaSet=rs0&retryWrites=true",
                                 serverSelectionTimeoutMS=20_000)
    client.test.c.insert_one({"_id": "before"})
    wait_until(lambda: len(members(one)) == 2, 30)
    stopped, failures = threading.Event(), []

    def write():
        number = 0
        while not stopped.is_set():
            number += 1
            try:
                client.test.numbers.insert_one({"_id": number})
            except pymongo.errors.PyMongoError as error:
                failures.append(error)
        written.append(number)

    written, writer = [], threading.Thread(target=write)
    writer.start()
    with pytest.raises(pymongo.errors.PyMongoError):
        two.client().admin.command("replSetStepDown", 20)
    began = time.monotonic()
    one.client().admin.command("replSetStepDown", 20, secondaryCatchUpPeriodSecs=5)
    two.wait_for_log("is the primary now")
    assert time.monotonic() - began < ELECTION_SECONDS + 2
    # The old primary follows, with the same process id.
    wait_until(lambda: one.client().admin.command("hello")["secondary"], 30)
    time.sleep(0.5)
    stopped.set()
    writer.join()
    assert not failures
    found = sorted(it["_id"] for it in client.test.numbers.find({}, {"_id": 1}))
    assert found == list(range(1, written[0] + 1))
    states = {it["name"]: it["stateStr"] for it in members(two)}
    assert states[f"127.0.0.1:{two.port}"] == "PRIMARY"
    client.close()


def test_step_down_is_refused_without_another_server(store, prefix, tmp_path):
    with StoreServer(tmp_path / "one", store, prefix) as one:
        admin = one.client().admin
        with pytest.raises(pymongo.errors.OperationFailure) as refused:
            admin.command("replSetStepDown", 5)
        assert refused.value.code == 262
        with pytest.raises(pymongo.errors.OperationFailure) as refused:
            admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=9)
        assert refused.value.code == 2
        one.client().test.c.insert_one({})


def test_linearizable_reads_are_proven(pair):
    one, two = pair
    client = one.client(retryWrites=False, retryReads=False)
    client.test.c.insert_one({"_id": 1})
    linearizable = client.get_database("test", read_concern=ReadConcern("linearizable")).c
    assert linearizable.find_one() == {"_id": 1}
    assert linearizable.count_documents({}) == 1
    with pytest.raises(pymongo.errors.NotPrimaryError) as refused:
        two.client(retryReads=False).test.command(
            {"find": "c", "readConcern": {"level": "linearizable"},
             "$readPreference": {"mode": "secondary"}})
    assert refused.value.details["code"] == 10107
    # A primary that was replaced while it slept must not answer from its own state.
    one.process.send_signal(signal.SIGSTOP)
    two.wait_for_log("is the primary now")
    wait_until(lambda: two.client().admin.command("hello")["isWritablePrimary"], 30)
    two.client().test.c.insert_one({"_id": 2})
    results = []

    def read():
        try:
            results.append(list(linearizable.find()))
        except pymongo.errors.PyMongoError as error:
            results.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.2)
    one.process.send_signal(signal.SIGCONT)
    reader.join(30)
    assert isinstance(results[0], pymongo.errors.PyMongoError) or len(results[0]) == 2


def test_members_announce_what_they_have_applied(pair):
    one, two = pair
    one.client().test.c.insert_many({"_id": i} for i in range(100))
    wait_until(lambda: len(members(one)) == 2, 30)

    def is_current():
        own, other = members(one)
        return own["optime"]["ts"] == other["optime"]["ts"]

    wait_until(is_current, 30)
    own, other = members(one)
    assert (own["stateStr"], other["stateStr"]) == ("PRIMARY", "SECONDARY")
    assert other["name"] == f"127.0.0.1:{two.port}"
