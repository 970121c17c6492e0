"""Several data sets over one set of servers: each has a primary of its own, and each server accepts every
command."""

import signal
import threading
import time

import pymongo
import pytest
from bson.int64 import Int64
from pymongo import ReadPreference
from pymongo.errors import OperationFailure

from object_store import SetServer, wait_for_spread
from windrow_server import wait_until

# A database in each data set.
DATABASES = {"main": "shop", "logs": "logs", "rest": "rest-1"}


def start_all(store, prefix, folder, count=3, **options):
    return [SetServer(folder / str(i), store, prefix, **options) for i in range(count)]


def kill_all(servers):
    for server in servers:
        server.__exit__()


@pytest.fixture(scope="module")
def trio(store, tmp_path_factory):
    """Three servers, each the primary of one of three data sets."""
    folder = tmp_path_factory.mktemp("trio")
    servers = start_all(store, folder.name, folder)
    try:
        wait_for_spread(servers)
        yield servers
    finally:
        kill_all(servers)


def client_of_all(servers, **options):
    hosts = ",".join(server.address for server in servers)
    return pymongo.MongoClient(f"mongodb://{hosts}/", serverSelectionTimeoutMS=30_000, **options)


def code_of(failing, *arguments, **options):
    with pytest.raises(OperationFailure) as caught:
        failing(*arguments, **options)
    return caught.value.code


def test_servers_appear_as_routers(trio):
    hello = trio[0].client().admin.command("hello")
    assert hello["msg"] == "isdbgrid" and hello["isWritablePrimary"]
    assert "setName" not in hello and "hosts" not in hello
    with client_of_all(trio) as client:
        client.admin.command("ping")
        assert client.topology_description.topology_type_name == "Sharded"
    for name in ["replSetGetStatus", "replSetGetConfig", "replSetStepDown"]:
        assert code_of(trio[0].client().admin.command, name) == 115


def test_every_server_takes_every_command(trio):
    for number, server in enumerate(trio):
        for database in DATABASES.values():
            collection = server.client()[database].every
            collection.insert_one({"_id": number})
            collection.update_one({"_id": number}, {"$set": {"by": server.address}})
            collection.bulk_write([pymongo.InsertOne({"_id": f"{number}-{i}"}) for i in range(3)])
    for server in trio:
        for database in DATABASES.values():
            collection = server.client()[database].every
            assert collection.count_documents({}) == 12
            assert {it["by"] for it in collection.find({"by": {"$exists": True}})} == {
                one.address for one in trio}
            collection.create_index("by")
            assert {it["name"] for it in collection.list_indexes()} == {"_id_", "by_1"}
    for server in trio:
        assert set(DATABASES.values()) <= set(server.client().list_database_names())
        sizes = server.client().admin.command("listDatabases")
        assert [it["name"] for it in sizes["databases"]] == sorted(
            it["name"] for it in sizes["databases"])
        stats = server.client().rest_1.command("dbStats")
        assert stats["db"] == "rest_1"


def test_data_of_a_set_is_below_its_prefix(trio, store):
    prefix = trio[0].folder.parent.name
    folder = store.objects / prefix
    assert {it.name for it in folder.iterdir()} == {"data-sets", "sets"}
    assert {it.name for it in (folder / "sets").iterdir()} == set(DATABASES)
    for name in DATABASES:
        assert (folder / "sets" / name / "log").is_dir()


def test_writes_to_two_sets_are_durable(trio):
    """Each of two writers waits for the object store through a server without the data set."""
    majority = pymongo.WriteConcern("majority")
    failures = []

    def write(server, database):
        try:
            collection = server.client()[database].get_collection("durable",
                                                                  write_concern=majority)
            for number in range(50):
                assert collection.insert_one({"_id": number}).acknowledged
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    primaries = trio[0].primaries()
    foreign = {name: next(it for it in trio if it.address != primaries[name])
               for name in ["logs", "rest"]}
    writers = [threading.Thread(target=write, args=(foreign[name], DATABASES[name]))
               for name in foreign]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failures
    for name in foreign:
        assert trio[0].client()[DATABASES[name]].durable.count_documents({}) == 50


def test_cursors_continue_through_a_router(trio):
    for database in DATABASES.values():
        trio[0].client()[database].many.insert_many([{"_id": i} for i in range(1000)])
        for server in trio:
            found = server.client()[database].many.find({}, batch_size=100).sort("_id", 1)
            assert [it["_id"] for it in found] == list(range(1000))
            cursor = server.client()[database].many.find({}, batch_size=10)
            next(cursor)
            assert cursor.cursor_id
            command = {"killCursors": "many", "cursors": [cursor.cursor_id]}
            assert server.client()[database].command(command)["cursorsKilled"] == [
                cursor.cursor_id]
            more = {"getMore": cursor.cursor_id, "collection": "many"}
            assert code_of(server.client()[database].command, more) == 43


def test_followers_read(trio):
    for server in trio:
        for database in DATABASES.values():
            server.client()[database].follow.insert_one({"_id": server.address})
    time.sleep(1)
    for server in trio:
        for database in DATABASES.values():
            for preference in [ReadPreference.SECONDARY, ReadPreference.NEAREST,
                               ReadPreference.SECONDARY_PREFERRED]:
                collection = server.client()[database].get_collection(
                    "follow", read_preference=preference)
                assert {it["_id"] for it in collection.find({}, batch_size=1)} == {
                    it.address for it in trio}
    tagged = trio[0].client().shop.get_collection(
        "follow", read_preference=pymongo.read_preferences.Secondary([{"dc": "x"}]))
    assert code_of(tagged.find_one) == 133


def test_transactions(trio):
    for server in trio:
        client = server.client()
        for database in DATABASES.values():
            collection = client[database].transacted
            collection.drop()
            client[database].create_collection("transacted")
            with client.start_session() as session, session.start_transaction():
                collection.insert_one({"_id": 1}, session=session)
                collection.insert_one({"_id": 2}, session=session)
                assert collection.count_documents({}) == 0
                assert collection.count_documents({}, session=session) == 2
            assert collection.count_documents({}) == 2
            with client.start_session() as session:
                session.start_transaction()
                collection.delete_many({}, session=session)
                session.abort_transaction()
            assert collection.count_documents({}) == 2


def with_session_of(client, session):
    """A session of another client with the same id."""
    other = client.start_session()
    assert other.session_id != session.session_id
    other._server_session.session_id = session.session_id
    return other


def test_a_transaction_ends_through_another_server(trio):
    """The recovery token names the data set."""
    one, other = trio[0].client(), trio[1].client()
    one.logs.create_collection("ended")
    with one.start_session() as session:
        session.start_transaction()
        one.logs.ended.insert_one({"_id": 1}, session=session)
        command = {"commitTransaction": 1, "autocommit": False,
                   "txnNumber": Int64(session._server_session.transaction_id)}
        token = {"recoveryToken": {"recoveryShardId": "logs"}}
        with with_session_of(other, session) as same:
            assert code_of(other.admin.command, command, session=same) == 251
            assert other.admin.command(command | token, session=same)["ok"] == 1
        assert one.logs.ended.count_documents({}) == 1
        # The driver does not know that it has ended.
        session._transaction.reset()


def test_a_transaction_has_one_data_set(trio):
    client = trio[0].client()
    for name in ["logs", "shop"]:
        client[name].crossed.insert_one({})
    with client.start_session() as session:
        session.start_transaction()
        client.logs.crossed.insert_one({}, session=session)
        with pytest.raises(OperationFailure) as caught:
            client.shop.crossed.insert_one({}, session=session)
        assert caught.value.code == 263
        assert "several data sets" in str(caught.value)
        session.abort_transaction()
    assert client.logs.crossed.count_documents({}) == 1
    assert client.shop.crossed.count_documents({}) == 1


def test_a_snapshot_has_one_data_set(trio):
    client = trio[0].client()
    for name in ["logs", "shop"]:
        client[name].snapshot.insert_one({})
    for name in ["logs", "shop"]:
        with client.start_session(snapshot=True) as session:
            assert client[name].snapshot.count_documents({}, session=session) == 1
            client[name].snapshot.insert_one({})
            assert client[name].snapshot.count_documents({}, session=session) == 1
            client[name].snapshot.delete_one({})
            other = client["shop" if name == "logs" else "logs"].snapshot
            assert code_of(other.count_documents, {}, session=session) == 72


def test_commands_with_databases_of_two_sets_are_refused(trio):
    client = trio[1].client()
    client.logs.source.insert_one({"_id": 1})
    client["rest-1"].source.insert_one({"_id": 1})
    pipelines = [[{"$out": {"db": "shop", "coll": "target"}}],
                 [{"$merge": {"into": {"db": "shop", "coll": "target"}}}]]
    for pipeline in pipelines:
        assert code_of(client.logs.source.aggregate, pipeline) == 20
    rename = {"renameCollection": "logs.source", "to": "shop.target"}
    assert code_of(client.admin.command, rename) == 20
    assert client.admin.command({"renameCollection": "logs.source", "to": "logs.renamed"})["ok"]
    # Two databases of one data set.
    client["rest-1"].source.aggregate([{"$out": {"db": "rest-2", "coll": "target"}}])
    assert client["rest-2"].target.count_documents({}) == 1
    bulk = {"bulkWrite": 1, "ops": [{"insert": 0, "document": {"_id": 1}},
                                    {"insert": 1, "document": {"_id": 1}}],
            "nsInfo": [{"ns": "rest-1.bulk"}, {"ns": "shop.bulk"}]}
    assert code_of(client.admin.command, bulk) == 20
    bulk["nsInfo"][1]["ns"] = "rest-3.bulk"
    assert client.admin.command(bulk)["nInserted"] == 2


def test_change_streams(trio):
    for server in trio:
        for database in DATABASES.values():
            collection = server.client()[database].watched
            with collection.watch(max_await_time_ms=500) as stream:
                collection.insert_one({"by": server.address})
                assert next(stream)["fullDocument"]["by"] == server.address
            with server.client()[database].watch(max_await_time_ms=500) as stream:
                trio[0].client()[database].watched.insert_one({"by": "other"})
                assert next(stream)["fullDocument"]["by"] == "other"
    with pytest.raises(OperationFailure) as caught:
        trio[0].client().watch()
    assert caught.value.code == 20 and "data sets" in str(caught.value)


def test_sessions_and_operations(trio):
    client = trio[0].client()
    primaries = trio[0].primaries()
    database = DATABASES[next(it for it in primaries if primaries[it] != trio[0].address)]
    client[database].slow.insert_many([{"_id": i} for i in range(2000)])
    failures = []

    def slow():
        try:
            list(client[database].slow.aggregate([
                {"$lookup": {"from": "slow", "let": {"i": "$_id"}, "as": "all", "pipeline": [
                    {"$match": {"$expr": {"$gt": [{"$mod": ["$_id", {"$add": ["$$i", 1]}]}, 5]}}}]}},
                {"$count": "n"}]))
        except OperationFailure as error:
            failures.append(error.code)

    thread = threading.Thread(target=slow)
    thread.start()
    running = []

    def find():
        running[:] = [op for op in client.admin.command("currentOp")["inprog"]
                      if op.get("command", {}).get("aggregate") == "slow"]
        return running or not thread.is_alive()

    wait_until(find)
    assert running, "the aggregation ended too early"
    client.admin.command("killOp", op=running[0]["opid"])
    thread.join()
    assert failures == [11601]
    with client.start_session() as session:
        cursor = client[database].slow.find({}, batch_size=2, session=session)
        next(cursor)
        client.admin.command("killSessions", [session.session_id])
        more = {"getMore": cursor.cursor_id, "collection": "slow"}
        assert code_of(client[database].command, more, session=session) == 43


def test_a_retried_write_runs_once(trio):
    client, other = trio[0].client(), trio[1].client()
    for database in DATABASES.values():
        client[database].retried.insert_one({"_id": 1, "n": 0})
        with client.start_session() as session:
            command = {"update": "retried", "txnNumber": Int64(1),
                       "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
            for one in [client, other, client]:
                same = with_session_of(one, session)
                assert one[database].command(command, session=same)["n"] == 1
        assert client[database].retried.find_one()["n"] == 1


def test_another_placement_is_refused(trio, store, tmp_path):
    prefix = trio[0].folder.parent.name
    for sets, text in [(("main=shop", "logs=logs"), "data set 3 is"),
                       (("main=shop", "logs=logs,x", "rest=rest*"), "data set 2 is"),
                       (("logs=logs", "main=shop", "rest=rest*"), "data set 1 is")]:
        with pytest.raises(RuntimeError, match=text):
            SetServer(tmp_path / "other", store, prefix, sets=sets)
    with pytest.raises(RuntimeError, match="--data-set"):
        SetServer(tmp_path / "single", store, prefix, sets=())


class Writer(threading.Thread):
    """Increments numbers in all data sets with retryable writes until it is stopped."""

    def __init__(self, servers):
        super().__init__()
        self.client = client_of_all(servers, retryWrites=True)
        self.stopped = threading.Event()
        self.acknowledged = {name: 0 for name in DATABASES.values()}
        self.failures = []
        self.gap = 0

    def run(self):
        while not self.stopped.is_set():
            for name in DATABASES.values():
                began = time.monotonic()
                try:
                    number = self.acknowledged[name]
                    self.client[name].load.insert_one({"number": number})
                    self.client[name].total.update_one({"_id": 1}, {"$inc": {"n": 1}},
                                                       upsert=True)
                    self.acknowledged[name] += 1
                except pymongo.errors.PyMongoError as error:
                    self.failures.append(error)
                self.gap = max(self.gap, time.monotonic() - began)

    def end(self):
        self.stopped.set()
        self.join()


def wait_for_writes(writer, count):
    target = min(writer.acknowledged.values()) + count
    deadline = time.monotonic() + 90
    while min(writer.acknowledged.values()) < target:
        assert time.monotonic() < deadline and not writer.failures, writer.failures
        time.sleep(0.05)


def test_failover_under_load(store, prefix, tmp_path):
    """A killed server is replaced in its data sets, and gets one back after it has started again."""
    servers = start_all(store, prefix, tmp_path)
    writers = []
    try:
        wait_for_spread(servers)
        writers = [Writer(servers) for _ in range(3)]
        for writer in writers:
            writer.start()
        wait_for_writes(writers[0], 20)
        killed = servers[1]
        killed.kill()
        left = [servers[0], servers[2]]
        wait_until(lambda: killed.address not in left[0].primaries().values(), 30)
        for writer in writers:
            wait_for_writes(writer, 20)
        killed.start()
        wait_for_spread(servers)
        for writer in writers:
            wait_for_writes(writer, 20)
        for writer in writers:
            writer.end()
            assert not writer.failures
        with client_of_all(servers) as client:
            for name in DATABASES.values():
                total = sum(writer.acknowledged[name] for writer in writers)
                assert client[name].load.count_documents({}) == total
                assert client[name].total.find_one()["n"] == total
    finally:
        for writer in writers:
            writer.stopped.set()
        kill_all(servers)


def test_servers_stop_and_start(store, prefix, tmp_path):
    servers = start_all(store, prefix, tmp_path, count=2)
    try:
        for name in DATABASES.values():
            servers[1].client()[name].c.insert_one({"_id": 1})
        assert servers[0].stop() == 0
        for name in DATABASES.values():
            servers[1].client()[name].c.insert_one({"_id": 2})
        assert servers[1].stop() == 0
        servers[0].start()
        for name in DATABASES.values():
            assert servers[0].client()[name].c.count_documents({}) == 2
    finally:
        for server in servers:
            if server.process:
                server.__exit__()


def test_a_stalled_primary_is_replaced(store, prefix, tmp_path):
    servers = start_all(store, prefix, tmp_path)
    try:
        wait_for_spread(servers)
        stalled = servers[2]
        left = servers[:2]
        set_name = next(name for name, address in left[0].primaries().items()
                        if address == stalled.address)
        database = DATABASES[set_name]
        left[0].client()[database].c.insert_one({"_id": 1})
        stalled.process.send_signal(signal.SIGSTOP)
        for number, server in enumerate(left):
            server.client()[database].c.insert_one({"_id": f"new-{number}"})
        stalled.process.send_signal(signal.SIGCONT)
        wait_for_spread(servers)
        for server in servers:
            assert server.client()[database].c.count_documents({}) == 3
    finally:
        stalled.process.send_signal(signal.SIGCONT)
        kill_all(servers)
