"""The pages about data in Chromium: layout, graphs, previews of stages, hostile documents."""

import json
import subprocess
import time
import urllib.parse

import bson
import pytest

import chromium
from page_client import PageServer
from test_browser import PICTURES

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\u202e"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("data")) as server:
        shop = server.client().shop
        people = ["Ada", "Grace", "Edith"]
        shop.orders.insert_many([
            {"_id": bson.ObjectId(), "number": number, "at": bson.datetime.datetime(2026, 1, 1 + number % 28),
             "customer": {"name": people[number % 3], "tags": ["a", "b"]}, "total": number * 1.5, "note": None}
            for number in range(300)])
        shop.orders.create_index("number", unique=True)
        shop.orders.create_index([("customer.name", 1), ("at", -1)])
        shop.orders.create_index("customer.name")
        shop.orders.create_search_index({"name": "people", "definition": {"mappings": {"dynamic": True}}})
        shop.hostile.insert_one({"_id": HOSTILE, HOSTILE: HOSTILE, "line": "x" * 10_000_000})
        shop.create_collection("names", viewOn="orders", pipeline=[{"$group": {"_id": "$customer.name"}}])
        shop.command("profile", 0, slowms=0)
        list(shop.orders.find({"total": {"$gt": 10}}).sort("total"))
        shop.command("profile", 0, slowms=100)
        yield server
        assert "panicked" not in server.log()


def test_every_page_of_data_is_accessible(server):
    orders, hostile = "/collections/shop/orders", "/collections/shop/hostile"
    first = server.client().shop.orders.find_one()["_id"]
    identity = urllib.parse.urlencode({"id": f'ObjectId("{first}")'})
    pipeline = urllib.parse.urlencode({"pipeline": '[{$match: {total: {$gt: 5}}}, {$sortByCount: "$customer.name"}]'})
    paths = [
        "/state/operations", "/state/slow", "/state/log", orders, f"{orders}?view=table&page=1",
        f"{orders}/document?{identity}", f"{orders}/insert", f"{orders}/schema", f"{orders}/transfer",
        f"{orders}/indexes", f"{orders}/pipeline", f"{orders}/pipeline?{pipeline}",
        f"{orders}/explain?filter=%7Btotal%3A+%7B%24gt%3A+5%7D%7D&sort=%7Btotal%3A+1%7D", hostile, f"{hostile}?view=table", f"{hostile}/schema",
    ]
    found = chromium.run("pages", server, PICTURES, paths=paths)
    assert {"/collections", "/indexes", "/queries", "/state"} <= set(found["paths"])


def test_hostile_documents_are_text(server):
    hostile = "/collections/shop/hostile"
    paths = [hostile, f"{hostile}?view=table", f"{hostile}/schema", "/state/slow", "/state/log"]
    chromium.run("still", server, PICTURES, paths=paths)


def test_numbers_are_drawn(server):
    found = chromium.run("graphs", server, PICTURES)
    assert found["canvases"] == 8 and found["isRunning"]


def test_questions_are_asked_before_an_index_goes(server):
    server.client().shop.orders.create_index("gone")
    found = chromium.run("dropping", server, PICTURES, path="/collections/shop/orders/indexes", name="gone_1")
    assert "gone_1" in found["question"] and found["isCancelled"]
    assert "gone_1" not in server.client().shop.orders.index_information()


def test_previews_follow_what_is_typed(server):
    found = chromium.run("previews", server, PICTURES, path="/collections/shop/orders/pipeline")
    assert found == {"mistake": True, "count": "count: 99", "problems": []}


def test_a_file_is_imported_and_another_one_cancelled(server, tmp_path):
    file, small = tmp_path / "large.json", tmp_path / "small.csv"
    with open(file, "w") as lines:
        for number in range(400_000):
            print(f'{{"number": {number}, "text": "{"x" * 200}"}}', file=lines)
    small.write_text("name,age\nAda,36\nGrace,85\n")
    path = "/collections/shop/files/transfer"
    found = chromium.run("importing", server, PICTURES, path=path, file=str(file), small=str(small))
    assert " of 92." in found["progress"] and "The import was cancelled" in found["cancelled"]
    files = server.client().shop.files
    assert int(found["cancelled"].split()[0].replace(",", "")) == files.count_documents({"text": {"$exists": True}})
    assert found["done"] == "2 documents were inserted." and files.count_documents({"name": "Ada", "age": 36}) == 1


def test_what_takes_long_is_cancelled(server):
    """A cancelled query is also interrupted on the server."""
    join = ("{$lookup: {from: 'orders', as: 'x', let: {n: '$number'}, pipeline: [{$match: {$expr: {$gt: "
            "[{$add: ['$$n', '$number']}, -1]}}}]}}, {$unwind: '$x'}")
    text = f"[{{$facet: {{all: [{join}, {join}, {join}, {{$match: {{$expr: {{$lt: [{{$add: ['$x.number', '$number']}}, -1]}}}}}}]}}}}]"
    path = "/collections/shop/orders/pipeline?" + urllib.parse.urlencode({"pipeline": text})
    admin = server.client().admin

    def is_running():
        operations = admin.aggregate([{"$currentOp": {}}, {"$match": {"command.aggregate": "orders"}}])
        return bool(list(operations))

    def until(expected):
        deadline = time.monotonic() + 5
        while is_running() != expected:
            assert time.monotonic() < deadline, expected
            time.sleep(0.02)

    process = subprocess.Popen(
        chromium.command("cancelling", server.origin, PICTURES, {"path": path}), env=chromium.environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            line = process.stdout.readline()
            assert line == "running\n", line
            until(True)
            print("go on", file=process.stdin, flush=True)
            assert process.stdout.readline() == "cancelled\n"
            until(False)
            print("go on", file=process.stdin, flush=True)
        found = json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
    assert not found["problems"], found["problems"]
    assert found["preview"] == "Cancelled." and found["isHidden"] and found["address"].endswith(path)
