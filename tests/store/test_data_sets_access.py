"""Users, privileges and encryption of a cluster with several data sets. The server that runs a
command checks the privileges of the client's user, whichever server has passed it on."""

import subprocess
import sys

import pymongo
import pytest
from bson import encode
from pymongo.errors import OperationFailure

from object_store import SetServer, wait_for_spread
from windrow_server import ROOT, binary, wait_until

sys.path.append(str(ROOT / "tests" / "wire"))
import certificates  # noqa: E402

DATABASES = {"main": "shop", "logs": "logs", "rest": "rest-1"}
ADMIN = {"username": "admin", "password": "secret"}


def key_file(folder, text="c2VjcmV0IGtleSBvZiB0aGUgY2x1c3Rlcg=="):
    path = folder / "key"
    path.write_text(text)
    path.chmod(0o600)
    return path


class GuardedServer(SetServer):
    """A server at which clients have to log in."""

    def sets(self):
        with self.log_in(ADMIN) as client:
            status = client.admin.command("serverStatus")
        return {described["name"]: described for described in status["dataSets"]}

    def log_in(self, user, **options):
        return pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=10_000,
                                   **{**self.connection, **user, **options})


def create_admin(server):
    """A client on the machine creates the first user."""
    server.client().admin.command("createUser", "admin", pwd="secret", roles=["root"])


def start_guarded(store, prefix, folder, options=(), **connection):
    options = ["--auth", "--key-file", str(key_file(folder)), *options]
    servers = [GuardedServer(folder / str(i), store, prefix, options=options,
                             connection=connection) for i in range(3)]
    create_admin(servers[0])
    wait_until(lambda: all(can_log_in(server, ADMIN) for server in servers))
    wait_for_spread(servers)
    return servers


def can_log_in(server, user):
    try:
        with server.log_in(user) as client:
            return client.admin.command("ping")["ok"] == 1
    except OperationFailure:
        return False


@pytest.fixture(scope="module")
def guarded(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    servers = start_guarded(store, folder.name, folder)
    yield servers
    for server in servers:
        server.__exit__()


def refused(run, *arguments, **options):
    with pytest.raises(OperationFailure) as caught:
        run(*arguments, **options)
    return caught.value.code


def test_users_have_their_privileges_at_every_server(guarded):
    with guarded[1].log_in(ADMIN) as admin:
        for database in DATABASES.values():
            admin[database].c.insert_one({"_id": 1})
        admin.admin.command("createUser", "reader", pwd="pw", roles=[
            {"role": "read", "db": "logs"}])
    reader = {"username": "reader", "password": "pw"}
    wait_until(lambda: all(can_log_in(server, reader) for server in guarded))
    for server in guarded:
        with server.log_in(reader) as client:
            assert client.logs.c.find_one() == {"_id": 1}
            assert refused(client.logs.c.insert_one, {}) == 13
            for database in ["shop", "rest-1"]:
                assert refused(client[database].c.find_one) == 13
            assert client.list_database_names() == ["logs"]
            assert refused(client.admin.command, "usersInfo", 1) == 13
    # A change of roles counts for the next command, through any server.
    for server in guarded:
        with server.log_in(ADMIN) as admin, server.log_in(reader) as client:
            for database in ["shop", "rest-1"]:
                role = [{"role": "read", "db": database}]
                admin.admin.command("grantRolesToUser", "reader", roles=role)
                wait_until(lambda: client[database].c.find_one() == {"_id": 1}
                           if not_refused(client[database].c.find_one) else False)
                admin.admin.command("revokeRolesFromUser", "reader", roles=role)
                wait_until(lambda: not not_refused(client[database].c.find_one))


def not_refused(run):
    try:
        run()
        return True
    except OperationFailure as error:
        assert error.code == 13
        return False


def test_cursors_and_sessions_belong_to_users(guarded):
    with guarded[0].log_in(ADMIN) as admin:
        admin.admin.command("createUser", "other", pwd="pw", roles=["readWriteAnyDatabase"])
        for database in DATABASES.values():
            admin[database].own.insert_many([{"_id": i} for i in range(100)])
    other = {"username": "other", "password": "pw"}
    wait_until(lambda: all(can_log_in(server, other) for server in guarded))
    for server in guarded:
        with server.log_in(ADMIN) as admin, server.log_in(other) as client:
            for database in DATABASES.values():
                cursor = admin[database].own.find({}, batch_size=2)
                next(cursor)
                more = {"getMore": cursor.cursor_id, "collection": "own"}
                assert refused(client[database].command, more) == 13
                with client.start_session() as session, session.start_transaction():
                    client[database].own.insert_one({"_id": server.address}, session=session)
                assert client[database].own.count_documents({"_id": server.address}) == 1


def test_strangers_have_nothing_passed_on(guarded):
    for server in guarded:
        with server.log_in({}) as client:
            for database in DATABASES.values():
                assert refused(client[database].c.find_one) == 13
                assert refused(client[database].c.insert_one, {}) == 13
            assert refused(client.admin.command, "listDatabases") == 13


def test_clients_cannot_speak_for_others(guarded):
    """The description of a client is accepted only on connections of servers."""
    forwarded = {"set": "logs", "client": "127.0.0.1", "server": "127.0.0.1", "first": True,
                 "after": 0, "user": {"user": "admin", "db": "admin"}}
    assert encode(forwarded)
    for server in guarded:
        with server.log_in({}) as client:
            command = {"find": "c", "$forwarded": forwarded}
            assert refused(client.logs.command, command) == 13
        with server.log_in({"username": "other", "password": "pw"}) as client:
            assert refused(client.logs.command, command) == 9
            command = {"usersInfo": 1, "$forwarded": forwarded}
            assert refused(client.admin.command, command) == 13


def test_a_server_with_another_key_is_refused(guarded, store, tmp_path):
    prefix = guarded[0].folder.parent.name
    options = ["--auth", "--key-file", str(key_file(tmp_path, "YW5vdGhlciBrZXk="))]
    with GuardedServer(tmp_path / "other", store, prefix, options=options) as stranger:
        wait_until(lambda: can_log_in(stranger, ADMIN))
        # The server reads data that it follows, and passes nothing on.
        with stranger.log_in(ADMIN, readPreference="secondary") as client:
            assert client.logs.c.find_one() == {"_id": 1}
        with stranger.log_in(ADMIN, retryWrites=False) as client:
            command = {"insert": "c", "documents": [{}], "maxTimeMS": 1000}
            assert refused(client.logs.command, command) == 6


def test_servers_encrypt_what_they_pass_on(store, prefix, tmp_path):
    folder = certificates.make(tmp_path / "tls")
    options = certificates.server_options(
        folder, "require", "--tls-ca-file", str(folder / "ca.pem"),
        "--tls-allow-connections-without-certificates")
    servers = start_guarded(store, prefix, tmp_path, options=options,
                            **certificates.client_options(folder))
    try:
        for server in servers:
            with server.log_in(ADMIN) as client:
                for database in DATABASES.values():
                    client[database].c.insert_one({})
    finally:
        for server in servers:
            server.__exit__()


def test_the_tools_know_data_sets(guarded, store):
    prefix = guarded[0].folder.parent.name

    def run(action):
        done = subprocess.run(
            [str(binary()), "store", action, f"s3://bucket/{prefix}",
             "--store-option", f"aws_endpoint=http://127.0.0.1:{store.port}"],
            capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = run("stat")
    for name in DATABASES:
        assert f"data set      {name}\n" in shown
    for server in guarded:
        assert server.address in shown
    assert run("check").count("are as the catalog says") == 3
    assert run("gc").count("runs were deleted") == 3
