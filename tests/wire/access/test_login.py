"""Logins: mechanisms, names, databases, restrictions and limits."""

import base64
import hashlib
import time

import bson
import pymongo
import pytest
from pymongo.errors import OperationFailure

from logins import Conversation, code
from raw import Raw, op_msg, section
from windrow_server import Server


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-1", None])
def test_both_mechanisms(server, root, mechanism):
    options = {"authMechanism": mechanism} if mechanism else {}
    client = server.client(username="root", password="secret", **options)
    status = client.admin.command("connectionStatus")["authInfo"]
    assert status["authenticatedUsers"] == [{"user": "root", "db": "admin"}]
    assert {"role": "root", "db": "admin"} in status["authenticatedUserRoles"]
    wrong = server.client(username="root", password="Secret", **options)
    assert code(wrong.admin.command, "connectionStatus") == 18


def test_a_user_has_the_mechanisms_that_were_asked_for(server, root):
    for mechanism, other in [("SCRAM-SHA-1", "SCRAM-SHA-256"), ("SCRAM-SHA-256", "SCRAM-SHA-1")]:
        root.admin.command("createUser", mechanism, pwd="pw", roles=[], mechanisms=[mechanism])
        server.client(username=mechanism, password="pw", authMechanism=mechanism).admin.command(
            "connectionStatus")
        # PyMongo asks for the mechanism of the user by hello.
        server.client(username=mechanism, password="pw").admin.command("connectionStatus")
        wrong = server.client(username=mechanism, password="pw", authMechanism=other)
        assert code(wrong.admin.command, "connectionStatus") == 18
        [user] = root.admin.command("usersInfo", mechanism)["users"]
        assert user["mechanisms"] == [mechanism]
        hello = server.client().admin.command("hello", saslSupportedMechs=f"admin.{mechanism}")
        assert hello["saslSupportedMechs"] == [mechanism]


def test_passwords_are_prepared(server, root):
    # SASLprep removes a soft hyphen and turns the Roman numeral into two letters.
    root.admin.command("createUser", "prepared", pwd="I\u00adX", roles=[],
                       mechanisms=["SCRAM-SHA-256"])
    for password in ["IX", "\u2168", "I\u00adX"]:
        client = server.client(username="prepared", password=password,
                               authMechanism="SCRAM-SHA-256")
        client.admin.command("connectionStatus")
    assert code(root.admin.command, "createUser", "bad", pwd="a\u0007", roles=[]) == 2
    for name in ["a,b=c", "größe", "a b", "x" * 500]:
        root.admin.command("createUser", name, pwd="pw", roles=[])
        server.client(username=name, password="pw").admin.command("connectionStatus")


def test_nobody_learns_who_exists(server, root):
    """A login with an unknown name looks like one with a wrong password."""
    replies = {}
    for name in ["root", "nobody", "nobody", "other"]:
        with Raw(server) as connection:
            conversation = Conversation(connection)
            first = conversation.start(name)
            last = conversation.finish("wrong")
        assert first["ok"] == 1 and first["done"] is False
        salt = conversation.parts["s"]
        assert replies.setdefault(name, salt) == salt
        assert len(base64.b64decode(salt)) == 28 and conversation.parts["i"] == "15000"
        assert (last["code"], last["errmsg"]) == (18, "Authentication failed.")
    assert len(set(replies.values())) == 3
    for name in ["root", "nobody"]:
        hello = server.client().admin.command("hello", saslSupportedMechs=f"admin.{name}")
        assert hello["saslSupportedMechs"] == ["SCRAM-SHA-1", "SCRAM-SHA-256"]


def test_unknown_names_keep_their_salt(tmp_path):
    with Server(tmp_path, options=["--auth"]) as server:
        server.client().admin.command("createUser", "a", pwd="pw", roles=["root"])
        salts = []
        for _ in range(2):
            with Raw(server) as connection:
                conversation = Conversation(connection)
                conversation.start("nobody")
                salts.append(conversation.parts["s"])
            server.restart()
        assert salts[0] == salts[1]


def test_conversations_are_checked(server, root):
    with Raw(server) as connection:
        conversation = Conversation(connection)
        assert conversation.command(saslContinue=1, conversationId=1, payload=b"")["code"] == 17
        conversation.start("root")
        assert conversation.command(saslContinue=1, conversationId=conversation.id + 1,
                                    payload=b"")["code"] == 17
        # A wrong message ends the conversation.
        assert conversation.finish("secret")["code"] == 17
        conversation.start("root")
        done = conversation.finish("secret")
        assert done["ok"] == 1 and done["done"] is True
        assert conversation.command(saslContinue=1, conversationId=conversation.id,
                                    payload=b"")["code"] == 17
        assert conversation.command(find="system.users")["ok"] == 1
    with Raw(server) as connection:
        conversation = Conversation(connection)
        conversation.start("root", options={"skipEmptyExchange": False})
        assert conversation.finish("secret")["done"] is False
        last = conversation.command(saslContinue=1, conversationId=conversation.id, payload=b"")
        assert last["done"] is True and last["ok"] == 1
    for mechanism, expected in [("PLAIN", 334), ("MONGODB-X509", 334), ("GSSAPI", 334)]:
        with Raw(server) as connection:
            reply = Conversation(connection).start("root", mechanism=mechanism)
            assert reply["code"] == expected
    for payload in [b"", b"n,,", b"\xff", b"p=x,,n=root,r=a", b"n,,n=root,r=" + b"a" * 5000]:
        with Raw(server) as connection:
            reply = Conversation(connection).command(saslStart=1, mechanism="SCRAM-SHA-1",
                                                     payload=payload)
            assert reply["code"] == 18, payload


def test_a_connection_has_one_user(server, root):
    root.admin.command("createUser", "second", pwd="pw", roles=[])
    root.other.command("createUser", "second", pwd="pw", roles=[])
    with Raw(server) as connection:
        conversation = Conversation(connection)
        conversation.start("root")
        conversation.finish("secret")
        assert conversation.start("root")["ok"] == 1
        assert conversation.start("second")["code"] == 5626501
        conversation.database = "other"
        assert conversation.start("second")["code"] == 5626502
        # The database of a logout is that of the user.
        assert conversation.command(logout=1)["ok"] == 1
        conversation.database = "admin"
        assert conversation.command(listDatabases=1)["ok"] == 1
        assert conversation.command(logout=1)["ok"] == 1
        assert conversation.command(listDatabases=1)["code"] == 13
        assert conversation.start("second")["ok"] == 1


def test_hello_starts_a_login(server, root):
    with Raw(server) as connection:
        conversation = Conversation(connection)
        conversation.bare = "n=root,r=abc"
        hello = conversation.command(hello=1, speculativeAuthenticate={
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "db": "admin",
            "payload": f"n,,{conversation.bare}".encode(), "options": {"skipEmptyExchange": True}})
        reply = hello["speculativeAuthenticate"]
        conversation.id, conversation.first = reply["conversationId"], reply["payload"].decode()
        conversation.parts = dict(part.split("=", 1) for part in conversation.first.split(","))
        assert conversation.finish("secret")["done"] is True
        for started in [{"saslStart": 1}, {"saslStart": 1, "mechanism": "PLAIN", "payload": b""},
                        {"saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": b"x"}, {}]:
            hello = conversation.command(hello=1, speculativeAuthenticate=started)
            assert hello["ok"] == 1 and "speculativeAuthenticate" not in hello


def test_iteration_counts_are_parameters(server, root):
    before = root.admin.command("getParameter", scramIterationCount=1, scramSHA256IterationCount=1)
    assert (before["scramIterationCount"], before["scramSHA256IterationCount"]) == (10000, 15000)
    assert code(root.admin.command, "setParameter", scramIterationCount=100) == 2
    root.admin.command("setParameter", scramIterationCount=5000)
    root.admin.command("createUser", "counted", pwd="pw", roles=[])
    [user] = root.admin.command("usersInfo", "counted", showCredentials=True)["users"]
    counts = {name: one["iterationCount"] for name, one in user["credentials"].items()}
    assert counts == {"SCRAM-SHA-1": 5000, "SCRAM-SHA-256": 15000}
    root.admin.command("setParameter", scramIterationCount=10000)
    server.client(username="counted", password="pw").admin.command("connectionStatus")


def test_what_needs_no_login(server, root):
    client = server.client()
    for command in ["hello", "isMaster", "ping", "buildInfo", "connectionStatus", "whatsmyuri",
                    "listCommands", "logout"]:
        client.admin.command(command)
    for command in ["listDatabases", "serverStatus", "startSession", "getMore", "killCursors",
                    "find", "insert", "getLog", "createUser", "usersInfo", "refreshSessions",
                    "currentOp", "killOp", "killSessions", "commitTransaction", "dbStats"]:
        refused = code(client.admin.command, command)
        assert refused == 13, command
    with pytest.raises(OperationFailure, match="requires authentication"):
        client.d.c.find_one()
    assert code(client.admin.command, "nothing") == 59


def test_failed_logins_wait(server, root):
    def seconds():
        with Raw(server) as connection:
            conversation = Conversation(connection)
            conversation.start("root")
            proof = base64.b64encode(bytes(32)).decode()
            began = time.monotonic()
            reply = conversation.command(saslContinue=1, conversationId=conversation.id,
                                         payload=f"c=biws,r={conversation.parts['r']},p={proof}".encode())
            assert reply["code"] == 18
            return time.monotonic() - began

    root.admin.command("setParameter", authFailedDelayMs=700)
    assert seconds() >= .7
    root.admin.command("setParameter", authFailedDelayMs=0)
    assert seconds() < .7
    root.admin.command("setParameter", authFailedDelayMs=50)
    assert code(root.admin.command, "setParameter", authFailedDelayMs=5001) == 2


def test_the_first_user_comes_from_the_machine(tmp_path):
    with Server(tmp_path, options=["--auth"]) as server:
        client = server.client()
        for command in ["listDatabases", "usersInfo", "startSession", "serverStatus"]:
            assert code(client.admin.command, command) == 13, command
        assert code(client.d.c.insert_one, {}) == 13
        # Roles of other databases cannot be granted, and users of other databases not created.
        assert code(client.admin.command, "createUser", "a", pwd="pw",
                    roles=[{"role": "read", "db": "d"}]) == 13
        assert code(client.d.command, "createUser", "a", pwd="pw", roles=[]) == 13
        client.admin.command("createUser", "a", pwd="pw", roles=["userAdminAnyDatabase"])
        assert code(client.admin.command, "createUser", "b", pwd="pw", roles=[]) == 13
        server.client(username="a", password="pw").admin.command("usersInfo", 1)


def test_a_first_role_ends_the_exception(tmp_path):
    with Server(tmp_path, options=["--auth"]) as server:
        client = server.client()
        client.admin.command("createRole", "r", privileges=[], roles=[])
        assert code(client.admin.command, "createUser", "a", pwd="pw", roles=[]) == 13


def test_the_exception_can_be_turned_off(tmp_path):
    options = ["--auth", "--set-parameter", "enableLocalhostAuthBypass=false"]
    with Server(tmp_path, options=options) as server:
        client = server.client()
        assert code(client.admin.command, "createUser", "a", pwd="pw", roles=[]) == 13


def test_logins_are_needed_as_soon_as_there_is_a_user(tmp_path):
    """Without `--auth`: everything is allowed until a user exists, then nothing without a login."""
    with Server(tmp_path) as server:
        open_client = server.client(maxPoolSize=1)
        open_client.d.c.insert_many([{} for _ in range(10)])
        cursor = open_client.d.c.find(batch_size=2)
        next(cursor)
        open_client.admin.command("createUser", "a", pwd="pw", roles=["root"])
        assert code(open_client.d.c.find_one) == 13
        assert code(list, cursor) == 13
        assert code(open_client.admin.command, "createUser", "b", pwd="pw", roles=[]) == 13
        user = server.client(username="a", password="pw")
        assert user.d.c.count_documents({}) == 10
        server.restart()
        assert code(server.client().d.c.find_one) == 13


def test_access_control_outlives_the_last_user(tmp_path):
    """Regression: an administrator of one database ended the need of logins by dropping the last
    user."""
    with Server(tmp_path) as server:
        server.client().d.c.insert_one({})
        server.client().d.command("createUser", "a", pwd="pw", roles=["userAdmin"])
        user = server.client(username="a", password="pw", authSource="d")
        user.d.command("dropAllUsersFromDatabase")
        assert code(server.client().d.c.find_one) == 13
        server.restart()
        client = server.client()
        assert code(client.d.c.find_one) == 13
        assert code(client.d.command, "createUser", "b", pwd="pw", roles=[]) == 13
        client.admin.command("createUser", "b", pwd="pw", roles=["root"])
        root = server.client(username="b", password="pw")
        assert root.d.c.count_documents({}) == 1
        assert code(root.admin.command, "drop", "system.users") == 20
        assert code(root.admin.command, "dropDatabase") == 20


def test_no_auth_is_given_by_name(tmp_path):
    with Server(tmp_path) as server:
        server.client().admin.command("createUser", "a", pwd="pw", roles=["root"])
        server.stop()
        server.options = ["--no-auth"]
        server.start()
        assert server.client().admin.command("usersInfo", 1)["users"][0]["user"] == "a"
        options = server.client().admin.command("getCmdLineOpts")["parsed"]
        assert options["security"] == {"authorization": "disabled"}
        user = server.client(username="a", password="pw")
        status = user.admin.command("connectionStatus")["authInfo"]
        assert status["authenticatedUsers"] == [{"user": "a", "db": "admin"}]


def test_other_machines_need_a_login(tmp_path):
    with Server(tmp_path, start=False) as server:
        command = server.command()
        command[command.index("--listen") + 1] = f"0.0.0.0:{server.port}"
        server.command = lambda: command + server.options
        with pytest.raises(RuntimeError, match="--no-auth"):
            server.start()
        server.options = ["--no-auth"]
        server.start()
        assert "Access control is not enabled" in server.log()
        server.client().admin.command("createUser", "a", pwd="pw", roles=["root"])
        server.stop()
        server.options = []
        server.start()
        user = server.client(username="a", password="pw")
        user.admin.command("dropUser", "a")
        # Otherwise dropping the last user would let other machines in.
        assert code(server.client().d.c.find_one) == 13


def test_users_without_ids_are_told_apart(root, server):
    """Users that a tool has stored may have no id. A later user with the same name is another user.
    """
    create = lambda: root.admin.command("createUser", "restored", pwd="pw", roles=["root"])
    users = root.admin["system.users"]
    root.admin.command("grantRolesToUser", "root", roles=["__system"])
    create()
    users.update_one({"user": "restored"}, {"$unset": {"userId": 1}})
    client = server.client(username="restored", password="pw", maxPoolSize=1)
    client.admin.command("listDatabases")
    root.admin.command("createUser", "unrelated", pwd="pw", roles=[])
    client.admin.command("listDatabases")
    root.admin.command("dropUser", "restored")
    create()
    users.update_one({"user": "restored"}, {"$unset": {"userId": 1}})
    assert code(client.admin.command, "listDatabases") == 13
    for name in ["restored", "unrelated"]:
        root.admin.command("dropUser", name)
    root.admin.command("revokeRolesFromUser", "root", roles=["__system"])


def test_a_dropped_user_is_logged_out_at_once(server, root, login):
    client = login("root", name="leaving")
    client.admin.command("listDatabases")
    root.admin.command("dropUser", "leaving")
    assert code(client.admin.command, "listDatabases") == 13
    root.admin.command("createUser", "leaving", pwd="pw", roles=["root"])
    # It is another user with the same name.
    assert code(client.admin.command, "listDatabases") == 13


def test_changed_passwords(server, root, login):
    client = login("read", name="changing", database="d")
    client.d.c.find_one()
    root.d.command("updateUser", "changing", pwd="new")
    client.d.c.find_one()
    wrong = server.client(username="changing", password="pw", authSource="d")
    assert code(wrong.d.c.find_one) == 18
    server.client(username="changing", password="new", authSource="d").d.c.find_one()


def test_digested_passwords(server, root):
    digest = hashlib.md5(b"digested:mongo:pw").hexdigest()
    assert code(root.admin.command, "createUser", "digested", pwd=digest, roles=[],
                digestPassword=False, mechanisms=["SCRAM-SHA-256"]) == 2
    root.admin.command("createUser", "digested", pwd=digest, roles=[], digestPassword=False,
                       mechanisms=["SCRAM-SHA-1"])
    server.client(username="digested", password="pw").admin.command("connectionStatus")


def test_users_survive_a_crash(tmp_path):
    with Server(tmp_path, options=["--auth"]) as server:
        server.client().admin.command("createUser", "a", pwd="pw", roles=["root"])
        server.restart()
        client = server.client(username="a", password="pw")
        [user] = client.admin.system.users.find()
        assert user["_id"] == "admin.a" and isinstance(user["userId"], bson.Binary)
        assert list(user) == ["_id", "userId", "user", "db", "credentials", "roles"]
        assert list(user["credentials"]) == ["SCRAM-SHA-1", "SCRAM-SHA-256"]
        assert client.admin["system.version"].find_one() == {"_id": "authSchema",
                                                              "currentVersion": 5}


def test_a_strict_client_logs_in(server, root):
    api = pymongo.server_api.ServerApi("1", strict=True)
    client = server.client(username="root", password="secret", server_api=api)
    client.d.c.insert_one({})


def test_restrictions_apply_to_open_connections(server, root, login):
    """The next command after the change fails: the user is logged out."""
    client = login("readAnyDatabase", name="traveller")
    client.a.c.find_one()
    elsewhere = [{"clientSource": ["192.0.2.1"]}]
    root.admin.command("updateUser", "traveller", authenticationRestrictions=elsewhere)
    assert code(client.a.c.find_one) in (13, 18)
    root.admin.command("updateUser", "traveller", authenticationRestrictions=[])
    client = server.client(username="traveller", password="pw")
    client.a.c.find_one()
    root.admin.command("createRole", "far", privileges=[], roles=[], authenticationRestrictions=elsewhere)
    root.admin.command("grantRolesToUser", "traveller", roles=["far"])
    assert code(client.a.c.find_one) in (13, 18)


def test_an_invalid_user_does_not_hide_the_others(root):
    root.admin["system.users"].insert_one({"_id": "admin.odd", "user": 5, "db": "admin"})
    try:
        found = root.admin.command("usersInfo", 1)["users"]
        assert "root" in [user["user"] for user in found] and "admin.odd" not in str(found)
    finally:
        root.admin["system.users"].delete_one({"_id": "admin.odd"})


def test_a_client_that_sends_nothing_is_disconnected(server):
    """Otherwise clients that never log in could take all connections."""
    with Raw(server) as silent, Raw(server) as half:
        half.send(op_msg(section({"ping": 1, "$db": "admin"}))[:20])
        began = time.monotonic()
        for connection in (silent, half):
            connection.socket.settimeout(90)
            assert connection.socket.recv(1) == b""
        assert 55 < time.monotonic() - began < 80
