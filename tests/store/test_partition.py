"""A primary whose network loses the object store."""

import socket
import threading
import time

import pymongo
import pytest
from pymongo.write_concern import WriteConcern

from object_store import StoreServer
from windrow_server import free_port, wait_until


class Link:
    """Forwards connections to a port. While it is cut, it drops all bytes and closes no connection.
    """

    def __init__(self, target):
        self.target = target
        self.port = free_port()
        self.is_cut = threading.Event()
        self.ended = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.listener.settimeout(0.1)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.ended.is_set():
            try:
                client, _ = self.listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.forward, args=(one, other), daemon=True).start()

    def forward(self, one, other):
        one.settimeout(0.1)
        data = b""
        try:
            while not self.ended.is_set():
                if self.is_cut.is_set():
                    time.sleep(0.02)
                    continue
                if data:
                    other.sendall(data)
                    data = b""
                try:
                    data = one.recv(1 << 16)
                except TimeoutError:
                    continue
                if not data:
                    break
        except OSError:
            pass
        one.close()
        other.close()

    def close(self):
        self.ended.set()
        self.listener.close()


def test_primary_without_its_object_store_steps_down(store, prefix, tmp_path):
    link = Link(store.port)
    one = StoreServer(tmp_path / "one", store, prefix, start=False)
    endpoint = one.options.index(f"aws_endpoint=http://127.0.0.1:{store.port}")
    one.options[endpoint] = f"aws_endpoint=http://127.0.0.1:{link.port}"
    with one, StoreServer(tmp_path / "two", store, prefix, start=False) as two:
        one.start()
        two.begin()
        two.wait_for_log("Another server is the primary")
        client = one.client(retryWrites=False)
        client.test.c.insert_one({"_id": "before"})
        link.is_cut.set()
        local = client.test.c.with_options(write_concern=WriteConcern(w=1))
        local.insert_one({"_id": "only local"})
        two.wait_for_log("is the primary now")
        wait_until(lambda: not one.answers(), 40)
        with pytest.raises(pymongo.errors.PyMongoError):
            local.insert_one({"_id": "refused"})
        wait_until(two.answers, 40)
        two.client().test.c.insert_one({"_id": "new"})
        link.is_cut.clear()
        one.wait_for_log("is not the primary any more", 60)
        wait_until(lambda: one.log().count("Another server is the primary") == 1, 40)
        assert {it["_id"] for it in two.client().test.c.find()} == {"before", "new"}
        saved = list((tmp_path / "one" / "data" / "rollback").glob("*/removed.*.bson"))
        assert len(saved) == 1 and b"only local" in saved[0].read_bytes()
    link.close()


def test_primary_goes_on_after_a_short_loss(store, prefix, tmp_path):
    """No other server has taken over: the primary is the same afterwards, and nothing is lost."""
    link = Link(store.port)
    one = StoreServer(tmp_path / "one", store, prefix, start=False)
    endpoint = one.options.index(f"aws_endpoint=http://127.0.0.1:{store.port}")
    one.options[endpoint] = f"aws_endpoint=http://127.0.0.1:{link.port}"
    with one:
        one.start()
        client = one.client()
        client.test.c.insert_one({"_id": 1})
        before = client.admin.command("hello")
        link.is_cut.set()
        wait_until(lambda: not one.answers(), 40)
        link.is_cut.clear()
        wait_until(one.answers, 40)
        client.test.c.insert_one({"_id": 2})
        after = client.admin.command("hello")
        assert before["electionId"] == after["electionId"]
        assert after["topologyVersion"]["counter"] > before["topologyVersion"]["counter"]
        assert client.test.c.count_documents({}) == 2
    link.close()
