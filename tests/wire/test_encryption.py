"""Encrypted data folders: created, read after a kill, refused without the key, and rotated."""

import json
import os
import subprocess
import urllib.parse

import pymongo
import pytest

from windrow_server import Server, binary

SECRET = "the recipe that nobody may read"


def windrow(*arguments, environment=None):
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})


def new_key(path):
    made = windrow("encryption", "new-key", path)
    assert made.returncode == 0, made.stderr
    return path


def files_with(folder, text):
    found = [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
    return [str(path.relative_to(folder)) for path in found]


def fill(server):
    collection = server.client().kitchen.recipes
    collection.create_index("title")
    collection.create_index([("text", "text")])
    collection.insert_many({"_id": n, "title": f"{SECRET} {n}", "text": f"{SECRET}, page {n}"}
                           for n in range(2_000))
    server.client().admin.command("fsync")


def refused(folder, *options):
    with pytest.raises(RuntimeError) as error:
        Server(folder, options=options)
    return str(error.value)


def test_nothing_readable_is_on_the_disk(tmp_path):
    key = new_key(tmp_path / "key")
    assert key.stat().st_mode & 0o777 == 0o600
    options = ["--encryption-key-file", str(key)]
    with Server(tmp_path, options=options) as server:
        fill(server)
        server.kill()
        server.start()
        recipes = server.client().kitchen.recipes
        assert recipes.count_documents({}) == 2_000
        assert recipes.find_one({"title": f"{SECRET} 7"})["_id"] == 7
        assert recipes.count_documents({"$text": {"$search": "recipe"}}) == 2_000
        server.stop()
        assert files_with(server.data, SECRET) == []
        assert files_with(server.data, "kitchen") == []
    with Server(tmp_path / "plain") as server:
        fill(server)
        server.stop()
        assert files_with(server.data, SECRET) != []


def test_folders_need_their_key(tmp_path):
    key, other = new_key(tmp_path / "key"), new_key(tmp_path / "other")
    with Server(tmp_path, options=["--encryption-key-file", str(key)]) as server:
        server.client().a.b.insert_one({"_id": 1})
        server.stop()
    assert "is encrypted: an encryption key file is needed" in refused(tmp_path)
    wrong = refused(tmp_path, "--encryption-key-file", str(other))
    assert "the encryption key is not the one" in wrong
    key.chmod(0o644)
    assert "its mode is 644" in refused(tmp_path, "--encryption-key-file", str(key))
    with Server(tmp_path / "plain") as server:
        server.stop()
    plain = refused(tmp_path / "plain", "--encryption-key-file", str(other))
    assert "is not encrypted" in plain


def test_keys_are_rotated(tmp_path):
    key, new = new_key(tmp_path / "key"), new_key(tmp_path / "new")
    with Server(tmp_path, options=["--encryption-key-file", str(key)]) as server:
        fill(server)
        rotate = ("encryption", "rotate", "--data", server.data, "--encryption-key-file", key,
                  "--new-key-file", new)
        in_use = windrow(*rotate)
        assert in_use.returncode == 1 and "is in use" in in_use.stderr
        server.stop()
        rotated = windrow(*rotate)
        assert rotated.returncode == 0, rotated.stderr
        assert rotated.stdout == "new files use data key 2\n"
        assert "the encryption key is not the one" in refused(tmp_path, *server.options)
        server.options = ["--encryption-key-file", str(new)]
        server.start()
        assert server.client().admin.command("serverStatus")["encryptionAtRest"] == {
            "encryptionEnabled": True, "encryptionCipherMode": "AES256-GCM",
            "encryptionKeyId": {"local": {"dataKeyGeneration": 2}}}
        recipes = server.client().kitchen.recipes
        assert recipes.count_documents({}) == 2_000
        recipes.insert_one({"_id": "new", "title": SECRET})
        server.kill()
        server.start()
        assert server.client().kitchen.recipes.find_one({"_id": "new"})["title"] == SECRET
        server.stop()
        assert files_with(server.data, SECRET) == []


def test_folders_of_files_are_encrypted(tmp_path):
    key = new_key(tmp_path / "key")
    files, data = tmp_path / "files", tmp_path / "data"
    files.mkdir()
    (files / "note.txt").write_text(f"{SECRET}\n")
    environment = {"WINDROW_ENCRYPTION_KEY_FILE": str(key)}
    indexed = windrow("index", files, "--data", data, environment=environment)
    assert indexed.returncode == 0, indexed.stderr
    found = windrow("search", "recipe", "--data", data, "--no-history", environment=environment)
    assert found.returncode == 0 and "note.txt" in found.stdout
    assert files_with(data, SECRET) == []
    assert files_with(data, "note.txt") == []
    without = windrow("search", "recipe", "--data", data, "--no-history")
    assert without.returncode == 2 and "is encrypted" in without.stderr


def test_change_streams_read_an_encrypted_log(tmp_path):
    key = new_key(tmp_path / "key")
    options = ["--encryption-key-file", str(key), "--replica-set", "rs0"]
    with Server(tmp_path, options=options) as server:
        collection = server.client().a.b
        with collection.watch() as stream:
            collection.insert_one({"_id": 1, "text": SECRET})
            collection.update_one({"_id": 1}, {"$set": {"more": SECRET}})
            events = [next(stream), next(stream)]
        assert [event["operationType"] for event in events] == ["insert", "update"]
        assert events[0]["fullDocument"]["text"] == SECRET
        server.kill()
        server.start()
        collection = server.client().a.b
        with collection.watch(resume_after=events[0]["_id"]) as stream:
            assert next(stream)["updateDescription"]["updatedFields"] == {"more": SECRET}


def test_large_sorts_are_spilled(tmp_path):
    """Rows in temporary files are encrypted too. This test only reads them back."""
    key = new_key(tmp_path / "key")
    with Server(tmp_path, options=["--encryption-key-file", str(key)]) as server:
        collection = server.client().a.b
        collection.insert_many({"_id": n, "text": f"{(n * 7919) % 4_000:05}" + "x" * 40_000}
                               for n in range(4_000))
        stages = [{"$sort": {"text": pymongo.ASCENDING}}, {"$project": {"text": {"$substrBytes": ["$text", 0, 5]}}}]
        found = [row["text"] for row in collection.aggregate(stages, allowDiskUse=True)]
        assert found == [f"{n:05}" for n in range(4_000)]


def test_own_commands_use_the_socket(tmp_path):
    """Their password is in the folder in clear text. Over TCP it gives no access."""
    key = new_key(tmp_path / "key")
    files = tmp_path / "files"
    files.mkdir()
    (files / "note.txt").write_text(f"{SECRET}\n")
    options = ["--encryption-key-file", str(key), "--auth"]
    with Server(tmp_path, options=options) as server:
        for command in [["index", files], ["search", "recipe"]]:
            done = windrow(*command, "--data", server.data)
            assert done.returncode == 0, done.stderr
        assert "note.txt" in done.stdout
        address = json.loads((server.data / "server.json").read_text())
        own = {"username": "__system", "password": address["password"], "authSource": "local",
               "authMechanism": "SCRAM-SHA-256"}
        socket = urllib.parse.quote(address["unixSocket"], safe="")
        with pymongo.MongoClient(f"mongodb://{socket}", **own) as client:
            assert client.files.documents.count_documents({}) == 1
        with pytest.raises(pymongo.errors.OperationFailure) as caught:
            server.client(**own).files.documents.find_one()
        assert caught.value.code == 18
        server.stop()
        server.options.append("--no-unix-socket")
        server.start()
        assert "password" not in json.loads((server.data / "server.json").read_text())


def test_a_watched_folder_is_searched(tmp_path):
    key = new_key(tmp_path / "key")
    files, data = tmp_path / "files", tmp_path / "data"
    files.mkdir()
    (files / "note.txt").write_text(f"{SECRET}\n")
    environment = {**os.environ, "WINDROW_ENCRYPTION_KEY_FILE": str(key)}
    watching = subprocess.Popen([str(binary()), "index", files, "--data", data, "--watch"],
                                env=environment, stdout=subprocess.PIPE, text=True)
    try:
        watching.stdout.readline()
        address = json.loads((data / "server.json").read_text())
        found = windrow("search", "recipe", "--data", data, "--no-history", environment=environment)
        assert found.returncode == 0 and "note.txt" in found.stdout, found.stderr
    finally:
        watching.terminate()
        watching.wait(30)
    assert not os.path.exists(address["unixSocket"])
