"""Messages are compressed by each algorithm on which client and server agree."""

import pathlib
import struct
import sys
import zlib

import pymongo
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import raw  # noqa: E402
from raw import Raw, message, op_msg, section  # noqa: E402

PING = op_msg(section({"ping": 1, "$db": "admin"}))


# A driver without the library of an algorithm only warns, and does not compress.
@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("way", ["snappy", "zlib", "zstd"])
def test_a_driver_that_compresses(server, database, way):
    with pymongo.MongoClient(server.uri, compressors=way) as client:
        target = client[database.name].c
        target.insert_many([{"_id": one, "pad": "x" * 1000} for one in range(2_000)])
        assert sum(len(one["pad"]) for one in target.find()) == 2_000_000
        target.update_many({}, {"$set": {"n": 1}})
        assert target.count_documents({"n": 1}) == 2_000
    assert database.c.count_documents({"n": 1}) == 2_000


@pytest.mark.parametrize("offered, agreed", [
    (["snappy"], ["snappy"]), (["zlib", "snappy"], ["zlib", "snappy"]), (["zstd"], ["zstd"]),
    (["unknown", "zlib"], ["zlib"]), (["unknown"], []),
])
def test_hello_agrees_on_what_both_know(client, offered, agreed):
    reply = client.admin.command({"hello": 1, "compression": offered})
    assert reply.get("compression", []) == agreed


def test_nothing_is_agreed_on_where_nothing_is_offered(client):
    assert "compression" not in client.admin.command("hello")


def compressed(whole, number, squeeze):
    kind, = struct.unpack_from("<i", whole, 12)
    head = struct.pack("<iiB", kind, len(whole) - 16, number)
    return message(head + squeeze(whole[16:]), kind=raw.OP_COMPRESSED)


def test_the_bytes_of_a_compressed_exchange(server):
    hello = op_msg(section({"hello": 1, "compression": ["zlib"], "$db": "admin"}))
    with Raw(server) as connection:
        assert connection.send(hello).reply()["compression"] == ["zlib"]
        connection.send(compressed(PING, 2, zlib.compress))
        kind, answers, body = connection.message()
    assert answers == 7
    if kind == raw.OP_COMPRESSED:
        original, size, number = struct.unpack_from("<iiB", body)
        assert (original, number) == (raw.OP_MSG, 2)
        assert len(zlib.decompress(body[9:])) == size
    else:
        # A server may send a reply without compression.
        assert kind == raw.OP_MSG


def test_compressed_by_nothing(server):
    with Raw(server) as connection:
        connection.send(compressed(PING, 0, bytes))
        assert connection.message()[1] == 7


def test_a_bomb_is_no_larger_than_a_message(server):
    bomb = zlib.compress(b"\0" * 200_000_000)
    head = struct.pack("<iiB", raw.OP_MSG, 200_000_000, 2)
    with Raw(server) as connection:
        connection.send(message(head + bomb, kind=raw.OP_COMPRESSED))
        assert connection.is_closed()
    # So is a message with a wrong size.
    head = struct.pack("<iiB", raw.OP_MSG, 100, 2)
    with Raw(server) as connection:
        connection.send(message(head + bomb, kind=raw.OP_COMPRESSED))
        assert connection.is_closed()
    with Raw(server) as connection:
        assert connection.send(PING).reply()["ok"] == 1
