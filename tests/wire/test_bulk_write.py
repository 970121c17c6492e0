"""`bulkWrite`: one command that inserts, updates and deletes in several collections."""

import pytest
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import ClientBulkWriteException, OperationFailure


def test_a_client_writes_to_several_collections(client, database):
    one, two = f"{database.name}.one", f"{database.name}.two"
    database.two.insert_many([{"_id": number, "n": number} for number in range(5)])
    result = client.bulk_write([
        InsertOne({"_id": 1, "s": "a"}, namespace=one),
        InsertOne({"_id": 2, "s": "b"}, namespace=one),
        UpdateOne({"_id": 1}, {"$set": {"s": "c"}}, namespace=one),
        UpdateMany({"n": {"$gt": 2}}, [{"$set": {"n": {"$add": ["$n", 10]}}}], namespace=two),
        ReplaceOne({"_id": 9}, {"n": 9}, upsert=True, namespace=two),
        DeleteOne({"n": 0}, namespace=two),
        DeleteMany({"n": {"$in": [1, 2]}}, namespace=two),
    ], verbose_results=True)
    assert (result.inserted_count, result.matched_count, result.modified_count) == (2, 3, 3)
    assert (result.upserted_count, result.deleted_count) == (1, 3)
    assert result.insert_results[1].inserted_id == 2
    assert result.update_results[3].modified_count == 2
    assert result.update_results[4].upserted_id == 9
    assert result.delete_results[6].deleted_count == 2
    assert list(database.one.find()) == [{"_id": 1, "s": "c"}, {"_id": 2, "s": "b"}]
    assert list(database.two.find().sort("_id")) == [{"_id": 3, "n": 13}, {"_id": 4, "n": 14}, {"_id": 9, "n": 9}]


@pytest.mark.parametrize("ordered, inserted, failed", [(True, 1, [1]), (False, 2, [1, 3])])
def test_errors_have_the_place_of_their_operation(client, database, ordered, inserted, failed):
    name = f"{database.name}.c"
    with pytest.raises(ClientBulkWriteException) as error:
        client.bulk_write([
            InsertOne({"_id": 1}, namespace=name), InsertOne({"_id": 1}, namespace=name),
            InsertOne({"_id": 2}, namespace=name), UpdateOne({"_id": 1}, {"$inc": {"_id": 1}}, namespace=name),
        ], ordered=ordered, verbose_results=True)
    assert [one["idx"] for one in error.value.write_errors] == failed
    assert error.value.write_errors[0]["code"] == 11000
    assert error.value.partial_result.inserted_count == inserted


def run(client, operations, name, **options):
    return client.admin.command("bulkWrite", 1, ops=operations, nsInfo=[{"ns": name}], **options)


def test_results_come_by_a_cursor(client, database):
    name = f"{database.name}.c"
    inserts = [{"insert": 0, "document": {"_id": number}} for number in range(5)]
    reply = run(client, inserts, name, cursor={"batchSize": 2})
    assert (reply["nInserted"], reply["nErrors"]) == (5, 0)
    assert reply["cursor"]["firstBatch"][0] == {"ok": 1.0, "idx": 0, "n": 1}
    more = client.admin.command("getMore", reply["cursor"]["id"], collection="$cmd.bulkWrite")
    assert [one["idx"] for one in more["cursor"]["nextBatch"]] == [2, 3, 4]
    silent = run(client, [{"delete": 0, "filter": {}, "multi": True}], name, errorsOnly=True)
    assert (silent["cursor"]["firstBatch"], silent["nDeleted"]) == ([], 5)


def test_variables_and_validators_hold(client, database):
    database.create_collection("c", validator={"n": {"$type": "int"}})
    name = f"{database.name}.c"
    reply = run(client, [{"insert": 0, "document": {"n": "x"}}], name)
    assert reply["cursor"]["firstBatch"][0]["code"] == 121
    run(client, [{"insert": 0, "document": {"_id": 1, "n": "x"}}], name, bypassDocumentValidation=True)
    run(client, [{"insert": 0, "document": {"_id": 2, "n": 2}}], name)
    update = {"update": 0, "filter": {"$expr": {"$eq": ["$n", "$$n"]}}, "updateMods": {"$set": {"m": 1}}}
    assert run(client, [update], name, let={"n": 2})["nModified"] == 1


@pytest.mark.parametrize("database_name, arguments, code", [
    ("test", {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "a.b"}]}, 13),
    ("admin", {"ops": [], "nsInfo": [{"ns": "a.b"}]}, 16),
    ("admin", {"ops": [{"insert": 1, "document": {}}], "nsInfo": [{"ns": "a.b"}]}, 2),
    ("admin", {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "a"}]}, 73),
    ("admin", {"ops": [{"insert": 0, "document": {}}]}, 40414),
    ("admin", {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "a.b"}], "x": 1}, 40415),
    ("admin", {"ops": [{"update": 0, "filter": {}}], "nsInfo": [{"ns": "a.b"}]}, 40414),
])
def test_what_is_wrong_is_refused(client, database_name, arguments, code):
    with pytest.raises(OperationFailure) as error:
        client[database_name].command("bulkWrite", 1, **arguments)
    assert error.value.code == code


def test_what_the_server_keeps_itself_is_not_written(client, database):
    for name in ("system.views", "system.profile", "system.other", "a.system.b"):
        for operation in ({"insert": 0, "document": {"_id": 1}}, {"update": 0, "filter": {}, "updateMods": {"$set": {"a": 1}},
                                                                  "upsert": True}):
            [result] = run(client, [operation], f"{database.name}.{name}")["cursor"]["firstBatch"]
            assert result["ok"] == 0 and result["code"] in (2, 73), (name, result)
    assert database.list_collection_names() == []


def test_answers_of_several_batches_within_a_transaction(client, database):
    """The cursor of the results belongs to `admin`, from which transactions can read nothing else.
    """
    database.create_collection("c")
    command = {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}] * 3, "nsInfo": [{"ns": f"{database.name}.c"}],
               "cursor": {"batchSize": 1}}
    with client.start_session() as session, session.start_transaction():
        cursor = client.admin.command(command, session=session)["cursor"]
        more = {"getMore": cursor["id"], "collection": "$cmd.bulkWrite", "batchSize": 1}
        batch = client.admin.command(more, session=session)["cursor"]["nextBatch"]
        assert [one["idx"] for one in cursor["firstBatch"] + batch] == [0, 1]
        close = {"killCursors": "$cmd.bulkWrite", "cursors": [cursor["id"]]}
        assert client.admin.command(close, session=session)["cursorsKilled"] == [cursor["id"]]
        with pytest.raises(OperationFailure) as failure:
            client.admin.c.find_one({}, session=session)
        assert failure.value.code == 263
