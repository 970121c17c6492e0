"""A server with users and roles is dumped, and restored into an empty one whose clients must log in."""

import bson
import pytest
from pymongo.errors import OperationFailure

import certificates
from programs_of_mongodb import run, start
from sample import fill, state
from windrow_server import Server

FORMS = {
    "a folder": lambda folder: [f"{folder}/dump"],
    "a folder, compressed": lambda folder: ["--gzip", f"{folder}/dump"],
    "an archive": lambda folder: [f"--archive={folder}/dump.archive"],
    "an archive, compressed": lambda folder: ["--gzip", f"--archive={folder}/dump.gz"],
}
PRIVILEGES = [{"resource": {"db": "shop", "collection": "plain"}, "actions": ["find", "listIndexes"]},
              {"resource": {"db": "shop", "collection": ""}, "actions": ["listCollections"]}]


def administrator(server, name, roles):
    """The first user of a server, by the exception for the machine itself."""
    server.client().admin.command("createUser", name, pwd=name, roles=roles)
    return server.client(username=name, password=name)


def account(server, name, *rest):
    return ["--host=127.0.0.1", f"--port={server.port}", f"--username={name}", f"--password={name}",
            "--authenticationDatabase=admin", *rest]


def users_and_roles(client):
    """With the keys of all users, so a restored user has the same password."""
    return {name: sorted((bson.encode(one) for one in client.admin[name].find({"_id": {"$regex": "^(shop|admin)."}})))
            for name in ("system.users", "system.roles")}


def without(found, *names):
    return {kind: [one for one in documents if bson.decode(one).get("user") not in names]
            for kind, documents in found.items()}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("source"), options=["--auth"]) as server:
        root = administrator(server, "root", ["root"])
        fill(root.shop)
        shop, admin = root.shop, root.admin
        shop.command("createRole", "taster", privileges=PRIVILEGES, roles=[])
        shop.command("createRole", "cook", privileges=[], roles=["taster", "readWrite"],
                     authenticationRestrictions=[{"clientSource": ["127.0.0.1"]}])
        shop.command("createUser", "ann", pwd="ann's", roles=["cook"], customData={"shift": "late"})
        shop.command("createUser", "old", pwd="old's", roles=["taster"], mechanisms=["SCRAM-SHA-1"])
        admin.command("createUser", "dumper", pwd="dumper", roles=["backup"])
        yield server
        assert "Panic" not in server.log()


@pytest.fixture
def target(tmp_path):
    with Server(tmp_path / "target", options=["--auth"]) as server:
        administrator(server, "restorer", ["restore"])
        yield server
        assert "Panic" not in server.log()


def check_users(server):
    ann = server.client(username="ann", password="ann's", authSource="shop")
    ann.shop.plain.insert_one({"_id": "new", "a": -1})
    assert ann.shop.plain.find_one("new") == {"_id": "new", "a": -1}
    old = server.client(username="old", password="old's", authSource="shop", authMechanism="SCRAM-SHA-1")
    assert old.shop.plain.find_one(7)["a"] == 7
    for refused in (lambda: old.shop.plain.insert_one({}), lambda: ann.other.plain.find_one()):
        with pytest.raises(OperationFailure) as error:
            refused()
        assert error.value.code == 13
    with pytest.raises(OperationFailure) as error:
        server.client(username="ann", password="old's", authSource="shop").shop.plain.find_one()
    assert error.value.code == 18


@pytest.mark.parametrize("form", FORMS)
def test_a_server_is_restored_with_its_users(source, target, tmp_path, form):
    root = source.client(username="root", password="root")
    before, users = state(root.shop), users_and_roles(root)
    *options, last = FORMS[form](tmp_path)
    place = last if last.startswith("--archive") else f"--out={last}"
    run("mongodump", *account(source, "dumper"), *options, place)
    run("mongorestore", *account(target, "restorer"), *options, last)
    # The restored root has the password of the source.
    restored = target.client(username="root", password="root")
    assert state(restored.shop) == before
    assert without(users_and_roles(restored), "restorer") == users
    check_users(target)


def test_a_server_is_restored_over_another(source, tmp_path):
    """`--drop` replaces users and roles: those that the dump lacks are removed."""
    run("mongodump", *account(source, "dumper"), f"--archive={tmp_path}/archive")
    with Server(tmp_path / "target", options=["--auth"]) as target:
        administrator(target, "restorer", ["restore"])
        run("mongorestore", *account(target, "restorer"), f"--archive={tmp_path}/archive")
        # The user of the dump keeps its identity, and continues the restoration.
        own = target.client(username="root", password="root")
        own.shop.plain.drop()
        own.shop.command("createRole", "guest", privileges=[], roles=[])
        own.admin.command("createUser", "guest", pwd="guest", roles=["root"])
        own.shop.plain.insert_one({"_id": 1, "old": True})
        run("mongorestore", *account(target, "root"), "--drop", f"--archive={tmp_path}/archive")
        original = source.client(username="root", password="root")
        restored = target.client(username="root", password="root")
        assert users_and_roles(restored) == users_and_roles(original)
        assert state(restored.shop) == state(original.shop)
        assert start("mongodump", *account(target, "guest"), f"--out={tmp_path}/again").returncode != 0


def test_a_database_is_restored_with_its_own_users(source, target, tmp_path):
    run("mongodump", *account(source, "root"), "--db=shop", "--dumpDbUsersAndRoles", f"--out={tmp_path}/dump")
    run("mongorestore", *account(target, "restorer"), "--db=shop", "--restoreDbUsersAndRoles",
        f"{tmp_path}/dump/shop")
    check_users(target)
    with pytest.raises(OperationFailure):
        target.client(username="root", password="root").shop.plain.find_one()


def test_privileges_are_needed(source, target, tmp_path):
    """The roles backup and restore are enough, as above. Others are not."""
    taster = ["--host=127.0.0.1", f"--port={source.port}", "--username=old", "--password=old's",
              "--authenticationDatabase=shop", "--authenticationMechanism=SCRAM-SHA-1"]
    refused = start("mongodump", *taster, f"--out={tmp_path}/dump")
    assert refused.returncode != 0 and "not authorized" in refused.stderr, refused.stderr
    wrong = start("mongodump", *taster[:3], "--password=wrong", *taster[4:], f"--out={tmp_path}/dump")
    assert wrong.returncode != 0 and "AuthenticationFailed" in wrong.stderr, wrong.stderr
    exported = run("mongoexport", *taster, "--db=shop", "--collection=plain", f"--out={tmp_path}/plain.json")
    assert "exported 300 records" in exported
    refused = start("mongoimport", *taster, "--db=shop", "--collection=plain", f"{tmp_path}/plain.json")
    assert refused.returncode != 0 and "not authorized" in refused.stderr, refused.stderr


def test_tools_use_tls_and_certificates(tmp_path):
    folder = certificates.make(tmp_path / "tls", "alice")
    options = certificates.server_options(folder, "require", "--tls-ca-file", str(folder / "ca.pem"))
    with Server(tmp_path / "server", options=options,
                connection=certificates.client_options(folder, "alice")) as server:
        server.client().shop.plain.insert_many([{"_id": number} for number in range(10)])
        server.client()["$external"].command(
            "createUser", "CN=alice", roles=[{"role": role, "db": "admin"} for role in ("backup", "restore")])
        alice = ["--host=localhost", f"--port={server.port}", "--ssl", f"--sslCAFile={folder}/ca.pem",
                 f"--sslPEMKeyFile={folder}/alice.pem", "--authenticationMechanism=MONGODB-X509",
                 "--authenticationDatabase=$external"]
        run("mongodump", *alice, "--db=shop", f"--archive={tmp_path}/archive")
        run("mongorestore", *alice, f"--archive={tmp_path}/archive", "--nsFrom=shop.*", "--nsTo=copy.*")
        restored = server.client(authMechanism="MONGODB-X509").copy.plain
        assert restored.count_documents({}) == 10
