"""Servers that follow the primary and serve reads."""

import threading
import time

import pymongo
import pytest
from pymongo.read_preferences import Secondary

from object_store import StoreServer
from windrow_server import wait_until


def test_follower_is_a_secondary(pair):
    one, two = pair
    hello = two.client().admin.command("hello")
    assert (hello["isWritablePrimary"], hello["secondary"]) == (False, True)
    assert hello["primary"] == f"127.0.0.1:{one.port}"
    assert "electionId" not in hello
    wait_until(lambda: len(two.client().admin.command("hello")["hosts"]) == 2)
    status = two.client().admin.command("replSetGetStatus")
    assert status["myState"] == 2
    direct = two.client(retryWrites=False)
    with pytest.raises(pymongo.errors.NotPrimaryError) as refused:
        direct.test.c.insert_one({})
    assert refused.value.details["code"] == 10107
    assert refused.value.details["topologyVersion"] == \
        two.client().admin.command("hello")["topologyVersion"]
    with pytest.raises(pymongo.errors.NotPrimaryError) as refused:
        direct.test.command("create", "x")
    assert refused.value.details["code"] == 10107


def test_waiting_clients_are_told_of_new_servers(store, prefix, tmp_path):
    with StoreServer(tmp_path / "one", store, prefix) as one:
        client = one.client()
        wait_until(lambda: client.admin.command("hello")["topologyVersion"]["counter"] == 2)
        known = client.admin.command("hello")["topologyVersion"]
        with StoreServer(tmp_path / "two", store, prefix, is_follower=True) as two:
            hello = client.admin.command("hello", topologyVersion=known, maxAwaitTimeMS=20_000)
            assert hello["topologyVersion"]["counter"] == 3
            assert hello["hosts"] == [f"127.0.0.1:{it.port}" for it in (one, two)]


def test_follower_serves_what_was_acknowledged(pair):
    one, two = pair
    written = one.client().test.c
    read = two.client().get_database("test", read_preference=Secondary()).c
    written.insert_many({"_id": i, "n": i % 5} for i in range(2000))
    wait_until(lambda: read.count_documents({}) == 2000)
    written.create_index("n")
    wait_until(lambda: "n_1" in read.index_information())
    assert read.count_documents({"n": 3}) == 400
    # An index is listed while it is being built.
    wait_until(lambda: "IXSCAN" in str(read.find({"n": 3}).explain()["queryPlanner"]))
    written.update_many({"n": 3}, {"$set": {"n": 99}})
    written.delete_many({"n": 4})
    wait_until(lambda: read.count_documents({"n": 99}) == 400)
    wait_until(lambda: read.count_documents({}) == 1600)
    one.client().test.create_collection("capped", capped=True, size=10_000)
    one.client().test.c.rename("renamed")
    renamed = two.client().get_database("test", read_preference=Secondary()).renamed
    wait_until(lambda: renamed.count_documents({}) == 1600)
    assert set(two.client().test.list_collection_names()) == {"capped", "renamed"}


def test_follower_reads_while_the_primary_folds_and_merges(store, prefix, tmp_path):
    """Each read returns each document once, whatever the primary does with its files."""
    options = ["--memory", str(64 << 20)]
    with StoreServer(tmp_path / "one", store, prefix, options=options) as one, \
            StoreServer(tmp_path / "two", store, prefix, options=options,
                        is_follower=True) as two:
        written = one.client().test.c
        written.insert_many({"_id": i, "round": 0, "filler": "x" * 500} for i in range(5000))
        read = two.client().get_database("test", read_preference=Secondary()).c
        wait_until(lambda: read.count_documents({}) == 5000)
        stopped, wrong = threading.Event(), []

        def check():
            while not stopped.is_set():
                rounds = [document["round"] for document in read.find({}, {"round": 1})]
                if len(rounds) != 5000:
                    wrong.append(len(rounds))

        readers = [threading.Thread(target=check) for _ in range(2)]
        for reader in readers:
            reader.start()
        for number in range(1, 12):
            written.update_many({}, {"$set": {"round": number}})
        stopped.set()
        for reader in readers:
            reader.join()
        assert not wrong
        wait_until(lambda: read.count_documents({"round": 11}) == 5000)


def test_driver_reads_from_secondaries_and_follows_a_failover(pair):
    one, two = pair
    wait_until(lambda: len(one.client().admin.command("hello")["hosts"]) == 2)
    uri = f"mongodb://127.0.0.1:{one.port},127.0.0.1:{two.port}/?replicaSet=rs0"
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=30_000) as client:
        client.test.c.insert_one({"_id": 1})
        assert client.primary == ("127.0.0.1", one.port)
        wait_until(lambda: client.secondaries == {("127.0.0.1", two.port)})
        secondary = client.get_database("test", read_preference=Secondary()).c
        wait_until(lambda: secondary.find_one({"_id": 1}) is not None)
        assert one.stop() == 0
        client.test.c.insert_one({"_id": 2})
        assert client.primary == ("127.0.0.1", two.port)
        assert [it["_id"] for it in client.test.c.find().sort("_id")] == [1, 2]


def test_change_streams_run_on_followers(pair):
    one, two = pair
    one.client().test.c.insert_one({"_id": "first"})
    followed = two.client().get_database("test", read_preference=Secondary())
    wait_until(lambda: followed.c.count_documents({}) == 1)
    with followed.c.watch(max_await_time_ms=5000) as stream:
        one.client().test.c.insert_one({"_id": "second"})
        event = stream.next()
        assert event["fullDocument"] == {"_id": "second"}
