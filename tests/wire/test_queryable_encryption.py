"""Queryable encryption: drivers encrypt values, and the server finds them by tags. Encryption is
explicit and decryption automatic, as in drivers of MongoDB Community. `reader` sends
`encryptionInformation` by itself, since it knows the encrypted fields of a collection. The tests
make what automatic encryption would also send."""

import datetime
import os
import pathlib
import sys
import threading

import bson
import pytest
from answers import ids, refused
from bson.binary import UUID_SUBTYPE, Binary
from bson.codec_options import CodecOptions
from bson.decimal128 import Decimal128
from encrypted_people import (  # noqa: F401
    ENCRYPTED, EQUALITY, INSERT_PAYLOAD, PROVIDERS, People, RANGE, SAFE, UNINDEXED, compact, encryption, few,
    people,
)
from pymongo.encryption import Algorithm, ClientEncryption
from pymongo.encryption_options import AutoEncryptionOpts, RangeOpts
from pymongo.errors import DuplicateKeyError, WriteError
from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from raw import Raw, op_msg, section  # noqa: E402


def test_drivers_create_the_collections(few):
    names = few.database.list_collection_names()
    assert sorted(names) == ["enxcol_.people.ecoc", "enxcol_.people.esc", "people", "vault"]
    [people] = few.database.list_collections(filter={"name": "people"})
    stored = people["options"]["encryptedFields"]
    assert stored["escCollection"] == "enxcol_.people.esc" and stored["ecocCollection"] == "enxcol_.people.ecoc"
    assert stored["fields"] == few.fields["fields"]
    assert all(field["keyId"].subtype == UUID_SUBTYPE for field in stored["fields"])
    assert few.raw.index_information()[f"{SAFE}_1"]["key"] == [(SAFE, 1)]
    [state] = few.database.list_collections(filter={"name": few.state.name})
    assert state["options"]["clusteredIndex"]["key"] == {"_id": 1}
    few.database.drop_collection("people", encrypted_fields=few.fields)
    assert few.database.list_collection_names() == ["vault"]


def test_equal_values_are_found(people):
    people.plain.insert_many([people.person(number) for number in range(24)])
    stored = people.raw.find_one({"_id": 5})
    assert [stored["ssn"][0], stored["home"]["city"][0], stored["note"][0], stored["age"][0]] == [
        EQUALITY, EQUALITY, UNINDEXED, RANGE]
    for number in range(4):
        found = list(people.plain.find({"ssn": people.equal(f"ssn-{number}")}).sort("_id", 1))
        assert ids(found) == list(range(number, 24, 4))
        for one in found:
            assert one["ssn"] == f"ssn-{number}" and one["note"] == {"n": one["_id"]} and one["age"] == one["_id"]
            assert one["home"] == {"city": f"city-{one['_id'] % 3}", "zip": one["_id"]}
    assert people.plain.find_one({"ssn": people.equal("ssn-4")}) is None
    explained = people.plain.find({"ssn": people.equal("ssn-1")}).explain()["queryPlanner"]["winningPlan"]
    assert explained["inputStage"]["stage"] == "IXSCAN" and explained["inputStage"]["indexName"] == f"{SAFE}_1"
    assert people.state.count_documents({}) == people.records.count_documents({})
    people.check()


def test_queries_combine_encrypted_operands(few):
    few.plain.insert_many([few.person(number, n=number) for number in range(24)])
    ssn, city = few.equal, lambda city: few.equal(city, "home.city")

    def expect(query, expected):
        wanted = [number for number in range(24) if expected(number)]
        assert ids(few.plain.find(query).sort("_id", 1)) == wanted, query
        assert few.plain.count_documents(query) == len(wanted)
        assert few.command("count", query=query)["n"] == len(wanted)
        assert sorted(few.command("distinct", key="_id", query=query)["values"]) == wanted

    expect({"ssn": ssn("ssn-1")}, lambda n: n % 4 == 1)
    expect({"ssn": {"$eq": ssn("ssn-1")}}, lambda n: n % 4 == 1)
    expect({"ssn": {"$ne": ssn("ssn-1")}}, lambda n: n % 4 != 1)
    expect({"ssn": {"$in": [ssn("ssn-1"), ssn("ssn-2")]}}, lambda n: n % 4 in (1, 2))
    expect({"ssn": {"$nin": [ssn("ssn-1"), ssn("ssn-2")]}}, lambda n: n % 4 not in (1, 2))
    expect({"ssn": {"$not": {"$eq": ssn("ssn-1")}}}, lambda n: n % 4 != 1)
    expect({"ssn": {"$not": {"$in": [ssn("ssn-1")]}}, "n": {"$gt": 5}}, lambda n: n % 4 != 1 and n > 5)
    expect({"ssn": ssn("ssn-1"), "home.city": city("city-2")}, lambda n: n % 4 == 1 and n % 3 == 2)
    expect({"$and": [{"ssn": ssn("ssn-1")}, {"home.city": city("city-2")}]}, lambda n: n % 4 == 1 and n % 3 == 2)
    expect({"$or": [{"ssn": ssn("ssn-1")}, {"home.city": city("city-2")}, {"n": 0}]},
           lambda n: n % 4 == 1 or n % 3 == 2 or n == 0)
    expect({"$nor": [{"ssn": ssn("ssn-1")}, {"home.city": city("city-2")}]}, lambda n: n % 4 != 1 and n % 3 != 2)
    expect({"$and": [{"ssn": ssn("ssn-1")}], "home.city": {"$ne": city("city-2")}, "n": {"$lt": 20}},
           lambda n: n % 4 == 1 and n % 3 != 2 and n < 20)
    expect({"$expr": {"$eq": ["$ssn", ssn("ssn-1")]}}, lambda n: n % 4 == 1)
    expect({"$expr": {"$ne": [{"$literal": ssn("ssn-1")}, "$ssn"]}}, lambda n: n % 4 != 1)
    expect({"$expr": {"$and": [{"$in": ["$ssn", [ssn("ssn-1"), ssn("ssn-3")]]}, {"$gte": ["$n", 10]}]}},
           lambda n: n % 4 in (1, 3) and n >= 10)
    expect({"ssn": {"$exists": True}, "n": 3}, lambda n: n == 3)
    pipeline = [{"$match": {"ssn": ssn("ssn-1")}}, {"$facet": {
        "a": [{"$match": {"home.city": city("city-0")}}, {"$count": "n"}], "all": [{"$count": "n"}]}}]
    assert list(few.plain.aggregate(pipeline)) == [{"a": [{"n": 2}], "all": [{"n": 6}]}]
    few.check()


def test_what_cannot_be_rewritten_is_refused(few):
    few.plain.insert_one(few.person(1))
    one, other = few.equal("ssn-1"), few.equal("ssn-2")
    for query, code in [
        ({"ssn": {"$in": [one, "x"]}}, 6329400),
        ({"$expr": {"$eq": [one, other]}}, 6334100),
        ({"$expr": {"$eq": [{"$toLower": "$ssn"}, one]}}, 6672413),
        ({"$expr": {"$in": ["$ssn", [one, "x"]]}}, 6334102),
        ({"$expr": {"$in": ["x", [one]]}}, 6672417),
        ({"ssn": {"$gt": one}}, 2),
        ({"list": {"$elemMatch": {"ssn": one}}}, 2),
        ({"ssn": Binary(bytes([12]) + bytes(20), ENCRYPTED)}, 22),
        ({"ssn": Binary(bytes([12]) + bson.encode({"d": 1}), ENCRYPTED)}, 40414),
        ({"ssn": Binary(bytes([12]) + bson.encode({"x": 1}), ENCRYPTED)}, 40415),
        ({"ssn": {"$eq": Binary(bytes([18]) + bson.encode({}), ENCRYPTED)}}, 238),
    ]:
        refused(lambda query=query: few.command("find", filter=query), code)
    refused(lambda: few.command("aggregate", pipeline=[{"$project": {"a": {"$eq": ["$ssn", one]}}}], cursor={}), 2)
    few.database.client.admin.command("setParameter", 1, internalQueryFLERewriteMemoryLimit=40)
    try:
        refused(lambda: few.command("find", filter={"ssn": one}), 377)
    finally:
        few.database.client.admin.command("setParameter", 1, internalQueryFLERewriteMemoryLimit=14 << 20)
    assert len(few.command("find", filter={"ssn": one})["cursor"]["firstBatch"]) == 1


def test_inserts_are_checked(few):
    ssn = few.value("ssn", "a")
    for document, code in [
        ({"name": ssn}, 6373601),
        ({"home": {"city": ssn}}, 6726301),
        ({"note": ssn}, 6373601),
        ({"ssn": ssn, SAFE: []}, 6666200),
        ({"ssn": few.equal("a")}, 2),
        ({"ssn": Binary(bytes([INSERT_PAYLOAD]) + bytes(9), ENCRYPTED)}, 22),
    ]:
        result = few.command("insert", documents=[document])
        assert result["n"] == 0 and result["writeErrors"][0]["code"] == code, result
    few.plain.insert_one({"_id": 1, "ssn": few.value("ssn", "a")})
    with pytest.raises(DuplicateKeyError):
        few.plain.insert_one({"_id": 1, "ssn": few.value("ssn", "a")})
    # The failed insert was not counted.
    assert few.state.count_documents({}) == few.records.count_documents({}) == 1
    result = few.command("insert", documents=[
        {"_id": 2, "ssn": few.value("ssn", "a")}, {"_id": 1}, {"_id": 3, "ssn": few.value("ssn", "a")}])
    assert result["n"] == 1 and [(one["index"], one["code"]) for one in result["writeErrors"]] == [(1, 11000)]
    result = few.command("insert", ordered=False, documents=[
        {"_id": 1}, {"_id": 3, "ssn": few.value("ssn", "a")}, {"_id": 4}])
    assert result["n"] == 2 and [(one["index"], one["code"]) for one in result["writeErrors"]] == [(0, 11000)]
    assert ids(few.plain.find({"ssn": few.equal("a")}).sort("_id", 1)) == [1, 2, 3]
    assert SAFE not in few.raw.find_one({"_id": 4})
    few.check()


def test_other_commands_and_collections_are_refused(few, database):
    information = few.information()
    database.other.insert_one({})
    schema = information["schema"].pop(few.raw.full_name)
    for name, fields, code in [
        ("other", schema, 7406900),
        ("people", {**schema, "escCollection": "enxcol_.other.esc"}, 7406900),
        ("people", {**schema, "escCollection": "vault"}, 7406900),
        ("people", {key: schema[key] for key in ("fields", "ecocCollection")}, 6371207),
        ("people", {key: schema[key] for key in ("fields", "escCollection")}, 6371208),
        ("people", 1, 6371205),
    ]:
        sent = {"type": 1, "schema": {f"{database.name}.{name}": fields}}
        for command in ({"find": name}, {"insert": name, "documents": [{}]}, {"count": name}):
            refused(lambda command=command, sent=sent: database.command({**command, "encryptionInformation": sent}), code)
    full = few.information()
    refused(lambda: database.command("find", "people", encryptionInformation={}), 40414)
    refused(lambda: database.command("find", "people", encryptionInformation={**full, "deleteTokens": {}}), 7293201)
    refused(lambda: database.command("find", "people", encryptionInformation={**full, "x": {}}), 40415)
    for command in ({"listIndexes": "people"}, {"getMore": bson.Int64(1), "collection": "people"}):
        refused(lambda command=command: database.command({**command, "encryptionInformation": full}), 40415)
    bulk = {"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}],
            "nsInfo": [{"ns": few.raw.full_name, "encryptionInformation": full}]}
    refused(lambda: database.client.admin.command(bulk), 40415)
    database.create_collection("view", viewOn="people", pipeline=[])
    sent = {"type": 1, "schema": {f"{database.name}.view": schema}}
    refused(lambda: database.command("find", "view", encryptionInformation=sent), 166)
    few.raw.drop()
    assert database.command("find", "people", encryptionInformation=full)["cursor"]["firstBatch"] == []
    result = database.command("insert", "people", documents=[{"ssn": few.value("ssn", "a")}], encryptionInformation=full)
    assert result["writeErrors"][0]["code"] == 26
    assert "people" not in database.list_collection_names()


def test_encrypted_collections_keep_their_name_and_kind(few, client):
    database = few.database
    database.plain.insert_many([{"_id": 1}, {"_id": 2, "ssn": "plain"}])
    name, plain = few.raw.full_name, database.plain.full_name
    refused(lambda: client.admin.command("renameCollection", name, to=f"{database.name}.others"), 20)
    refused(lambda: client.admin.command("renameCollection", plain, to=name, dropTarget=True), 20)
    refused(lambda: database.command("convertToCapped", "people", size=100_000), 6367302)
    refused(lambda: database.command("cloneCollectionAsCapped", "people", toCollection="capped", size=100_000),
            6367302)
    before = few.raw.options()
    for stage in ({"$out": "people"}, {"$merge": "people"}):
        refused(lambda stage=stage: database.plain.aggregate([stage]), 121)
    assert few.raw.options() == before and few.raw.count_documents({"ssn": {"$type": "string"}}) == 0


def test_tokens_are_not_shown(few, server):
    few.plain.insert_many([few.person(number) for number in range(3)])
    few.database.command("profile", 2)
    few.plain.find({"ssn": few.equal("ssn-1")}).batch_size(1).next()
    few.plain.update_one({"ssn": few.equal("ssn-1")}, {"$set": {"ssn": few.value("ssn", "x")}})
    few.plain.insert_one(few.person(9))
    few.database.command("profile", 0)
    recorded = list(few.database.system.profile.find({"ns": few.raw.full_name}))
    assert recorded
    for one in recorded:
        assert "filter" not in one["command"] and "q" not in one["command"], one
        assert "documents" not in one["command"] and "updates" not in one["command"]


def test_values_that_are_not_encrypted_are_refused(few):
    """Clients that do not know of the encrypted fields must not store plain values."""
    few.plain.insert_one({"_id": 1, "ssn": few.value("ssn", "a"), "note": few.value("note", {"a": 1})})
    stored = few.raw.find_one({"_id": 1})
    for document, path, reason in [
        ({"ssn": "123"}, "ssn", "value was not encrypted"),
        ({"ssn": few.value("ssn", "a")}, "ssn", "value was not encrypted"),
        ({"home": {"city": 5}}, "home.city", "value was not encrypted"),
        ({"home": [{"city": stored["ssn"]}]}, "home.city", "encrypted field is within an array"),
        ({"age": stored["ssn"]}, "age", "encrypted value has wrong type"),
        ({"note": b"x"}, "note", "value was not encrypted"),
    ]:
        for write in (lambda it=document: few.raw.insert_one(dict(it)),
                      lambda it=document: few.raw.replace_one({"_id": 1}, it),
                      lambda it=document: few.raw.update_one({"_id": 1}, {"$set": it}),
                      lambda it=document: few.raw.update_one({"_id": 1}, [{"$set": {"home": {"$literal": it["home"]}}
                                                                           if "home" in it else it}])):
            with pytest.raises(WriteError) as error:
                write()
            assert error.value.code == 121, error.value
            details = error.value.details["errInfo"]["details"]
            assert (details["encryptedField"], details["reason"]) == (path, reason)
    for write in (lambda: few.raw.insert_one({SAFE: []}), lambda: few.raw.update_one({"_id": 1}, {"$unset": {SAFE: 1}}),
                  lambda: few.raw.update_one({"_id": 1}, {"$push": {SAFE: b"x"}})):
        with pytest.raises(WriteError) as error:
            write()
        assert error.value.code == 6666200
    few.raw.insert_one({"_id": 2, "name": "no encrypted field", "home": {"zip": 1}})
    few.raw.update_one({"_id": 1}, {"$set": {"home.zip": 3}})
    assert few.plain.find_one({"ssn": few.equal("a")}) == {**stored, "ssn": "a", "note": {"a": 1}, "home": {"zip": 3}}
    assert few.raw.delete_many({}).deleted_count == 2


def test_updates_replace_values_and_tags(people):
    plain = people.plain
    plain.insert_many([people.person(number) for number in range(8)])
    one = {"_id": 2}
    updated = plain.update_one({"ssn": people.equal("ssn-2"), "_id": 2}, {"$set": {"ssn": people.value("ssn", "new")}})
    assert (updated.matched_count, updated.modified_count) == (1, 1)
    assert ids(plain.find({"ssn": people.equal("new")})) == [2]
    assert ids(plain.find({"ssn": people.equal("ssn-2")})) == [6]
    people.check()
    plain.update_one(one, {"$set": {"home.city": people.value("home.city", "moved")}, "$inc": {"home.zip": 100}})
    assert plain.find_one({"home.city": people.equal("moved", "home.city")})["home"] == {"city": "moved", "zip": 102}
    plain.update_one(one, {"$unset": {"ssn": 1}})
    assert plain.find_one({"ssn": people.equal("new")}) is None and len(people.raw.find_one(one)[SAFE]) > 1
    plain.update_one(one, {"$set": {"age": people.value("age", 77)}})
    assert ids(plain.find(people.between({"$and": [{"age": {"$gte": 70}}]}))) == [2]
    people.check()
    plain.replace_one(one, {"ssn": people.value("ssn", "ssn-3"), "n": 1})
    assert plain.find_one(one) == {"_id": 2, "ssn": "ssn-3", "n": 1, SAFE: people.raw.find_one(one)[SAFE]}
    assert len(people.raw.find_one(one)[SAFE]) == 1
    assert sorted(ids(plain.find({"ssn": people.equal("ssn-3")}))) == [2, 3, 7]
    people.check()
    updated = plain.update_one({"ssn": people.equal("none")}, {"$set": {"ssn": people.value("ssn", "x")}})
    assert updated.matched_count == 0
    # An update without matches was not counted.
    assert people.state.count_documents({}) == people.records.count_documents({})
    updated = plain.update_one({"_id": 20}, {"$set": {"ssn": people.value("ssn", "up")}}, upsert=True)
    assert updated.upserted_id == 20 and ids(plain.find({"ssn": people.equal("up")})) == [20]
    updated = plain.replace_one({"_id": 21}, {"ssn": people.value("ssn", "up")}, upsert=True)
    assert updated.upserted_id == 21 and sorted(ids(plain.find({"ssn": people.equal("up")}))) == [20, 21]
    people.check()


def test_refused_updates(few):
    few.plain.insert_one(few.person(1))
    ssn = few.value("ssn", "x")

    def update(update, code, **others):
        refused_by = few.command("update", updates=[{"q": {"_id": 1}, "u": update, **others}])
        assert refused_by["writeErrors"][0]["code"] == code, refused_by

    update({"$setOnInsert": {"ssn": ssn}}, 2)
    update({"$push": {"list": ssn}}, 6373601)
    update({"$set": {SAFE: []}}, 6666200)
    update({"$set": {"name": ssn}}, 6373601)
    update({"$set": {"ssn": few.equal("x")}}, 2)
    for updates, code in [
        ([{"q": {}, "u": {"$set": {"ssn": ssn}}, "multi": True}], 6371503),
        ([{"q": {}, "u": [{"$set": {"ssn": ssn}}]}], 6371517),
        ([{"q": {}, "u": {"$set": {"a": 1}}}] * 2, 6371502),
    ]:
        refused(lambda updates=updates: few.command("update", updates=updates), code)
    for arguments, code in [
        ({"update": {"$set": {"ssn": ssn}}, "new": True}, 6371402),
        ({"update": {"$set": {"ssn": ssn}}, "fields": {"a": 1}}, 6371408),
        ({"update": [{"$set": {"ssn": ssn}}]}, 6439901),
        ({"remove": True, "update": {}}, 9),
    ]:
        refused(lambda arguments=arguments: few.command("findAndModify", query={"_id": 1}, **arguments), code)
    refused(lambda: few.command("delete", deletes=[{"q": {}, "limit": 1}] * 2), 6371302)
    assert few.plain.find_one({"_id": 1})["ssn"] == "ssn-1"
    few.check()


def test_find_and_modify_and_delete(people):
    plain = people.plain
    plain.insert_many([people.person(number) for number in range(8)])
    old = plain.find_one_and_update({"ssn": people.equal("ssn-1"), "_id": 5}, {"$set": {"ssn": people.value("ssn", "a")}})
    assert (old["_id"], old["ssn"]) == (5, "ssn-1")
    assert plain.find_one({"ssn": people.equal("a")})["_id"] == 5
    old = plain.find_one_and_replace({"ssn": people.equal("a")}, {"ssn": people.value("ssn", "b")})
    assert old["ssn"] == "a" and ids(plain.find({"ssn": people.equal("b")})) == [5]
    assert plain.find_one_and_update({"ssn": people.equal("none")}, {"$set": {"ssn": people.value("ssn", "a")}}) is None
    gone = plain.find_one_and_delete({"ssn": people.equal("b")})
    assert (gone["_id"], gone["ssn"]) == (5, "b")
    assert plain.find_one({"ssn": people.equal("b")}) is None
    assert plain.delete_one({"ssn": people.equal("ssn-2")}).deleted_count == 1
    assert len(ids(plain.find({"ssn": people.equal("ssn-2")}))) == 1
    assert plain.delete_many({"ssn": people.equal("ssn-3")}).deleted_count == 2
    assert plain.delete_one({"ssn": people.equal("ssn-3")}).deleted_count == 0
    people.check()


@pytest.mark.parametrize("kind, values, bounds", [
    ("int", [0, 2, 7, 30, 170, 200], {"min": 0, "max": 200, "sparsity": 1, "trim_factor": 1}),
    ("long", [bson.Int64(one) for one in (-4, 0, 9, 2000)], {"min": bson.Int64(-10), "max": bson.Int64(5000)}),
    ("long", [bson.Int64(one) for one in (-2 ** 63, 0, 2 ** 63 - 1)],
     {"min": bson.Int64(-2 ** 63), "max": bson.Int64(2 ** 63 - 1), "sparsity": 3}),
    ("double", [-1.5, 0.0, 2.25, 99.75], {"min": -10.0, "max": 100.0, "precision": 2, "sparsity": 2}),
    ("double", [-1e300, 0.0, 1e-300, 7.5], {"sparsity": 4, "trim_factor": 8}),
    ("date", [datetime.datetime(2000 + one, 1, 1) for one in (0, 3, 30)],
     {"min": datetime.datetime(1990, 1, 1), "max": datetime.datetime(2050, 1, 1)}),
    ("decimal", [Decimal128(one) for one in ("0.5", "3.25", "9")],
     {"min": Decimal128("0"), "max": Decimal128("10"), "precision": 2}),
])
def test_ranges_are_found(server, database, encryption, kind, values, bounds):
    names = {"trim_factor": "trimFactor"}
    query = {"queryType": "range", "contention": 2, **{names.get(name, name): it for name, it in bounds.items()}}
    raw, fields = encryption.create_encrypted_collection(
        database, "c", {"fields": [{"path": "v", "bsonType": kind, "keyId": None, "queries": query}]}, kms_provider="local")
    arguments = {"algorithm": Algorithm.RANGE, "key_id": fields["fields"][0]["keyId"], "contention_factor": 2,
                 "range_opts": RangeOpts(**bounds)}
    options = AutoEncryptionOpts(PROVIDERS, f"{database.name}.vault", bypass_query_analysis=True)
    with server.client(auto_encryption_opts=options) as client:
        plain = client[database.name].c
        plain.insert_many([{"_id": at, "v": encryption.encrypt(value, **arguments)} for at, value in enumerate(values)])
        assert [one["v"] for one in plain.find().sort("_id", 1)] == values
        assert all(one["v"][0] == RANGE and len(one[SAFE]) == one["v"][18] for one in raw.find())
        number = {at: (value.to_decimal() if kind == "decimal" else value) for at, value in enumerate(values)}
        for low in range(len(values)):
            for high in range(low, len(values)):
                for operators, inside in [
                    (("$gte", "$lte"), lambda it: number[low] <= it <= number[high]),
                    (("$gt", "$lt"), lambda it: number[low] < it < number[high]),
                    (("$gte", "$lt"), lambda it: number[low] <= it < number[high]),
                ]:
                    if low == high and operators != ("$gte", "$lte"):
                        continue
                    expression = {"$and": [{"v": {operators[0]: values[low]}}, {"v": {operators[1]: values[high]}}]}
                    found = plain.find(dict(encryption.encrypt_expression(expression, query_type="range", **arguments)))
                    expected = [at for at in number if inside(number[at])]
                    assert ids(found.sort("_id", 1)) == expected, expression
        for operator, inside in [("$gt", lambda it: it > number[1]), ("$lte", lambda it: it <= number[1])]:
            expression = {"$and": [{"v": {operator: values[1]}}]}
            found = plain.find(dict(encryption.encrypt_expression(expression, query_type="range", **arguments)))
            assert ids(found.sort("_id", 1)) == [at for at in number if inside(number[at])]
            aggregated = {"$and": [{operator: ["$v", values[1]]}]}
            aggregated = dict(encryption.encrypt_expression(aggregated, query_type="range", **arguments))
            found = plain.find({"$expr": aggregated})
            assert ids(found.sort("_id", 1)) == [at for at in number if inside(number[at])]


def test_writers_of_equal_values_do_not_lose_counts(few):
    errors = []

    def write(writer):
        try:
            for number in range(12):
                few.plain.insert_one({"_id": f"{writer}-{number}", "ssn": few.value("ssn", "same")})
                if number % 4 == writer % 4:
                    compact(few)
                if number % 3 == 0:
                    few.plain.update_one({"_id": f"{writer}-{number}"}, {"$set": {"ssn": few.value("ssn", "other")}})
        except Exception as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert few.plain.count_documents({"ssn": few.equal("other")}) == 24
    assert few.plain.count_documents({"ssn": few.equal("same")}) == 48
    few.check()
    compact(few, "cleanupStructuredEncryptionData")
    assert few.plain.count_documents({"ssn": few.equal("same")}) == 48
    few.check()


def test_transactions_of_clients(few):
    with few.client.start_session() as session:
        with session.start_transaction():
            few.plain.insert_one({"_id": 1, "ssn": few.value("ssn", "a")}, session=session)
            few.plain.insert_one({"_id": 2, "ssn": few.value("ssn", "a")}, session=session)
            few.plain.update_one({"_id": 1}, {"$set": {"ssn": few.value("ssn", "b")}}, session=session)
            assert ids(few.plain.find({"ssn": few.equal("a")}, session=session)) == [2]
            assert few.plain.find_one({"ssn": few.equal("a")}) is None
            session.abort_transaction()
        assert few.state.count_documents({}) == 0
        with session.start_transaction():
            few.plain.insert_one({"_id": 1, "ssn": few.value("ssn", "a")}, session=session)
            few.plain.insert_one({"_id": 2, "ssn": few.value("ssn", "a")}, session=session)
    assert sorted(ids(few.plain.find({"ssn": few.equal("a")}))) == [1, 2]
    few.check()


def test_retried_writes_run_once(tmp_path):
    with Server(tmp_path) as server:
        client = server.client()
        database = client.retries
        with ClientEncryption(PROVIDERS, database.vault.full_name, client, CodecOptions()) as encryption:
            people = People(server, database, encryption, 0)
            session = {"id": Binary(os.urandom(16), UUID_SUBTYPE)}

            def run(number, command, arguments):
                sent = {command: "people", **arguments, "encryptionInformation": people.information(),
                        "lsid": session, "txnNumber": bson.Int64(number), "$db": database.name}
                with Raw(server) as connection:
                    return connection.send(op_msg(section(sent))).reply()

            def twice(number, command, **arguments):
                return run(number, command, arguments), run(number, command, arguments)

            documents = [{"_id": one, "ssn": people.value("ssn", "a")} for one in (1, 2)]
            first, second = twice(1, "insert", documents=documents)
            assert first["n"] == second["n"] == 2 and second["retriedStmtIds"] == [0, 1]
            update = {"q": {"_id": 1}, "u": {"$set": {"ssn": people.value("ssn", "b")}, "$inc": {"n": 1}}}
            first, second = twice(2, "update", updates=[update])
            assert first["n"] == first["nModified"] == second["n"] == 1 and second["retriedStmtIds"] == [0]
            update = {"q": {"_id": 5}, "u": {"$set": {"ssn": people.value("ssn", "c")}}, "upsert": True}
            first, second = twice(3, "update", updates=[update])
            assert first["upserted"] == second["upserted"] == [{"index": 0, "_id": 5}]
            first, second = twice(4, "delete", deletes=[{"q": {"ssn": people.equal("a")}, "limit": 1}])
            assert first["n"] == second["n"] == 1
            modify = {"query": {"_id": 1}, "update": {"$set": {"ssn": people.value("ssn", "d")}, "$inc": {"n": 1}}}
            first, second = twice(5, "findAndModify", **modify)
            assert first["value"]["n"] == second["value"]["n"] == 1 and second["retriedStmtId"] == 0
            assert [ids(people.plain.find({"ssn": people.equal(one)})) for one in "abcd"] == [[], [], [5], [1]]
            people.check()
            counted = people.state.count_documents({})
        server.kill()
        server.start()
        database = server.client().retries
        third = run(5, "findAndModify", modify)
        assert third["value"] == first["value"] and third["retriedStmtId"] == 0
        assert database.people.find_one({"_id": 1})["n"] == 2
        assert database[people.state.name].count_documents({}) == counted
