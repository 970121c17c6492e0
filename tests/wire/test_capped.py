"""Capped collections: the newest documents stay, and cursors wait at the end."""

import pytest
from pymongo.cursor import CursorType

from answers import WAIT_MILLIS, answer_of_waiting, ids, refused
from windrow_server import Server


@pytest.fixture
def capped(database):
    """A capped collection with room for three documents."""
    return database.create_collection("c", capped=True, size=100_000, max=3)


def test_the_newest_stay(capped):
    capped.insert_many([{"_id": number} for number in range(10)])
    assert ids(capped.find()) == [7, 8, 9]
    assert ids(capped.find(sort=[("$natural", -1)])) == [9, 8, 7]
    capped.update_one({"_id": 99}, {"$set": {"a": 1}}, upsert=True)
    assert ids(capped.find()) == [8, 9, 99]
    capped.create_index("a")
    capped.insert_one({"_id": 100, "a": 1})
    assert ids(capped.find({"a": 1}).hint("a_1")) == [99, 100]
    stats = capped.database.command("collStats", "c")
    assert (stats["capped"], stats["max"], stats["maxSize"], stats["count"]) == (True, 3, 100_096, 3)


def test_bytes_are_limited(database):
    c = database.create_collection("c", capped=True, size=4096)
    for number in range(20):
        c.insert_one({"_id": number, "s": "x" * 970})
    assert ids(c.find()) == [16, 17, 18, 19]
    refused(lambda: c.insert_one({"s": "x" * 5_000}), 2)
    assert c.count_documents({}) == 4


def test_documents_keep_their_size(capped):
    capped.insert_one({"_id": 1, "a": 1})
    capped.update_one({"_id": 1}, {"$set": {"a": 2}})
    refused(lambda: capped.update_one({"_id": 1}, {"$set": {"a": "long"}}), 10003)
    capped.delete_one({"_id": 1})
    assert capped.count_documents({}) == 0


def test_a_collection_is_made_capped(database):
    c = database.c
    c.insert_many([{"_id": number, "s": "x" * 970} for number in range(20)])
    c.create_index("s")
    database.command("convertToCapped", "c", size=4096)
    assert ids(c.find()) == [16, 17, 18, 19]
    assert set(c.index_information()) == {"_id_"}
    assert c.options() == {"capped": True, "size": 4096}
    refused(lambda: database.command("convertToCapped", "c", size=0), 72)
    refused(lambda: database.command("convertToCapped", "missing", size=1), 26)


def test_a_cursor_goes_on_with_what_comes(capped):
    capped.insert_many([{"_id": 1}, {"_id": 2}])
    cursor = capped.find(cursor_type=CursorType.TAILABLE)
    assert ids(cursor) == [1, 2] and cursor.alive
    capped.insert_one({"_id": 3})
    assert ids(cursor) == [3] and cursor.alive
    refused(lambda: list(capped.find(cursor_type=CursorType.TAILABLE, sort=[("_id", 1)])), 2)
    refused(lambda: list(capped.database.d.find(cursor_type=CursorType.TAILABLE))
            if capped.database.d.insert_one({}) else None, 2)


def test_a_hint_means_nothing_to_a_tailable_cursor(capped):
    """Regression: a hint at an index was refused. MongoDB scans the collection and ignores the
    hint."""
    capped.insert_many([{"_id": 2}, {"_id": 1}])
    for hint in ([("_id", 1)], "_id_", [("$natural", 1)]):
        cursor = capped.find(cursor_type=CursorType.TAILABLE, hint=hint)
        assert ids(cursor) == [2, 1] and cursor.alive
        cursor.close()
    backwards = dict(cursor_type=CursorType.TAILABLE, hint=[("$natural", -1)])
    refused(lambda: list(capped.find(**backwards)), 2)


def test_a_cursor_that_was_overtaken_ends(capped):
    capped.insert_many([{"_id": 1}, {"_id": 2}])
    # The driver takes this error for the end of the cursor. The test therefore sends the commands
    # itself.
    command = capped.database.command
    cursor = command("find", "c", tailable=True, batchSize=1)["cursor"]
    assert ids(cursor["firstBatch"]) == [1]
    capped.insert_many([{"_id": number} for number in range(3, 9)])
    refused(lambda: command("getMore", cursor["id"], collection="c"), 136)


def test_a_limit_leaves_a_tailable_cursor_open(capped):
    capped.insert_many([{"_id": number} for number in range(3)])
    command = capped.database.command
    cursor = command("find", "c", tailable=True, limit=2)["cursor"]
    assert ids(cursor["firstBatch"]) == [0, 1] and cursor["id"] != 0
    for _ in range(2):
        again = command("getMore", cursor["id"], collection="c")["cursor"]
        assert again["nextBatch"] == [] and again["id"] == cursor["id"]


def test_a_cursor_waits_for_data(capped):
    capped.insert_one({"_id": 1})
    cursor = capped.find(cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(WAIT_MILLIS)
    assert next(cursor)["_id"] == 1
    found = answer_of_waiting(capped, lambda: next(cursor), lambda: capped.insert_one({"_id": 2}))
    assert found["_id"] == 2
    cursor.close()
    short = capped.find(cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(100)
    assert ids(short) == [1, 2]
    capped.drop()
    assert list(short) == [] and not short.alive


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_limits_outlive_the_process(tmp_path, end):
    with Server(tmp_path) as server:
        c = server.client().d.create_collection("c", capped=True, size=4096, max=3)
        c.insert_many([{"_id": number} for number in range(10)])
        getattr(server, end)()
        server.start()
        c = server.client().d.c
        assert ids(c.find()) == [7, 8, 9]
        c.insert_one({"_id": 10})
        assert ids(c.find()) == [8, 9, 10]
