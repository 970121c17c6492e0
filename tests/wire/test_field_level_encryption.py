"""Drivers encrypt fields before they send them. The server stores, finds and checks values that it
cannot read. The master key is a local one. Encryption is explicit, decryption is automatic, as in
drivers of MongoDB Community."""

import os

import bson
import pytest
from answers import refused
from bson.binary import UUID_SUBTYPE, Binary
from bson.codec_options import CodecOptions
from pymongo.encryption import Algorithm, ClientEncryption
from pymongo.encryption_options import AutoEncryptionOpts
from pymongo.errors import DuplicateKeyError, EncryptionError, WriteError

pytest.importorskip("pymongocrypt", reason="`make test` installs pymongocrypt")

ENCRYPTED = 6
DETERMINISTIC = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
RANDOM = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
PROVIDERS = {"local": {"key": os.urandom(96)}}
NOT_IN_CONTEXT, UNKNOWN_FIELD = 224, 40415


@pytest.fixture
def vault(database):
    """The collection of data keys, with the index that keeps their names unique."""
    vault = database.vault
    vault.create_index("keyAltNames", unique=True,
                       partialFilterExpression={"keyAltNames": {"$exists": True}})
    return vault


@pytest.fixture
def encryption(vault, client):
    with ClientEncryption(PROVIDERS, vault.full_name, client, CodecOptions()) as encryption:
        yield encryption


@pytest.fixture
def key(encryption):
    return encryption.create_data_key("local", key_alt_names=["salaries"])


@pytest.fixture
def reader(server, vault):
    """A client that decrypts what it finds."""
    options = AutoEncryptionOpts(PROVIDERS, vault.full_name, bypass_auto_encryption=True)
    return server.client(auto_encryption_opts=options)


def test_data_keys_have_unique_names(encryption, vault, key):
    assert key.subtype == UUID_SUBTYPE
    stored = vault.find_one({"_id": key})
    assert stored["keyAltNames"] == ["salaries"] and stored["masterKey"] == {"provider": "local"}
    assert encryption.get_key_by_alt_name("salaries") == encryption.get_key(key)
    with pytest.raises(EncryptionError) as error:
        encryption.create_data_key("local", key_alt_names=["salaries"])
    assert isinstance(error.value.cause, DuplicateKeyError)
    other = encryption.create_data_key("local")
    with pytest.raises(DuplicateKeyError):
        encryption.add_key_alt_name(other, "salaries")
    assert encryption.add_key_alt_name(other, "names")["_id"] == other
    # The last name of a key is removed with its array, by an update with a pipeline.
    encryption.remove_key_alt_name(other, "names")
    assert "keyAltNames" not in vault.find_one({"_id": other})
    assert len(list(encryption.get_keys())) == 2
    assert encryption.delete_key(other).deleted_count == 1


def test_data_keys_are_wrapped_again(encryption, vault, key):
    before = vault.find_one({"_id": key})["keyMaterial"]
    result = encryption.rewrap_many_data_key({}, provider="local")
    assert result.bulk_write_result.modified_count == 1
    assert vault.find_one({"_id": key})["keyMaterial"] != before


def test_values_are_found_by_what_is_encrypted(encryption, database, reader, key):
    people = database.people
    people.create_index("number", unique=True)
    numbers = [encryption.encrypt(f"123-{one}", DETERMINISTIC, key_id=key) for one in range(50)]
    salaries = [encryption.encrypt(1000 * one, RANDOM, key_alt_name="salaries") for one in range(50)]
    people.insert_many([{"_id": one, "number": numbers[one], "salary": salaries[one]} for one in range(50)])
    found = people.find_one({"number": encryption.encrypt("123-7", DETERMINISTIC, key_id=key)})
    assert found["_id"] == 7 and isinstance(found["salary"], Binary) and found["salary"].subtype == ENCRYPTED
    assert encryption.decrypt(found["salary"]) == 7000
    plain = reader[database.name].people
    assert plain.find_one({"number": numbers[7]}) == {"_id": 7, "number": "123-7", "salary": 7000}
    assert [one["salary"] for one in plain.find().sort("_id", 1)] == [1000 * one for one in range(50)]
    explained = people.find({"number": numbers[7]}).explain()["queryPlanner"]["winningPlan"]
    assert explained["inputStage"]["stage"] == "IXSCAN"
    with pytest.raises(DuplicateKeyError):
        people.insert_one({"number": numbers[7]})
    # An equal salary is encrypted to different bytes each time.
    again = encryption.encrypt(7000, RANDOM, key_id=key)
    assert people.count_documents({"salary": again}) == 0


@pytest.mark.parametrize("index", [None, [("v", 1)], [("v", -1)], [("v", "hashed")], [("$**", 1)]])
def test_encrypted_values_are_values_like_others(collection, index):
    """Binary data of subtype 6 is stored, sorted, grouped, updated and converted."""
    if index:
        collection.create_index(index)
    values = [Binary(bytes([2, one]), subtype) for subtype in (5, ENCRYPTED) for one in range(3)]
    collection.insert_many([{"_id": at, "v": value} for at, value in enumerate(values)])
    for at, value in enumerate(values):
        assert [one["_id"] for one in collection.find({"v": value})] == [at]
        assert collection.find_one({"_id": at})["v"] == value
    assert [one["_id"] for one in collection.find({"v": {"$in": values[2:4]}}).sort("_id", 1)] == [2, 3]
    assert [one["_id"] for one in collection.find().sort("v", -1)] == [5, 4, 3, 2, 1, 0]
    assert [one["_id"] for one in collection.find({"v": {"$gte": values[3]}}).sort("v", 1)] == [3, 4, 5]
    assert sorted(collection.distinct("v"), key=lambda one: (one.subtype, one)) == values
    assert collection.count_documents({"v": {"$type": "binData"}}) == 6
    grouped = collection.aggregate([
        {"$group": {"_id": "$v", "n": {"$sum": 1}, "size": {"$max": {"$binarySize": "$v"}}}}, {"$sort": {"_id": 1}}])
    assert [(one["_id"], one["n"], one["size"]) for one in grouped] == [(value, 1, 2) for value in values]
    collection.update_one({"v": values[5]}, {"$set": {"v": values[0]}, "$push": {"old": values[5]}})
    assert collection.find_one({"old": values[5]}) == {"_id": 5, "v": values[0], "old": [values[5]]}
    assert collection.database.validate_collection(collection.name, full=True)["valid"]


def test_schemas_require_encrypted_values(encryption, database, key):
    schema = {"bsonType": "object", "encryptMetadata": {"keyId": [key], "algorithm": DETERMINISTIC}, "properties": {
        "number": {"encrypt": {"bsonType": "string", "algorithm": RANDOM}},
        "any": {"encrypt": {}},
        "listed": {"encrypt": {"bsonType": ["int", "long"], "keyId": "/key"}}}}
    people = database.create_collection("people", validator={"$jsonSchema": schema})

    def encrypted(value, algorithm=RANDOM):
        return encryption.encrypt(value, algorithm, key_id=key)

    people.insert_one({"_id": 1, "number": encrypted("1"), "any": encrypted([1]), "listed": encrypted(1)})
    people.insert_one({"_id": 2, "number": encrypted("1", DETERMINISTIC), "listed": encrypted(bson.Int64(1))})
    people.insert_one({"_id": 3})
    for field, value, reason in [
        ("number", "1", "value was not encrypted"),
        ("number", b"1", "value was not encrypted"),
        ("any", 5, "value was not encrypted"),
        ("number", encrypted(1), "encrypted value has wrong type"),
        ("listed", encrypted("1"), "encrypted value has wrong type"),
        ("number", Binary(b"", ENCRYPTED), "encrypted value has wrong type"),
        ("number", Binary(b"\x03" + bytes(40), ENCRYPTED), "encrypted value has wrong type"),
    ]:
        with pytest.raises(WriteError) as error:
            people.insert_one({field: value})
        assert error.value.code == 121
        [rule] = error.value.details["errInfo"]["details"]["schemaRulesNotSatisfied"]
        [failing] = rule["propertiesNotSatisfied"]
        assert failing["propertyName"] == field
        assert [(one["operatorName"], one["reason"]) for one in failing["details"]] == [("encrypt", reason)]
    assert [one["_id"] for one in people.find({"$jsonSchema": schema}).sort("_id", 1)] == [1, 2, 3]
    database.people.insert_one({"_id": 4})
    assert people.count_documents({"$jsonSchema": {"properties": {"any": {"encrypt": {}}}, "required": ["any"]}}) == 1


@pytest.mark.parametrize("schema, code", [
    ({"properties": {"a": {"encrypt": 1}}}, 14),
    ({"properties": {"a": {"encrypt": {}, "bsonType": "binData"}}}, 9),
    ({"properties": {"a": {"encrypt": {}, "type": "string"}}}, 9),
    ({"properties": {"a": {"encrypt": {}, "encryptMetadata": {"algorithm": RANDOM}}}}, 9),
    ({"properties": {"a": {"encrypt": {"cipher": "AES"}}}}, UNKNOWN_FIELD),
    ({"properties": {"a": {"encrypt": {"algorithm": "AES"}}}}, 2),
    ({"properties": {"a": {"encrypt": {"algorithm": 1}}}}, 14),
    ({"properties": {"a": {"encrypt": {"bsonType": "text"}}}}, 2),
    ({"properties": {"a": {"encrypt": {"bsonType": 1}}}}, 14),
    ({"properties": {"a": {"encrypt": {"keyId": 1}}}}, 51085),
    ({"properties": {"a": {"encrypt": {"keyId": ["x"]}}}}, 51088),
    ({"properties": {"a": {"encrypt": {"keyId": [b"x"]}}}}, 51084),
    ({"encryptMetadata": {}}, 9),
    ({"encryptMetadata": 1}, 14),
    ({"encryptMetadata": {"bsonType": "int"}}, UNKNOWN_FIELD),
])
def test_invalid_keywords_are_refused(database, schema, code):
    refused(lambda: database.create_collection("c", validator={"$jsonSchema": schema}), code)
    refused(lambda: database.other.find_one({"$jsonSchema": schema}), code)


def test_values_are_not_logged(database):
    """Documents that a validator only warns about are logged. The log must not have values that
    should be encrypted."""
    validator = {"$and": [{"$jsonSchema": {"properties": {"a": {"encrypt": {}}}}}]}
    for options in ({"validationAction": "warn"}, {"validationLevel": "moderate"}):
        refused(lambda options=options: database.create_collection("c", validator=validator, **options),
                NOT_IN_CONTEXT)
    database.create_collection("c", validator=validator)
    for options in ({"validationAction": "warn"}, {"validationLevel": "moderate"}):
        refused(lambda options=options: database.command("collMod", "c", **options), NOT_IN_CONTEXT)
        refused(lambda options=options: database.command("collMod", "c", validator=validator, **options),
                NOT_IN_CONTEXT)
    database.command("collMod", "c", validationLevel="off")
    database.create_collection("d", validationAction="warn")
    refused(lambda: database.command("collMod", "d", validator=validator), NOT_IN_CONTEXT)


def test_unindexed_values_of_queryable_encryption_are_stored(encryption, database, reader, key):
    """Such values need no support by the server."""
    value = encryption.encrypt({"iban": "DE1"}, Algorithm.UNINDEXED, key_id=key)
    assert value.subtype == ENCRYPTED
    database.people.insert_one({"_id": 1, "account": value})
    assert reader[database.name].people.find_one() == {"_id": 1, "account": {"iban": "DE1"}}
