"""The fixtures of every test over the wire."""

import pytest

from windrow_server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all tests of a file."""
    with Server(tmp_path_factory.mktemp("server")) as server:
        yield server
        # If the server died during the tests, all of them fail, whichever noticed it.
        if server.process is not None:
            assert server.process.poll() is None, server.log()[-2000:]
            assert "panicked" not in server.log()


@pytest.fixture(scope="module")
def client(server):
    return server.client()


@pytest.fixture
def database(client, request):
    """An empty database with the test's name."""
    name = request.node.name.split("[")[0][-60:]
    client.drop_database(name)
    yield client[name]
    client.drop_database(name)


@pytest.fixture
def collection(database):
    return database["c"]
