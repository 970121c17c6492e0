"""mongodump, mongorestore, mongoexport and mongoimport carry a database without a difference.

They are taken from PATH or from .cache/mongo-tools; where they are not to be had the tests are skipped.
"""

import datetime
import os
import shutil
import subprocess

import bson
import pytest

from windrow_server import ROOT

TOOLS = ROOT / ".cache" / "mongo-tools"
SECONDS = 120

INDEXES = [
    ([("a", 1)], {}),
    ([("a", -1)], {"unique": True}),
    ([("a", "hashed")], {}),
    ([("words", "text")], {"weights": {"words": 3}, "default_language": "german"}),
    ([("place", "2d")], {"min": -200, "max": 200, "bits": 20}),
    ([("shape", "2dsphere"), ("a", 1)], {}),
    ([("$**", 1)], {"wildcardProjection": {"q": 1}}),
    ([("at", 1)], {"expireAfterSeconds": 1_000_000_000}),
    ([("p", 1)], {"partialFilterExpression": {"p": {"$gt": 1}}}),
    ([("q", 1)], {"sparse": True, "hidden": True}),
    ([("c", 1)], {"collation": {"locale": "de", "strength": 2}}),
    ([("u", 1)], {"prepareUnique": True}),
]


def fill(database):
    plain = database.create_collection("plain")
    plain.insert_many({
        "_id": i, "a": i, "words": f"word{i}", "place": [i * .1, i * .1], "u": i,
        "shape": {"type": "Point", "coordinates": [i * .5, 1]}, "at": datetime.datetime(2024, 1, 1),
        "decimal": bson.Decimal128("1.50"), "long": bson.Int64(5), "regex": bson.Regex("x", "i"),
        "zero": bson.Timestamp(0, 0), "bytes": b"\0\1", "deep": {"$odd": 1, "a.b": [None, {}]},
    } for i in range(300))
    for key, options in INDEXES:
        plain.create_index(key, **options)
    capped = database.create_collection("capped", capped=True, size=8192, max=10)
    capped.insert_many({"_id": i} for i in range(12))
    clustered = database.create_collection(
        "clustered", clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "own"},
        expireAfterSeconds=100_000_000)
    clustered.insert_many({"_id": i, "x": "y" * i} for i in range(50))
    clustered.create_index("x")
    database.create_collection("checked", validator={"$jsonSchema": {"required": ["a"]}},
                               validationLevel="moderate", validationAction="warn")
    database.create_collection("french", collation={"locale": "fr"}).insert_one({"x": 1})
    database.create_collection("view", viewOn="plain", pipeline=[{"$match": {"a": {"$gt": 3}}}])
    database.create_collection("french_view", viewOn="french", pipeline=[],
                               collation={"locale": "fr"})


def state(database):
    """Everything that a client can see of a database."""
    found = {}
    for information in database.list_collections():
        name = information["name"]
        if name.startswith("system."):
            continue
        information["info"].pop("uuid", None)
        is_view = information["type"] == "view"
        indexes = [] if is_view else [dict(one) for one in database[name].list_indexes()]
        found[name] = {
            "information": information,
            "indexes": sorted(indexes, key=lambda one: one["name"]),
            "documents": [bson.encode(one) for one in database[name].find().sort("_id", 1)],
        }
    return found


@pytest.fixture
def run(server):
    def find(name):
        here = TOOLS / name
        return str(here) if here.exists() else shutil.which(name)

    def run(name, *arguments):
        program = find(name)
        if program is None:
            pytest.skip(f"{name} is not to be had")
        done = subprocess.run([program, f"--uri={server.uri}", *arguments], capture_output=True,
                              text=True, timeout=SECONDS, env={**os.environ, "HOME": "/nonexistent"})
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stderr

    return run


@pytest.fixture
def source(client):
    client.drop_database("source")
    client.drop_database("target")
    fill(client.source)
    return client.source


def test_a_dump_in_a_folder_is_restored(source, run, client, tmp_path):
    before = state(source)
    run("mongodump", "--db=source", f"--out={tmp_path}")
    run("mongorestore", "--nsFrom=source.*", "--nsTo=target.*", str(tmp_path))
    assert state(client.target) == before


def test_an_archive_is_restored_over_what_is_there(source, run, tmp_path):
    before = state(source)
    archive = f"--archive={tmp_path / 'archive.gz'}"
    run("mongodump", "--db=source", archive, "--gzip")
    source.plain.delete_many({"a": {"$gt": 100}})
    source.plain.drop_indexes()
    source.drop_collection("view")
    run("mongorestore", archive, "--gzip", "--drop", "--maintainInsertionOrder")
    assert state(source) == before


def test_a_query_limits_a_dump(source, run, client, tmp_path):
    run("mongodump", "--db=source", "--collection=plain", '--query={"a": {"$lt": 5}}',
        f"--out={tmp_path}")
    run("mongorestore", "--nsFrom=source.*", "--nsTo=target.*", str(tmp_path))
    assert client.target.plain.count_documents({}) == 5


def test_json_and_csv_are_exported_and_imported(source, run, client, tmp_path):
    json, csv = tmp_path / "plain.json", tmp_path / "plain.csv"
    run("mongoexport", "--db=source", "--collection=plain", "--jsonFormat=canonical",
        f"--out={json}", '--sort={"_id": 1}')
    run("mongoimport", "--db=target", "--collection=plain", f"--file={json}", "--drop")
    documents = [bson.encode(one) for one in source.plain.find().sort("_id", 1)]
    found = [bson.encode(one) for one in client.target.plain.find().sort("_id", 1)]
    # An import sets timestamps of zero, as any insert does that does not say otherwise.
    zero = [bson.decode(one) | {"zero": None} for one in documents]
    assert [bson.decode(one) | {"zero": None} for one in found] == zero
    run("mongoexport", "--db=source", "--collection=plain", "--type=csv", "--fields=_id,a,words",
        f"--out={csv}")
    run("mongoimport", "--db=target", "--collection=csv", "--type=csv", "--headerline",
        f"--file={csv}", "--mode=upsert", "--upsertFields=_id")
    assert client.target.csv.count_documents({}) == 300
    assert client.target.csv.find_one({"_id": 7}) == {"_id": 7, "a": 7, "words": "word7"}
