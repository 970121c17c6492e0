"""The state of the server: numbers, running and slow operations, the log."""

import http.client
import json
import threading
import time

import pymongo.errors
import pytest

from page_client import PageServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("state")) as server:
        server.client().shop.orders.insert_many([{"number": number} for number in range(2000)])
        yield server
        assert "panicked" not in server.log()


def rows_of(browser):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = json.loads(browser.get("/state/series?minutes=15").text)
        if len(rows) >= 2:
            return rows
        time.sleep(0.2)
    raise AssertionError("there are no samples")


def test_numbers_are_kept(server):
    browser = server.browser()
    rows = rows_of(browser)
    lengths = {len(row) for row in rows}
    assert len(lengths) == 1 and rows[0][0] < rows[1][0]
    text = browser.get("/state").text
    assert "Operations per second" in text and "reads, 99%" in text
    assert text.count("data-now=") == lengths.pop() - 1


def test_new_numbers_are_pushed(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.web_port, timeout=30)
    connection.request("GET", "/state/live")
    response = connection.getresponse()
    rows = []
    while len(rows) < 2:
        line = response.fp.readline().decode()
        if line.startswith("data: ["):
            rows.append(json.loads(line[6:]))
    connection.close()
    assert rows[0][0] < rows[1][0] and len(rows[0]) == len(rows[1])


def test_the_log_is_filtered(server):
    browser = server.browser()
    server.client().shop.orders.create_index("number")
    text = browser.get("/state/log?q=index+build").text
    assert "Index build" in text
    assert "No line of the log matches" in browser.get("/state/log?q=nothing-like-this").text
    assert "Index build" not in browser.get("/state/log?component=NETWORK").text


def slow_find(server, ended):
    pipeline = [{"$match": {"$expr": {"$gt": [{"$reduce": {
        "input": {"$range": [0, 2000000]}, "initialValue": 0,
        "in": {"$add": ["$$value", "$$this"]}}}, -1]}}}]
    try:
        list(server.client().shop.orders.aggregate(pipeline, comment="<b>slow</b>"))
    except pymongo.errors.OperationFailure as error:
        ended.append(error.code)


def test_an_operation_is_killed(server):
    browser = server.browser()
    ended = []
    thread = threading.Thread(target=slow_find, args=(server, ended))
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while "aggregate" not in (text := browser.get("/state/operations").text):
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
        assert "&lt;b&gt;slow" in text and "<b>slow" not in text
        row = next(row for row in text.split("<tr>") if "shop.orders" in row)
        operation = row.split('name="op" value="')[1].split('"')[0]
        assert browser.get("/state/operations/kill").status == 405
        assert browser.post("/state/operations/kill", {"op": "x"}).status == 400
        assert browser.post("/state/operations/kill", {"op": operation}).status == 303
    finally:
        thread.join(60)
    assert ended == [11601]


def test_slow_operations_are_listed(server):
    browser = server.browser()
    fields = {"database": "shop", "level": "1", "slowms": "0"}
    browser.get("/state/slow")
    assert browser.post("/state/slow/profile", fields).status == 303
    list(server.client().shop.orders.find({"missing": "<i>"}))
    text = browser.get("/state/slow").text
    assert "COLLSCAN" in text and "&lt;i&gt;" in text and "<i>" not in text
    assert server.client().shop.command("profile", -1)["was"] == 1
    for level, limit in [("3", "0"), ("x", "0"), ("1", "x")]:
        answer = browser.post("/state/slow/profile", {**fields, "level": level, "slowms": limit})
        assert answer.status == 400, (level, limit)
    browser.post("/state/slow/profile", {**fields, "level": "0", "slowms": "100"})


def test_nothing_is_killed_on_a_read_only_page(tmp_path):
    with PageServer(tmp_path, options=["--web-read-only"]) as server:
        server.client().shop.orders.insert_one({})
        browser = server.browser()
        for path in ["/state", "/state/operations", "/state/slow", "/state/log"]:
            text = browser.get(path)
            assert text.status == 200 and 'method="post"' not in text.text, path
        assert browser.post("/state/operations/kill", {"op": "1"}).status == 403
        assert browser.post("/state/slow/profile", {}).status == 403


def test_the_state_needs_privileges(tmp_path):
    with PageServer(tmp_path) as server:
        server.client().admin.command("createUser", "ada", pwd="secret", roles=["root"])
        server.connection = {"username": "ada", "password": "secret"}
        server.client().admin.command("createUser", "bob", pwd="secret", roles=[{"role": "read", "db": "shop"}])
        browser = server.browser()
        assert browser.get("/state/series").status == 303
        browser.log_in("bob", "secret", database="admin")
        for path in ["/state", "/state/series", "/state/live", "/state/log", "/state/slow"]:
            assert browser.get(path).status == 403, path
        assert browser.get("/state/operations").status == 200
        browser.log_in("ada", "secret", database="admin")
        assert browser.get("/state").status == 200
