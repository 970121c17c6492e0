"""Operations end when requested: by maxTimeMS, by killOp, and by a client that closes its
connection. Regression: a $regexFind with 3,999 groups on 100 KB of text ran for more than ten
minutes with one core and 1.5 GB. maxTimeMS, killOp and the end of its client did not stop it. Here
each operator, stage and command that can run long gets more work than it can do in the time, and
must end soon after the request."""

import math
import random
import sys
import threading
import time
from pathlib import Path

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure, PyMongoError

from windrow_server import Server

sys.path.insert(0, str(Path(__file__).parent))
from raw import Raw, op_msg, section  # noqa: E402

pytestmark = pytest.mark.alone

# The longest time from the request to the end. The machine may be busy with other tests, so the
# best of several attempts counts.
SECONDS_MAX = 0.3
TRIES = 4
DOCUMENTS = 60_000
ELEMENTS = 1_000_000


def aggregate(*stages, collection="c", **options):
    return {"aggregate": collection, "pipeline": list(stages), "cursor": {}, **options}


def expression(operator):
    """An expression on the one document with a long array and a long string."""
    return aggregate({"$project": {"r": operator}}, {"$match": {"r": "nothing"}}, collection="long")


def again(operator, times=100_000):
    """The same expression many times. Each time must check for interrupts."""
    return expression({"$reduce": {"input": {"$range": [0, times]}, "initialValue": 0, "in": {
        "$cond": [{"$eq": [operator, "$$this"]}, 1, 0]}}})


NESTED = {"$map": {"input": {"$range": [0, 100_000]}, "in": {"$size": {"$filter": {
    "input": "$array", "cond": {"$gt": ["$$this", 5]}}}}}}


def circle(corners, radius):
    """A polygon of many corners about [20, 20]."""
    turns = [step * math.tau / corners for step in range(corners)]
    ring = [[20 + radius * math.cos(turn), 20 + radius * math.sin(turn)] for turn in turns]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def comb(corners):
    """A polygon with edges so close that each is compared with each other one."""
    ring = [[(-10, 10)[step % 2], step * 20 / corners] for step in range(corners)]
    ring += [[10.5, 20], [10.5, -1]]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def encoded(filter):
    """A large filter that is quick to send, so the test measures the server alone."""
    return RawBSONDocument(bson.encode(filter))


WORDS = " ".join(f"word{one}" for one in range(500))


def several_searches(words, **filter):
    """One search of nine million postings takes only a third of a second."""
    search = {"$match": {"$text": {"$search": words}, **filter}}
    union = {"$unionWith": {"coll": "texts", "pipeline": [search]}}
    return aggregate(search, *[union] * 5, {"$match": {"_id": -1}}, collection="texts")


# A number that is computed from a document and takes long.
SLOW = {"$sum": {"$map": {"input": {"$range": [0, 5_000]}, "in": {
    "$mod": ["$$this", {"$add": ["$_id", 7]}]}}}}

READS = {
    "regexMatch with back-references": again(
        {"$regexMatch": {"input": "$text", "regex": r"(a|b|\w)*\1xyz"}}),
    "regexFind with many groups": again(
        {"$regexFind": {"input": "$text", "regex": "(a)" * 3_999 + "z"}}),
    "regexFindAll": again({"$size": {"$regexFindAll": {"input": "$text", "regex": r"\w"}}}),
    "regex with look-around": {"find": "long", "filter": {"text": {
        "$regex": r"(?=[^x]*+y)(?<!q)[a-i ]"}}},
    "regex of many states": {"find": "long", "filter": {"text": {
        "$regex": r"(?:[ab ]{3}|a.{300}){20}[0-9]"}}},
    "many regexes": {"find": "long", "filter": {"$or": [{"words": {"$in": [
        bson.Regex(f"[a-z]{{{length}}}{number}x{times}") for number in range(50)
        for length in range(2, 6)]}} for times in range(20)]}},
    "reduce": expression({"$reduce": {
        "input": {"$range": [0, 5_000_000]}, "initialValue": 0,
        "in": {"$add": ["$$value", {"$mod": [{"$multiply": ["$$this", "$$this"]}, 7]}]}}}),
    "reduce to a string": expression({"$reduce": {
        "input": {"$range": [0, 1_000_000]}, "initialValue": "",
        "in": {"$concat": ["$$value", "abcdefgh"]}}}),
    "map of filters": expression(NESTED),
    "sortArray": again({"$sortArray": {"input": "$words", "sortBy": 1}}),
    "setUnion": again({"$setUnion": ["$array", "$words"]}),
    "setIsSubset": again({"$setIsSubset": ["$words", "$words"]}),
    "setDifference": again({"$setDifference": ["$words", "$array"]}),
    "indexOfArray": again({"$indexOfArray": ["$words", "nothing"]}),
    "in": again({"$in": ["nothing", "$words"]}),
    "zip": again({"$zip": {"inputs": ["$array", "$array"]}}),
    "concatArrays": again({"$concatArrays": ["$array", "$array"]}),
    "reverseArray": again({"$reverseArray": "$array"}),
    "arrayToObject": again({"$arrayToObject": {"$map": {
        "input": "$array", "in": {"k": {"$toString": "$$this"}, "v": 1}}}}),
    "sum of an array": again({"$sum": "$array"}),
    "percentile": again({"$percentile": {"input": "$array", "p": [0.5], "method": "approximate"}}),
    "maxN": again({"$maxN": {"n": 100_000, "input": "$words"}}),
    "split": again({"$size": {"$split": ["$text", " "]}}),
    "replaceAll": again({"$replaceAll": {"input": "$text", "find": "a", "replacement": "ab"}}),
    "indexOfCP": again({"$indexOfCP": ["$text", "nothing"]}),
    "strLenCP": again({"$strLenCP": "$text"}),
    "toUpper": again({"$toUpper": "$text"}),
    "trim": again({"$trim": {"input": "$text", "chars": "abcdefghi "}}),
    "substrCP": again({"$substrCP": ["$text", 5_000_000, 10]}),
    "compare long values": again({"$eq": ["$words", {"$slice": ["$words", ELEMENTS]}]}),
    "elemMatch": {"find": "long", "filter": {"$or": [
        {"words": {"$elemMatch": {"$gt": "x", "$regex": f"{number}$"}}} for number in range(2_000)]}},
    "in of many": {"find": "long", "filter": {"$and": [
        {"words": {"$nin": [f"n{number}", *(f"n{one}x" for one in range(10))]}}
        for number in range(2_000)]}},
    # Regression: sorting the values took a second without a check.
    "in of a million": {"find": "c", "filter": encoded({"n": {"$in": [
        one * 7_919 % 1_000_003 for one in range(1_000_000)]}})},
    # Regression: each pattern was bounded by itself, and joining them had no check.
    "in of many Unicode regexes": {"find": "long", "filter": encoded({"words": {"$in": [
        bson.Regex(rf"\p{{L}}+x{number}") for number in range(100_000)]}})},
    "all": {"find": "long", "filter": {"$nor": [
        {"words": {"$not": {"$all": [f"w{one * 97 + number}" for one in range(500)]}}}
        for number in range(50)]}},
    "jsonSchema": {"find": "long", "filter": {"$and": [{"$jsonSchema": {"properties": {
        "words": {"uniqueItems": True, "items": {"bsonType": "string", "pattern": f"x{number}$|."}}}}}
        for number in range(200)]}},
    "find with a slow filter": {"find": "c", "filter": {"$expr": {"$lt": [SLOW, 0]}}},
    "count": {"count": "c", "query": {"$expr": {"$lt": [SLOW, 0]}}},
    "distinct": {"distinct": "c", "key": "s", "query": {"$expr": {"$gte": [SLOW, 0]}}},
    "graphLookup": aggregate({"$graphLookup": {
        "from": "graph", "startWith": "$_id", "connectFromField": "to", "connectToField": "_id",
        "as": "found"}}, {"$project": {"n": {"$size": "$found"}}}, collection="graph"),
    "graphLookup without an index": aggregate({"$graphLookup": {
        "from": "c", "startWith": "$n", "connectFromField": "next", "connectToField": "m",
        "as": "found"}}),
    "lookup without an index": aggregate({"$lookup": {
        "from": "c", "let": {"n": "$n"}, "pipeline": [
            {"$match": {"$expr": {"$eq": ["$m", {"$add": ["$$n", 1]}]}}}], "as": "found"}},
        {"$match": {"found": 1}}),
    "setWindowFields": aggregate({"$setWindowFields": {"sortBy": {"n": 1}, "output": {
        "w": {"$push": "$n", "window": {"documents": [-5_000, 5_000]}}}}},
        {"$match": {"w": "nothing"}}, allowDiskUse=True),
    "setWindowFields by range": aggregate({"$setWindowFields": {"sortBy": {"n": 1}, "output": {
        "w": {"$minN": {"n": 100, "input": "$s"}, "window": {"range": [-20_000, 20_000]}}}}},
        {"$match": {"w": "nothing"}}, allowDiskUse=True),
    "geoWithin": {"count": "c", "query": {"$nor": [
        {"place": {"$geoWithin": {"$geometry": circle(2_000, 5 + shift / 50)}}}
        for shift in range(200)]}},
    "a large polygon": {"count": "c", "query": encoded({"place": {"$geoWithin": {
        "$geometry": circle(400_000, 5)}}})},
    "geoIntersects": {"count": "shapes", "query": {"$nor": [
        {"shape": {"$geoIntersects": {"$geometry": circle(2_000, 5 + shift / 50)}}}
        for shift in range(200)]}},
    "a polygon of close edges": {"count": "c", "query": encoded({"place": {"$geoWithin": {
        "$geometry": comb(200_000)}}})},
    # Regression: each stored shape took a second for each condition.
    "large stored shapes": {"count": "large", "query": {"$nor": [
        {"shape": {"$geoIntersects": {"$geometry": circle(2_000, 25 + shift / 50)}}}
        for shift in range(50)]}},
    "near large stored shapes": {"find": "large", "filter": {"$nor": [
        {"shape": {"$geoWithin": {"$centerSphere": [[20, 20], 0.3 + shift / 500]}}}
        for shift in range(50)]}},
    "near": {"find": "places", "filter": {"place": {"$near": {"$geometry": {
        "type": "Point", "coordinates": [20, 20]}}}, "$expr": {"$lt": [SLOW, 0]}}},
    "geoNear": aggregate({"$geoNear": {"near": {"type": "Point", "coordinates": [20, 20]},
                                       "distanceField": "d", "query": {"$expr": {"$lt": [SLOW, 0]}}}},
                         collection="places"),
    "sort": aggregate({"$unwind": "$few"}, {"$sort": {"s": -1, "few": 1}}, {"$limit": 1_000_000},
                      {"$group": {"_id": None, "s": {"$last": "$s"}}}, allowDiskUse=True),
    "sort of what is in memory": aggregate({"$project": {"s": 1}}, {"$unwind": {
        "path": "$few", "preserveNullAndEmptyArrays": True}}, {"$facet": {"a": [
            {"$sort": {"s": 1}}, {"$skip": 59_999}], "b": [{"$sort": {"s": -1}}, {"$skip": 59_999}]}},
        *[{"$lookup": {"from": "c", "pipeline": [{"$sort": {"s": 1}}, {"$skip": 59_999}], "as": "x"}}] * 4,
        {"$lookup": {"from": "c", "pipeline": [{"$sort": {"s": -1}}, {"$skip": 59_999}],
                     "as": "y"}}),
    "group that spills": aggregate({"$unwind": "$few"}, {"$group": {
        "_id": {"s": "$s", "few": "$few"}, "all": {"$push": "$$ROOT"}}}, {"$count": "n"},
        allowDiskUse=True),
    "bucketAuto": aggregate({"$unwind": "$few"}, {"$bucketAuto": {"groupBy": "$s", "buckets": 5}},
                            allowDiskUse=True),
    "facet": aggregate({"$unwind": "$few"}, {"$facet": {
        "one": [{"$group": {"_id": "$s"}}, {"$count": "n"}], "two": [{"$sortByCount": "$few"}]}},
        allowDiskUse=True),
    "densify": aggregate({"$match": {"_id": {"$lt": 2}}}, {"$densify": {
        "field": "n", "range": {"step": 1, "bounds": [0, 400_000_000]}}},
        {"$match": {"$expr": {"$lt": [SLOW, 0]}}}),
    "fill": aggregate({"$unwind": "$few"}, {"$unwind": "$few"}, {"$fill": {
        "sortBy": {"s": 1}, "output": {"gap": {"method": "linear"}}}}, {"$match": {"n": -1}},
        allowDiskUse=True),
    "unwind": aggregate({"$set": {"a": {"$range": [0, 5_000]}}}, {"$unwind": "$a"},
                        {"$match": {"a": -1}}),
    "unionWith": aggregate(*[{"$unionWith": "c"} for _ in range(60)], {"$match": {"n": -1}}),
    "redact": aggregate({"$redact": {"$cond": [{"$lt": [SLOW, 0]},
                                               "$$KEEP", "$$DESCEND"]}}, {"$match": {"n": -1}}),
    "sample": aggregate({"$unwind": "$few"}, {"$unwind": "$few"}, {"$sample": {"size": 500_000}},
                        {"$count": "n"}, allowDiskUse=True),
    "text": several_searches(WORDS, s="nothing"),
    "text phrase": several_searches(WORDS + ' "word1 word2" "word3 word4"'),
    "collation": aggregate({"$unwind": "$few"}, {"$sort": {"s": 1, "few": 1}}, {"$skip": 500_000},
                           allowDiskUse=True, collation={"locale": "sv", "strength": 1}),
    "explain": {"explain": aggregate({"$set": {"a": {"$range": [0, 5_000]}}}, {"$unwind": "$a"},
                                     {"$match": {"a": -1}}), "verbosity": "executionStats"},
    "validate": {"validate": "texts", "full": True},
    "dbHash": {"dbHash": 1},
}

WRITES = {
    "out": aggregate({"$set": {"a": {"$range": [0, 2_000]}}}, {"$out": "made"}),
    "merge": aggregate({"$set": {"a": SLOW}}, {"$merge": "merged"}),
    "update": {"update": "w", "updates": [{"q": {}, "u": [{"$set": {"m": SLOW}}], "multi": True}]},
    "update of arrays": {"update": "w", "updates": [{"q": {}, "multi": True, "u": {"$push": {
        "few": {"$each": [{"a": one % 97} for one in range(2_000)], "$sort": {"a": 1}}}}}]},
    "update by array filters": {"update": "long", "updates": [{
        "q": {}, "u": {"$set": {"array.$[e]": 1}},
        "arrayFilters": [{"$and": [{"e": {"$nin": [f"n{one}" for one in range(times, times + 100)]}}
                                   for times in range(500)]}]}]},
    "delete": {"delete": "w", "deletes": [{"q": {"$expr": {"$gte": [SLOW, 0]}}, "limit": 0}]},
    "findAndModify": {"findAndModify": "w", "query": {"$expr": {"$lt": [SLOW, 0]}}, "remove": True},
    "createIndexes": {"createIndexes": "c", "indexes": [
        {"key": {name: direction}, "name": f"{name}{direction}{number}", "collation": {
            "locale": "sv", "strength": 1 + number}}
        for name in ("s", "few", "n", "words") for direction in (1, -1) for number in range(4)]},
    "createIndexes of large shapes": {"createIndexes": "large", "indexes": [
        {"key": {"shape": "2dsphere", f"n{number}": 1}, "name": f"shape{number}"}
        for number in range(10)]},
}


def pairs():
    for name in READS:
        yield from ((name, how) for how in ("maxTimeMS", "killOp", "closed"))
    for name in WRITES:
        yield from ((name, how) for how in ("maxTimeMS", "killOp"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), memory=512 << 20) as server:
        fill(server.client()["ends"])
        yield server
        assert server.process.poll() is None, server.log()[-2000:]
        assert "panicked" not in server.log()


@pytest.fixture(scope="module")
def client(server):
    return server.client(socketTimeoutMS=20_000)


def fill(database, documents=DOCUMENTS, texts=40_000):
    chance = random.Random(1)
    letters = lambda count: "".join(chance.choices("abcdefghi", k=count))  # noqa: E731
    rows = [{
        "_id": one, "n": one, "m": one, "next": one + 1, "s": letters(100), "few": list(range(20)),
        "words": " ".join(f"word{chance.randrange(500)}" for _ in range(60)),
        "place": [chance.uniform(0, 40), chance.uniform(0, 40)]} for one in range(documents)]
    database.c.insert_many(rows)
    database.c.create_index([("words", "text")])
    database.texts.create_index([("words", "text")])
    if texts:
        database.texts.insert_many([{"_id": one, "words": " ".join(
            f"word{word}" for word in chance.choices(range(500), k=300))} for one in range(texts)])
    database.w.insert_many([{"_id": one, "n": one, "few": []} for one in range(20_000)])
    database.places.insert_many([{"_id": one["_id"], "place": {
        "type": "Point", "coordinates": one["place"]}} for one in rows])
    database.places.create_index([("place", "2dsphere")])
    database.shapes.insert_many([{"_id": one["_id"], "shape": {
        "type": "LineString", "coordinates": [one["place"], [one["place"][0] + 1, one["place"][1]]]}}
        for one in rows[:5_000]])
    database.graph.insert_many([{"_id": one, "to": [chance.randrange(2_000) for _ in range(50)]}
                                for one in range(2_000)])
    for one in range(4):
        database.large.insert_one({"_id": one, "shape": circle(300_000, 10 + one)})
    words = [f"w{one}" for one in range(400_000)]
    chance.shuffle(words)
    database.long.insert_one({"_id": 1, "array": list(range(400_000)), "words": words,
                              "text": " ".join(letters(7) for _ in range(300_000))})


def running(client, comment):
    ask = {"currentOp": 1, "command.comment": comment}
    return client.admin.command(ask)["inprog"]


def until(condition, seconds=10):
    """Returns the seconds until the condition holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it goes on"
        time.sleep(0.005)
    return time.monotonic() - began


def by_time(client, command):
    began = time.monotonic()
    with pytest.raises(OperationFailure) as failed:
        client["ends"].command({**command, "maxTimeMS": 100})
    assert failed.value.code == 50, failed.value
    return time.monotonic() - began - 0.1


def by_kill(client, command):
    ended = []

    def run():
        try:
            ended.append(client["ends"].command({**command, "comment": "to be killed"}))
        except PyMongoError as error:
            ended.append(error)
        ended.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: running(client, "to be killed") or ended)
    time.sleep(0.1)
    for operation in running(client, "to be killed"):
        client.admin.command("killOp", op=operation["opid"])
    told = time.monotonic()
    thread.join(60)
    assert len(ended) == 2 and getattr(ended[0], "code", None) == 11601, ended[:1]
    return ended[1] - told


def by_closing(server, client, command):
    with Raw(server) as connection:
        connection.send(op_msg(section({**command, "comment": "to be left", "$db": "ends"})))
        until(lambda: running(client, "to be left"))
        time.sleep(0.1)
        assert running(client, "to be left"), "it ended by itself"
    return until(lambda: not running(client, "to be left"), 60)


def tell(server, client, command, how):
    match how:
        case "maxTimeMS":
            return by_time(client, command)
        case "killOp":
            return by_kill(client, command)
        case "closed":
            return by_closing(server, client, command)


@pytest.mark.parametrize("name, how", list(pairs()))
def test_an_operation_ends_when_told(server, client, name, how):
    command = {**READS, **WRITES}[name]
    took = []
    while not took or (min(took) > SECONDS_MAX and len(took) < TRIES):
        took.append(tell(server, client, command, how))
    assert min(took) <= SECONDS_MAX, f"ended {min(took):.2f} s after it was told to"


def resident(server):
    """The resident memory of the server in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def test_ended_operations_give_their_memory_back(tmp_path):
    """After many rounds the server's memory is about its budget. With forty rounds it is what it
    was with ten, whereas leaks would add up. The test has a server of its own, because memory that
    other tests left in the allocator would count."""
    names = ("zip", "concatArrays", "sort", "group that spills", "facet", "setWindowFields",
             "regexFind with many groups", "regex of many states", "setUnion", "reduce to a string")
    budget, beside_budget = 512 << 20, 128 << 20
    rounds = []
    with Server(tmp_path, memory=budget) as server:
        client = server.client()
        fill(client["ends"], texts=0)
        for _ in range(14):
            for name in names:
                by_time(client, READS[name])
            rounds.append(resident(server))
    assert min(rounds[-3:]) <= budget + beside_budget, [size >> 20 for size in rounds]


def test_the_story(client):
    """The pattern of the regression above, with its text."""
    text = "c" * 50_000 + "d" * 50_000 + "e"
    database = client["story"]
    database.c.insert_one({"_id": 1, "z": text})
    find = {"$regexFind": {"input": "$z", "regex": "(d)" * 3_999 + "e"}}
    found, = database.c.aggregate([{"$project": {"m": find}}], maxTimeMS=3_000)
    assert found["m"]["idx"] == len(text) - 4_000
    assert found["m"]["captures"] == ["d"] * 3_999
    with pytest.raises(OperationFailure) as failed:
        list(database.c.find({"z": {"$regex": "x" * 32_765}}))
    assert failed.value.code == 51091


def test_a_server_under_load_stops_in_time(tmp_path):
    """SIGTERM during long operations of several clients."""
    names = ("regexMatch with back-references", "map of filters", "sortArray", "elemMatch", "jsonSchema",
             "split", "setUnion", "in of many")
    with Server(tmp_path) as server:
        client = server.client()
        fill(client["ends"], documents=2_000, texts=0)

        def run(name):
            with server.client().start_session() as session:
                try:
                    session.client["ends"].command(READS[name], session=session)
                except PyMongoError:
                    # Other tests check how a client learns of the end.
                    pass

        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        until(lambda: len(client.admin.command("currentOp", active=True)["inprog"]) > len(names) / 2)
        time.sleep(0.3)
        began = time.monotonic()
        code = server.stop()
        took = time.monotonic() - began
        for thread in threads:
            thread.join(30)
        assert (code, took <= 5) == (0, True), took
