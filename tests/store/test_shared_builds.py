"""Index builds that the servers over one object store share. A build is shared only if the primary
alone would take long. Here it does on any machine: all cores are busy, and the builds of the
primary have a low priority, but those of its followers do not."""

import contextlib
import os
import random
import subprocess
import sys
import threading

import pymongo.errors
import pytest

from object_store import ELECTION_SECONDS, StoreServer
from windrow_server import wait_until

DOCUMENTS = 40_000
WORDS = [f"{first}{second}{third}" for first in ("ba", "re", "to", "li", "mu", "sa", "ke", "no")
         for second in ("nd", "lk", "rt", "mp", "sh", "nt", "rg", "ll", "st", "ck")
         for third in ("er", "ing", "ed", "al", "ion", "ous", "ly", "ment", "ish", "able")]
TEXT = [("body", "text")]
COMPOUND = [("group", 1), ("tags", 1), ("n", -1)]


@pytest.fixture
def trio(store, prefix, tmp_path):
    """A primary with documents, and two servers that follow it."""
    low, high = (["--build-priority", priority] for priority in ("low", "high"))
    with StoreServer(tmp_path / "one", store, prefix, options=low) as one, \
            StoreServer(tmp_path / "two", store, prefix, options=high, is_follower=True) as two, \
            StoreServer(tmp_path / "three", store, prefix, options=high, is_follower=True) as three:
        insert(one)
        for follower in (two, three):
            followed = reading(follower)
            wait_until(lambda: followed.count_documents({}) == DOCUMENTS, 60)
        wait_for_shares(one, "builders", 2)
        yield one, two, three


def insert(server):
    generator = random.Random(4711)
    documents = []
    for number in range(DOCUMENTS):
        words = generator.choices(WORDS, k=320)
        documents.append({"_id": number, "body": " ".join(words), "group": number % 97,
                          "tags": generator.sample(range(40), 3), "n": generator.random()})
    server.client().test.c.insert_many(documents, ordered=False)


def reading(server):
    """The collection of a server that may follow another one."""
    database = server.client(directConnection=True).get_database(
        "test", read_preference=pymongo.ReadPreference.SECONDARY_PREFERRED)
    return database.c


def shares(server, client=None):
    client = client or server.client(directConnection=True)
    return client.admin.command("serverStatus")["windrow"]["indexBuildShares"]


def wait_for_shares(server, name, number):
    client = server.client(directConnection=True)
    wait_until(lambda: shares(server, client)[name] >= number, 60)


@contextlib.contextmanager
def busy_cores():
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def build(server):
    """Builds both indexes. Returns the thread, and the list of its errors."""
    errors = []

    def run():
        with server.client(retryWrites=False, socketTimeoutMS=300_000) as client:
            try:
                client.test.command("createIndexes", "c", indexes=[
                    # Words are not stemmed, so a comparison of words is the model.
                    {"name": "text", "key": dict(TEXT), "default_language": "none"},
                    {"name": "compound", "key": dict(COMPOUND)}])
            except pymongo.errors.PyMongoError as error:
                errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def check(server):
    """Compares what the indexes find with what a scan finds."""
    collection = reading(server)
    everything = {it["_id"]: it for it in collection.find({}, hint=[("$natural", 1)])}
    for word in ("banding", "kester", "mushable"):
        found = {it["_id"] for it in collection.find({"$text": {"$search": word}}, {"_id": 1})}
        assert found == {it for it, one in everything.items() if word in one["body"].split()}
    for group, tag in ((5, 7), (90, 0), (13, 39)):
        query = {"group": group, "tags": tag}
        assert "compound" in str(collection.find(query).explain()["queryPlanner"])
        found = [it["_id"] for it in collection.find(query).hint("compound")]
        expected = {it for it, one in everything.items()
                    if one["group"] == group and tag in one["tags"]}
        assert len(found) == len(expected) and set(found) == expected
    if not server.is_follower:
        validated = server.client().test.command("validate", "c", full=True)
        assert validated["valid"], validated


def wait_until_ready(server):
    """Waits until a server can use both indexes."""
    collection = reading(server)

    def is_used():
        query = {"group": 1, "tags": 2}
        return "compound" in str(collection.find(query).explain()["queryPlanner"]) \
            and "text" in {it["name"] for it in collection.list_indexes()} and finds_text()

    def finds_text():
        try:
            return collection.find_one({"$text": {"$search": "bander"}}) is not None
        except pymongo.errors.OperationFailure:
            return False

    wait_until(is_used, 120)


def test_followers_build_shares(trio):
    one, two, three = trio
    changes = one.client().test.c
    with busy_cores():
        thread, errors = build(one)
        # Writes during the build.
        wait_for_shares(one, "given", 1)
        for number in range(0, DOCUMENTS, 1000):
            changes.update_one({"_id": number}, {"$set": {"body": "banding kester", "group": 5}})
            changes.delete_one({"_id": number + 1})
            changes.insert_one({"_id": DOCUMENTS + number, "body": "mushable", "group": 13,
                                "tags": [39]})
        thread.join()
    assert not errors
    counts = shares(one)
    assert counts["adopted"] >= 2, counts
    assert shares(two)["built"] > 0 and shares(three)["built"] > 0
    check(one)
    for follower in (two, three):
        wait_until_ready(follower)
        check(follower)


def test_follower_is_killed_during_a_build(trio):
    one, two, three = trio
    with busy_cores():
        thread, errors = build(one)
        wait_for_shares(one, "given", 2)
        two.kill()
        thread.join()
    assert not errors
    check(one)
    assert shares(three)["built"] > 0


def test_primary_is_killed_during_a_build(trio):
    one, two, three = trio
    with busy_cores():
        thread, errors = build(one)
        wait_for_shares(one, "adopted", 1)
        one.kill()
        thread.join()
    assert errors

    def heir():
        return next((it for it in (two, three) if "is the primary now" in it.log()), None)

    wait_until(lambda: heir() is not None, ELECTION_SECONDS + 20)
    heir().is_follower = False
    wait_until(heir().answers)
    # The new primary continues the build.
    wait_until_ready(heir())
    check(heir())
