"""Snapshot reads outside of transactions, as in snapshot sessions of drivers: all reads of a
session are at one time, despite concurrent writes."""

import os
import threading
import time as clock

import pytest
from answers import ids, refused
from bson import Binary, Int64, Timestamp
from pymongo import InsertOne, UpdateOne
from pymongo.read_concern import ReadConcern
from windrow_server import Server

SNAPSHOT = {"level": "snapshot"}
WINDOW = "minSnapshotHistoryWindowInSeconds"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), options=("--replica-set", "rs0")) as server:
        yield server
        assert server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log()


def at(time):
    return {"level": "snapshot", "atClusterTime": time}


def find(collection, concern=SNAPSHOT, **options):
    """The cursor document in the reply of a find."""
    return collection.database.command("find", collection.name, readConcern=concern,
                                       **options)["cursor"]


def time_now(collection):
    return find(collection)["atClusterTime"]


def values(collection, time, query=None, **options):
    """`n` by `_id`, as of a time."""
    cursor = find(collection, at(time), filter=query or {}, batchSize=10_000, **options)
    assert cursor["atClusterTime"] == time
    return {one["_id"]: one.get("n") for one in cursor["firstBatch"]}


def compact(database, *names):
    for name in names:
        database.command("compact", name)


def test_a_snapshot_session_reads_all_collections_at_one_time(client, database):
    one, other = database.one, database.other
    one.insert_many({"_id": n, "n": n} for n in range(300))
    other.insert_many({"_id": n, "of": n % 300, "n": 0} for n in range(600))
    one.create_index("n")
    other.create_index("of")
    with client.start_session(snapshot=True) as session:
        assert one.count_documents({"n": {"$lt": 10}}, session=session) == 10
        one.update_many({"n": {"$lt": 100}}, {"$inc": {"n": 1000}})
        one.delete_many({"_id": {"$gte": 200}})
        other.update_many({}, {"$set": {"n": 7, "of": -1}})
        other.insert_one({"_id": 600, "of": 5, "n": 9})
        compact(database, "one", "other")
        assert ids(one.find({"n": {"$lt": 5}}, session=session, sort=[("n", 1)])) == [0, 1, 2, 3, 4]
        assert one.find_one({"_id": 250}, session=session) == {"_id": 250, "n": 250}
        assert ids(other.find({"of": 5}, session=session)) == [5, 305]
        assert other.distinct("n", session=session) == [0]
        joined = [{"$match": {"_id": {"$in": [1, 250]}}},
                  {"$lookup": {"from": "other", "localField": "_id", "foreignField": "of",
                               "as": "found"}},
                  {"$sort": {"_id": 1}}]
        found = one.aggregate(joined, session=session).to_list()
        found = [(row["_id"], ids(row["found"])) for row in found]
        assert found == [(1, [1, 301]), (250, [250, 550])]
        assert other.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}, {"$unset": "_id"}],
                               session=session).to_list() == [{"n": 600}]
    assert one.count_documents({}) == 200
    with client.start_session(snapshot=True) as session:
        assert other.find_one({"_id": 600}, session=session) == {"_id": 600, "of": 5, "n": 9}


def test_a_cursor_goes_on_in_its_snapshot(client, database, collection):
    collection.insert_many({"_id": n, "n": 0} for n in range(1000))
    with client.start_session(snapshot=True) as session:
        first = collection.find({}, session=session, batch_size=100)
        assert next(first) == {"_id": 0, "n": 0}
        piped = collection.aggregate([{"$sort": {"_id": -1}}], session=session, batchSize=10)
        for round in range(3):
            collection.update_many({}, {"$inc": {"n": 1}})
            collection.delete_many({"_id": {"$lt": 300 * (round + 1)}})
            compact(database, "c")
        assert [one["n"] for one in first] == [0] * 999
        assert ids(piped) == list(range(999, -1, -1))
        # Drivers close cursors with the read concern of the session.
        open_now = collection.find({}, session=session, batch_size=5)
        next(open_now)
        open_now.close()
    cursor = find(collection, batchSize=2)
    more = database.command("getMore", cursor["id"], collection="c", batchSize=1)["cursor"]
    assert more["atClusterTime"] == cursor["atClusterTime"]


def test_writers_that_keep_two_collections_equal_are_never_seen_between(client, database):
    """Each write moves a unit from one account to the other in one command."""
    left, right = database.left, database.right
    left.insert_many({"_id": n, "n": 100} for n in range(20))
    right.insert_many({"_id": n, "n": 0} for n in range(20))
    right.create_index("n")
    stop, failures, moved = threading.Event(), [], []

    def write():
        try:
            with client.start_session() as session:
                while not stop.is_set():
                    one = {"_id": len(moved) % 20}
                    with session.start_transaction():
                        left.update_one(one, {"$inc": {"n": -1}}, session=session)
                        right.update_one(one, {"$inc": {"n": 1}}, session=session)
                    moved.append(one)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    def read():
        try:
            for _ in range(60):
                with client.start_session(snapshot=True) as session:
                    sums = [{"$group": {"_id": None, "n": {"$sum": "$n"}}}]
                    total = [next(it.aggregate(sums, session=session))["n"] for it in (left, right)]
                    both = [{one["_id"]: one["n"] for one in it.find({"n": {"$gt": -10_000}},
                                                                     session=session)}
                            for it in (left, right)]
                    assert sum(total) == 2000
                    assert all(both[0][n] + both[1][n] == 100 for n in range(20))
                    assert sum(both[0].values()) == total[0]
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(3))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads[1:]]
    stop.set()
    threads[0].join()
    assert failures == []
    assert len(moved) > 10
    assert next(right.aggregate([{"$group": {"_id": None, "n": {"$sum": "$n"}}}]))["n"] == len(moved)


def test_the_reply_says_of_what_time_it_is(database, collection):
    collection.insert_one({"_id": 1, "n": 1})
    cursor = find(collection)
    time = cursor["atClusterTime"]
    assert isinstance(time, Timestamp)
    assert cursor["firstBatch"] == [{"_id": 1, "n": 1}]
    piped = database.command("aggregate", "c", pipeline=[], cursor={}, readConcern=at(time))
    assert piped["cursor"]["atClusterTime"] == time
    told = database.command("distinct", "c", key="n", readConcern=SNAPSHOT)
    assert (told["values"], told["atClusterTime"]) == ([1], time)
    assert find(database.missing)["atClusterTime"] == time
    assert "atClusterTime" not in find(collection, {"level": "majority"})
    plain = database.command("distinct", "c", key="n")
    assert "atClusterTime" not in plain
    if "operationTime" in plain:
        # A time that another reply returned is valid as long as nothing was written since.
        assert values(collection, plain["operationTime"]) == {1: 1}
    collection.insert_one({"_id": 2})
    assert time_now(collection) > time
    assert values(collection, time) == {1: 1}
    planned = database.command("explain", {"find": "c"}, readConcern=SNAPSHOT)
    assert "atClusterTime" not in planned


def test_indexes_are_those_of_the_time(database, collection):
    collection.insert_many({"_id": n, "n": n, "m": n % 3, "words": "old"} for n in range(100))
    collection.create_index("m")
    time = time_now(collection)
    collection.bulk_write([UpdateOne({"_id": n}, {"$set": {"n": -n, "words": "new"}})
                           for n in range(0, 100, 2)] + [InsertOne({"_id": 100, "n": 5})])
    collection.create_index("n")
    collection.create_index([("words", "text")])
    compact(database, "c")
    # The index on n did not exist at that time.
    assert set(values(collection, time, {"n": {"$gte": 50}})) == set(range(50, 100))
    assert set(values(collection, time, {"n": 4})) == {4}
    assert len(values(collection, time, {"m": 1})) == 33
    refused(lambda: values(collection, time, {"$text": {"$search": "old"}}), 27)
    refused(lambda: values(collection, time, {"n": 4}, hint="n_1"), 2)
    collection.drop_index("m_1")
    assert len(values(collection, time, {"m": 1})) == 33
    collection.create_index("m")
    collection.database.command("reIndex", "c")
    later = time_now(collection)
    assert len(values(collection, later, {"$text": {"$search": "old"}})) == 50
    assert values(collection, later, {"n": 4}, hint="n_1") == {}


def test_plans_at_a_time_leave_those_of_today_alone(database, collection):
    """Regression: reads at an old time emptied the plan cache if an index was created since."""
    collection.insert_many({"_id": n, "n": n % 50, "m": n % 70} for n in range(2000))
    collection.create_index("n")
    collection.create_index("m")
    time = time_now(collection)
    collection.create_index([("m", 1), ("k", 1)])
    query = {"n": 5, "m": 15}
    plans = [{"$planCacheStats": {}}, {"$unset": "timeOfCreation"}]

    def remembered():
        return collection.aggregate(plans).to_list()

    for _ in range(3):
        found = ids(collection.find(query))
    known = remembered()
    assert len(known) == 1
    for _ in range(3):
        assert sorted(values(collection, time, query)) == sorted(found)
        assert sorted(values(collection, time, {"n": 1, "m": {"$gt": 3}})) != []
    assert remembered() == known


def test_names_are_those_of_the_time(client, database):
    database.one.insert_one({"_id": 1, "n": 1})
    database.command("create", "shown", viewOn="one", pipeline=[{"$match": {"n": 1}}])
    first = time_now(database.one)
    database.one.rename("two")
    database.command("collMod", "shown", viewOn="two", pipeline=[{"$match": {"n": 2}}])
    database.one.insert_one({"_id": 2, "n": 2})
    second = time_now(database.one)
    database.one.drop()
    database.two.update_one({}, {"$set": {"n": 3}})
    database.three.insert_one({"_id": 3, "n": 3})
    database.three.rename("two", dropTarget=True)
    database.drop_collection("shown")
    third = time_now(database.two)
    client.drop_database(database.name)
    for time, one, two, shown in ((first, {1: 1}, {}, {1: 1}), (second, {2: 2}, {1: 1}, {}),
                                  (third, {}, {3: 3}, {})):
        assert values(database.one, time) == one
        assert values(database.two, time) == two
        assert values(database.shown, time) == shown
        pipeline = [{"$unionWith": "two"}, {"$group": {"_id": None, "n": {"$sum": "$n"}}}]
        found = database.command("aggregate", "one", pipeline=pipeline, cursor={},
                                 readConcern=at(time))["cursor"]["firstBatch"]
        assert found[0]["n"] == sum((one | two).values())


def test_what_cannot_be_read_at_is_refused(client, database, collection):
    collection.insert_one({"_id": 1})
    time = time_now(collection)
    collection.insert_one({"_id": 2})
    between = Timestamp(time.time, time.inc + 1)
    collection.insert_one({"_id": 3})
    for unknown in (between, Timestamp(time.time - 1000, 1), Timestamp(1, 1)):
        details = refused(lambda unknown=unknown: find(collection, at(unknown)), 239)
        assert WINDOW in details["errmsg"]
    ahead = Timestamp(time.time + 1000, 1)
    refused(lambda: find(collection, at(ahead)), 72)
    refused(lambda: find(collection, at(Timestamp(0, 0))), 72)
    refused(lambda: find(collection, at(5)), 14)
    for level in ("local", "majority", "available"):
        refused(lambda level=level: find(collection, {"level": level, "atClusterTime": time}), 72)
    refused(lambda: find(collection, {"atClusterTime": time}), 72)
    both = {**at(time), "afterClusterTime": time}
    refused(lambda: find(collection, both), 72)
    assert ids(find(collection, at(time))["firstBatch"]) == [1]


def test_commands_that_do_not_read_at_a_time_say_so(client, database, collection):
    collection.insert_one({"_id": 1})
    for command in ({"count": "c"}, {"dbHash": 1}, {"insert": "c", "documents": [{}]},
                    {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
                    {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
                    {"findAndModify": "c", "query": {}, "remove": True},
                    {"listCollections": 1}, {"listIndexes": "c"}):
        refused(lambda command=command: database.command(command, readConcern=SNAPSHOT), 72)
    with client.start_session(snapshot=True) as session:
        refused(lambda: collection.insert_one({}, session=session), 72)
    assert collection.count_documents({}) == 1
    for stage in ({"$collStats": {"count": {}}}, {"$indexStats": {}}, {"$planCacheStats": {}},
                  {"$changeStream": {}}):
        pipeline = [stage]
        refused(lambda pipeline=pipeline: database.command(
            "aggregate", "c", pipeline=pipeline, cursor={}, readConcern=SNAPSHOT), 72)
    database.create_collection("capped", capped=True, size=10_000)
    refused(lambda: find(database.capped, tailable=True), 72)
    assert find(database.capped)["firstBatch"] == []


def test_a_transaction_may_begin_at_a_time(server, database, collection):
    collection.insert_one({"_id": 1, "n": 1})
    time = time_now(collection)
    collection.update_one({"_id": 1}, {"$set": {"n": 2}})
    # No driver begins a transaction with such a read concern by itself. The session belongs to
    # another client, which does not know its numbers.
    session = server.client().start_session(causal_consistency=False)
    within = {"session": session, "autocommit": False}

    def part(number, command, **arguments):
        own = session.client[database.name]
        return own.command(command, "c", txnNumber=Int64(number), **within, **arguments)

    found = part(1, "find", startTransaction=True, readConcern=at(time))["cursor"]
    assert found["firstBatch"] == [{"_id": 1, "n": 1}]
    assert "atClusterTime" not in found
    refused(lambda: part(1, "find", readConcern=at(time)), 72)
    details = refused(lambda: part(1, "update", updates=[
        {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]), 112)
    assert details["errorLabels"] == ["TransientTransactionError"]
    database.command("create", "shown", viewOn="c", pipeline=[{"$match": {"n": 2}}])
    seen = time_now(collection)
    database.command("collMod", "shown", viewOn="c", pipeline=[])
    collection.insert_one({"_id": 2})
    part(3, "find", startTransaction=True, readConcern=at(seen))
    found = session.client[database.name].command("aggregate", "shown", pipeline=[], cursor={},
                                                  txnNumber=Int64(3), **within)["cursor"]
    assert ids(found["firstBatch"]) == [1]
    unknown = at(Timestamp(1, 1))
    details = refused(lambda: part(4, "find", startTransaction=True, readConcern=unknown), 239)
    assert details["errorLabels"] == ["TransientTransactionError"]
    # The new transaction has ended the one before.
    refused(lambda: session.client.admin.command("abortTransaction", 1, txnNumber=Int64(3), **within), 225)
    collection.drop()
    details = refused(lambda: part(5, "find", startTransaction=True, readConcern=at(seen)), 246)
    assert details["errorLabels"] == ["TransientTransactionError"]


def test_results_are_written_of_one_time(database, collection):
    collection.insert_many({"_id": n, "n": n} for n in range(10))
    time = time_now(collection)
    collection.delete_many({})
    database.command("aggregate", "c", pipeline=[{"$out": "copy"}], cursor={}, readConcern=at(time))
    assert database.copy.count_documents({}) == 10


def test_a_uuid_that_had_another_name_is_told_so(database, collection):
    collection.insert_one({"_id": 1})
    time = time_now(collection)
    (listed,) = database.list_collections()
    named = listed["info"]["uuid"]
    assert ids(database.command("find", named, readConcern=at(time))["cursor"]["firstBatch"]) == [1]
    collection.rename("later")
    refused(lambda: database.command("find", named, readConcern=at(time)), 246)


def test_another_uuid_is_told_as_without_a_time(database, collection):
    collection.insert_one({"_id": 1})
    other = {"collectionUUID": Binary(bytes(16), 4)}
    for name in ("c", "missing"):
        refused(lambda name=name: database.command("find", name, readConcern=SNAPSHOT, **other), 361)


def test_a_session_that_reads_on_keeps_its_time(client, database, collection):
    """Regression: a thousand times that other clients got pushed out that of the session."""
    collection.insert_one({"_id": 1, "n": 0})
    with client.start_session(snapshot=True) as session:
        assert collection.find_one(session=session)["n"] == 0
        for number in range(1100):
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}})
            time_now(collection)
            if number % 400 == 0:
                assert collection.find_one(session=session)["n"] == 0
        assert collection.find_one(session=session)["n"] == 0


def test_versions_for_times_are_not_in_the_way_of_other_reads(client, database, collection):
    """Regression: a document had a version for each time that a client knew, which every scan
    passed. Their space was released only after a while without writes."""
    collection.insert_many({"_id": n, "n": 0} for n in range(200))
    times = {}
    for round in range(1, 101):
        collection.update_many({}, {"$set": {"n": round, "filler": os.urandom(500)}})
        times[round] = find(collection, limit=1)["atClusterTime"]
        if round % 20 == 0:
            compact(database, "c")
    compact(database, "c")
    assert values(collection, times[37]) == {n: 37 for n in range(200)}
    with_versions = database.command("collStats", "c")["storageSize"]
    client.admin.command("setParameter", 1, **{WINDOW: 0})
    try:
        deadline = clock.monotonic() + 4
        while database.command("collStats", "c")["storageSize"] > with_versions / 4:
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}})
            clock.sleep(0.02)
            assert clock.monotonic() < deadline
    finally:
        client.admin.command("setParameter", 1, **{WINDOW: 300})
    assert collection.count_documents({"n": 100}) == 199


def test_the_window_is_a_parameter(client, database, collection):
    collection.insert_one({"_id": 1})
    assert client.admin.command("getParameter", 1, **{WINDOW: 1})[WINDOW] == 300
    refused(lambda: client.admin.command("setParameter", 1, **{WINDOW: -1}), 2)
    time = time_now(collection)
    client.admin.command("setParameter", 1, **{WINDOW: 0})
    try:
        # The newest is always there.
        assert ids(find(collection, at(time))["firstBatch"]) == [1]
        cursor = find(collection, batchSize=0)
        collection.insert_one({"_id": 2})
        refused(lambda: find(collection, at(time)), 239)
        # An open cursor continues.
        more = database.command("getMore", cursor["id"], collection="c")["cursor"]
        assert ids(more["nextBatch"]) == [1]
    finally:
        client.admin.command("setParameter", 1, **{WINDOW: 300})


def test_nothing_is_kept_past_a_restart(tmp_path):
    with Server(tmp_path, options=("--replica-set", "rs0")) as server:
        collection = server.client().d.c
        collection.insert_one({"_id": 1})
        time = time_now(collection)
        collection.insert_one({"_id": 2})
        newest = time_now(collection)
        server.restart()
        collection = server.client().d.c
        refused(lambda: find(collection, at(time)), 239)
        assert ids(find(collection)["firstBatch"]) == [1, 2]
        assert time_now(collection) >= newest


def test_there_is_a_time_before_anything_is_written(tmp_path):
    with Server(tmp_path, options=("--replica-set", "rs0")) as server:
        collection = server.client().d.c
        time = time_now(collection)
        assert values(collection, time) == {}
        collection.insert_one({"_id": 1, "n": 1})
        assert values(collection, time) == {}
        concern = ReadConcern("snapshot")
        assert server.client().d.get_collection("c", read_concern=concern).find_one() == {
            "_id": 1, "n": 1}


def test_a_server_that_is_no_member_of_a_set_refuses_them(tmp_path):
    with Server(tmp_path) as server:
        collection = server.client().alone.c
        refused(lambda: find(collection), 123)
        refused(lambda: find(collection, at(Timestamp(5, 1))), 123)
