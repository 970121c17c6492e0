"""Shared by the tests of access control: error codes, and logins message by message."""

import base64
import hashlib
import hmac

import pytest
from pymongo.errors import OperationFailure

from raw import op_msg, section


def code(call, *arguments, **options):
    with pytest.raises(OperationFailure) as caught:
        call(*arguments, **options)
    return caught.value.code


class Conversation:
    """The client's side of SCRAM-SHA-256, message by message."""

    def __init__(self, connection, database="admin"):
        self.connection, self.database = connection, database

    def command(self, **command):
        self.connection.send(op_msg(section({**command, "$db": self.database})))
        return self.connection.reply()

    def start(self, user, mechanism="SCRAM-SHA-256", nonce="abc", options=None):
        self.bare = f"n={user},r={nonce}"
        reply = self.command(saslStart=1, mechanism=mechanism, payload=f"n,,{self.bare}".encode(),
                             options=options or {"skipEmptyExchange": True})
        if reply["ok"]:
            self.id, self.first = reply["conversationId"], reply["payload"].decode()
            self.parts = dict(part.split("=", 1) for part in self.first.split(","))
        return reply

    def proof(self, password):
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(),
                                     base64.b64decode(self.parts["s"]), int(self.parts["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        self.last = f"c=biws,r={self.parts['r']}"
        signed = f"{self.bare},{self.first},{self.last}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        return bytes(one ^ other for one, other in zip(key, signature))

    def finish(self, password):
        proof = base64.b64encode(self.proof(password)).decode()
        return self.command(saslContinue=1, conversationId=self.id,
                            payload=f"{self.last},p={proof}".encode())

    def log_in(self, user, password):
        """Logs in, and returns the conversation, whose commands have no sessions of their own."""
        self.start(user)
        assert self.finish(password)["ok"] == 1
        return self

    def run(self, database, **command):
        """A command in a database."""
        self.database = database
        return self.command(**command)
