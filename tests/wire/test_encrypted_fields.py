"""The definition of encrypted fields: what `create` accepts, and what it refuses beside them."""

import pytest
from answers import refused
from bson.binary import UUID_SUBTYPE, Binary


def key(byte=1):
    return Binary(bytes([byte]) * 16, UUID_SUBTYPE)


@pytest.mark.parametrize("fields, code", [
    ({"fields": [{"path": "a", "bsonType": "string", "keyId": 1}]}, 14),
    ({"fields": [{"path": "_id", "bsonType": "string", "keyId": key()}]}, 6316403),
    ({"fields": [{"path": "a", "keyId": key()}, {"path": "a.b", "keyId": key(2)}]}, 6338403),
    ({"fields": [{"path": "a", "keyId": key()}, {"path": "b", "keyId": key()}]}, 6338401),
    ({"fields": [{"path": "a", "bsonType": "double", "keyId": key(), "queries": {"queryType": "equality"}}]}, 6338405),
    ({"fields": [{"path": "a", "keyId": key(), "queries": {"queryType": "equality"}}]}, 6412601),
    ({"fields": [{"path": "a", "bsonType": "int", "keyId": key(), "queries": {"queryType": "rangePreview"}}]}, 8575605),
    ({"fields": [{"path": "a", "bsonType": "string", "keyId": key(), "queries": {
        "queryType": "substringPreview", "strMaxLength": 10, "strMinQueryLength": 2, "strMaxQueryLength": 5,
        "caseSensitive": True, "diacriticSensitive": True}}]}, 238),
    ({"fields": [], "escCollection": "x"}, 7406900),
    ({"fields": [], "other": 1}, 40415),
    ({}, 40414),
])
def test_invalid_fields_are_refused(database, fields, code):
    refused(lambda: database.command("create", "c", encryptedFields=fields), code)
    assert database.list_collection_names() == []


def test_errors_name_the_argument(database):
    fields = {"fields": [{"path": "a", "bsonType": "string", "keyId": 1}]}
    error = refused(lambda: database.command("create", "c", encryptedFields=fields), 14)
    assert "'create.encryptedFields.fields.keyId'" in str(error)


def test_options_beside_encrypted_fields(database):
    fields = {"fields": [{"path": "a.b", "bsonType": "string", "keyId": key()}]}
    refused(lambda: database.command("create", "c", encryptedFields=fields, capped=True, size=4096), 6367301)
    refused(lambda: database.command("create", "c", encryptedFields=fields, viewOn="x"), 6346401)
    for options in ({"validationAction": "warn"}, {"validationLevel": "off"}, {"validationLevel": "moderate"}):
        refused(lambda options=options: database.command("create", "c", encryptedFields=fields, **options), 2)
    database.command("create", "c", encryptedFields=fields)
    database.command("create", "c", encryptedFields=fields)
    for options in ({"validationAction": "warn"}, {"validationLevel": "off"}):
        refused(lambda options=options: database.command("collMod", "c", **options), 2)
    for index in ("a", "a.b", "a.b.c"):
        refused(lambda index=index: database.c.create_index(index), 6346502)
    refused(lambda: database.c.create_index("x", expireAfterSeconds=1), 6346501)
    assert database.c.create_index("ab") == "ab_1"
