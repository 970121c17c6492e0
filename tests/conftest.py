"""The fixtures of every test over the wire."""

import fcntl
import os

import pytest

from windrow_server import Server


@pytest.fixture(autouse=True)
def machine(request, tmp_path_factory):
    """Tests with the mark `alone` limit times, so the other test process waits while one runs."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent
    is_alone = request.node.get_closest_marker("alone") is not None
    with open(folder / "next.lock", "wb") as next_test, open(folder / "machine.lock", "wb") as lock:
        # A test that waits for the machine keeps others from taking it first.
        fcntl.flock(next_test, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        fcntl.flock(next_test, fcntl.LOCK_UN)
        yield


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
