"""A collection with encrypted fields, for tests of queryable encryption."""

import os

import pytest
from bson.codec_options import CodecOptions
from pymongo.encryption import Algorithm, ClientEncryption
from pymongo.encryption_options import AutoEncryptionOpts, RangeOpts

pytest.importorskip("pymongocrypt", reason="`make test` installs pymongocrypt")

ENCRYPTED, EQUALITY, RANGE, UNINDEXED, INSERT_PAYLOAD = 6, 14, 15, 16, 11
PROVIDERS = {"local": {"key": os.urandom(96)}}
SAFE = "__safeContent__"
BOUNDS = {"min": 0, "max": 200, "sparsity": 1, "trim_factor": 1}


class People:
    """An encrypted collection with its keys and clients."""

    def __init__(self, server, database, encryption, contention, options=()):
        self.contention, self.encryption = contention, encryption
        self.raw, fields = encryption.create_encrypted_collection(
            database, "people", {"fields": [
                {"path": "ssn", "bsonType": "string", "keyId": None,
                 "queries": {"queryType": "equality", "contention": contention}},
                {"path": "home.city", "bsonType": "string", "keyId": None,
                 "queries": [{"queryType": "equality", "contention": contention}]},
                {"path": "note", "bsonType": "object", "keyId": None},
                {"path": "age", "bsonType": "int", "keyId": None, "queries": {
                    "queryType": "range", "contention": contention, "min": 0, "max": 200, "sparsity": 1,
                    "trimFactor": 1}},
            ]}, kms_provider="local")
        self.database, self.fields = database, fields
        self.keys = {field["path"]: field["keyId"] for field in fields["fields"]}
        vault = f"{database.name}.vault"
        options = AutoEncryptionOpts(PROVIDERS, vault, bypass_query_analysis=True)
        self.client = server.client(auto_encryption_opts=options, retryWrites=True)
        self.plain = self.client[database.name].people
        self.state, self.records = database["enxcol_.people.esc"], database["enxcol_.people.ecoc"]

    def value(self, path, value, **query):
        """The payload that a client inserts for a value, or searches with."""
        algorithm = {"note": Algorithm.UNINDEXED, "age": Algorithm.RANGE}.get(path, Algorithm.INDEXED)
        if algorithm != Algorithm.UNINDEXED:
            query["contention_factor"] = self.contention
        if algorithm == Algorithm.RANGE:
            query["range_opts"] = RangeOpts(**BOUNDS)
        return self.encryption.encrypt(value, algorithm, key_id=self.keys[path], **query)

    def equal(self, value, path="ssn"):
        return self.value(path, value, query_type="equality")

    def between(self, expression):
        return dict(self.encryption.encrypt_expression(
            expression, Algorithm.RANGE, key_id=self.keys["age"], query_type="range",
            contention_factor=self.contention, range_opts=RangeOpts(**BOUNDS)))

    def person(self, number, **others):
        return {"_id": number, "ssn": self.value("ssn", f"ssn-{number % 4}"),
                "home": {"city": self.value("home.city", f"city-{number % 3}"), "zip": number},
                "note": self.value("note", {"n": number}), "age": self.value("age", number), **others}

    def information(self):
        """The fields that drivers send with every command on the collection."""
        names = {"escCollection": self.state.name, "ecocCollection": self.records.name}
        return {"type": 1, "schema": {self.raw.full_name: {**names, **self.fields}}}

    def command(self, command, **arguments):
        return self.database.command(command, "people", encryptionInformation=self.information(), **arguments)

    def check(self):
        """Checks that every document has the tags of its values, and that validation finds no
        errors."""
        for one in self.raw.find():
            values = [one.get("ssn"), one.get("home", {}).get("city"), one.get("age")]
            values = [value for value in values if value is not None]
            assert sorted(one.get(SAFE, [])) == sorted(tag for value in values for tag in tags(value))
        for collection in (self.raw, self.state, self.records):
            assert self.database.validate_collection(collection.name, full=True)["valid"]


def compact(people, command="compactStructuredEncryptionData", **arguments):
    """Sends the tokens of the keys, as an encrypted client does."""
    return people.client[people.database.name].command(command, "people", **arguments)["stats"]


def tags(value):
    """The tags in a stored value: the middle of each of the 96 bytes of metadata at its end."""
    assert value.subtype == ENCRYPTED
    count = 1 if value[0] == EQUALITY else value[18]
    return [bytes(value[len(value) - 96 * (at + 1):][32:64]) for at in range(count)]


@pytest.fixture
def encryption(database, client):
    database.vault.create_index("keyAltNames", unique=True,
                                partialFilterExpression={"keyAltNames": {"$exists": True}})
    with ClientEncryption(PROVIDERS, database.vault.full_name, client, CodecOptions()) as encryption:
        yield encryption


@pytest.fixture(params=[0, 8], ids=["contention 0", "contention 8"])
def people(request, server, database, encryption):
    people = People(server, database, encryption, request.param)
    yield people
    people.client.close()


@pytest.fixture
def few(server, database, encryption):
    people = People(server, database, encryption, 0)
    yield people
    people.client.close()
