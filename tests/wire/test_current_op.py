"""`currentOp` shows each connection once while commands begin and end, and cursors with their time
of opening."""

import threading

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def busy(server):
    """Connections over which commands begin and end continuously."""
    clients, stop = [server.client() for _ in range(4)], threading.Event()

    def ask(client):
        while not stop.is_set():
            client.admin.command("ping")

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    yield clients
    stop.set()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()


def shown(client):
    yield list(client.admin.aggregate([{"$currentOp": {"idleConnections": True}}]))
    yield client.admin.command("currentOp", **{"$all": True})["inprog"]


def test_a_connection_shows_once(client, busy):
    for one in busy:
        one.admin.command("ping")
    for _ in range(100):
        for ops in shown(client):
            numbers = [op["connectionId"] for op in ops if "connectionId" in op]
            assert len(numbers) == len(set(numbers)), numbers
            # Connections that are always busy stay open, so they are never missing.
            assert len(numbers) >= len(busy) + 1, numbers


def test_a_cursor_was_created_once(client, collection):
    collection.insert_many({"_id": i} for i in range(10))
    cursor = collection.find(batch_size=2)
    next(cursor)

    def created():
        stage = [{"$currentOp": {"idleCursors": True}}]
        idle = [op for op in client.admin.aggregate(stage) if op["type"] == "idleCursor"]
        return next(op["cursor"] for op in idle if op["cursor"]["cursorId"] == cursor.cursor_id)

    first = created()
    for _ in range(20):
        assert created()["createdDate"] == first["createdDate"]
    cursor.close()


def test_operations_are_chosen_by_a_filter(client):
    """Regression: operators in the filter were refused, although the manual shows them."""
    def found(**wanted):
        return client.admin.command({"currentOp": 1, **wanted})["inprog"]

    assert found(secs_running={"$gte": 0}, ns={"$regex": "^admin"})
    assert found(**{"$or": [{"op": "none"}, {"command.currentOp": {"$exists": True}}]})
    assert found(op={"$in": ["none"]}) == []
    with pytest.raises(OperationFailure) as failure:
        found(op={"$wrong": 1})
    assert failure.value.code == 2


def test_who_waits_for_a_cursor_shows_it(client, database):
    database.create_collection("log", capped=True, size=4096)
    database.log.insert_one({"_id": 1})
    first = database.command({"find": "log", "tailable": True, "awaitData": True, "comment": "tail"})["cursor"]
    number = first["id"]
    idle = [op for op in client.admin.aggregate([{"$currentOp": {"idleCursors": True}}])
            if op.get("cursor", {}).get("cursorId") == number]
    assert [op["planSummary"] for op in idle] == ["COLLSCAN"]
    wait = {"getMore": number, "collection": "log", "maxTimeMS": 60_000}
    waiting = threading.Thread(target=database.command, args=(wait,))
    waiting.start()
    wanted = {"op": "getmore", "cursor.originatingCommand.comment": "tail"}
    shown = []
    while not shown and waiting.is_alive():
        shown = client.admin.command({"currentOp": 1, **wanted})["inprog"]
    database.log.insert_one({"_id": 2})
    waiting.join()
    [op] = shown
    assert op["cursor"]["cursorId"] == number and op["cursor"]["operationUsingCursorId"] == op["opid"]
    assert (op["planSummary"], op["cursor"]["nDocsReturned"], op["cursor"]["awaitData"]) == ("COLLSCAN", 1, True)


@pytest.mark.parametrize("command", [
    {"aggregate": "c", "pipeline": [{"$match": {"n": {"$gte": 0}}}, {"$set": {"m": 1}}], "cursor": {"batchSize": 1}},
    {"aggregate": "v", "pipeline": [{"$set": {"m": 1}}], "cursor": {"batchSize": 1}},
    {"find": "v", "batchSize": 1},
])
def test_the_idle_cursor_of_a_pipeline_shows_its_plan(client, database, command):
    """Regression: the plan of an idle cursor was only shown while the profiler was on."""
    database.c.create_index("n")
    database.c.insert_many({"n": n} for n in range(5))
    database.create_collection("v", viewOn="c", pipeline=[{"$match": {"n": {"$gte": 0}}}])
    number = database.command(command)["cursor"]["id"]
    idle = [op for op in client.admin.aggregate([{"$currentOp": {"idleCursors": True}}])
            if op.get("cursor", {}).get("cursorId") == number]
    assert [op["planSummary"] for op in idle] == ["IXSCAN { n: 1 }"]
