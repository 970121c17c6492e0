"""`windrow top` and `windrow status` of a running server."""

import json
import os
import pathlib
import subprocess
import sys
import threading

import pymongo
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "folders"))
from certificates import client_options, make, server_options  # noqa: E402
from test_interactive import Terminal  # noqa: E402

from windrow_server import Server, binary

PASSWORD = "PaSsWoRd-4711"


def windrow(*arguments, **environment):
    own = {name: value for name, value in os.environ.items()
           if name not in ("WINDROW_URI", "WINDROW_PASSWORD")}
    return subprocess.run([str(binary()), *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, env={**own, **environment})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("top"), options=["--auth"]) as server:
        server.client().admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
        root = server.client(username="root", password=PASSWORD)
        root.admin.command("createUser", "watcher", pwd=PASSWORD, roles=["clusterMonitor"])
        root.admin.command("createUser", "old", pwd=PASSWORD, roles=["clusterMonitor"],
                           mechanisms=["SCRAM-SHA-1"])
        root.admin.command("createUser", "nobody", pwd=PASSWORD, roles=[])
        yield server


@pytest.fixture(scope="module")
def root(server):
    return server.client(username="root", password=PASSWORD)


@pytest.fixture
def load(root):
    """Inserts and finds during the whole test, beside a slow query."""
    ends = threading.Event()
    root.shop.orders.insert_many([{"secret": PASSWORD} for _ in range(100)])

    def run():
        while not ends.is_set():
            root.shop.orders.insert_one({"a": 1})
            root.shop.orders.find_one({"secret": PASSWORD})

    def slow():
        pipeline = [{"$match": {"$expr": {"$eq": ["$secret", PASSWORD]}}}, {"$count": "n"}]
        stages = [{"$lookup": {"from": "orders", "as": "x", "pipeline": []}},
                  {"$unwind": "$x"}] * 4
        while not ends.is_set():
            try:
                root.shop.orders.aggregate(stages + pipeline, maxTimeMS=20_000, allowDiskUse=True)
            except pymongo.errors.PyMongoError:
                pass

    threads = [threading.Thread(target=run), threading.Thread(target=slow)]
    for thread in threads:
        thread.start()
    yield
    ends.set()
    for operation in root.admin.aggregate([{"$currentOp": {}}]):
        if operation.get("ns") == "shop.orders":
            root.admin.command("killOp", op=operation["opid"])
    for thread in threads:
        thread.join()


def address(server):
    return f"127.0.0.1:{server.port}"


def test_json_of_a_busy_server(server, load):
    ended = windrow("top", address(server), "--username", "watcher", "--once", "--json",
                    WINDROW_PASSWORD=PASSWORD)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["version"] == "0.1.0" and report["host"].endswith(f":{server.port}")
    assert report["operationsPerSecond"]["insert"] > 0
    reads = report["latencies"]["reads"]
    assert reads["perSecond"] > 0 and 0 < reads["p50Ms"] <= reads["p99Ms"]
    assert report["connections"]["current"] > 0
    assert report["memory"]["limitBytes"] > 0 and report["memory"]["tailsBytes"] > 0
    assert report["disk"]["totalBytes"] > report["disk"]["freeBytes"] > 0
    assert report["disk"]["dataBytes"] > 0
    assert report["collections"][0]["ns"] == "shop.orders"
    assert any(one["command"] == "aggregate" and one["ns"] == "shop.orders"
               and one["user"] == "root@admin" for one in report["running"])
    seconds = [one["seconds"] for one in report["running"]]
    assert seconds == sorted(seconds, reverse=True)
    assert report["missing"] == [] and PASSWORD not in ended.stdout


def test_a_page_of_state(server, load):
    uri = f"mongodb://watcher:{PASSWORD}@{address(server)}/admin"
    for command in [["top", "--once"], ["status", address(server), "--username", "watcher"]]:
        ended = windrow(*command, WINDROW_URI=uri, WINDROW_PASSWORD=PASSWORD)
        assert ended.returncode == 0, ended.stderr
        for text in ["windrow 0.1.0", "operations/s", "p99", "connections", "tails", "folds",
                     "free", "shop.orders", "aggregate"]:
            assert text in ended.stdout, ended.stdout
        assert PASSWORD not in ended.stdout


def test_the_server_of_a_data_folder(server):
    ended = windrow("top", "--data", server.data, "--once", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["connections"]["current"] >= 1
    ended = windrow("top", "--data", server.folder / "missing", "--once")
    assert ended.returncode == 1 and "no server has the data folder" in ended.stderr


def test_users_of_the_older_mechanism_and_with_few_rights(server):
    ended = windrow("status", address(server), "--username", "old", "--json",
                    WINDROW_PASSWORD=PASSWORD)
    assert ended.returncode == 0, ended.stderr
    ended = windrow("status", address(server), "--username", "nobody", WINDROW_PASSWORD=PASSWORD)
    assert ended.returncode == 1 and "not authorized" in ended.stderr
    ended = windrow("status", address(server), "--username", "watcher", WINDROW_PASSWORD="wrong")
    assert ended.returncode == 1 and "Authentication failed" in ended.stderr
    ended = windrow("status", address(server))
    assert ended.returncode == 1 and "requires authentication" in ended.stderr


@pytest.mark.parametrize("given, message", [
    (["top", "mongodb://a:secret@h/", "--once"], "every user of the machine"),
    (["top", "--password", "x"], "every user of the machine"),
    (["top", "--once", "h", "--username", "a"], "WINDROW_PASSWORD"),
    (["top", "mongodb+srv://h/", "--once"], "not supported"),
    (["top", "mongodb://h/?tlsInsecure=true", "--once"], "tlsInsecure"),
    (["top"], "--once"),
    (["status", "h", "--data", "d"], "not --data"),
])
def test_wrong_options(given, message):
    ended = windrow(*given)
    assert ended.returncode == 2 and message in ended.stderr, ended.stderr
    assert "secret" not in ended.stderr


def test_tls(tmp_path):
    folder = make(tmp_path / "tls", "alice")
    options = server_options(folder, "require", "--tls-ca-file", str(folder / "ca.pem"))
    with Server(tmp_path / "s", options=options, connection=client_options(folder, "alice")) as s:
        uri = f"mongodb://127.0.0.1:{s.port}/?tls=true&tlsCAFile={folder / 'ca.pem'}"
        ended = windrow("status", f"{uri}&tlsCertificateKeyFile={folder / 'alice.pem'}", "--json")
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["connections"]["current"] >= 1
        assert windrow("status", uri).returncode == 1
        ended = windrow("status", address(s), "--tls")
        assert ended.returncode == 1 and "TLS handshake" in ended.stderr


def test_keys(server, load):
    terminal = Terminal("top", address(server), "--username", "watcher", "--interval", "0.2",
                        rows=40, columns=120)
    try:
        terminal.shows("Password of watcher:")
        terminal.press(PASSWORD + "\r")
        shown = terminal.shows("Operations", "aggregate", "Collections by total time",
                               "shop.orders")
        assert PASSWORD not in shown
        terminal.press("s")
        terminal.shows("by time of reads")
        terminal.press("s")
        terminal.shows("by time of writes")
        terminal.press("p")
        terminal.shows("paused")
        terminal.press("p")
        terminal.wait_for(lambda text: "paused" not in text)
        terminal.resize(20, 60)
        terminal.shows("Server")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()


def test_a_server_that_goes_away_and_comes_back(tmp_path):
    with Server(tmp_path) as server:
        terminal = Terminal("top", address(server), "--interval", "0.2", rows=40, columns=120)
        try:
            terminal.shows("operations/s")
            server.kill()
            terminal.shows("the server at")
            server.start()
            terminal.wait_for(lambda text: "the server at" not in text)
            terminal.press("\x03")
            assert terminal.wait_for_end() == 0
        finally:
            terminal.close()


def test_the_status_of_a_folder_without_indexed_files_is_that_of_its_server(tmp_path):
    with Server(tmp_path) as server:
        ended = windrow("status", "--data", str(server.data), "--json")
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["connections"]["current"] >= 1
        server.stop()
        ended = windrow("status", "--data", str(server.data))
        assert ended.returncode == 1 and "no files are indexed" in ended.stderr
