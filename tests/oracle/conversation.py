"""Reads recorded conversations and repeats them with a server. A case is one line of JSON: a name,
the mode of comparison, and steps. A step is a database command and MongoDB's reply, both in
canonical Extended JSON."""

import json
import lzma
import socket
import struct
import uuid

import bson
from bson import json_util
from bson.binary import Binary, UuidRepresentation
from bson.codec_options import CodecOptions
from bson.son import SON

DATABASE = "oracle"
OP_MSG = 2013
REPLY_SECONDS = 30
OPTIONS = CodecOptions(document_class=SON, tz_aware=True,
                       uuid_representation=UuidRepresentation.UNSPECIFIED)
EXTENDED_JSON = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, document_class=SON,
                                      tz_aware=True,
                                      uuid_representation=UuidRepresentation.UNSPECIFIED)
# Extended JSON had another meaning for these names before it was canonical. In a command they are
# operators, so they are sent with a mark that no case uses.
OPERATORS = ("$regex", "$ref")
MARK = "\ue000"


def read_cases(path):
    """The cases of one compressed file, in order."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def decode(value):
    """Converts canonical Extended JSON, already parsed as JSON, into values of the bson package."""
    return unmarked(json_util.loads(json.dumps(marked(value)), json_options=EXTENDED_JSON))


def marked(value):
    if isinstance(value, list):
        return [marked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {(MARK + key if key in OPERATORS else key): marked(item)
            for key, item in value.items()}


def unmarked(value):
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return SON((key.removeprefix(MARK), unmarked(item)) for key, item in value.items())


class Connection:
    """Sends commands unchanged, without sessions and retries."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), REPLY_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 0

    def close(self):
        self.socket.close()

    def command(self, command, database=DATABASE):
        whole = SON(command)
        whole["$db"] = database
        body = bson.encode(whole, codec_options=OPTIONS)
        self.number += 1
        head = struct.pack("<iiiiIB", 21 + len(body), self.number, 0, OP_MSG, 0, 0)
        self.socket.sendall(head + body)
        length, _, _, opcode = struct.unpack("<iiii", self.receive(16))
        reply = self.receive(length - 16)
        if opcode != OP_MSG or reply[4] != 0:
            raise ConnectionError(f"a reply of kind {opcode}, first section {reply[4]}")
        return bson.decode(reply[5:5 + struct.unpack_from("<i", reply, 5)[0]],
                           codec_options=OPTIONS)

    def receive(self, count):
        parts = bytearray()
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise ConnectionError("the server closed the connection")
            parts += part
        return bytes(parts)


def hold(connection, commands):
    """Runs the commands of a case on an empty database and returns the replies. A reply that cannot
    be read becomes {"ok": -1, "client": the error of Python}."""
    connection.command({"dropDatabase": 1})
    replies, sessions = [], {}
    for command in commands:
        command = with_ids(command, replies, sessions)
        database = command.pop("$db", DATABASE)
        try:
            replies.append(connection.command(command, database))
        except (bson.errors.BSONError, OverflowError, TypeError, ValueError) as error:
            replies.append(SON([("ok", -1), ("client", type(error).__name__)]))
    for session in sessions.values():
        connection.command({"killSessions": [session]}, "admin")
    return replies


def with_ids(value, replies, sessions):
    """Inserts the ids of this run: {"$cursorOf": step} and {"$session": n}."""
    if isinstance(value, list):
        return [with_ids(item, replies, sessions) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$cursorOf"]:
        cursor = replies[value["$cursorOf"]].get("cursor")
        return bson.Int64(cursor.get("id", 0) if isinstance(cursor, dict) else 0)
    if list(value) == ["$session"]:
        fresh = SON([("id", Binary(uuid.uuid4().bytes, 4))])
        return sessions.setdefault(value["$session"], fresh)
    return SON((key, with_ids(item, replies, sessions)) for key, item in value.items())
