"""mongodump, mongorestore, mongoexport and mongoimport carry a database without a difference."""

import bson
import pytest

import programs_of_mongodb
from sample import fill, state


@pytest.fixture
def run(server):
    def run(name, *arguments):
        return programs_of_mongodb.run(name, f"--uri={server.uri}", *arguments)

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
    # An import sets timestamps of zero, as inserts do by default.
    zero = [bson.decode(one) | {"zero": None} for one in documents]
    assert [bson.decode(one) | {"zero": None} for one in found] == zero
    run("mongoexport", "--db=source", "--collection=plain", "--type=csv", "--fields=_id,a,words",
        f"--out={csv}")
    run("mongoimport", "--db=target", "--collection=csv", "--type=csv", "--headerline",
        f"--file={csv}", "--mode=upsert", "--upsertFields=_id")
    assert client.target.csv.count_documents({}) == 300
    assert client.target.csv.find_one({"_id": 7}) == {"_id": 7, "a": 7, "words": "word7"}
