"""Passwords are never shown, and clients that have not logged in are limited."""

import json
import random
import struct
import zlib

import bson
import pytest

from logins import Conversation, code
from raw import OP_COMPRESSED, OP_MSG, Raw, message, op_msg, section
from windrow_server import Server

SECRET = "PaSsWoRd-4711"


def test_keys_of_passwords_are_not_shown(server, root):
    """Writes to the collection of users and filters on it contain keys. They must not be shown."""
    users = root.admin["system.users"]
    document = {"_id": "admin.written", "user": "written", "db": "admin", "roles": [],
                "credentials": {"SCRAM-SHA-256": {"storedKey": SECRET}}}
    filter = {"credentials.SCRAM-SHA-256.storedKey": SECRET}
    root.admin.command("profile", 2, slowms=-1)
    try:
        list(users.find(filter))
        list(users.aggregate([{"$match": filter}]))
        users.find_one_and_update(filter, {"$set": {"credentials.SCRAM-SHA-256.storedKey": SECRET}})
        users.update_one(filter, {"$set": {"credentials": {"x": SECRET}}})
        users.insert_one(document)
        root.admin.command("bulkWrite", 1, nsInfo=[{"ns": "admin.system.users"}],
                           ops=[{"delete": 0, "filter": filter}])
        users.delete_one(filter)
    finally:
        users.delete_one({"_id": "admin.written"})
        root.admin.command("profile", 0, slowms=100)
    profile = list(root.admin["system.profile"].find({"ns": "admin.system.users"}))
    assert len(profile) >= 6 and "xxx" in str(profile)
    assert not [record for record in profile if SECRET in str(record)]
    assert SECRET not in server.log()


def test_passwords_are_not_shown(server, root):
    """Every command is logged and profiled, and one of them is refused with its text."""
    root.admin.command("profile", 2, slowms=-1)
    root.admin.command("setParameter", logLevel=2)
    try:
        root.admin.command("createUser", "shown", pwd=SECRET, roles=[])
        root.admin.command("updateUser", "shown", pwd=SECRET + "2")
        client = server.client(username="shown", password=SECRET + "2")
        client.admin.command("connectionStatus")
        for refused in [{"createUser": "x", "pwd": SECRET, "roles": []},
                        {"updateUser": "x", "pwd": SECRET}]:
            with pytest.raises(Exception) as caught:
                client.admin.command(refused)
            assert caught.value.code == 13 and SECRET not in str(caught.value)
            assert "xxx" in str(caught.value)
            for explained in [refused, {"explain": refused}, {"CreateUser": 1, **refused}]:
                with pytest.raises(Exception) as caught:
                    root.admin.command({"explain": explained, "comment": "explained"})
                assert SECRET not in str(caught.value)
        with Raw(server) as connection:
            Conversation(connection).log_in("shown", SECRET + "2")
    finally:
        root.admin.command("setParameter", logLevel=0)
        root.admin.command("profile", 0, slowms=100)
    profile = str(list(root.admin["system.profile"].find()))
    log = server.log()
    recent = str(root.admin.command("getLog", "global"))
    for text in [profile, log, recent]:
        assert SECRET not in text and "n,,n=shown" not in text and "biws" not in text
    assert '"createUser":"shown"' in log and "xxx" in log
    assert '"explain":{"createUser":"x","pwd":"xxx"' in log


def test_refusals_and_logins_are_logged(server, root, login):
    client = login("read", name="logged", database="d")
    assert code(client.d.c.insert_one, {}) == 13
    assert code(server.client(username="logged", password="x", authSource="d").d.c.find_one) == 18
    lines = [json.loads(line) for line in server.log().splitlines() if '"c":"ACCESS"' in line]
    by_id = {identifier: [line["attr"] for line in lines if line["id"] == identifier]
             for identifier in [5286306, 5286307, 20436, 9000012]}
    assert any(attr["user"] == "logged" and attr["db"] == "d" for attr in by_id[5286306])
    assert any(attr["user"] == "logged" and "proof" in attr["error"] for attr in by_id[5286307])
    assert any(attr["command"] == "insert" and attr["user"] == "logged@d" for attr in by_id[20436])
    assert any(attr["command"] == "createUser" for attr in by_id[9000012])


def is_closed_by(server, data):
    with Raw(server) as connection:
        connection.send(data)
        return connection.is_closed()


def test_messages_before_a_login_are_small(server, root):
    ping = lambda size: op_msg(section({"ping": 1, "comment": "x" * size, "$db": "admin"}))
    with Raw(server) as connection:
        assert connection.send(ping(60_000)).reply()["ok"] == 1
    assert is_closed_by(server, ping(70_000))
    # The limit also counts for a message that is small only while it is compressed.
    body = ping(10_000_000)[16:]
    packed = struct.pack("<iiB", OP_MSG, len(body), 2) + zlib.compress(body)
    assert len(packed) < 64_000
    assert is_closed_by(server, message(packed, OP_COMPRESSED))
    with Raw(server) as connection:
        conversation = Conversation(connection).log_in("root", "secret")
        assert conversation.command(ping=1, comment="x" * 100_000)["ok"] == 1
    assert "before a login" in server.log()


def test_damaged_logins(server, root):
    """10,000 damaged login messages cause no login and no panic, and the server continues."""
    generator = random.Random(1)
    root.admin.command("setParameter", authFailedDelayMs=0)
    first = b"n,,n=root,r=abcdef"
    replies = {}
    with Raw(server) as connection:
        conversation = Conversation(connection)
        for number in range(10_000):
            payload = bytearray(first if number % 2 else
                                b"c=biws,r=abcdefxyz,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            for _ in range(generator.randint(0, 4)):
                place = generator.randrange(len(payload))
                match generator.randrange(3):
                    case 0:
                        payload[place] = generator.randrange(256)
                    case 1:
                        del payload[place:place + generator.randint(1, 5)]
                        payload = payload or bytearray(b"x")
                    case _:
                        payload[place:place] = generator.randbytes(generator.randint(1, 5))
            if number % 2:
                reply = conversation.command(
                    saslStart=1, mechanism=generator.choice(["SCRAM-SHA-1", "SCRAM-SHA-256"]),
                    payload=bytes(payload))
            else:
                reply = conversation.command(saslContinue=1, payload=bytes(payload),
                                             conversationId=generator.randint(0, number + 1))
            assert not reply.get("done")
            replies[reply.get("code", 0)] = replies.get(reply.get("code", 0), 0) + 1
        assert conversation.command(listDatabases=1)["code"] == 13
    root.admin.command("setParameter", authFailedDelayMs=50)
    assert set(replies) <= {0, 17, 18} and replies[18] > 100, replies


def test_users_are_restored_as_mongorestore_does(root, server):
    """mongorestore inserts users and roles into two collections, which a command then merges."""
    root.restored.command("createRole", "r", privileges=[], roles=["read"])
    root.restored.command("createUser", "u", pwd="pw", roles=["r"])
    dumped = {name: list(root.admin[f"system.{name}"].find({"db": "restored"}))
              for name in ["users", "roles"]}
    root.restored.command("dropAllUsersFromDatabase")
    root.restored.command("dropAllRolesFromDatabase")
    root.restored.command("createUser", "other", pwd="pw", roles=[])
    root.admin.command("createUser", "restorer", pwd="pw", roles=["restore"])
    client = server.client(username="restorer", password="pw")
    for name, documents in dumped.items():
        client.admin[f"temp{name}"].drop()
        client.admin[f"temp{name}"].insert_many(documents)
    merge = lambda **options: client.admin.command(
        "_mergeAuthzCollections", 1, tempUsersCollection="admin.tempusers",
        tempRolesCollection="admin.temproles", **options)
    merge(db="restored", drop=False)
    names = lambda: [user["user"] for user in root.restored.command("usersInfo", 1)["users"]]
    assert names() == ["other", "u"]
    server.client(username="u", password="pw", authSource="restored").restored.c.find_one()
    merge(db="restored", drop=True)
    assert names() == ["u"]
    assert code(merge, db="nowhere", unknown=1) == 40415
    # The roles of the administrators were not touched.
    root.admin.command("listDatabases")
    [version] = root.admin["system.version"].find()
    assert version == {"_id": "authSchema", "currentVersion": 5}
    assert root.admin.command("getParameter", authSchemaVersion=1)["authSchemaVersion"] == 5


def test_invalid_users_are_not_merged(root):
    root.admin.bad_users.insert_one({"_id": "d.x", "user": "x", "db": "d", "roles": 1})
    assert code(root.admin.command, "_mergeAuthzCollections", 1, drop=False, db="",
                tempUsersCollection="admin.bad_users") == 45
    assert root.d.command("usersInfo", "x")["users"] == []


def test_users_may_vanish_in_any_way(tmp_path):
    """A direct change of the collection of users has the same effect as the commands."""
    with Server(tmp_path, options=["--auth"]) as server:
        server.client().admin.command("createUser", "a", pwd="pw",
                                      roles=["root", "__system"])
        client = server.client(username="a", password="pw")
        client.d.c.find_one()
        client.admin["system.users"].delete_many({})
        # There are no users. With --auth, logins are still necessary.
        assert code(client.d.c.find_one) == 13


def test_uuid_is_not_a_user(root):
    assert code(root.admin.command, "createUser", bson.Binary(b"x" * 16, 4), pwd="x",
                roles=[]) == 14
