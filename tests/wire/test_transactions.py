"""Transactions, as PyMongo runs them, on a server that presents itself as a replica set of one."""

import pathlib
import random
import signal
import sys
import threading
import time
import uuid

import pymongo
import pytest
from answers import ids, refused
from bson import Binary, Int64
from pymongo.errors import DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from raw import Raw, op_msg, section  # noqa: E402

SET = ("--replica-set", "rs0")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), options=SET) as server:
        yield server
        assert server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log()


@pytest.fixture(scope="module")
def client(server):
    with pymongo.MongoClient(f"mongodb://127.0.0.1:{server.port}/?replicaSet=rs0") as client:
        yield client


def test_the_server_is_found_as_a_replica_set(client, server):
    hello = client.admin.command("hello")
    assert (hello["setName"], hello["isWritablePrimary"]) == ("rs0", True)
    assert hello["hosts"] == [hello["me"]] == [f"127.0.0.1:{server.port}"]
    assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"
    assert client.admin.command("replSetGetStatus")["members"][0]["stateStr"] == "PRIMARY"
    assert client.admin.command("replSetGetConfig")["config"]["_id"] == "rs0"


def test_nobody_sees_a_transaction_before_its_commit(client, database):
    one, other = database.one, database.other
    one.insert_one({"_id": 1, "n": 1})
    with client.start_session() as session, session.start_transaction():
        one.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        other.insert_one({"_id": 2}, session=session)
        assert one.find_one(session=session) == {"_id": 1, "n": 2}
        assert (one.find_one(), other.find_one()) == ({"_id": 1, "n": 1}, None)
    assert (one.find_one(), other.find_one()) == ({"_id": 1, "n": 2}, {"_id": 2})


def test_statistics_are_refused_behind_a_view_too(client, database):
    database.c.insert_one({"_id": 1})
    database.command("create", "told", viewOn="c", pipeline=[{"$collStats": {"count": {}}}])
    assert database.told.find_one()["count"] == 1
    with client.start_session() as session:
        with pytest.raises(OperationFailure) as refused, session.start_transaction():
            database.told.find_one(session=session)
    assert refused.value.code == 263


def test_a_key_whose_deletion_is_not_committed_is_taken(client, collection):
    """Regression: an insert of an `_id` that an open transaction had deleted waited for its end.
    MongoDB reads the committed document and fails at once, for any unique key and also in
    transactions."""
    collection.create_index("a", unique=True)
    collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    impatient = {"maxTimeMS": 2_000}
    with client.start_session() as session, session.start_transaction():
        collection.delete_one({"_id": 1}, session=session)
        command = collection.database.command
        for document in ({"_id": 1}, {"_id": 3, "a": 1}):
            reply = command("insert", "c", documents=[document], **impatient)
            assert [error["code"] for error in reply["writeErrors"]] == [11000], document
        update = {"q": {"_id": 2}, "u": {"$set": {"a": 1}}}
        reply = command("update", "c", updates=[update], **impatient)
        assert [error["code"] for error in reply["writeErrors"]] == [11000]
        with client.start_session() as other:
            with pytest.raises(DuplicateKeyError), other.start_transaction():
                collection.insert_one({"_id": 1}, session=other)
    collection.insert_one({"_id": 1, "a": 1})


def test_an_error_leaves_nothing(client, collection):
    collection.insert_one({"_id": 1})
    with client.start_session() as session:
        with pytest.raises(DuplicateKeyError), session.start_transaction():
            collection.insert_one({"_id": 2}, session=session)
            collection.insert_one({"_id": 1}, session=session)
        assert ids(collection.find()) == [1]
        with session.start_transaction():
            collection.insert_one({"_id": 3}, session=session)
            session.abort_transaction()
        assert ids(collection.find()) == [1]


def test_a_transaction_ends_with_the_first_error(client, collection):
    """Regression: in unordered writes the statements behind the error ran, although the transaction
    had failed."""
    collection.insert_one({"_id": 1, "s": "x"})
    wrong = {"q": {"_id": 1}, "u": {"$inc": {"s": 1}}}
    for command, statements in [("insert", {"documents": [{}, {"_id": 1}, {}, {"_id": 1}]}),
                                ("update", {"updates": [{"q": {}, "u": {"$set": {"a": 1}}}, wrong,
                                                        wrong]})]:
        with client.start_session() as session:
            session.start_transaction()
            reply = collection.database.command(command, collection.name, ordered=False,
                                                session=session, **statements)
            assert (reply["n"], [one["index"] for one in reply["writeErrors"]]) == (1, [1])
            session.abort_transaction()
    assert list(collection.find()) == [{"_id": 1, "s": "x"}]


def test_a_transaction_that_meets_another_is_run_again(client, collection):
    collection.insert_one({"_id": 1, "n": 0})

    def add(session):
        found = collection.find_one({"_id": 1}, session=session)
        collection.update_one({"_id": 1}, {"$set": {"n": found["n"] + 1}}, session=session)

    def many():
        with client.start_session() as session:
            for _ in range(10):
                session.with_transaction(add)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collection.find_one() == {"_id": 1, "n": 40}


def test_a_conflict_is_labelled(client, collection):
    collection.insert_one({"_id": 1, "n": 0})
    with client.start_session() as one, client.start_session() as other:
        one.start_transaction()
        other.start_transaction()
        collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=one)
        with pytest.raises(OperationFailure) as error:
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=other)
        assert error.value.code == 112
        assert error.value.has_error_label("TransientTransactionError")
        one.commit_transaction()
    assert collection.find_one() == {"_id": 1, "n": 1}


def test_a_single_write_waits_for_the_transaction(client, collection):
    collection.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        session.start_transaction()
        collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        details = refused(lambda: collection.database.command(
            "update", "c", updates=[{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}], maxTimeMS=50), 50)
        assert details["ok"] == 0
        waiting = threading.Thread(target=collection.update_one,
                                   args=({"_id": 1}, {"$inc": {"n": 10}}))
        waiting.start()
        time.sleep(0.1)
        assert waiting.is_alive()
        session.commit_transaction()
        waiting.join()
    assert collection.find_one() == {"_id": 1, "n": 11}


def test_who_waits_for_a_transaction_shows_it(client, database):
    """Regression: `waitingForLock` was always false."""
    collection, other = database.c, database.other
    collection.insert_one({"_id": 1, "n": 0})
    other.insert_one({"_id": 1})
    with client.start_session() as session:
        session.start_transaction()
        collection.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        other.find_one(session=session)
        writes = [lambda: collection.update_one({"_id": 1}, {"$inc": {"n": 10}}),
                  lambda: collection.delete_one({"_id": 1, "n": 0}), other.drop]
        threads = [threading.Thread(target=write) for write in writes]
        for thread in threads:
            thread.start()
        waiting = {"currentOp": 1, "waitingForLock": True}
        while len(ops := client.admin.command(waiting)["inprog"]) < len(writes):
            assert all(thread.is_alive() for thread in threads)
            time.sleep(0.01)
        assert {op["op"] for op in ops} == {"update", "remove", "command"}
        session.commit_transaction()
        for thread in threads:
            thread.join()
    assert client.admin.command(waiting)["inprog"] == []


def test_reads_go_on_as_they_began(client, database):
    database.c.insert_many([{"_id": number} for number in range(5)])
    database.d.insert_one({"_id": 1, "c": 1})
    with client.start_session() as session:
        with session.start_transaction(read_concern=ReadConcern("snapshot"),
                                       write_concern=WriteConcern("majority")):
            assert len(list(database.c.find(session=session))) == 5
            database.c.delete_many({"_id": {"$gt": 2}})
            database.d.insert_one({"_id": 2, "c": 2})
            cursor = database.c.find(session=session, batch_size=2)
            assert ids(cursor) == [0, 1, 2, 3, 4]
            joined = database.c.aggregate([
                {"$lookup": {"from": "d", "localField": "_id", "foreignField": "c", "as": "d"}},
                {"$match": {"d": {"$ne": []}}}], session=session)
            assert ids(joined) == [1]
            assert database.c.distinct("_id", {"_id": {"$gte": 3}}, session=session) == [3, 4]
            assert database.c.count_documents({}, session=session) == 5
    assert database.c.count_documents({}) == 3


def test_collections_and_indexes_come_with_the_commit(client, database):
    with client.start_session() as session, session.start_transaction():
        made = database.create_collection("new", session=session)
        made.create_index("n", unique=True, session=session)
        made.insert_one({"_id": 1, "n": 1}, session=session)
        database.other.insert_one({"_id": 1}, session=session)
        assert database.list_collection_names() == []
    assert sorted(database.list_collection_names()) == ["new", "other"]
    assert set(database.new.index_information()) == {"_id_", "n_1"}
    with pytest.raises(DuplicateKeyError):
        database.new.insert_one({"_id": 2, "n": 1})


def test_what_is_not_allowed_is_refused(client, database):
    database.c.insert_one({"_id": 1})
    with client.start_session() as session, session.start_transaction():
        database.c.find_one(session=session)
        refused(lambda: database.command("count", "c", session=session), 263)
        refused(lambda: database.command("collMod", "c", session=session), 263)
        assert database.c.find_one(session=session) == {"_id": 1}
        refused(lambda: database.c.aggregate([{"$out": "d"}], session=session), 263)
        refused(lambda: database.c.find_one(session=session), 251)
        session.abort_transaction()


@pytest.mark.parametrize("command, code", [
    ({"find": "capped", "tailable": True}, 72),
    ({"find": "system.profile"}, 263),
    ({"find": "system.views"}, 263),
    ({"aggregate": "system.views", "pipeline": [], "cursor": {}}, 263),
])
def test_what_no_transaction_does(client, database, command, code):
    database.create_collection("capped", capped=True, size=4096)
    with client.start_session() as session, session.start_transaction():
        database.capped.find_one(session=session)
        refused(lambda: database.command(command, session=session), code)
        session.abort_transaction()


def test_closing_a_cursor_begins_no_transaction(client, database):
    database.c.insert_many([{"_id": number} for number in range(5)])
    close = {"killCursors": "c", "cursors": [1 << 40]}
    with client.start_session() as session, session.start_transaction():
        refused(lambda: database.command(close, session=session), 263)
        session.abort_transaction()
    with client.start_session() as session, session.start_transaction():
        database.c.find_one(session=session)
        assert database.command(close, session=session)["cursorsNotFound"] == [1 << 40]


@pytest.mark.parametrize("level", ["snapshot", "majority"])
def test_collections_are_made_where_reads_are_local(client, database, level):
    """Regression: any transaction could create collections. MongoDB refuses it unless the read
    concern is local."""
    index = {"indexes": [{"key": {"a": 1}, "name": "a_1"}]}
    database.c.insert_one({"_id": 1})
    with client.start_session() as session:
        for name, arguments in (("create", {}), ("createIndexes", index)):
            for is_first in (True, False):
                session.start_transaction(read_concern=ReadConcern(level))
                if not is_first:
                    assert database.c.find_one(session=session) == {"_id": 1}
                message = f"Command {name} does not support this transaction's"
                why = refused(lambda: database.command(name, "new", session=session, **arguments), 72)
                assert why["errmsg"].startswith(message)
                refused(lambda: database.c.find_one(session=session), 251)
                session.abort_transaction()
    assert database.list_collection_names() == ["c"]


def test_capped_collections_are_not_written_to(client, database):
    """Regression: a change without effect was accepted."""
    database.create_collection("c", capped=True, size=4096)
    database.c.insert_one({"_id": 1, "n": 1})
    message = (f"Collection '{database.name}.c' is a capped collection. Writes in transactions are not"
               " allowed on capped collections.")
    writes = [
        {"insert": "c", "documents": [{}]},
        *({"update": "c", "updates": [{"q": {"_id": sought}, "u": {"$set": {"n": 1}}, "multi": many}]}
          for sought in (1, 2) for many in (False, True)),
        *({"delete": "c", "deletes": [{"q": {"_id": sought}, "limit": limit}]}
          for sought in (1, 2) for limit in (0, 1)),
        {"findAndModify": "c", "query": {"_id": 2}, "update": {"n": 2}, "upsert": True},
        {"findAndModify": "c", "query": {"_id": 2}, "remove": True},
    ]
    with client.start_session() as session:
        for command in writes:
            session.start_transaction()
            if "findAndModify" in command:
                why = refused(lambda: database.command(command, session=session), 263)
            else:
                [why] = database.command(command, session=session)["writeErrors"]
            assert (why["code"], why["errmsg"]) == (263, message), command
            refused(lambda: database.other.find_one(session=session), 251)
            session.abort_transaction()
    assert list(database.c.find()) == [{"_id": 1, "n": 1}]


def test_a_transaction_keeps_to_one_version_of_the_api(server, database):
    """Regression: each command of a transaction could name another version of the stable API."""
    database.c.insert_one({"_id": 1})
    strict = {"apiVersion": "1", "apiStrict": True}
    begin, commit = {"startTransaction": True}, {"commitTransaction": 1}
    with Raw(server) as connection:
        for first, other in (({}, strict), (strict, {}), (strict, {"apiVersion": "1"}),
                             ({"apiVersion": "1"}, {"apiVersion": "1", "apiDeprecationErrors": False})):
            session = {"lsid": {"id": Binary(uuid.uuid4().bytes, 4)}, "txnNumber": Int64(1), "autocommit": False}

            def send(command, *arguments):
                whole = {**command, "$db": "admin" if command == commit else database.name, **session}
                for more in arguments:
                    whole |= more
                return connection.send(op_msg(section(whole))).reply()

            insert = {"insert": "c", "documents": [{}]}
            assert send(insert, first, begin)["n"] == 1
            why = send(insert, other)
            assert why["code"] == 347
            assert why["errmsg"].startswith("API parameter mismatch: insert used params {")
            assert send(commit, other)["code"] == 347
            assert send(insert, first)["n"] == 1
            assert [send(commit, api)["ok"] for api in (first, other)] == [1, 1]
    assert database.c.count_documents({}) == 9


def test_a_session_that_ends_takes_its_transaction_along(client, collection):
    session = client.start_session()
    session.start_transaction()
    collection.insert_one({"_id": 1}, session=session)
    client.admin.command("killSessions", [session.session_id])
    refused(lambda: collection.find_one(session=session), 251)
    collection.insert_one({"_id": 1})


def test_a_transaction_lasts_only_so_long(client, collection):
    collection.insert_one({"_id": 0})
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
    with client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        # Otherwise the insert would wait for ever.
        collection.insert_one({"_id": 1})
        with pytest.raises(OperationFailure) as error:
            session.commit_transaction()
        assert error.value.code == 251
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=60)


def test_writes_that_are_sent_again_are_made_once(server, database):
    session = {"id": Binary(uuid.uuid4().bytes, 4)}

    def send(number, command):
        whole = command | {"lsid": session, "txnNumber": Int64(number), "$db": database.name}
        return connection.send(op_msg(section(whole))).reply()

    insert = {"insert": "c", "documents": [{"_id": 1, "n": 0}, {"_id": 2}]}
    update = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    modify = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": True}
    with Raw(server) as connection:
        assert [send(1, insert)["n"] for _ in range(2)] == [2, 2]
        assert [send(2, update)["nModified"] for _ in range(2)] == [1, 1]
        assert database.c.find_one({"_id": 1}) == {"_id": 1, "n": 1}
        assert [send(3, modify)["value"] for _ in range(2)] == [{"_id": 1, "n": 2}] * 2
        assert send(1, insert)["code"] == 225


@pytest.mark.parametrize("commits", [True, False])
def test_a_killed_server_has_all_of_it_or_nothing(tmp_path, commits):
    with Server(tmp_path, options=SET) as server:
        client = server.client()
        client.test.c.insert_one({"_id": 0})
        session = client.start_session()
        session.start_transaction()
        for number in range(1, 100):
            client.test.c.insert_one({"_id": number}, session=session)
        client.test.new.insert_one({"_id": 1}, session=session)
        if commits:
            session.commit_transaction()
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.start()
        client = server.client()
        assert client.test.c.count_documents({}) == (100 if commits else 1)
        assert client.test.list_collection_names() == (["c", "new"] if commits else ["c"])


ACCOUNTS, MONEY = 8, 100


def move(session, database, step):
    """Moves money between accounts of two collections, and records it in a third. Returns whether
    there was any."""
    one, other = (database.one, database.other)[::1 if step % 2 else -1]
    source, target = step % ACCOUNTS, step * 5 % ACCOUNTS
    found = one.find_one_and_update({"_id": source, "n": {"$gt": 0}}, {"$inc": {"n": -1}},
                                    session=session)
    if found:
        other.update_one({"_id": target}, {"$inc": {"n": 1}}, session=session)
        database.moves.insert_one({"from": source, "to": target}, session=session)
    return bool(found)


def total(database, session=None):
    return sum(account["n"] for name in ("one", "other")
               for account in database[name].find(session=session))


def test_money_is_neither_made_nor_lost(tmp_path):
    """Many threads move money while others sum it up. Then the server is killed."""
    with Server(tmp_path, options=SET) as server:
        client = server.client()
        for name in ("one", "other"):
            client.bank[name].insert_many({"_id": one, "n": MONEY} for one in range(ACCOUNTS))
        ended, moved, totals = threading.Event(), [], set()

        def until_the_end(act):
            with client.start_session() as session:
                try:
                    while not ended.is_set():
                        act(session)
                except pymongo.errors.PyMongoError:
                    if not ended.is_set():
                        raise

        def mover(session):
            step = random.randrange(1000)
            if session.with_transaction(lambda session: move(session, client.bank, step)):
                moved.append(step)

        def adder(session):
            with session.start_transaction():
                totals.add(total(client.bank, session))

        threads = [threading.Thread(target=until_the_end, args=(act,), daemon=True)
                   for act in [mover] * 4 + [adder] * 2]
        for thread in threads:
            thread.start()
        time.sleep(2)
        ended.set()
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        for thread in threads:
            thread.join(10)
        assert totals == {2 * ACCOUNTS * MONEY}
        server.start()
        database = server.client().bank
        assert total(database) == 2 * ACCOUNTS * MONEY
        # Unacknowledged moves may be there too: one of each thread.
        assert 20 < len(moved) <= database.moves.count_documents({}) <= len(moved) + 4
        for name in ("one", "other", "moves"):
            assert database.command("validate", name, full=True)["valid"]


def sampled(collection, size, session=None):
    """Draws each document once, within a time that is long for so few documents."""
    found = ids(collection.aggregate([{"$sample": {"size": size}}], session=session, maxTimeMS=20_000))
    assert len(found) == len(set(found))
    return found


def test_a_sample_ends_where_fewer_are_visible_than_are_counted(client, collection):
    """Regression: records were drawn by their ids until there were enough of them, even if fewer
    existed."""
    collection.insert_many({"_id": n} for n in range(3))
    with client.start_session() as session, session.start_transaction():
        assert collection.count_documents({}, session=session) == 3
        collection.insert_many({"_id": n} for n in range(10, 5010))
        for size in (1, 2, 3, 100):
            assert set(sampled(collection, size, session)) <= {0, 1, 2}
            assert len(sampled(collection, size, session)) == min(size, 3)
    assert len(sampled(collection, 100)) == 100
    with client.start_session() as session:
        with session.start_transaction():
            collection.delete_many({"_id": {"$nin": [0, 1, 2000, 5009]}}, session=session)
            assert set(sampled(collection, 100, session)) == {0, 1, 2000, 5009}
            assert {sampled(collection, 1, session)[0] for _ in range(60)} == {0, 1, 2000, 5009}
            collection.delete_many({}, session=session)
            assert sampled(collection, 1, session) == sampled(collection, 100, session) == []
            session.abort_transaction()
        with session.start_transaction():
            # Some are drawn by their ids, the rest in another way, none twice.
            collection.delete_many({"_id": {"$gte": 50, "$lt": 4990}}, session=session)
            assert len(sampled(collection, 60, session)) == 60
            assert len(sampled(collection, 200, session)) == 63
            session.abort_transaction()


def test_a_sample_of_a_snapshot_is_of_its_documents(client, collection):
    collection.insert_many({"_id": n} for n in range(3))
    with client.start_session(snapshot=True) as session:
        assert len(list(collection.find({}, session=session))) == 3
        collection.insert_many({"_id": n} for n in range(10, 5010))
        assert set(sampled(collection, 100, session)) == {0, 1, 2}
        assert len(sampled(collection, 2, session)) == 2
    with client.start_session(snapshot=True) as session:
        assert len(list(collection.find({}, session=session))) == 5003
        collection.delete_many({})
        assert len(sampled(collection, 100, session)) == 100
