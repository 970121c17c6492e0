"""A database in an object store with one server at a time."""

import random
import subprocess

import bson
import pymongo
import pytest
from pymongo.write_concern import WriteConcern

from object_store import StoreServer
from windrow_server import Server, binary

FAST = WriteConcern(w=1)


def test_server_without_local_data_has_everything(store, prefix, tmp_path):
    with StoreServer(tmp_path / "one", store, prefix) as server:
        collection = server.client().test.c
        collection.insert_many({"_id": i, "n": i % 7, "text": f"word{i}"} for i in range(5000))
        collection.create_index("n")
        collection.create_index([("text", "text")])
        server.client().admin.command("fsync")
        collection.update_many({"n": 3}, {"$set": {"seen": True}})
        collection.delete_many({"n": 4})
        expected = list(collection.find().sort("_id"))
        server.kill()
    with StoreServer(tmp_path / "other", store, prefix) as server:
        collection = server.client().test.c
        assert list(collection.find().sort("_id")) == expected
        assert set(collection.index_information()) == {"_id_", "n_1", "text_text"}
        assert collection.count_documents({"$text": {"$search": "word17"}}) == 1
        assert collection.find({"n": 3}).explain()["queryPlanner"]["winningPlan"]
        collection.insert_one({"_id": "new"})


def test_folded_data_is_read_from_the_store(store, prefix, tmp_path):
    """Runs are read in parts, and the copy is small."""
    with StoreServer(tmp_path / "one", store, prefix, options=["--change-history-bytes-max", "0"]) as server:
        collection = server.client().test.c
        for start in range(0, 40_000, 4_000):
            collection.insert_many(
                ({"_id": i, "filler": bson.Binary(i.to_bytes(4, "big") * 250)}
                 for i in range(start, start + 4_000)), ordered=False)
        assert server.stop() == 0
    runs = sum(path.stat().st_size for path in (store.objects / prefix / "runs").iterdir()) \
        if (store.objects / prefix / "runs").exists() else 0
    with StoreServer(tmp_path / "other", store, prefix) as server:
        collection = server.client().test.c
        assert collection.find_one({"_id": 12_345})["filler"][:4] == (12_345).to_bytes(4, "big")
        assert collection.count_documents({}) == 40_000
        cached = tmp_path / "other" / "data" / "cache"
        read = sum(path.stat().st_size for path in cached.iterdir())
        assert read <= max(runs, 1 << 20) + (8 << 20)


def test_cold_find_reads_each_run_once(store, prefix, tmp_path):
    """A find by _id on runs of less than 1 MB costs one request for the run of the index and one for
    that of the documents."""
    with StoreServer(tmp_path / "one", store, prefix) as server:
        documents = ({"_id": i, "filler": random.Random(i).randbytes(900)} for i in range(1000))
        server.client().test.c.insert_many(documents)
        server.client().test.command("compact", "c")
        assert server.stop() == 0
    with StoreServer(tmp_path / "other", store, prefix) as server:
        client = server.client()
        before = statistics_of(client)
        assert client.test.c.find_one({"_id": 777})["filler"] == random.Random(777).randbytes(900)
        after = statistics_of(client)
        assert 1 <= after["cache"]["misses"] - before["cache"]["misses"] <= 2
        assert after["bytesRead"] - before["bytesRead"] < 2_500_000
        assert client.test.c.find_one({"_id": 12})
        assert statistics_of(client)["cache"]["misses"] == after["cache"]["misses"]


def statistics_of(client):
    return client.admin.command("serverStatus")["windrow"]["store"]


def test_cache_limit_is_kept_by_the_server_that_writes(store, prefix, tmp_path):
    """Regression: the primary kept all runs that it wrote, despite --cache-bytes."""
    options = ["--cache-bytes", "16MB", "--change-history-bytes-max", "0"]
    with StoreServer(tmp_path / "one", store, prefix, options=options) as server:
        collection = server.client().test.c
        source = random.Random(1)
        for start in range(0, 40_000, 2_000):
            collection.insert_many({"_id": i, "n": i % 100, "filler": source.randbytes(1000)}
                                   for i in range(start, start + 2_000))
            server.client().test.command("compact", "c")
        written = folder_bytes(store.objects / prefix / "runs")
        assert written > 30_000_000
        assert collection.count_documents({}) == 40_000
        assert sum(document["n"] for document in collection.find()) == 40_000 * 99 // 2
        data = tmp_path / "one" / "data"
        assert folder_bytes(data / "runs") + folder_bytes(data / "cache") <= 16_000_000
        cache = statistics_of(server.client())["cache"]
        assert cache["bytes"] <= cache["bytesMax"] == 16_000_000
        assert cache["misses"] > 0 and cache["hits"] > cache["misses"]


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def test_default_write_concern_waits_for_the_store(store, prefix, tmp_path):
    options = ["--election-timeout", "60"]
    with StoreServer(tmp_path / "one", store, prefix, options=options) as server:
        client = server.client(retryWrites=False)
        client.test.c.insert_one({"_id": "before"})
        store.stop()
        try:
            fast = client.test.c.with_options(write_concern=FAST)
            fast.insert_one({"_id": "on the local disk"})
            slow = client.test.c.with_options(
                write_concern=WriteConcern(w="majority", wtimeout=300))
            with pytest.raises(pymongo.errors.WTimeoutError):
                slow.insert_one({"_id": "not in time"})
            with pytest.raises(pymongo.errors.ExecutionTimeout):
                client.test.command("insert", "c", documents=[{"_id": "limited"}], maxTimeMS=200)
            names = {document["_id"] for document in client.test.c.find()}
            assert {"before", "on the local disk", "not in time"} <= names
        finally:
            store.start()
        client.test.c.insert_one({"_id": "after"})
        server.kill()
    with StoreServer(tmp_path / "other", store, prefix) as server:
        names = {document["_id"] for document in server.client().test.c.find()}
        assert {"before", "on the local disk", "not in time", "after"} <= names


def test_old_primary_saves_what_it_alone_has(store, prefix, tmp_path):
    """Writes with w: 1 that were not uploaded are in rollback files after a failover."""
    one = StoreServer(tmp_path / "one", store, prefix)
    one.client().test.c.insert_one({"_id": "shared"})
    store.stop()
    client = one.client(retryWrites=False)
    client.test.c.with_options(write_concern=FAST).insert_one({"_id": "lost", "n": 1})
    client.admin.command("fsync")
    one.kill()
    store.start()
    with StoreServer(tmp_path / "two", store, prefix) as two:
        two.client().test.c.insert_one({"_id": "newer"})
    with StoreServer(tmp_path / "one", store, prefix) as back:
        names = {document["_id"] for document in back.client().test.c.find()}
        assert names == {"shared", "newer"}
    files = list((tmp_path / "one" / "data" / "rollback" / "test.c").iterdir())
    assert [bson.decode_all(file.read_bytes()) for file in files] == [[{"_id": "lost", "n": 1}]]


def test_bad_settings_are_refused(store, prefix, tmp_path):
    def refused(*options, data=tmp_path / "refused"):
        command = [str(binary()), "serve", "--data", str(data), "--listen", "127.0.0.1:0", *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0
        return ended.stderr

    assert "needs --store" in refused("--cache-bytes", "1GB")
    assert "16MB" in refused("--store", "s3://bucket/x", "--cache-bytes", "1MB")
    assert "s3://" in refused("--store", "ftp://host/x")
    assert "option" in refused("--store", "s3://bucket/x", "--store-option", "no_such=1")
    assert "HOST:PORT" in refused("--store", "s3://bucket/x", "--advertise", "here")
    with Server(tmp_path / "own") as own:
        own.client().test.c.insert_one({})
        own.stop()
    message = refused("--store", f"s3://bucket/{prefix}", "--store-option",
                      f"aws_endpoint=http://127.0.0.1:{store.port}", data=tmp_path / "own" / "data")
    assert "database of its own" in message
