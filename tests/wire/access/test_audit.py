"""The audit log: its events, its filter, its files, and what happens if it cannot be written."""

import itertools
import json
import signal
import stat
import subprocess
import time

import pymongo
import pytest
from bson import Binary

from windrow_server import Server, binary, complete_lines

SECRET = "PaSsWoRd-4711"
FIELDS = ["atype", "ts", "uuid", "local", "remote", "users", "roles", "param", "result"]
NUMBERS = itertools.count()


def options(path, *more):
    return ["--audit-destination", "file", "--audit-format", "JSON", "--audit-path", str(path),
            *more]


def read(path):
    return [json.loads(line) for line in complete_lines(path).splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    with Server(folder, options=["--auth", *options(folder / "audit.json")]) as server:
        server.audit = folder / "audit.json"
        server.client().admin.command("createUser", "root", pwd=SECRET, roles=["root"])
        yield server
        assert SECRET not in server.audit.read_text()
        assert all(list(event) == FIELDS for event in read(server.audit))


@pytest.fixture(scope="module")
def root(server):
    return server.client(username="root", password=SECRET, appname="auditor")


@pytest.fixture(scope="module")
def client(root):
    return root


@pytest.fixture
def database(root):
    return root[f"audited{next(NUMBERS)}"]


@pytest.fixture
def events(server):
    """Returns the events since the test began, by kind: (param, result)."""
    before = len(read(server.audit))

    def events(*kinds):
        return [(event["atype"], event["param"], event["result"])
                for event in read(server.audit)[before:] if not kinds or event["atype"] in kinds]

    return events


def test_an_event_has_mongodbs_form(server, root, database):
    database.create_collection("c")
    event = read(server.audit)[-1]
    assert event["atype"] == "createCollection" and event["result"] == 0
    assert event["local"] == {"ip": "127.0.0.1", "port": server.port}
    assert event["remote"]["ip"] == "127.0.0.1" and event["remote"]["port"] != server.port
    assert event["users"] == [{"user": "root", "db": "admin"}]
    assert {"role": "root", "db": "admin"} in event["roles"]
    assert event["uuid"]["$type"] == "04" and len(event["uuid"]["$binary"]) == 24
    assert event["ts"]["$date"].endswith("+00:00")
    assert stat.S_IMODE(server.audit.stat().st_mode) == 0o600
    first = read(server.audit)[0]
    assert first["atype"] == "startup" and first["local"] == {"isSystemUser": True}
    assert first["param"]["startupOptions"]["auditLog"]["destination"] == "file"


def test_collections_and_indexes(root, database, events):
    name = database.name
    database.implicit.insert_one({})
    database.implicit.insert_one({})
    database.create_collection("view", viewOn="implicit", pipeline=[{"$match": {"a": 1}}])
    database.implicit.create_index("a", name="by_a")
    database.implicit.drop_index("by_a")
    database.implicit.aggregate([{"$out": "copied"}])
    database.implicit.aggregate([{"$merge": "merged"}])
    database.implicit.rename("renamed")
    database.command("drop", "view")
    database.command("drop", "missing")
    root.drop_database(name)
    ns = lambda collection: {"ns": f"{name}.{collection}"}
    view = {**ns("view"), "viewOn": f"{name}.implicit", "pipeline": [{"$match": {"a": 1}}]}
    index = {**ns("implicit"), "indexName": "by_a",
             "indexSpec": {"v": 2, "key": {"a": 1}, "name": "by_a"}}
    assert events("createDatabase", "createCollection", "createIndex", "dropIndex",
                  "renameCollection", "dropCollection") == [
        ("createDatabase", {"ns": name}, 0),
        ("createCollection", ns("implicit"), 0),
        ("createCollection", view, 0),
        ("createIndex", {**index, "indexBuildState": "IndexBuildStarted"}, 0),
        ("createIndex", {**index, "indexBuildState": "IndexBuildSucceeded"}, 0),
        ("dropIndex", {**ns("implicit"), "indexName": "by_a"}, 0),
        ("createCollection", ns("copied"), 0),
        ("createCollection", ns("merged"), 0),
        ("renameCollection", {"old": f"{name}.implicit", "new": f"{name}.renamed"}, 0),
        ("dropCollection", view, 0),
        ("dropCollection", ns("missing"), 26),
        *(("dropCollection", ns(one), 0) for one in ["copied", "merged", "renamed",
                                                         "system.views"]),
    ]
    assert events("dropDatabase") == [("dropDatabase", {"ns": name}, 0)]


def test_a_failed_index_build(database, events):
    database.c.insert_many([{"a": 1}, {"a": 1}])
    with pytest.raises(pymongo.errors.OperationFailure):
        database.c.create_index("a", unique=True)
    found = [(param["indexBuildState"], result) for _, param, result in events("createIndex")]
    assert found == [("IndexBuildStarted", 0), ("IndexBuildAborted", 276)]


def test_a_collection_that_a_transaction_creates(tmp_path):
    path = tmp_path / "audit.json"
    with Server(tmp_path, options=options(path, "--replica-set", "rs0")) as server:
        client = server.client()
        with client.start_session() as session, session.start_transaction():
            client.a.c.insert_one({}, session=session)
            client.a.c.insert_one({}, session=session)
    created = [event["param"] for event in read(path) if event["atype"] == "createCollection"]
    assert created == [{"ns": "a.c"}]


def test_users_and_roles(server, database, events):
    name = database.name
    run = database.command
    run("createRole", "r", privileges=[{"resource": {"db": name, "collection": ""},
                                        "actions": ["find"]}], roles=[])
    run("grantRolesToRole", "r", roles=["read"])
    run("revokeRolesFromRole", "r", roles=["read"])
    granted = [{"resource": {"db": name, "collection": "c"}, "actions": ["insert"]}]
    run("grantPrivilegesToRole", "r", privileges=granted)
    run("revokePrivilegesFromRole", "r", privileges=granted)
    run("updateRole", "r", roles=["read"])
    run("createUser", "u", pwd=SECRET, roles=["r"], customData={"a": 1})
    run("updateUser", "u", pwd=SECRET + "2", customData={})
    run("grantRolesToUser", "u", roles=["read"])
    run("revokeRolesFromUser", "u", roles=["read"])
    run("dropUser", "u")
    run("dropRole", "r")
    run("dropAllUsersFromDatabase")
    run("dropAllRolesFromDatabase")
    role, user = {"role": "r", "db": name}, {"user": "u", "db": name}
    reads = [{"role": "read", "db": name}]
    privileges = [{"resource": {"db": name, "collection": ""}, "actions": ["find"]}]
    assert events() == [
        ("createRole", {**role, "roles": [], "privileges": privileges}, 0),
        ("grantRolesToRole", {**role, "roles": reads}, 0),
        ("revokeRolesFromRole", {**role, "roles": reads}, 0),
        ("grantPrivilegesToRole", {**role, "privileges": granted}, 0),
        ("revokePrivilegesFromRole", {**role, "privileges": granted}, 0),
        ("updateRole", {**role, "roles": reads}, 0),
        ("createUser", {**user, "customData": {"a": 1}, "roles": [role]}, 0),
        ("updateUser", {**user, "passwordChanged": True, "customData": {}}, 0),
        ("grantRolesToUser", {**user, "roles": reads}, 0),
        ("revokeRolesFromUser", {**user, "roles": reads}, 0),
        ("dropUser", user, 0),
        ("dropRole", role, 0),
        ("dropAllUsersFromDatabase", {"db": name}, 0),
        ("dropAllRolesFromDatabase", {"db": name}, 0),
    ]


def test_logins_and_refusals(server, root, database, events):
    database.command("createUser", "reader", pwd=SECRET, roles=["read"])
    credentials = dict(username="reader", authSource=database.name, appname="audited-app")
    reader = server.client(password=SECRET, **credentials)
    with pytest.raises(pymongo.errors.OperationFailure):
        reader[database.name].c.insert_one({"secret": 1})
    reader.close()
    with pytest.raises(pymongo.errors.OperationFailure):
        server.client(password="wrong", **credentials)[database.name].c.find_one()
    user = {"user": "reader", "db": database.name}
    logins = [(param["mechanism"], result) for _, param, result in events("authenticate")
              if param["user"] == "reader" and param["db"] == database.name]
    assert ("SCRAM-SHA-256", 0) in logins and ("SCRAM-SHA-256", 18) in logins
    [(_, param, result)] = events("authCheck")
    assert result == 13 and param["command"] == "insert" and param["ns"] == f"{database.name}.c"
    assert param["args"]["insert"] == "c"
    metadata = [param for _, param, _ in events("clientMetadata")]
    assert any(one["clientMetadata"]["application"]["name"] == "audited-app" for one in metadata)
    assert metadata[0]["localEndpoint"] == {"ip": "127.0.0.1", "port": server.port}
    reason = "Implicit logout due to client connection closure"
    logout = {"reason": reason, "initialUsers": [user], "updatedUsers": []}
    until(lambda: ("logout", logout, 0) in events("logout"))


def test_an_explicit_logout(server, events):
    with pymongo.MongoClient(server.uri, username="root", password=SECRET,
                             maxPoolSize=1) as client:
        client.admin.command("logout")
    found = events("logout")[0]
    assert found[1] == {"reason": "Explicit logout from admin", "updatedUsers": [],
                        "initialUsers": [{"user": "root", "db": "admin"}]}


def test_an_unknown_mechanism(server, events):
    with pytest.raises(pymongo.errors.OperationFailure):
        server.client().admin.command("saslStart", mechanism="PLAIN", payload=Binary(b""))
    assert events("authenticate")[-1][2] == 334


def test_allowed_commands_on_request(root, database, events):
    database.c.find_one()
    assert events("authCheck") == []
    root.admin.command("setParameter", auditAuthorizationSuccess=True)
    try:
        database.c.find_one({"a": 1})
        database.command("createUser", "new", pwd=SECRET, roles=[])
    finally:
        root.admin.command("setParameter", auditAuthorizationSuccess=False)
    by_command = {param["command"]: param for _, param, result in events("authCheck")
                  if result == 0}
    assert by_command["find"]["ns"] == f"{database.name}.c"
    assert by_command["find"]["args"]["filter"] == {"a": 1}
    assert by_command["createUser"]["args"]["pwd"] == "xxx"
    assert by_command["createUser"]["ns"] == database.name


def test_writes_to_the_users(root, database, events):
    database.command("createUser", "direct", pwd=SECRET, roles=[])
    users = root.admin["system.users"]
    stored = users.find_one({"user": "direct", "db": database.name})
    users.delete_one({"_id": stored["_id"]})
    users.insert_one(stored)
    users.update_one({"_id": stored["_id"]}, {"$set": {"credentials": stored["credentials"]}})
    users.find_one_and_update({"_id": stored["_id"]}, {"$set": {"customData": {}}})
    root.bulk_write([pymongo.DeleteOne({"_id": stored["_id"]}, namespace="admin.system.users")])
    found = events("directAuthMutation")
    assert [param["operation"] for _, param, _ in found] == \
        ["delete", "insert", "update", "update", "delete"]
    assert all(param["ns"] == "admin.system.users" for _, param, _ in found)
    assert found[1][1]["document"]["credentials"] == "xxx"
    assert found[2][1]["document"]["u"] == {"$set": {"credentials": "xxx"}}
    key = stored["credentials"]["SCRAM-SHA-256"]["storedKey"]
    assert key not in json.dumps(found)


def test_messages_and_parameters(root, events):
    root.admin.command("logApplicationMessage", "the application says\nso")
    root.admin.command("getClusterParameter", "defaultMaxTimeMS")
    root.admin.command("setClusterParameter", {"defaultMaxTimeMS": {"readOperations": 0}})
    kinds = [kind for kind, _, _ in events()]
    assert kinds == ["applicationMessage", "getClusterParameter", "setClusterParameter"]
    assert events("applicationMessage")[0][1] == {"msg": "the application says\nso"}
    with pytest.raises(pymongo.errors.OperationFailure) as caught:
        root.admin.command("logApplicationMessage", 1)
    assert caught.value.code == 14


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_files_are_rotated(tmp_path):
    path = tmp_path / "audit.json"
    renamed = lambda: sorted(tmp_path.glob("audit.json.*"))
    with Server(tmp_path, options=options(path)) as server:
        client = server.client()
        client.admin.command("logRotate", "audit")
        assert len(renamed()) == 1 and stat.S_IMODE(path.stat().st_mode) == 0o600
        [event] = [event for event in read(path) if event["atype"] == "rotateLog"]
        status = event["param"]["logRotationStatus"]
        assert status == {"status": "OK", "rotatedLogPath": str(renamed()[0]), "errors": []}
        time.sleep(1.1)
        server.process.send_signal(signal.SIGUSR1)
        until(lambda: len(renamed()) == 2)
        client.a.c.insert_one({})
        kinds = [event["atype"] for event in read(path)]
        assert "createDatabase" in kinds and "createCollection" in kinds
        assert server.stop() == 0
    assert "shutdown" in [event["atype"] for event in read(path)]


def test_the_filter(tmp_path):
    path = tmp_path / "audit.json"
    chosen = "{ atype: { $in: ['createCollection', \"dropCollection\"] }, 'param.ns': /^shop\\./ }"
    with Server(tmp_path, options=options(path, "--audit-filter", chosen)) as server:
        client = server.client()
        client.shop.c.insert_one({})
        client.other.c.insert_one({})
        client.drop_database("shop")
    assert [event["atype"] for event in read(path)] == ["createCollection", "dropCollection"]


def test_the_configuration_file(tmp_path):
    path, config = tmp_path / "audit.json", tmp_path / "windrow.conf"
    config.write_text(f"auditLog:\n  destination: file\n  format: JSON\n  path: {path}\n"
                      "  filter: '{ users: { $elemMatch: { user: \"ann\" } } }'\n"
                      "setParameter: { auditAuthorizationSuccess: true }\n")
    with Server(tmp_path, options=["--config", str(config)]) as server:
        server.client().admin.command("createUser", "ann", pwd="pw", roles=["root"])
        server.client(username="ann", password="pw").a.c.find_one()
    commands = [event["param"]["command"] for event in read(path) if event["atype"] == "authCheck"]
    assert "find" in commands


def test_the_console(tmp_path):
    with Server(tmp_path, options=["--audit-destination", "console"]) as server:
        server.client().a.c.insert_one({})
        assert '{"atype":"createCollection",' in server.log()


def test_the_server_stops_if_it_cannot_write(tmp_path):
    """Nothing is done unrecorded: the command fails, and the server ends with an error."""
    chosen = "{ atype: 'createCollection' }"
    with Server(tmp_path, options=options("/dev/full", "--audit-filter", chosen)) as server:
        client = server.client(retryWrites=False)
        client.admin.command("ping")
        with pytest.raises(pymongo.errors.PyMongoError) as caught:
            client.a.create_collection("c")
        details = caught.value.details
        assert details["code"] == 91 and "audit log" in details["errmsg"]
        process, server.process = server.process, None
        assert process.wait(30) == 1
        assert "The audit log cannot be written: the server stops" in server.log()
        assert "No space left" in server.log()


@pytest.mark.parametrize("given, message", [
    (["--audit-destination", "file", "--audit-format", "JSON"], "--audit-path is missing"),
    (["--audit-destination", "file", "--audit-path", "x"], "--audit-format is missing"),
    (["--audit-destination", "file", "--audit-path", "x", "--audit-format", "BSON"],
     "only value is JSON"),
    (["--audit-destination", "mail"], "not a destination"),
    (["--audit-destination", "console", "--audit-filter", "{ $foo: 1 }"], "unknown top level"),
    (["--audit-destination", "console", "--audit-filter", "{ a"], "':' is missing"),
    (["--audit-filter", "{}"], "--audit-destination is missing"),
])
def test_wrong_options(tmp_path, given, message):
    command = [str(binary()), "serve", "--data", str(tmp_path / "data"), *given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and message in ended.stderr, ended.stderr


def test_a_file_that_cannot_be_opened(tmp_path):
    command = [str(binary()), "serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0",
               *options(tmp_path / "missing" / "audit.json")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "the audit log" in ended.stderr, ended.stderr
