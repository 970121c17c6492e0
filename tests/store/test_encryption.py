"""An encrypted database in an object store. Servers with one key share it. Without the key it
cannot be read."""

import subprocess

import bson
from pymongo.write_concern import WriteConcern

from object_store import StoreServer
from windrow_server import binary, wait_until

SECRET = "the secret that nobody may read"
FAST = WriteConcern(w=1)


def new_key(path):
    subprocess.run([str(binary()), "encryption", "new-key", str(path)], check=True,
                   capture_output=True)
    return ["--encryption-key-file", str(path)]


def store_command(store, prefix, *arguments):
    command = [str(binary()), "store", arguments[0], f"s3://bucket/{prefix}", *arguments[1:],
               "--store-option", f"aws_endpoint=http://127.0.0.1:{store.port}"]
    return subprocess.run(command, capture_output=True, timeout=60)


def assert_unreadable(*folders):
    """Checks that no file has the secret, or the name of the collection."""
    count = 0
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert SECRET.encode() not in content, path
                assert b"hidden-name" not in content and "hidden-name" not in str(path), path
                count += 1
    assert count > 3


def documents(start, count):
    return [{"_id": i, "n": i % 9, "text": f"{SECRET} {i}"} for i in range(start, start + count)]


def test_servers_with_the_key_share_the_database(store, prefix, tmp_path):
    key = new_key(tmp_path / "key")
    with StoreServer(tmp_path / "one", store, prefix, options=key) as one, \
            StoreServer(tmp_path / "two", store, prefix, options=key, is_follower=True) as two:
        collection = one.client().test["hidden-name"]
        collection.insert_many(documents(0, 3000))
        one.client().test.command("compact", "hidden-name")
        collection.create_index("n")
        collection.create_index([("text", "text")])
        collection.insert_many(documents(3000, 100))
        status = two.client().admin.command("serverStatus")["encryptionAtRest"]
        assert status["encryptionEnabled"] and status["encryptionCipherMode"] == "AES256-GCM"
        followed = two.client(directConnection=True, readPreference="secondary").test["hidden-name"]
        wait_until(lambda: followed.count_documents({}) == 3100)
        assert followed.count_documents({"n": 4}) == collection.count_documents({"n": 4}) > 300
        assert followed.count_documents({"$text": {"$search": "3050"}}) == 1
        one.kill()
        wait_until(lambda: two.client().admin.command("hello")["isWritablePrimary"])
        two.client().test["hidden-name"].insert_one({"_id": "new", "text": SECRET})
        assert_unreadable(store.objects / prefix, tmp_path / "one" / "data",
                          tmp_path / "two" / "data")
    with StoreServer(tmp_path / "three", store, prefix, options=key) as three:
        collection = three.client().test["hidden-name"]
        assert collection.count_documents({}) == 3101
        assert collection.find_one({"_id": 1234})["text"] == f"{SECRET} 1234"
        assert_unreadable(tmp_path / "three" / "data")


def test_only_the_key_opens_the_database(store, prefix, tmp_path):
    key = new_key(tmp_path / "key")
    with StoreServer(tmp_path / "one", store, prefix, options=key) as server:
        server.client().test.c.insert_many(documents(0, 10))
        assert server.stop() == 0

    def refused(*options, prefix=prefix, data="new"):
        command = [str(binary()), "serve", "--data", str(tmp_path / data), "--listen",
                   "127.0.0.1:0", "--store", f"s3://bucket/{prefix}", "--store-option",
                   f"aws_endpoint=http://127.0.0.1:{store.port}", *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0
        return ended.stderr

    other = new_key(tmp_path / "other")
    for data in ["new", "one/data"]:
        assert f"not the one that protects s3://bucket/{prefix}/keys" in refused(*other, data=data)
        assert "the database is encrypted" in refused(data=data)
    for command in ["stat", "check", "gc"]:
        assert b"the database is encrypted" in store_command(store, prefix, command).stderr
        assert b"not the one that protects" in store_command(store, prefix, command, *other).stderr
        assert store_command(store, prefix, command, *key).returncode == 0
    assert b"log objects" in store_command(store, prefix, "check", *key).stdout
    with StoreServer(tmp_path / "plain", store, prefix + "-plain"):
        pass
    assert "not encrypted" in refused(*key, prefix=prefix + "-plain")


def test_rollback_files_are_encrypted(store, prefix, tmp_path):
    key = new_key(tmp_path / "key")
    one = StoreServer(tmp_path / "one", store, prefix, options=key)
    one.client().test["hidden-name"].insert_one({"_id": "shared"})
    store.stop()
    client = one.client(retryWrites=False)
    collection = client.test["hidden-name"].with_options(write_concern=FAST)
    collection.insert_one({"_id": "lost", "text": SECRET})
    client.admin.command("fsync")
    one.kill()
    store.start()
    with StoreServer(tmp_path / "two", store, prefix, options=key) as two:
        two.client().test["hidden-name"].insert_one({"_id": "newer"})
    with StoreServer(tmp_path / "one", store, prefix, options=key) as back:
        names = {document["_id"] for document in back.client().test["hidden-name"].find()}
        assert names == {"shared", "newer"}
    data = tmp_path / "one" / "data"
    assert_unreadable(data)
    [file] = (data / "rollback").rglob("removed.*.bson.encrypted")
    decrypted = store_command(store, prefix, "decrypt", str(file), *key)
    assert bson.decode_all(decrypted.stdout) == [{"_id": "lost", "text": SECRET}]
    assert b"test.hidden-name" in decrypted.stderr
    assert store_command(store, prefix, "decrypt", str(file)).returncode != 0
