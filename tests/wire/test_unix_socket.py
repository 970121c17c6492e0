"""Clients of the same machine connect by a Unix domain socket."""

import os
import pathlib
import socket
import stat
import subprocess
import urllib.parse

import pymongo
import pytest

from windrow_server import Server, binary, free_port


def path_of(server, folder="/tmp"):
    return pathlib.Path(folder) / f"mongodb-{server.port}.sock"


def is_served(path):
    """Returns whether a server listens. A killed server of another test may have left its file
    behind."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def connect(path):
    uri = f"mongodb://{urllib.parse.quote_plus(str(path))}"
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=5000)


def test_a_socket_is_there_while_the_server_runs(tmp_path):
    with Server(tmp_path) as server:
        path = path_of(server)
        mode = path.stat().st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o700
        with connect(path) as client:
            client.test.c.insert_many([{"_id": number} for number in range(1000)])
            assert len(list(client.test.c.find(batch_size=10))) == 1000
            assert client.admin.command("whatsmyuri")["you"] == str(path)
            with client.start_session() as session, session.start_transaction():
                client.test.c.insert_one({"_id": -1}, session=session)
        assert server.client().test.c.count_documents({}) == 1001
        assert server.stop() == 0
        assert not path.exists()


def test_the_socket_of_a_killed_server_is_replaced(tmp_path):
    with Server(tmp_path) as server:
        path = path_of(server)
        server.kill()
        assert path.exists()
        server.start()
        with connect(path) as client:
            assert client.admin.command("ping")["ok"] == 1
        server.stop()
        assert not path.exists()


def test_folder_and_permissions_can_be_chosen(tmp_path):
    options = ["--unixSocketPrefix", str(tmp_path), "--filePermissions", "0660"]
    with Server(tmp_path / "server", options=options) as server:
        path = path_of(server, tmp_path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert is_served(path) and not is_served(path_of(server))
        with connect(path) as client:
            assert client.admin.command("ping")["ok"] == 1
            assert client.admin.command("shutdown")["ok"] == 1
        assert server.process.wait(30) == 0
        server.process = None


def test_there_may_be_none(tmp_path):
    with Server(tmp_path, options=["--nounixsocket"]) as server:
        assert not is_served(path_of(server))


def test_a_file_in_its_place_is_left_alone(tmp_path):
    port = free_port()
    path = pathlib.Path(f"/tmp/mongodb-{port}.sock")
    path.write_text("mine")
    try:
        with Server(tmp_path / "server", port=port) as server:
            assert "There is no Unix domain socket" in server.log()
            assert server.client().admin.command("ping")["ok"] == 1
            assert server.stop() == 0
            assert path.read_text() == "mine"
        path.write_text("mine")
        with pytest.raises(RuntimeError, match="not a socket"):
            Server(tmp_path / "other", port=port, options=["--unix-socket-prefix", "/tmp"])
        assert path.read_text() == "mine"
    finally:
        path.unlink(missing_ok=True)


def test_the_path_has_a_maximum_length(tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with pytest.raises(RuntimeError, match="cannot listen on .*longlong"):
        Server(tmp_path / "server", options=["--unix-socket-prefix", str(folder)])


def test_its_clients_are_watched_too(tmp_path):
    """A client that closes the socket ends its operation, and a stop ends idle connections."""
    with Server(tmp_path) as server:
        clients = [connect(path_of(server)) for _ in range(5)]
        for client in clients:
            client.admin.command("ping")
        assert server.stop() == 0


def test_other_commands_use_it(tmp_path):
    """If the file of the socket was removed, they use the address."""
    with Server(tmp_path / "server") as server:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "a.txt").write_text("a velvet barge")
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}

        def run(*arguments):
            command = [str(binary()), *arguments, "--data", str(server.data)]
            ended = subprocess.run(command, capture_output=True, text=True, env=environment,
                                   timeout=120)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            return ended.stdout

        run("index", str(tmp_path / "files"))
        assert "a.txt" in run("search", "velvet")
        path_of(server).unlink()
        assert "a.txt" in run("search", "barge")
