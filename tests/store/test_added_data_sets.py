"""Data sets that are added to a cluster, and to a database without data sets."""

import signal
import subprocess
import threading

import pytest

from object_store import SetServer, StoreServer, wait_for_spread
from windrow_server import binary, wait_until

BEFORE = ("main=shop", "logs=logs")
AFTER = ("main=shop", "logs=logs", "rest", "metrics=metrics-*")
# The first two are named, the others are divided by their names.
NAMES = ["shop", "logs", "metrics-1", "metrics-2", *(f"db{number}" for number in range(12))]


def kill_all(servers):
    for server in servers:
        if server.process and server.process.poll() is None:
            server.__exit__()


def fill(client, names=NAMES):
    for name in names:
        client[name].things.insert_one({"_id": name})


def check(client, names=NAMES):
    for name in names:
        assert [it["_id"] for it in client[name].things.find()] == [name], name
    assert set(names) <= set(client.list_database_names())


def folders_of(store, prefix):
    return {it.name for it in (store.objects / prefix / "sets").iterdir()}


def failure_of(make):
    with pytest.raises(RuntimeError) as caught:
        make()
    return str(caught.value)


def test_existing_databases_stay_where_they_are(store, prefix, tmp_path):
    first = SetServer(tmp_path / "1", store, prefix, sets=BEFORE)
    second = SetServer(tmp_path / "2", store, prefix, sets=BEFORE)
    servers = [first, second]
    try:
        fill(first.client())
        # Both stop by themselves as soon as a server brings another set.
        third = SetServer(tmp_path / "3", store, prefix, sets=AFTER)
        servers.append(third)
        for server in [first, second]:
            wait_until(lambda it=server: it.process.poll() is not None)
            assert server.process.poll() != 0
            assert "data sets were changed" in server.log()
        check(third.client())
        fill(third.client(), ["metrics-3"])
        assert folders_of(store, prefix) == {"main", "logs", "rest", "metrics"}
        assert set(third.sets()) == {"main", "logs", "rest", "metrics"}
        # A server with the sets from before is refused, one with all of them is not.
        for sets, text in [(BEFORE, "data set 3 is"), ((), "--data-set")]:
            assert text in failure_of(
                lambda given=sets: SetServer(tmp_path / "old", store, prefix, sets=given))
        fourth = SetServer(tmp_path / "4", store, prefix, sets=AFTER)
        servers.append(fourth)
        check(fourth.client(), [*NAMES, "metrics-3"])
        placed = [it for it in (store.objects / prefix).iterdir() if it.name != "sets"]
        newest = max(placed, key=lambda it: it.stat().st_mtime_ns).read_text()
        # They are in the sets from before, though their names say otherwise now.
        assert "stays metrics-1 " in newest and "metrics-3" not in newest
    finally:
        kill_all(servers)


def test_a_database_without_data_sets_is_divided(store, prefix, tmp_path):
    single = StoreServer(tmp_path / "1", store, prefix, options=("--no-auth",))
    follower = StoreServer(tmp_path / "2", store, prefix, options=("--no-auth",),
                           is_follower=True)
    servers = [single, follower]
    try:
        fill(single.client())
        single.client().shop.command("createUser", "reader", pwd="x", roles=["read"])
        sets = ("main", "more=metrics-*")
        divided = SetServer(tmp_path / "3", store, prefix, sets=sets)
        servers.append(divided)
        for server in [single, follower]:
            wait_until(lambda it=server: it.process.poll() is not None)
            assert "--data-set" in server.log()
        check(divided.client())
        fill(divided.client(), ["metrics-3", "new"])
        assert folders_of(store, prefix) == {"more"}
        users = divided.client().shop.command("usersInfo")["users"]
        assert [it["user"] for it in users] == ["reader"]
        assert "2 data sets" in failure_of(
            lambda: StoreServer(tmp_path / "old", store, prefix, options=("--no-auth",)))
        # A server of the database from before goes on with its folder.
        again = SetServer(tmp_path / "1", store, prefix, sets=sets)
        servers.append(again)
        wait_for_spread([divided, again])
        for server in [divided, again]:
            check(server.client(), [*NAMES, "metrics-3", "new"])
        divided.process.send_signal(signal.SIGKILL)
        check(again.client(), [*NAMES, "metrics-3", "new"])
        fill(again.client(), ["later"])
        shown = stat(store, prefix)
        assert "data set      main\n" in shown and "data set      more\n" in shown
    finally:
        kill_all(servers)


def stat(store, prefix):
    done = subprocess.run(
        [str(binary()), "store", "stat", f"s3://bucket/{prefix}",
         "--store-option", f"aws_endpoint=http://127.0.0.1:{store.port}"],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_set_cannot_have_an_existing_database(store, prefix, tmp_path):
    """The sets from before remain."""
    server = StoreServer(tmp_path / "1", store, prefix, options=("--no-auth",))
    try:
        fill(server.client())
        assert server.stop() == 0
        text = failure_of(lambda: SetServer(tmp_path / "2", store, prefix,
                                            sets=("main", "more=logs")))
        assert "\"logs\" is in the data set \"main\", so it cannot be in \"more\"" in text
        server.start()
        check(server.client())
    finally:
        kill_all([server])
    server = SetServer(tmp_path / "3", store, prefix, sets=("main", "more"))
    try:
        check(server.client())
        # It goes on while another server tries to add a set that cannot be added.
        text = failure_of(lambda: SetServer(tmp_path / "4", store, prefix,
                                            sets=("main", "more", "logs=logs")))
        assert "so it cannot be in \"logs\"" in text
        check(server.client())
        assert server.stop() == 0
        server.start()
        check(server.client())
    finally:
        kill_all([server])


def test_an_addition_is_finished_after_a_kill(store, prefix, tmp_path):
    """Servers that add sets at the same time, one of which is killed in the middle."""
    first = SetServer(tmp_path / "1", store, prefix, sets=BEFORE)
    servers = [first]
    try:
        fill(first.client())
        killed = SetServer(tmp_path / "2", store, prefix, sets=AFTER, start=False)
        servers.append(killed)
        begin(killed)
        wait_until(lambda: "Data sets are added" in killed.log())
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        others = [SetServer(tmp_path / str(number), store, prefix, sets=AFTER, start=False)
                  for number in (3, 4)]
        servers += others
        starts = [threading.Thread(target=other.start) for other in others]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        for other in others:
            check(other.client())
        fill(others[1].client(), ["metrics-3"])
        check(others[0].client(), [*NAMES, "metrics-3"])
    finally:
        kill_all(servers)


def begin(server):
    """Starts the process without waiting for an answer."""
    with open(server.log_path, "ab") as log:
        server.process = subprocess.Popen(server.command(), stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log)
