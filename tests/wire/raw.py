"""Messages made byte by byte, for what no driver would send.

    length i32 | request i32 | response to i32 | kind i32 | …
"""

import socket
import struct

import bson

OP_REPLY, OP_UPDATE, OP_INSERT, OP_QUERY, OP_GET_MORE = 1, 2001, 2002, 2004, 2005
OP_DELETE, OP_KILL_CURSORS, OP_COMPRESSED, OP_MSG = 2006, 2007, 2012, 2013
SECONDS = 20


def message(body, kind=OP_MSG, length=None, request=7):
    """A header and `body`. `length` replaces the true length in the header."""
    return struct.pack("<iiii", 16 + len(body) if length is None else length, request, 0,
                       kind) + body


def section(document):
    """A section of kind 0. `document` is a dict, or bytes that are sent as they are."""
    return b"\0" + (bson.encode(document) if isinstance(document, dict) else document)


def sequence(name, documents):
    """A section of kind 1."""
    inner = name.encode() + b"\0" + b"".join(
        bson.encode(one) if isinstance(one, dict) else one for one in documents)
    return b"\x01" + struct.pack("<i", 4 + len(inner)) + inner


def op_msg(*sections, flags=0, tail=b""):
    return message(struct.pack("<I", flags) + b"".join(sections) + tail)


def op_query(document, collection="admin.$cmd"):
    head = struct.pack("<I", 0) + collection.encode() + b"\0" + struct.pack("<ii", 0, -1)
    return message(head + bson.encode(document), OP_QUERY)


class Raw:
    """A socket, with a reader of replies."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def message(self):
        """The next message: (kind, response to, body)."""
        length, _, answers, kind = struct.unpack("<iiii", self.exactly(16))
        return kind, answers, self.exactly(length - 16)

    def reply(self):
        """The document of the next OP_MSG or OP_REPLY."""
        kind, _, body = self.message()
        if kind == OP_REPLY:
            return bson.decode(body[20:])
        assert kind == OP_MSG and body[4] == 0, (kind, body[:20])
        return bson.decode(body[5:5 + struct.unpack_from("<i", body, 5)[0]])

    def is_closed(self):
        """Returns True if the server closes the connection, without a byte or after a reply with
        the reason."""
        try:
            while self.socket.recv(1 << 16):
                pass
            return True
        except ConnectionError:
            return True
        except TimeoutError:
            return False
