"""Index builds: their use of the machine, their progress reports, and their ends."""

import pathlib
import random
import threading
import time

import pytest
from pymongo import TEXT
from pymongo.errors import OperationFailure

from windrow_server import Server

WORDS = 40


def load(collection, documents, seed=1):
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(30_000)]
    for start in range(0, documents, 10_000):
        ids = range(start, min(start + 10_000, documents))
        collection.insert_many({"_id": one, "n": one, "t": " ".join(chance.choices(words, k=WORDS))}
                               for one in ids)
    return words


def resident(server, field):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) << 10


def forget_peak(server):
    pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(), reason="no such system")
def test_a_build_keeps_to_its_memory(tmp_path):
    with Server(tmp_path, memory=1 << 30) as server:
        client = server.client()
        load(client.d.c, 150_000)
        limit = "maxIndexBuildMemoryUsageMegabytes"
        was = client.admin.command("setParameter", 1, **{limit: 50})["was"]
        assert was == 200
        assert client.admin.command("getParameter", 1, **{limit: 1})[limit] == 50
        forget_peak(server)
        before = resident(server, "VmRSS")
        client.d.c.create_index([("t", TEXT)])
        peak = resident(server, "VmHWM")
        # The entries of the index have four times as many bytes.
        assert peak <= before + (50 + 64 << 20), (before >> 20, peak >> 20)


def test_what_a_build_says_meanwhile(server, database):
    load(database.c, 60_000)
    seen, statuses, listed, done = [], [], [], threading.Event()

    def watch():
        client = server.client()
        while not done.is_set():
            for one in client.admin.command("currentOp")["inprog"]:
                seen.extend([one["indexBuild"]] if "indexBuild" in one else [])
            builds = client.admin.command("serverStatus")["indexBuilds"]
            statuses.extend(builds["inProgress"])
            listed.extend(indexes(client[database.name], includeIndexBuildInfo=True))
            listed.extend(indexes(client[database.name], includeBuildUUIDs=True))

    watcher = threading.Thread(target=watch)
    watcher.start()
    database.c.create_index([("t", TEXT)])
    done.set()
    watcher.join()
    assert {"phase", "documents", "documentsTotal", "keys", "bytes"} <= set(seen[-1])
    assert all(one["documents"] <= one["documentsTotal"] == 60_000 for one in seen)
    assert any(one.get("secondsLeft", -1) >= 0 for one in seen)
    assert statuses[0]["namespace"] == f"{database.name}.c"
    assert statuses[0]["indexes"] == ["t_text"]
    assert database.client.admin.command("serverStatus")["indexBuilds"]["inProgress"] == []
    told = [one["indexBuildInfo"] for one in listed if "indexBuildInfo" in one]
    assert told and {"buildUUID", "method", "phase", "phaseStr", "resumable", "replicationState"} == set(told[0])
    phases = {(0, "initialized"), (1, "collection scan"), (2, "bulk load")}
    assert {(one["phase"], one["phaseStr"]) for one in told} <= phases
    # All reports of one build have one UUID.
    uuids = {one["buildUUID"] for one in told} | {one["buildUUID"] for one in listed if "buildUUID" in one}
    assert len(uuids) == 1


def indexes(database, **options):
    return database.command("listIndexes", "c", **options)["cursor"]["firstBatch"]


def test_indexes_are_listed_with_their_builds(database):
    database.c.insert_one({"a": 1})
    database.c.create_index("a")
    plain = indexes(database)
    assert indexes(database, includeBuildUUIDs=True) == plain
    # Each specification is then within a document of its own.
    assert indexes(database, includeIndexBuildInfo=True) == [{"spec": one} for one in plain]
    assert indexes(database, includeIndexBuildInfo=True, includeBuildUUIDs=False) == [{"spec": one} for one in plain]
    assert indexes(database, includeIndexBuildInfo=False) == plain
    for options, code in (({"includeIndexBuildInfo": True, "includeBuildUUIDs": True}, 72),
                          ({"includeIndexBuildInfo": 1}, 14)):
        with pytest.raises(OperationFailure) as failure:
            indexes(database, **options)
        assert failure.value.code == code


@pytest.mark.parametrize("priority", ["low", "normal", "high"])
def test_every_priority_builds(tmp_path, priority):
    with Server(tmp_path, options=["--build-priority", priority]) as server:
        c = server.client().d.c
        load(c, 2_000)
        c.create_index([("n", 1)])
        assert c.count_documents({"n": {"$lt": 50}}, hint="n_1") == 50


def test_old_snapshots_end(tmp_path):
    with Server(tmp_path, options=["--snapshot-seconds-max", "1"]) as server:
        c = server.client().d.c
        load(c, 1_000)
        old = c.find({}, batch_size=10)
        next(old)
        time.sleep(2.5)
        with pytest.raises(OperationFailure) as error:
            list(old)
        assert error.value.code == 246
        assert len(list(c.find({}, batch_size=100))) == 1_000


def test_two_that_build_the_same_index_both_wait_for_it(server, database):
    """Regression: an index that another client registered meanwhile was reported as existing
    although it was not ready. Equal keys were inserted, and its build failed."""
    other = server.client()[database.name]
    for number in range(60):
        name = f"c{number}"
        database.create_collection(name)
        first = threading.Thread(target=lambda: other[name].create_index("n", unique=True))
        first.start()
        database[name].create_index("n", unique=True)
        database[name].insert_one({"n": 1})
        with pytest.raises(OperationFailure, match="E11000"):
            database[name].insert_one({"n": 1})
        first.join()


def test_who_waits_for_a_build_that_fails_builds_it(server, database):
    """Regression: the waiting client got the error of the other build."""
    load(database.c, 30_000)
    database.c.insert_one({"n": 1})
    codes = []

    def build():
        with pytest.raises(OperationFailure) as failure:
            server.client()[database.name].c.create_index("n", unique=True)
        codes.append(failure.value.code)
    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [11_000] * 3
