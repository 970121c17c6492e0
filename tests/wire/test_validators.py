"""Validators: which documents are refused, and what a client learns of it."""

import pytest
from pymongo.errors import BulkWriteError, WriteError

from answers import refused
from windrow_server import Server

SCHEMA = {"$jsonSchema": {
    "bsonType": "object", "title": "a thing", "required": ["a"],
    "properties": {"a": {"bsonType": "int", "minimum": 0, "description": "must be a whole number"}}}}


def options(database, name="c"):
    return next(database.list_collections(filter={"name": name}))["options"]


def test_what_does_not_match_is_not_written(database):
    c = database.create_collection("c", validator=SCHEMA)
    c.insert_one({"_id": 1, "a": 1})
    with pytest.raises(WriteError) as error:
        c.insert_one({"_id": 2, "a": "x"})
    assert error.value.code == 121
    assert error.value.details["errInfo"] == {
        "failingDocumentId": 2,
        "details": {
            "operatorName": "$jsonSchema", "title": "a thing",
            "schemaRulesNotSatisfied": [{
                "operatorName": "properties",
                "propertiesNotSatisfied": [{
                    "propertyName": "a", "description": "must be a whole number",
                    "details": [{
                        "operatorName": "bsonType", "specifiedAs": {"bsonType": "int"},
                        "reason": "type did not match", "consideredValue": "x",
                        "consideredType": "string"}]}]}]}}
    refused(lambda: c.update_one({"_id": 1}, {"$set": {"a": -1}}), 121)
    refused(lambda: c.replace_one({"_id": 1}, {"b": 1}), 121)
    refused(lambda: c.update_one({"_id": 9}, {"$set": {"b": 1}}, upsert=True), 121)
    details = refused(lambda: c.find_one_and_update({"_id": 1}, {"$unset": {"a": 1}}), 121)
    assert details["errInfo"]["details"]["schemaRulesNotSatisfied"][0]["missingProperties"] == ["a"]
    with pytest.raises(BulkWriteError) as error:
        c.insert_many([{"_id": 3, "a": 1}, {"_id": 4}, {"_id": 5, "a": 2}], ordered=False)
    assert [one["index"] for one in error.value.details["writeErrors"]] == [1]
    assert sorted(one["_id"] for one in c.find()) == [1, 3, 5]


def test_a_client_may_bypass_it(database):
    c = database.create_collection("c", validator=SCHEMA)
    c.insert_one({"_id": 1}, bypass_document_validation=True)
    c.update_one({"_id": 1}, {"$set": {"b": 1}}, bypass_document_validation=True)
    c.update_one({"_id": 2}, {"$set": {"b": 1}}, upsert=True, bypass_document_validation=True)
    database.command("findAndModify", "c", query={"_id": 1}, update={"$set": {"b": 2}},
                     bypassDocumentValidation=True)
    assert [one["b"] for one in c.find()] == [2, 1]


def test_levels_and_actions(database, server):
    c = database.c
    c.insert_many([{"_id": 1, "a": 1}, {"_id": 2}])
    change = database.command
    change("collMod", "c", validator=SCHEMA)
    refused(lambda: c.update_one({"_id": 2}, {"$set": {"b": 1}}), 121)
    c.update_one({"_id": 2}, {"$set": {"_id": 2}})
    change("collMod", "c", validationLevel="moderate")
    c.update_one({"_id": 2}, {"$set": {"b": 1}})
    refused(lambda: c.update_one({"_id": 1}, {"$unset": {"a": 1}}), 121)
    refused(lambda: c.insert_one({"_id": 3}), 121)
    change("collMod", "c", validationAction="warn")
    c.insert_one({"_id": 3})
    assert "Document would fail validation" in server.log()
    change("collMod", "c", validationAction="error", validationLevel="off")
    c.insert_one({"_id": 4})
    change("collMod", "c", validator={}, validationLevel="strict")
    c.insert_one({"_id": 5})
    assert options(database) == {"validator": {}, "validationAction": "error",
                                 "validationLevel": "strict"}


def test_any_query_may_be_one(database):
    c = database.create_collection("c", validator={"a": {"$gt": 1}, "$expr": {"$lt": ["$a", "$b"]}})
    c.insert_one({"a": 2, "b": 3})
    refused(lambda: c.insert_one({"a": 3, "b": 3}), 121)
    later = database.create_collection("d", validator={"$expr": {"$lt": ["$when", "$$NOW"]}})
    import datetime
    now = datetime.datetime.now(datetime.timezone.utc)
    later.insert_one({"when": now - datetime.timedelta(seconds=1)})
    refused(lambda: later.insert_one({"when": now + datetime.timedelta(hours=1)}), 121)
    for wrong in [{"$text": {"$search": "x"}}, {"a": {"$near": [0, 0]}}, {"$where": "1"},
                  {"$and": [{"$text": {"$search": "x"}}]}, {"a": {"$foo": 1}}]:
        refused(lambda: database.command("create", "e", validator=wrong), 2)
        refused(lambda: database.command("collMod", "c", validator=wrong), 2)


def test_an_expression_that_fails_accepts_nothing(database, server):
    divided = {"$expr": {"$divide": [10, "$a"]}}
    c = database.create_collection("c", validator=divided)
    c.insert_one({"_id": 1, "a": 2})
    told = {"failingDocumentId": 2, "details": {
        "operatorName": "$expr", "specifiedAs": divided,
        "reason": "failed to evaluate aggregation expression"}}
    for write in [lambda: c.insert_one({"_id": 2, "a": 0}),
                  lambda: c.replace_one({"_id": 2}, {"a": 0}, upsert=True)]:
        found = refused(write, 121)["errInfo"]
        why = found["details"].pop("details")
        assert found == told
        assert list(why) == ["code", "codeName", "errmsg"]
        assert why["errmsg"] == "can't $divide by zero"
    refused(lambda: c.update_one({"_id": 1}, {"$set": {"a": 0}}), 121)
    database.command("collMod", "c", validationAction="warn")
    c.insert_one({"_id": 2, "a": 0})
    assert "can't $divide by zero" in server.log()
    # Documents that did not match before may stay so, even if the validator fails on them.
    database.command("collMod", "c", validationAction="error", validationLevel="moderate")
    c.update_one({"_id": 2}, {"$set": {"b": 1}})
    refused(lambda: c.update_one({"_id": 1}, {"$set": {"a": 0}}), 121)


def test_constants_of_a_validator_may_fail(database):
    failing = {"$expr": {"$divide": [10, 0]}}
    c = database.create_collection("c", validator=failing)
    assert options(database)["validator"] == failing
    refused(lambda: c.insert_one({"a": 1}), 121)
    choice = {"$expr": {"$or": ["$a", {"$divide": [10, 0]}]}}
    database.command("collMod", "c", validator=choice)
    c.insert_one({"a": 1})
    refused(lambda: c.insert_one({"a": 0}), 121)
    wrong = {"$expr": {"$and": [{"$divide": [10, 0]}, {"$foo": 1}]}}
    refused(lambda: database.command("collMod", "c", validator=wrong), 168)
    assert len(list(c.find())) == 1


def test_strings_are_told_by_the_collection_s_collation(database):
    validator = {"a": "x", "b": "y"}
    c = database.create_collection("c", validator=validator,
                                   collation={"locale": "en", "strength": 2})
    c.insert_one({"a": "X", "b": "Y"})
    found = refused(lambda: c.insert_one({"a": "X", "b": "z"}), 121)["errInfo"]["details"]
    assert found == {"operatorName": "$and", "clausesNotSatisfied": [{"index": 1, "details": {
        "operatorName": "$eq", "specifiedAs": {"b": "y"}, "reason": "comparison failed",
        "consideredValue": "z"}}]}


def test_what_is_long_is_not_told(database):
    c = database.create_collection("c", validator={"$or": [{"a": 1}, {"a": 2}, {"b": 3}]})
    found = refused(lambda: c.insert_one({"_id": 1, "a": "x" * (7 << 20)}), 121)["errInfo"]
    reasons = ["comparison failed", "comparison failed", "field was missing"]
    assert found == {"failingDocumentId": 1, "truncated": True, "details": {
        "operatorName": "$or", "clausesNotSatisfied": [
            {"index": index, "details": {"operatorName": "$eq", "reason": reason}}
            for index, reason in enumerate(reasons)]}}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_long_validator_outlives_the_process(tmp_path, end):
    validator = {"a": {"$in": [f"value number {number}" for number in range(5_000)]}}
    with Server(tmp_path) as server:
        server.client().d.create_collection("c", validator=validator)
        getattr(server, end)()
        server.start()
        database = server.client().d
        assert options(database) == {"validator": validator}
        database.c.insert_one({"a": "value number 4999"})
        refused(lambda: database.c.insert_one({"a": "value number 5000"}), 121)
