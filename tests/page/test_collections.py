"""Collections and indexes on the page: what is searched, changed, imported and exported."""

import json
import re
import socket
import time
import urllib.parse

import bson
import pytest

from page_client import PageServer, import_file

ID = bson.ObjectId("65a1b2c3d4e5f60718293a4b")
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("collections")) as server:
        yield server
        assert "panicked" not in server.log()


@pytest.fixture
def orders(server):
    orders = server.client().shop.orders
    orders.drop()
    orders.insert_many([{"_id": number, "name": f"n{number}", "even": number % 2 == 0} for number in range(45)])
    orders.insert_one({"_id": ID, HOSTILE: HOSTILE, "nested": {"list": [1, bson.Int64(5), 1.5]}})
    return orders


PATH = "/collections/shop/orders"


def address(part="", **query):
    return PATH + part + "?" + urllib.parse.urlencode(query)


def test_collections_are_listed(server, orders):
    text = server.browser().get("/collections").text
    assert f'href="{PATH}"' in text and ">46<" in text


def test_documents_are_found(server, orders):
    browser = server.browser()
    text = browser.get(address(filter="{ name: /^n4/ }", sort="{_id: -1}")).text
    assert re.findall(r"&quot;(n\d+)&quot;", text) == ["n44", "n43", "n42", "n41", "n40", "n4"]
    text = browser.get(address(filter="{_id: ObjectId('65a1b2c3d4e5f60718293a4b')}")).text
    assert "<script>alert" not in text and "&lt;script&gt;" in text and "\u202e\"" not in text
    text = browser.get(address(projection="{name: 1, _id: 0}", view="table", size="50")).text
    assert "<th scope=\"col\"><bdi>name</bdi></th>" in text and "<bdi>even</bdi>" not in text


def test_pages_follow_each_other(server, orders):
    browser = server.browser()
    first = browser.get(address(filter="{_id: {$type: 'number'}}", sort="{_id: 1}")).text
    assert "1–20 of 45" in first and 'rel="next"' in first and 'rel="prev"' not in first
    last = browser.get(address(filter="{_id: {$type: 'number'}}", sort="{_id: 1}", page="2")).text
    assert "41–45 of 45" in last, last[-3000:]
    assert 'rel="next"' not in last and "n44" in last


@pytest.mark.parametrize("filter, message", [
    ("{ a: }", "column 6"), ("{ name: hello }", "strings need quotes"), ("{ $foo: 1 }", "unknown top level"),
    ("[1]", "a document"), ("{ _id: ObjectId('1') }", "24 hexadecimal digits"),
])
def test_mistakes_are_named(server, orders, filter, message):
    answer = server.browser().get(address(filter=filter))
    assert answer.status == 400 and message in answer.text
    assert 'role="search"' in answer.text


def fields_of(text):
    original = re.search(r'name="original" value="([^"]*)"', text).group(1)
    return original.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_a_document_is_changed(server, orders):
    browser = server.browser()
    text = browser.get(address("/document", id="1")).text
    sent = {"original": fields_of(text), "text": "{ _id: 1, name: 'new', at: ISODate('2026-01-01'), long: NumberLong(7) }"}
    assert browser.post(PATH + "/document", sent).status == 303
    changed = orders.find_one({"_id": 1})
    assert changed["name"] == "new" and changed["at"].year == 2026 and isinstance(changed["long"], bson.Int64)
    # The document has changed since the form was loaded.
    answer = browser.post(PATH + "/document", {**sent, "text": "{_id: 1}"})
    assert answer.status == 409 and "changed or deleted meanwhile" in answer.text
    for text in ["{ _id: 2 }", "{ _id: 1, ", "[]"]:
        answer = browser.post(PATH + "/document", {**sent, "text": text})
        assert answer.status == 400 and 'role="alert"' in answer.text
    assert orders.find_one({"_id": 1}) == changed


def test_every_type_survives_an_unchanged_edit(server, orders):
    document = {
        "_id": "types", "double": 1.0, "int": 1, "long": bson.Int64(1), "decimal": bson.Decimal128("1.10"),
        "date": bson.datetime.datetime(2026, 1, 2, 3, 4, 5, 6000), "regex": bson.Regex("a/[/]", "i"),
        "binary": bson.Binary(b"\0\1", 5), "uuid": bson.Binary(bytes(16), 4), "stamp": bson.Timestamp(1, 2),
        "low": bson.MinKey(), "code": bson.Code("f()"), "null": None, "list": [[], {}], "text": "\"\\\n\u2028",
    }
    orders.insert_one(document)
    browser = server.browser()
    text = browser.get(address("/document", id='"types"')).text
    area = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.S).group(1)
    area = area.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert browser.post(PATH + "/document", {"original": fields_of(text), "text": area}).status == 303
    assert bson.encode(orders.find_one({"_id": "types"})) == bson.encode(document)


def test_documents_are_inserted_and_deleted(server, orders):
    browser = server.browser()
    browser.get(PATH)
    answer = browser.post(PATH + "/insert", {"text": "[{_id: 'a'}, {_id: 'b', n: NumberDecimal('1.5')}]"})
    assert answer.status == 303 and answer.headers["location"].endswith("done=2")
    assert orders.find_one({"_id": "b"})["n"] == bson.Decimal128("1.5")
    for text, message in [("{_id: 'a'}", "duplicate key"), ("", "no document"), ("{a: ", "column")]:
        answer = browser.post(PATH + "/insert", {"text": text})
        assert answer.status == 400 and message in answer.text, text
    assert browser.get(PATH + "/delete").status == 405
    assert browser.post(PATH + "/delete", {"id": '"a"'}).status == 303
    assert orders.find_one({"_id": "a"}) is None
    assert browser.post(PATH + "/delete", {"id": '"a"'}).status == 404


def test_a_collection_is_dropped_by_its_name(server):
    server.client().shop["odd/name?"].insert_one({})
    path = "/collections/shop/odd%2Fname%3F"
    browser = server.browser()
    assert "odd/name?" in browser.get(path).text
    assert browser.post(path + "/drop", {"name": "other"}).status == 400
    assert "odd/name?" in server.client().shop.list_collection_names()
    assert browser.post(path + "/drop", {"name": "odd/name?"}).status == 303
    assert "odd/name?" not in server.client().shop.list_collection_names()
    sent = {"database": "shop", "collection": "made", "clustered": "1"}
    assert browser.post("/collections/create", sent).status == 303
    assert server.client().shop.made.options()["clusteredIndex"]


def test_an_export_can_be_imported(server, orders):
    browser = server.browser()
    expected = list(orders.find().sort("_id", 1))
    for kind in ["canonical", "lines", "array"]:
        answer = browser.get(address("/export", format=kind, sort="{_id: 1}"))
        assert "attachment" in answer.headers["content-disposition"]
        copy = server.client().shop[kind]
        sent = import_file(browser, f"/collections/shop/{kind}", answer.body)
        assert sent.status == 200 and "46 documents were inserted" in sent.text, sent.text
        found = list(copy.find().sort("_id", 1))
        assert found == expected
        is_exact = bson.encode(found[-1]) == bson.encode(expected[-1])
        assert is_exact == (kind == "canonical")
    for line in browser.get(address("/export", format="lines")).text.splitlines():
        json.loads(line)


def test_an_export_ends_with_its_browser(server, orders):
    """An export without results used to run on after the browser had disconnected."""
    admin = server.client().admin

    def is_running():
        return bool(list(admin.aggregate([{"$currentOp": {}}, {"$match": {"command.find": "orders"}}])))

    def until(expected):
        deadline = time.monotonic() + 5
        while is_running() != expected:
            assert time.monotonic() < deadline, expected
            time.sleep(0.02)

    slow = ("{$expr: {$lt: [{$reduce: {input: {$range: [0, 5000000]}, initialValue: 0, "
            "in: {$add: ['$$value', '$$this']}}}, 0]}}")
    browser = socket.create_connection(("127.0.0.1", server.web_port), timeout=30)
    browser.sendall(f"GET {address('/export', filter=slow)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    until(True)
    browser.close()
    until(False)


def test_csv(server, orders):
    browser = server.browser()
    text = browser.get(address("/export", format="csv", filter="{_id: {$lt: 2}}", sort="{_id: 1}")).text
    assert text == "_id,name,even\r\n0,n0,true\r\n1,n1,false\r\n"
    text = browser.get(address("/export", format="csv", fields="nested.list, _id", filter="{nested: {$exists: 1}}")).text
    assert text == f'nested.list,_id\r\n"[1,5,1.5]",{ID}\r\n'
    browser.get(PATH)
    sent = browser.post("/collections/shop/people/import", {"format": "csv", "text": 'name,age\n"A, ""B""",5\nC,\n'})
    assert sent.status == 303
    found = list(server.client().shop.people.find({}, {"_id": 0}))
    assert found == [{"name": 'A, "B"', "age": 5}, {"name": "C"}]
    answer = browser.post("/collections/shop/people/import", {"format": "csv", "text": 'a\n"b'})
    assert answer.status == 400 and "line 2" in answer.text


def test_a_schema_is_sampled(server, orders):
    text = server.browser().get(PATH + "/schema").text
    assert "46 documents were looked at" in text
    for part in ["nested.list[]", "objectId", "double", "98 %", "&lt;script&gt;"]:
        assert part in text, part
    assert "<script>alert" not in text


def test_large_documents_are_shown_in_part(server):
    large = server.client().shop.large
    large.drop()
    large.insert_one({"_id": 1, "text": "x" * 10_000_000, "list": list(range(50_000))})
    browser = server.browser()
    for path in ["/collections/shop/large", "/collections/shop/large?view=table", "/collections/shop/large/document?id=1"]:
        answer = browser.get(path)
        assert answer.status == 200 and len(answer.body) < 200_000, path
    assert "10,000,000" in browser.get("/collections/shop/large").text


def test_indexes_are_shown_with_advice(server, orders):
    orders.create_index("name")
    orders.create_index([("name", 1), ("even", 1)])
    browser = server.browser()
    text = browser.get(PATH + "/indexes").text
    assert "name_1_even_1 begins with the same fields" in text
    everything = browser.get("/indexes").text
    only_advice = browser.get("/indexes?show=advice").text
    assert "_id_" in everything and "name_1" in only_advice and "_id_" not in only_advice


def test_indexes_are_created_and_dropped(server, orders):
    browser = server.browser()
    browser.get(PATH + "/indexes")
    sent = {"key": "{ even: 1, name: -1 }", "partial": "{ even: true }", "expire": "", "name": "", "options": ""}
    answer = browser.post(PATH + "/indexes", sent)
    assert answer.status == 303, answer.text
    index = orders.index_information()["even_1_name_-1"]
    assert index["partialFilterExpression"] == {"even": True}
    for key, message in [("{", "column"), ("", "at least one field"), ("{ a: 'nothing' }", "nothing")]:
        answer = browser.post(PATH + "/indexes", {**sent, "key": key})
        assert answer.status == 400 and message in answer.text, key
    answer = browser.post(PATH + "/indexes", {**sent, "key": "{ even: 1 }", "partial": "", "unique": "1"})
    assert answer.status == 400 and "duplicate key" in answer.text
    assert browser.post(PATH + "/indexes/drop", {"name": "*"}).status == 400
    assert browser.post(PATH + "/indexes/drop", {"name": "even_1_name_-1"}).status == 303
    assert list(orders.index_information()) == ["_id_"]


def test_search_indexes_are_created_and_dropped(server, orders):
    browser = server.browser()
    text = browser.get(PATH + "/indexes").text
    default = re.search(r'<textarea id="search-definition"[^>]*>\n(.*?)</textarea>', text, re.S).group(1)
    assert "dynamic: true" in default and "Drop search index" not in text
    sent = {"search-name": "words", "search-definition": default}
    answer = browser.post(PATH + "/search-indexes", sent)
    assert (answer.status, answer.headers["location"]) == (303, PATH + "/indexes?done=created")
    [index] = orders.list_search_indexes()
    assert index["name"] == "words" and index["latestDefinition"] == {"mappings": {"dynamic": True}}
    some = '{"mappings": {"dynamic": false, "fields": {"name": {"type": "string"}}}}'
    assert browser.post(PATH + "/search-indexes", {"search-name": "some", "search-definition": some}).status == 303
    for page in [PATH + "/indexes", "/indexes"]:
        text = browser.get(page).text
        assert "all fields" in text and "the fields of the definition" in text, page
        # Name, status, size, definition.
        row = re.search(r'<bdi class="name">words</bdi></td><td>(.*?)</td><td class="number">(.*?)</td>', text)
        assert "ready" in row.group(1) and re.fullmatch(r"[\d.]+ k?B", row.group(2)), row
    assert 'aria-label="Drop search index words"' in browser.get(PATH + "/indexes").text
    for definition, message in [("{", "column"), ("{}", "mappings"), ("{mappings: {dynamic: 7}}", "dynamic"),
                                (default, "already exists")]:
        answer = browser.post(PATH + "/search-indexes", {**sent, "search-definition": definition})
        assert answer.status == 400 and message in answer.text, definition
        assert "details class=\"below\" open" in answer.text
    for name in ["words", "some"]:
        assert browser.post(PATH + "/search-indexes/drop", {"name": name}).status == 303
    assert list(orders.list_search_indexes()) == []
    assert browser.post(PATH + "/search-indexes/drop", {"name": "words"}).status == 400


def test_nothing_is_changed_on_a_read_only_page(tmp_path):
    with PageServer(tmp_path, options=["--web-read-only"]) as server:
        server.client().shop.orders.insert_one({"_id": 1})
        browser = server.browser()
        for page in ["", "/document?id=1", "/schema", "/transfer", "/indexes"]:
            answer = browser.get(PATH + page)
            assert answer.status == 200 and 'method="post"' not in answer.text, page
        for page in ["/insert", "/document", "/delete", "/drop", "/import", "/import/file", "/indexes", "/indexes/drop",
                     "/search-indexes", "/search-indexes/drop"]:
            assert browser.post(PATH + page, {}).status == 403, page
        assert browser.post("/collections/create", {}).status == 403
        assert browser.post("/collections/shop/drop", {"name": "shop"}).status == 403


def test_privileges_are_those_of_the_user(tmp_path):
    with PageServer(tmp_path) as server:
        server.client().shop.orders.insert_one({"_id": 1})
        server.client().other.secret.insert_one({"_id": 1})
        server.client().admin.command("createUser", "ada", pwd="secret", roles=["root"])
        server.connection = {"username": "ada", "password": "secret"}
        server.client().admin.command("createUser", "bob", pwd="secret", roles=[{"role": "read", "db": "shop"}])
        browser = server.browser()
        browser.log_in("bob", "secret")
        text = browser.get("/collections").text
        assert "orders" in text and "secret" not in text.replace("secret\"", "")
        assert browser.get(PATH).status == 200
        assert browser.get("/collections/other/secret").status == 403
        assert browser.post(PATH + "/insert", {"text": "{}"}).status == 403
        assert browser.post(PATH + "/drop", {"name": "orders"}).status == 403
