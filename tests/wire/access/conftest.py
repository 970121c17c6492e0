"""Servers with users. `root` is the client of an administrator."""

import itertools

import pytest

from windrow_server import Server

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with `--auth` and an administrator, root with the password secret."""
    with Server(tmp_path_factory.mktemp("server"), options=["--auth"]) as server:
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        yield server
        assert server.process is None or server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log() and '"Panic"' not in server.log()


@pytest.fixture(scope="module")
def root(server):
    return server.client(username="root", password="secret")


@pytest.fixture(scope="module")
def client(root):
    """The fixtures of all wire tests use this."""
    return root


@pytest.fixture(scope="module")
def login(server, root):
    """Creates a user with roles and returns a client of it."""
    def login(*roles, database="admin", name=None, **options):
        name = name or f"user{next(NUMBERS)}"
        root[database].command("createUser", name, pwd="pw", roles=list(roles), **options)
        return server.client(username=name, password="pw", authSource=database)

    return login


@pytest.fixture
def users(root, request):
    """A database without users."""
    database = root[request.node.name[:50]]
    database.command("dropAllUsersFromDatabase")
    yield database
    database.command("dropAllUsersFromDatabase")
    database.command("dropAllRolesFromDatabase")
