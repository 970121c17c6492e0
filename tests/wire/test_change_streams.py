"""Change streams: writes become events in order, and a stream resumes where it stopped."""

import datetime
import random
import threading
import time

import bson
import pytest
from pymongo import ReplaceOne, UpdateOne
from pymongo.errors import OperationFailure, PyMongoError

from answers import WAIT_MILLIS, answer_of_waiting, refused
from windrow_server import Server


def drain(stream, count):
    """Reads as many events of a stream as expected."""
    events = [stream.next() for _ in range(count)]
    assert stream.try_next() is None
    return events


def kinds(events):
    return [event["operationType"] for event in events]


def test_documents_are_told(collection):
    collection.insert_one({"_id": 0})
    with collection.watch(max_await_time_ms=100) as stream:
        collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2}])
        collection.update_one({"_id": 1}, {"$inc": {"a": 1}, "$unset": {"b": 1}})
        collection.replace_one({"_id": 2}, {"r": 1})
        collection.delete_one({"_id": 0})
        events = drain(stream, 5)
    assert kinds(events) == ["insert", "insert", "update", "replace", "delete"]
    assert [event["documentKey"]["_id"] for event in events] == [1, 2, 1, 2, 0]
    assert [event.get("fullDocument") for event in events] == [
        {"_id": 1, "a": 1}, {"_id": 2}, None, {"_id": 2, "r": 1}, None]
    assert events[2]["updateDescription"] == {
        "updatedFields": {"a": 2}, "removedFields": [], "truncatedArrays": []}
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    for event in events:
        assert event["ns"] == {"db": collection.database.name, "coll": "c"}
        assert abs(now - event["wallTime"]) < datetime.timedelta(minutes=1)
        assert isinstance(event["clusterTime"], bson.Timestamp)
    tokens = [event["_id"]["_data"] for event in events]
    assert tokens == sorted(set(tokens))


def test_updates_are_described(collection):
    pad = "text that is longer than all that changes around it"
    collection.insert_one({"_id": 1, "p": pad, "o": {"a": 1, "b": 1}, "l": [pad, 2, 3]})
    with collection.watch(max_await_time_ms=100) as stream:
        for update in [
            {"$set": {"o.a": 2, "z": 1}},
            {"$push": {"l": 4}},
            {"$pop": {"l": 1}},
            {"$rename": {"z": "y"}},
            [{"$set": {"l": {"$slice": ["$l", 1]}, "o.c": 3}}, {"$unset": "y"}],
        ]:
            collection.update_one({"_id": 1}, update)
        events = drain(stream, 5)
    described = [event["updateDescription"] for event in events]
    assert [one["updatedFields"] for one in described] == [
        {"o.a": 2, "z": 1}, {"l.3": 4}, {"l": [pad, 2, 3]}, {"y": 1}, {"o.c": 3}]
    assert [one["removedFields"] for one in described] == [[], [], [], ["z"], ["y"]]
    assert described[4]["truncatedArrays"] == [{"field": "l", "newSize": 1}]


def test_new_versions_are_looked_up(collection):
    collection.insert_many([{"_id": 1}, {"_id": 2}])
    with collection.watch(full_document="updateLookup", max_await_time_ms=100) as stream:
        collection.update_one({"_id": 1}, {"$set": {"a": 1}})
        collection.update_one({"_id": 1}, {"$set": {"a": 2}})
        collection.update_one({"_id": 2}, {"$set": {"a": 1}})
        collection.delete_one({"_id": 2})
        events = drain(stream, 4)
    newest = {"_id": 1, "a": 2}
    assert [event.get("fullDocument", "none") for event in events] == [
        newest, newest, None, "none"]


def test_old_versions_are_kept_where_asked(database):
    images = {"enabled": True}
    kept = database.create_collection("kept", changeStreamPreAndPostImages=images)
    other = database.create_collection("other")
    assert kept.options() == {"changeStreamPreAndPostImages": images}
    for c in (kept, other):
        c.insert_one({"_id": 1, "a": 1})
    with database.watch(full_document="whenAvailable", max_await_time_ms=100,
                        full_document_before_change="whenAvailable") as stream:
        for c in (kept, other):
            c.update_one({"_id": 1}, {"$set": {"a": 2}})
            c.update_one({"_id": 1}, {"$set": {"a": 3}})
            c.delete_one({"_id": 1})
        events = drain(stream, 6)
    seen = [(event.get("fullDocumentBeforeChange"), event.get("fullDocument")) for event in events]
    first, second, third = ({"_id": 1, "a": number} for number in (1, 2, 3))
    assert seen == [(first, second), (second, third), (third, None)] + [(None, None)] * 3
    with other.watch(full_document_before_change="required", max_await_time_ms=100) as stream:
        other.insert_one({"_id": 2})
        assert stream.next()["operationType"] == "insert"
        other.delete_one({"_id": 2})
        refused(stream.next, 47)
    database.command("collMod", "kept", changeStreamPreAndPostImages={"enabled": False})
    assert kept.options() == {}


def test_databases_and_the_deployment_are_watched(client, database):
    other = client[database.name + "_other"]
    matched = {"$match": {"ns.db": {"$in": [database.name, other.name]}}}
    with database.watch(max_await_time_ms=100) as own, \
            client.watch([matched], max_await_time_ms=100) as all_of_them:
        database.a.insert_one({"_id": 1})
        other.b.insert_one({"_id": 2})
        database.a.rename("c")
        database.c.drop()
        client.drop_database(other.name)
        assert kinds(drain(own, 3)) == ["insert", "rename", "drop"]
        events = drain(all_of_them, 6)
    assert kinds(events) == ["insert", "insert", "rename", "drop", "drop", "dropDatabase"]
    assert events[2]["to"] == {"db": database.name, "coll": "c"}
    assert events[5]["ns"] == {"db": other.name}


def test_a_stream_ends_with_its_collection(collection):
    collection.insert_one({"_id": 1})
    with collection.watch(max_await_time_ms=100) as stream:
        collection.drop()
        collection.insert_one({"_id": 2})
        assert kinds([stream.next(), stream.next()]) == ["drop", "invalidate"]
        assert not stream.alive
        end = stream.resume_token
    refused(lambda: collection.watch(resume_after=end), 260)
    with collection.watch(start_after=end, max_await_time_ms=100) as stream:
        assert stream.next()["documentKey"] == {"_id": 2}


def test_a_database_ends_its_stream(client, database):
    database.c.insert_one({"_id": 1})
    with database.watch(max_await_time_ms=100) as stream:
        client.drop_database(database.name)
        found = kinds([stream.next() for _ in range(3)])
        assert found == ["drop", "dropDatabase", "invalidate"]


def test_streams_go_on_behind_every_token(collection):
    with collection.watch(max_await_time_ms=100) as stream:
        start = stream.resume_token
        for number in range(5):
            collection.insert_many([{"_id": number * 10 + one} for one in range(3)])
        events = drain(stream, 15)
    ids = [event["documentKey"]["_id"] for event in events]
    for option in ("resume_after", "start_after"):
        with collection.watch(max_await_time_ms=100, **{option: start}) as stream:
            assert [event["documentKey"]["_id"] for event in drain(stream, 15)] == ids
        for place, event in enumerate(events):
            with collection.watch(max_await_time_ms=50, **{option: event["_id"]}) as stream:
                rest = [stream.next()["documentKey"]["_id"] for _ in ids[place + 1:]]
                assert rest == ids[place + 1:]
    with collection.watch(start_at_operation_time=events[6]["clusterTime"],
                          max_await_time_ms=100) as stream:
        assert [event["documentKey"]["_id"] for event in drain(stream, 9)] == ids[6:]
    with collection.database.other.watch(max_await_time_ms=100) as stream:
        collection.database.other.insert_one({})
        strange = stream.next()["_id"]
    # The token of an event that this stream would not return.
    refused(lambda: collection.watch(resume_after=strange), 280)


def test_pipelines(collection):
    pipeline = [{"$match": {"operationType": {"$in": ["insert", "update"]}, "fullDocument.n": 1}},
                {"$project": {"fullDocument": 1}}, {"$addFields": {"seen": True}}]
    with collection.watch(pipeline, full_document="updateLookup", max_await_time_ms=100) as stream:
        collection.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 2}])
        collection.update_one({"_id": 2}, {"$set": {"n": 1}})
        collection.delete_one({"_id": 3})
        events = drain(stream, 2)
    assert [set(event) for event in events] == [{"_id", "fullDocument", "seen"}] * 2
    for stage in ({"$group": {"_id": 1}}, {"$limit": 1}, {"$out": "x"}, {"$sort": {"a": 1}}):
        refused(lambda: collection.watch([stage]), 20)
    with collection.watch([{"$project": {"_id": 0}}], max_await_time_ms=100) as stream:
        collection.insert_one({})
        with pytest.raises(PyMongoError) as caught:
            stream.next()
    if isinstance(caught.value, OperationFailure):
        assert caught.value.code == 280
        assert caught.value.has_error_label("NonResumableChangeStreamError")


def test_more_is_told_where_asked(database):
    with database.watch(show_expanded_events=True, max_await_time_ms=100) as stream:
        c = database.create_collection("c", capped=True, size=4096)
        c.create_index("a")
        c.insert_one({"_id": 1, "a": [1, 2]})
        c.update_one({"_id": 1}, {"$set": {"a.1": 3}})
        c.drop_index("a_1")
        events = drain(stream, 5)
    assert kinds(events) == ["create", "createIndexes", "insert", "update", "dropIndexes"]
    assert events[0]["operationDescription"]["capped"] is True
    assert events[1]["operationDescription"]["indexes"][0]["name"] == "a_1"
    assert events[3]["updateDescription"]["disambiguatedPaths"] == {"a.1": ["a", 1]}
    assert len({event["collectionUUID"] for event in events}) == 1


def test_every_modification_is_told_with_what_was_before(database):
    c = database.create_collection("c", validator={"a": {"$exists": True}})
    c.create_index("a")
    c.create_index("when", expireAfterSeconds=10)
    asked = [
        {},
        {"validationLevel": "moderate"},
        {"index": {"keyPattern": {"a": 1}, "hidden": True}},
        {"index": {"name": "a_1", "hidden": True}},
        {"index": {"name": "when_1", "expireAfterSeconds": 20}, "validator": {}},
        {"index": {"name": "a_1", "prepareUnique": True}},
        {"index": {"name": "a_1", "unique": True}, "dryRun": True},
        {"index": {"name": "a_1", "unique": True}},
    ]
    uuid = next(database.list_collections())["info"]["uuid"]
    with database.watch(show_expanded_events=True, max_await_time_ms=100) as stream, \
            c.watch(max_await_time_ms=100) as plain:
        options = []
        for change in asked:
            if not change.get("dryRun"):
                options.append({"uuid": uuid} | c.options())
            database.command("collMod", "c", **change)
        c.insert_one({})
        events = drain(stream, 8)
        assert kinds([plain.next()]) == ["insert"]
    assert kinds(events) == ["modify"] * 7 + ["insert"]
    assert [event["operationDescription"] for event in events[:7]] == [
        {},
        {"validationLevel": "moderate"},
        {"index": {"name": "a_1", "hidden": True}},
        {"index": {"name": "a_1"}},
        {"index": {"name": "when_1", "expireAfterSeconds": 20}, "validator": {}},
        {"index": {"name": "a_1", "prepareUnique": True}},
        {"index": {"name": "a_1", "unique": True}},
    ]
    before = [event["stateBeforeChange"] for event in events[:7]]
    assert [state["collectionOptions"] for state in before] == options
    assert [state.get("indexOptions") for state in before] == [
        None, None, {"hidden": False}, {}, {"expireAfterSeconds": 10}, {"prepareUnique": False}, {}]


def test_a_waiting_stream_is_woken(collection):
    with collection.watch(max_await_time_ms=WAIT_MILLIS) as stream:
        event = answer_of_waiting(collection, stream.next, lambda: collection.insert_one({"_id": 1}))
    assert event["documentKey"] == {"_id": 1}


def test_a_slow_reader_misses_nothing(collection):
    with collection.watch(batch_size=7, max_await_time_ms=100) as stream:
        def write():
            for number in range(50):
                documents = [{"_id": number * 100 + one, "s": "x" * 200} for one in range(100)]
                collection.insert_many(documents)
                collection.bulk_write([UpdateOne({"_id": number * 100}, {"$set": {"n": number}}),
                                       ReplaceOne({"_id": number * 100 + 1}, {"r": number})])

        writer = threading.Thread(target=write)
        writer.start()
        replayed, seen = {}, 0
        while seen < 50 * 102:
            event = stream.next()
            seen += 1
            replay(replayed, event)
            if seen % 500 == 0:
                time.sleep(0.05)
        writer.join()
        assert stream.try_next() is None
    assert replayed == {document["_id"]: document for document in collection.find()}


def replay(documents, event):
    """Applies events to a plain map."""
    key = event["documentKey"]["_id"]
    match event["operationType"]:
        case "insert" | "replace":
            documents[key] = event["fullDocument"]
        case "update":
            documents[key].update(event["updateDescription"]["updatedFields"])
            for name in event["updateDescription"]["removedFields"]:
                del documents[key][name]
        case "delete":
            del documents[key]


def test_streams_outlive_the_server(tmp_path):
    with Server(tmp_path) as server:
        c = server.client().d.c
        with c.watch(max_await_time_ms=100) as stream:
            c.insert_many([{"_id": number} for number in range(100)])
            tokens = [stream.next()["_id"] for _ in range(40)]
        c.update_one({"_id": 7}, {"$set": {"a": 1}})
        c.database.old.insert_one({"_id": "old"})
        c.database.old.rename("new")
        server.kill()
        server.start()
        c = server.client().d.c
        c.delete_one({"_id": 7})
        with c.watch(resume_after=tokens[-1], max_await_time_ms=100) as stream:
            events = drain(stream, 62)
        assert kinds(events) == ["insert"] * 60 + ["update", "delete"]
        with c.database.watch(resume_after=tokens[-1], max_await_time_ms=100) as stream:
            events = drain(stream, 64)
        # Events have the name that the collection had at the time.
        assert [event["ns"]["coll"] for event in events[-3:]] == ["old", "old", "c"]


def test_what_is_not_kept_cannot_be_told(tmp_path):
    with Server(tmp_path, memory=32 << 20,
                options=["--change-history-bytes-max", "0"]) as server:
        c = server.client().d.c
        with c.watch(max_await_time_ms=100) as stream:
            c.insert_one({"_id": 0})
            token = stream.next()["_id"]
        chance = random.Random(1)
        written = 0
        began = time.monotonic()
        lost = None
        while lost is None and time.monotonic() - began < 120:
            for _ in range(20):
                c.insert_many([{"b": bson.Binary(chance.randbytes(60_000))} for _ in range(100)])
                written += 1
            try:
                c.watch(resume_after=token).close()
            except OperationFailure as error:
                lost = error
        assert lost is not None and lost.code == 286, written
        assert lost.has_error_label("NonResumableChangeStreamError")
        with c.watch(max_await_time_ms=100) as stream:
            c.insert_one({"_id": 1})
            assert stream.next()["documentKey"] == {"_id": 1}


LARGE = "x" * (15 << 20)
SPLIT = {"$changeStreamSplitLargeEvent": {}}


def updates_of_a_large_document(collection):
    """A stream without events. The event of the update has two versions of 15 MB."""
    collection.database.create_collection(
        collection.name, changeStreamPreAndPostImages={"enabled": True})
    collection.insert_one({"_id": 1, "large": LARGE})


def watch_versions(collection, pipeline, **more):
    return collection.watch(pipeline, full_document="whenAvailable",
                            full_document_before_change="whenAvailable", **more)


def test_large_events_are_split_where_that_is_asked_for(collection):
    updates_of_a_large_document(collection)
    with watch_versions(collection, [SPLIT]) as stream:
        collection.update_one({"_id": 1}, {"$set": {"n": 1}})
        first, second = stream.next(), stream.next()
        collection.insert_one({"_id": 2})
        assert stream.next()["documentKey"] == {"_id": 2}
    assert first["splitEvent"] == {"fragment": 1, "of": 2}
    assert second["splitEvent"] == {"fragment": 2, "of": 2}
    whole = first | second
    assert whole["operationType"] == "update" and first["operationType"] == "update"
    assert whole["fullDocument"]["n"] == 1 and "n" not in whole["fullDocumentBeforeChange"]
    assert first["_id"] != second["_id"]
    with watch_versions(collection, [SPLIT], resume_after=first["_id"]) as stream:
        again = stream.next()
        assert (again["_id"], again["splitEvent"]) == (second["_id"], second["splitEvent"])
        assert stream.next()["documentKey"] == {"_id": 2}
    with watch_versions(collection, [SPLIT], resume_after=second["_id"]) as stream:
        assert stream.next()["documentKey"] == {"_id": 2}


def test_large_events_that_are_not_split_are_refused(collection):
    updates_of_a_large_document(collection)
    with watch_versions(collection, []) as stream:
        collection.update_one({"_id": 1}, {"$set": {"n": 1}})
        with pytest.raises(OperationFailure) as error:
            stream.next()
    assert error.value.code == 10334
    for pipeline, code in [([SPLIT, {"$match": {}}], 7182802),
                           ([{"$changeStreamSplitLargeEvent": 1}], 7182800)]:
        with pytest.raises(OperationFailure) as error:
            watch_versions(collection, pipeline)
        assert error.value.code == code


def test_a_stream_stands_at_its_last_event_until_something_comes_after_it(collection):
    """Regression: the resume token was that of a later time, not that of the event."""
    with collection.watch([{"$match": {"fullDocument.a": {"$ne": 2}}}], max_await_time_ms=50) as stream:
        # Internal writes of the server may advance the token, but not each time.
        for _ in range(10):
            collection.insert_one({"a": 1})
            event = next(stream)
            assert stream.resume_token == event["_id"]
            assert stream.try_next() is None
            if stream.resume_token == event["_id"]:
                break
        assert stream.resume_token == event["_id"]
        collection.insert_one({"a": 2})
        assert stream.try_next() is None and stream.resume_token["_data"] > event["_id"]["_data"]
        token = stream.resume_token
    collection.insert_one({"a": 3})
    for known, expected in ((event["_id"], [2, 3]), (token, [3])):
        with collection.watch(resume_after=known, max_await_time_ms=50) as stream:
            assert [next(stream)["fullDocument"]["a"] for _ in expected] == expected
