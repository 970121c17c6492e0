"""Wrong bytes, documents and commands get a clear error and affect nothing else. Malformed messages
close their connection. During each of them another connection with an open cursor continues
undisturbed."""

import pathlib
import struct
import sys
import zlib

import bson
import pytest
from pymongo import UpdateOne
from pymongo.errors import DocumentTooLarge, OperationFailure, WriteError

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import raw  # noqa: E402
from raw import Raw, message, op_msg, op_query, section, sequence  # noqa: E402

PING = {"ping": 1, "$db": "admin"}


@pytest.fixture
def bystander(collection):
    """Another connection. Fails if its open cursor or its data is disturbed."""
    collection.insert_many([{"_id": one} for one in range(300)])
    cursor = collection.find().batch_size(50)
    first = [next(cursor)["_id"] for _ in range(50)]
    yield collection
    assert first + [one["_id"] for one in cursor] == list(range(300))
    assert collection.count_documents({}) == 300


def document(elements):
    """A BSON document of these elements."""
    return struct.pack("<i", 5 + len(elements)) + elements + b"\0"


def insert_of(elements):
    command = bson.encode({"insert": "bad", "$db": "bad_input"})
    return op_msg(section(command), sequence("documents", [document(elements)]))


PING_BYTES = bson.encode(PING)
MALFORMED = {
    "length below the header": message(b"", length=15),
    "length zero": message(b"", length=0),
    "negative length": message(b"", length=-1),
    "length over 48 MB": message(b"", length=48_000_001),
    "length of 2 GB": message(b"", length=0x7FFFFFFF),
    "unknown kind": message(section(PING), kind=4711),
    "no section": op_msg(),
    "two bodies": op_msg(section(PING), section(PING)),
    "only a sequence": op_msg(sequence("documents", [{}])),
    "unknown section": op_msg(b"\x07" + PING_BYTES),
    "unknown required flag": op_msg(section(PING), flags=1 << 5),
    "wrong checksum": op_msg(section(PING), flags=1, tail=b"\1\2\3\4"),
    "body longer than the message": op_msg(b"\0" + struct.pack("<i", 1000) + PING_BYTES[4:]),
    "body of length four": op_msg(b"\0" + struct.pack("<i", 4)),
    "body of negative length": op_msg(b"\0" + struct.pack("<i", -5) + PING_BYTES[4:]),
    "body without its last zero": op_msg(b"\0" + PING_BYTES[:-1] + b"\x01"),
    "bytes behind the body": op_msg(section(PING), tail=b"\0"),
    "sequence longer than the message": op_msg(section(PING), b"\x01" + struct.pack("<i", 1 << 20)
                                               + b"documents\0"),
    "sequence without a name": op_msg(section(PING), b"\x01" + struct.pack("<i", 6) + b"xx"),
    "half a compressed header": message(b"\xdd\x07", kind=raw.OP_COMPRESSED),
    "compressed by an unknown way": message(struct.pack("<iiB", 2013, 100, 99) + b"x",
                                            kind=raw.OP_COMPRESSED),
    "compressed rubbish": message(struct.pack("<iiB", 2013, 100, 2) + b"rubbish",
                                  kind=raw.OP_COMPRESSED),
    "compressed within compressed": message(struct.pack("<iiB", 2012, 9, 0) + b"x" * 9,
                                            kind=raw.OP_COMPRESSED),
    "compressed and far larger than said": message(
        struct.pack("<iiB", 2013, 47_999_999, 2) + zlib.compress(b"\0" * 1000),
        kind=raw.OP_COMPRESSED),
    "not a message at all": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 64,
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_message_ends_its_connection_alone(server, bystander, what):
    with Raw(server) as connection:
        connection.send(MALFORMED[what])
        assert connection.is_closed()
    with Raw(server) as connection:
        assert connection.send(op_msg(section(PING))).reply()["ok"] == 1


@pytest.mark.parametrize("cut", [1, 4, 15, 16, 17, 20, 21, 25, 30])
def test_a_message_cut_off_ends_its_connection_alone(server, bystander, cut):
    whole = op_msg(section(PING))
    with Raw(server) as connection:
        connection.send(op_msg(section(PING)) + whole[:cut])
        assert connection.reply()["ok"] == 1
        connection.socket.shutdown(1)
        assert connection.is_closed()


def test_the_log_says_why_a_connection_ended(server):
    with Raw(server) as connection:
        connection.send(message(b"", length=48_000_001)).is_closed()
    assert "48000001" in server.log()


def test_a_slow_client_is_waited_for(server):
    whole = op_msg(section(PING))
    with Raw(server) as connection:
        for place in range(len(whole)):
            connection.send(whole[place:place + 1])
        assert connection.reply()["ok"] == 1


BAD_ELEMENTS = {
    "string longer than its document": b"\x02a\0" + struct.pack("<i", 1000) + b"x\0",
    "string of length zero": b"\x02a\0" + struct.pack("<i", 0),
    "string of negative length": b"\x02a\0" + struct.pack("<i", -1) + b"x\0",
    "string without its zero": b"\x02a\0" + struct.pack("<i", 2) + b"xy",
    "string that is not UTF-8": b"\x02a\0" + struct.pack("<i", 3) + b"\xc3\x28\0",
    "string with a surrogate": b"\x02a\0" + struct.pack("<i", 4) + b"\xed\xa0\x80\0",
    "name without an end": b"\x10aaaa",
    "name that is not UTF-8": b"\x10\xff\xfe\0" + struct.pack("<i", 1),
    "unknown type": b"\x66a\0",
    "document longer than its parent": b"\x03a\0" + struct.pack("<i", 100) + b"\0",
    "document of length four": b"\x03a\0" + struct.pack("<i", 4),
    "array cut off": b"\x04a\0" + struct.pack("<i", 12) + b"\x100\0",
    "boolean of two": b"\x08a\0\x02",
    "double cut off": b"\x01a\0\0\0",
    "binary of negative length": b"\x05a\0" + struct.pack("<i", -1) + b"\0",
    "binary longer than its document": b"\x05a\0" + struct.pack("<i", 99) + b"\0x",
    "old binary with a wrong inner length": b"\x05a\0" + struct.pack("<iBi", 6, 2, 50) + b"xx",
    "object id cut off": b"\x07a\0abc",
    "regex without options": b"\x0ba\0x",
    "decimal cut off": b"\x13a\0" + b"\0" * 8,
    "code with scope of a wrong length": b"\x0fa\0" + struct.pack("<ii", 99, 2) + b"x\0" +
                                         document(b""),
}


@pytest.mark.parametrize("what", BAD_ELEMENTS)
def test_documents_that_are_no_bson_are_refused(server, client, bystander, what):
    with Raw(server) as connection:
        connection.send(insert_of(BAD_ELEMENTS[what]))
        connection.socket.shutdown(1)
        try:
            reply = connection.reply()
        except ConnectionError:
            reply = None
        # Either the connection ends or the reply names BSON's error, and nothing was stored.
        assert reply is None or (reply["ok"] == 0 and reply["code"] in (2, 9, 22)) \
            or reply["writeErrors"][0]["code"] in (2, 9, 22)
    assert client.bad_input.bad.count_documents({}) == 0


def nested(levels):
    inner = b""
    for _ in range(levels - 1):
        inner = b"\x03a\0" + document(inner)
    return inner


def test_nesting_has_a_limit(server, client):
    client.bad_input.bad.drop()
    with Raw(server) as connection:
        assert connection.send(insert_of(nested(100))).reply()["n"] == 1
        reply = connection.send(insert_of(nested(200))).reply()
    assert reply["ok"] == 0 or reply["writeErrors"]
    code = reply.get("code") or reply["writeErrors"][0]["code"]
    assert code in (15, 22, 2)
    assert client.bad_input.bad.count_documents({}) == 1


@pytest.mark.parametrize("levels", [10_000, 1_000_000])
def test_nesting_without_end_exhausts_no_stack(server, bystander, levels):
    # Built from the innermost level outwards: each level adds its header in front and a zero
    # behind.
    sizes = [5 + 8 * level for level in range(levels)]
    elements = b"".join(b"\x03a\0" + struct.pack("<i", size) for size in reversed(sizes))
    whole = insert_of(elements + b"\0" * levels)
    with Raw(server) as connection:
        connection.send(whole)
        connection.socket.shutdown(1)
        connection.is_closed()
    with Raw(server) as connection:
        assert connection.send(op_msg(section(PING))).reply()["ok"] == 1


def test_a_filter_of_many_levels_is_refused(database):
    query = {"a": 1}
    for _ in range(150):
        query = {"$and": [query]}
    with pytest.raises(OperationFailure) as error:
        list(database.c.find(query))
    assert error.value.code in (9, 2, 15)


def test_a_document_of_16_mb_is_stored_and_a_larger_one_refused(server, database):
    # The length of the string with which the document has exactly 16 MiB.
    room = 16 * 1024 * 1024 - len(bson.encode({"_id": 1, "s": ""}))
    database.c.insert_one({"_id": 1, "s": "x" * room})
    assert len(database.c.find_one()["s"]) == room
    with pytest.raises((DocumentTooLarge, WriteError)):
        database.c.insert_one({"_id": 2, "s": "x" * (room + 1)})
    too_large = document(b"\x02s\0" + struct.pack("<i", room + 40_001) + b"x" * (room + 40_000)
                         + b"\0")
    with Raw(server) as connection:
        command = bson.encode({"insert": "c", "$db": database.name})
        reply = connection.send(op_msg(section(command), sequence("documents", [too_large]))).reply()
    code = reply.get("code") or reply["writeErrors"][0]["code"]
    assert code in (10334, 2, 17280)
    assert database.c.count_documents({}) == 1


def test_an_update_may_not_grow_a_document_over_16_mb(database):
    database.c.insert_one({"_id": 1, "a": "x" * 9_000_000})
    with pytest.raises(WriteError) as error:
        database.c.update_one({"_id": 1}, {"$set": {"b": "y" * 9_000_000}})
    assert error.value.code in (17419, 10334, 17420)
    assert list(database.c.find_one()) == ["_id", "a"]


def test_at_most_100000_writes_in_a_batch(server, client):
    command = bson.encode({"insert": "many", "$db": "bad_input"})
    with Raw(server) as connection:
        whole = op_msg(section(command), sequence("documents", [bson.encode({})] * 100_001))
        reply = connection.send(whole).reply()
        assert (reply["ok"], reply["code"]) == (0, 16)
        whole = op_msg(section(command), sequence("documents", []))
        reply = connection.send(whole).reply()
        assert reply["ok"] == 0 and reply["code"] in (16, 9, 40414)
    assert client.bad_input.many.count_documents({}) == 0


@pytest.mark.parametrize("count, key_bytes", [(100_000, 10), (5_000, 2_000)])
def test_errors_of_all_documents_fit_a_reply(database, count, key_bytes):
    """If there are too many messages, the last ones are empty, and further ones have no keys."""
    database.c.create_index("k", unique=True)
    database.c.insert_one({"k": "k" * key_bytes})
    documents = [{"_id": number, "k": "k" * key_bytes} for number in range(count)]
    reply = database.command({"insert": "c", "documents": documents, "ordered": False})
    errors = reply["writeErrors"]
    assert [error["index"] for error in errors] == list(range(count)) and reply["n"] == 0
    assert {error["code"] for error in errors} == {11000}
    assert errors[0]["errmsg"] and "keyValue" in errors[0] and errors[-1]["errmsg"] == ""


@pytest.mark.parametrize("key_bytes", [1_500_000, 5_000_000])
def test_one_error_is_told_in_full(database, key_bytes):
    database.c.create_index("k", unique=True)
    database.c.insert_one({"k": "k" * key_bytes})
    reply = database.command({"insert": "c", "documents": [{"k": "k" * key_bytes}]})
    [error] = reply["writeErrors"]
    assert len(error["errmsg"]) > key_bytes and len(error["keyValue"]["k"]) == key_bytes


def test_what_is_written_is_told_whatever_it_takes(database):
    updates = [UpdateOne({"_id": f"{number:0300}"}, {"$set": {"a": 1}}, upsert=True) for number in range(55_000)]
    assert database.c.bulk_write(updates).upserted_count == 55_000


def test_scopes_of_code_are_levels_of_a_document(database):
    def nested(levels, inner):
        for _ in range(levels):
            inner = {"a": inner}
        return inner

    database.c.insert_one({"_id": 1, "d": nested(80, bson.Code("x", nested(80, 1)))})
    deeper = [{"$set": {"d": nested(60, "$d")}}]
    with pytest.raises(OperationFailure) as error:
        database.c.update_one({}, deeper)
    assert error.value.code == 15
    with pytest.raises(OperationFailure) as error:
        database.c.insert_one({"d": nested(90, bson.Code("x", nested(92, 1)))})
    assert error.value.code == 15 and database.c.count_documents({}) == 1


@pytest.mark.parametrize("command, code, name", [
    ({"noSuchThing": 1}, 59, "CommandNotFound"),
    ({"find": "c", "noSuchOption": 1}, 9, "FailedToParse"),
    ({"insert": "c", "documents": [{}], "noSuchOption": 1}, 40415, None),
    ({"insert": "c"}, 40414, None),
    ({"insert": "c", "documents": 1}, 14, "TypeMismatch"),
    ({"insert": "c", "documents": [1]}, 14, "TypeMismatch"),
    ({"find": "c", "filter": {"a": {"$noSuchOperator": 1}}}, 2, "BadValue"),
    ({"find": "c", "filter": {"$noSuchOperator": 1}}, 2, "BadValue"),
    ({"find": "c", "filter": {"$where": {"a": 1}}}, 2, None),
    ({"find": "c", "filter": {"a": {"$in": 1}}}, 2, "BadValue"),
    ({"find": "c", "filter": {"a": {"$regex": "("}}}, 51091, None),
    ({"find": "c", "hint": "none"}, 2, "BadValue"),
    ({"aggregate": "c", "pipeline": [{"$noSuchStage": {}}], "cursor": {}}, 40324, None),
    ({"aggregate": "c", "pipeline": [{"$project": {"a": {"$noSuch": 1}}}], "cursor": {}}, None,
     None),
    ({"aggregate": "c", "pipeline": [{"$match": {}, "$limit": 1}], "cursor": {}}, 40323, None),
    ({"update": "c", "updates": [{"q": {}, "u": {"$noSuch": {"a": 1}}}]}, 9, None),
    ({"createIndexes": "c", "indexes": [{"key": {"a": "nokind"}, "name": "x"}]}, 67, None),
    ({"createIndexes": "c", "indexes": []}, 2, "BadValue"),
    ({"dropIndexes": "gone", "index": "*"}, 26, "NamespaceNotFound"),
])
def test_what_is_unknown_is_refused_by_name(server, database, command, code, name):
    database.c.insert_one({"_id": 1})
    with Raw(server) as connection:
        reply = connection.send(op_msg(section(command | {"$db": database.name}))).reply()
    if "writeErrors" in reply:
        reply = reply["writeErrors"][0] | {"ok": 0}
    assert reply["ok"] == 0 and reply["errmsg"]
    if code is not None:
        assert reply["code"] == code, reply
    if name is not None:
        assert reply["codeName"] == name
    unknown = [word for word in ("noSuchThing", "noSuchOption", "$noSuchOperator", "$noSuchStage",
                                 "$noSuch", "nokind") if word in str(command)]
    assert all(word in reply["errmsg"] for word in unknown[:1]), reply


def test_admin_commands_are_refused_elsewhere(database):
    reply = database.command("shutdown", check=False)
    assert (reply["ok"], reply["code"]) == (0, 13)


def test_old_messages_are_refused(server, bystander):
    for kind in (raw.OP_UPDATE, raw.OP_INSERT, raw.OP_DELETE, raw.OP_GET_MORE):
        with Raw(server) as connection:
            connection.send(message(b"\0" * 64, kind=kind))
            connection.socket.shutdown(1)
            assert connection.is_closed()


def test_an_old_query_may_only_shake_hands(server):
    """Drivers before version 4.0 also ask for the server's version this way on each new connection.
    """
    with Raw(server) as connection:
        for hello in ("isMaster", "ismaster", "hello"):
            reply = connection.send(op_query({hello: 1})).reply()
            assert reply["ok"] == 1 and reply["maxWireVersion"] >= 13
            assert reply.get("ismaster", reply.get("isWritablePrimary"))
        for build_info in ("buildInfo", "buildinfo"):
            reply = connection.send(op_query({build_info: 1})).reply()
            assert reply["ok"] == 1 and len(reply["versionArray"]) == 4
        for command in ("find", "insert", "listDatabases"):
            reply = connection.send(op_query({command: "c"}, "test.$cmd")).reply()
            assert reply["ok"] == 0 and reply["code"] == 352


def test_a_message_with_a_good_checksum_is_answered(server):
    whole = op_msg(section(PING), flags=1, tail=b"\0" * 4)
    with Raw(server) as connection:
        connection.send(whole[:-4] + struct.pack("<I", crc32c(whole[:-4])))
        assert connection.reply()["ok"] == 1


def test_more_to_come_is_not_answered(server, client):
    client.bad_input.silent.drop()
    insert = {"insert": "silent", "$db": "bad_input", "writeConcern": {"w": 0}}
    with Raw(server) as connection:
        connection.send(op_msg(section(insert), sequence("documents", [{"_id": 1}]), flags=2))
        connection.send(op_msg(section(PING)))
        kind, answers, _ = connection.message()
        assert kind == raw.OP_MSG and answers == 7
        connection.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.message()
    assert client.bad_input.silent.count_documents({}) == 1


def test_sections_may_come_in_either_order(server, client):
    client.bad_input.order.drop()
    insert = section({"insert": "order", "$db": "bad_input"})
    with Raw(server) as connection:
        documents = sequence("documents", [{"_id": 1}, {"_id": 2}])
        assert connection.send(op_msg(documents, insert)).reply()["n"] == 2
    assert client.bad_input.order.count_documents({}) == 2


def test_messages_sent_ahead_are_answered_in_order(server):
    with Raw(server) as connection:
        count = 200
        connection.send(b"".join(
            message(struct.pack("<I", 0) + section(PING), request=number)
            for number in range(count)))
        assert [connection.message()[1] for _ in range(count)] == list(range(count))


def crc32c(data):
    """CRC-32C by its definition: reversed polynomial 0x82F63B78, one bit at a time."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF
