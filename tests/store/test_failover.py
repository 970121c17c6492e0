"""Servers that take over from each other while a client writes."""

import signal
import threading
import time

import pymongo
import pytest

from object_store import ELECTION_SECONDS, StoreServer

pytestmark = pytest.mark.alone


class Writer(threading.Thread):
    """Inserts numbers with retryable writes until it is stopped."""

    def __init__(self, servers):
        super().__init__()
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        self.client = pymongo.MongoClient(f"mongodb://{hosts}/?replicaSet=rs0&retryWrites=true",
                                          serverSelectionTimeoutMS=60_000)
        self.stopped = threading.Event()
        self.acknowledged = []
        self.failures = []
        self.gap = 0

    def run(self):
        collection = self.client.test.numbers
        last, number = time.monotonic(), 0
        while not self.stopped.is_set():
            try:
                collection.insert_one({"number": number})
                self.acknowledged.append(number)
            except pymongo.errors.PyMongoError as error:
                self.failures.append(error)
            number += 1
            now = time.monotonic()
            self.gap, last = max(self.gap, now - last), now

    def end(self):
        self.stopped.set()
        self.join()


def wait_for_hosts(primary, count):
    """The primary looks for new servers every five seconds."""
    deadline = time.monotonic() + 20
    while len(primary.client().admin.command("hello")["hosts"]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_killed_primary_is_replaced(store, prefix, tmp_path):
    servers = [StoreServer(tmp_path / str(i), store, prefix, start=i == 0) for i in range(3)]
    try:
        for standby in servers[1:]:
            standby.begin()
            standby.wait_for_log("Another server is the primary")
        wait_for_hosts(servers[0], len(servers))
        writer = Writer(servers)
        writer.start()
        deadline = time.monotonic() + 60
        while len(writer.acknowledged) < 50:
            assert time.monotonic() < deadline and not writer.failures, writer.failures
            time.sleep(0.05)
        primary = servers[0]
        for _ in range(2):
            primary.kill()
            before = len(writer.acknowledged)
            while len(writer.acknowledged) < before + 50:
                assert time.monotonic() < deadline, [server.log()[-1500:] for server in servers]
                time.sleep(0.05)
            gap, writer.gap = writer.gap, 0
            assert gap <= ELECTION_SECONDS + 2 + 1, gap
            assert not writer.failures
            primary = next(server for server in servers
                           if server.process and "is the primary now" in server.log())
        writer.end()
        found = [document["number"] for document in writer.client.test.numbers.find()]
        assert len(found) == len(set(found)), "a write was applied twice"
        assert set(writer.acknowledged) <= set(found)
        hello = writer.client.admin.command("hello")
        assert set(hello["hosts"]) == {f"127.0.0.1:{server.port}" for server in servers}
        assert hello["electionId"].binary[-1] >= 3
    finally:
        for server in servers:
            if server.process:
                server.kill()


def test_server_that_ends_is_replaced_at_once(store, prefix, tmp_path):
    with StoreServer(tmp_path / "one", store, prefix) as one:
        one.client().test.c.insert_one({})
        two = StoreServer(tmp_path / "two", store, prefix, start=False)
        with two:
            two.begin()
            two.wait_for_log("Another server is the primary")
            assert one.stop() == 0
            began = time.monotonic()
            two.wait_for_log("is the primary now")
            assert time.monotonic() - began < ELECTION_SECONDS
            two.wait_for_log("Waiting for connections")
            assert two.client().test.c.count_documents({}) == 1


def test_stalled_primary_steps_down(store, prefix, tmp_path):
    """A primary that was stopped for long refuses writes when it continues."""
    with StoreServer(tmp_path / "one", store, prefix) as one:
        client = one.client(retryWrites=False)
        client.test.c.insert_one({"_id": "before"})
        with StoreServer(tmp_path / "two", store, prefix, start=False) as two:
            two.begin()
            two.wait_for_log("Another server is the primary")
            one.process.send_signal(signal.SIGSTOP)
            two.wait_for_log("is the primary now")
            two.wait_for_log("Waiting for connections")
            two.client().test.c.insert_one({"_id": "new"})
            one.process.send_signal(signal.SIGCONT)
            one.wait_for_log("is not the primary any more")
            one.wait_for_log("Another server is the primary")
            assert {it["_id"] for it in two.client().test.c.find()} == {"before", "new"}
            # The other server fails.
            two.kill()
            deadline = time.monotonic() + 30
            while not one.answers():
                assert time.monotonic() < deadline, one.log()[-2000:]
                time.sleep(0.1)
            assert one.client().test.c.count_documents({}) == 2
