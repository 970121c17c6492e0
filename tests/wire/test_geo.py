"""Geospatial queries: an index returns what a scan returns, and near results come first."""

import math
import random

import pytest
from pymongo import GEO2D, GEOSPHERE
from pymongo.errors import OperationFailure, WriteError

from answers import ids

EARTH = 6378100.0
CENTERS = [(0, 0), (13.4, 52.5), (179.9, -17), (-60, 80), (100, -85)]


def point(position):
    return {"type": "Point", "coordinates": list(position)}


def beside(chance, center, size):
    x, y = (value + chance.uniform(-size, size) for value in center)
    return (x + 180) % 360 - 180, max(-90, min(90, y))


def star(chance, center, size):
    """A closed ring around a point."""
    corners = chance.randrange(3, 9)
    ring = []
    for number in range(corners):
        turn, far = 2 * math.pi * number / corners, size * chance.uniform(0.3, 1)
        x, y = center[0] + far * math.cos(turn), center[1] + far * math.sin(turn)
        ring.append([(x + 180) % 360 - 180, max(-89.9, min(89.9, y))])
    return ring + ring[:1]


def shape(chance, center, size):
    kind = chance.random()
    if kind < 0.6:
        return point(beside(chance, center, size))
    if kind < 0.7:
        return list(beside(chance, center, size))
    if kind < 0.8:
        line = [list(beside(chance, center, size)) for _ in range(3)]
        return {"type": "LineString", "coordinates": line}
    if kind < 0.9:
        return {"type": "Polygon", "coordinates": [star(chance, center, size / 4)]}
    return {"type": "GeometryCollection", "geometries": [
        point(beside(chance, center, size)), {
            "type": "MultiPoint", "coordinates": [list(beside(chance, center, size))]}]}


def documents(seed, make, count=300):
    """Documents with a location, with none, and with several."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        one = {"_id": number, "kind": chance.choice("abc")}
        center, size = chance.choice(CENTERS), chance.choice([0.01, 1, 20])
        if chance.random() < 0.9:
            one["p"] = make(chance, center, size)
        if chance.random() < 0.5:
            one["q"] = [{"p": make(chance, center, size)} for _ in range(2)]
        made.append(one)
    return made


def regions(seed):
    chance = random.Random(seed)
    for center in CENTERS:
        for size in [0.005, 0.7, 15, 70]:
            ring = star(chance, center, size)
            yield {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [ring]}}}
            yield {"$geoIntersects": {"$geometry": {"type": "Polygon", "coordinates": [ring]}}}
            yield {"$geoIntersects": {"$geometry": {"type": "LineString", "coordinates": ring}}}
            yield {"$geoWithin": {"$centerSphere": [list(center), math.radians(size)]}}
            yield {"$geoWithin": {"$center": [list(center), size]}}
            yield {"$within": {"$box": [list(center), [center[0] - size, center[1] + size]]}}
            yield {"$geoWithin": {"$polygon": ring[:-1]}}


INDEXES = {
    "sphere": [("p", GEOSPHERE)],
    "sphere behind": [("kind", 1), ("p", GEOSPHERE)],
    "sphere before": [("p", GEOSPHERE), ("kind", -1)],
    "sphere twice": [("p", GEOSPHERE), ("q.p", GEOSPHERE)],
    "sphere in arrays": [("q.p", GEOSPHERE), ("kind", 1)],
    "plane": [("p", GEO2D)],
    "plane before": [("p", GEO2D), ("kind", 1)],
    "plane in arrays": [("q.p", GEO2D)],
}


def places_of(kind):
    plane = lambda chance, center, size: list(beside(chance, center, size))  # noqa: E731
    return shape if kind.startswith("sphere") else plane


@pytest.mark.parametrize("built", ["before", "after"])
@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_changes_no_answer(collection, kind, built):
    key = INDEXES[kind]
    if built == "before":
        collection.create_index(key)
    collection.insert_many(documents(kind, places_of(kind)))
    path = "q.p" if "arrays" in kind else "p"
    queries = [{path: region} for region in regions(kind)]
    queries += [{path: region, "kind": "a"} for region in regions(kind + "again")]
    natural = [sorted(ids(collection.find(query).hint([("$natural", 1)]))) for query in queries]
    assert sum(map(len, natural)) > 1000
    if built == "after":
        collection.create_index(key)
    for query, expected in zip(queries, natural):
        assert sorted(ids(collection.find(query))) == expected, query
        assert collection.count_documents(query) == len(expected), query
    found = collection.database.command({"validate": collection.name, "full": True})
    assert found["valid"], found["errors"]


@pytest.mark.parametrize("kind", ["sphere", "plane"])
def test_an_index_follows_updates_and_deletes(collection, kind):
    collection.create_index(INDEXES[kind])
    collection.insert_many(documents(kind, places_of(kind)))
    inside = {"p": {"$geoWithin": {"$centerSphere": [[0, 0], 0.3]}}}
    count = collection.count_documents(inside)
    assert 10 < count < 200
    moved = collection.update_many(inside, {"$set": {"p": [13.4, 52.5]}})
    assert moved.modified_count == count and collection.count_documents(inside) == 0
    there = {"p": {"$geoWithin": {"$centerSphere": [[13.4, 52.5], 1e-6]}}}
    assert collection.count_documents(there) >= count
    assert collection.delete_many(there).deleted_count >= count
    assert collection.count_documents(there) == 0
    found = collection.database.command({"validate": collection.name, "full": True})
    assert found["valid"], found["errors"]


def meters(one, other):
    (x, y), (u, v) = ([math.radians(value) for value in place] for place in (one, other))
    half = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * EARTH * math.asin(min(1, math.sqrt(half)))


@pytest.mark.parametrize("center", CENTERS + [(-33.3, 5), (77, 77)])
@pytest.mark.parametrize("kind", ["sphere", "sphere behind", "plane", "plane before"])
def test_near_is_in_the_order_of_distances(collection, kind, center):
    """Around points with many neighbours and with none."""
    chance = random.Random(kind)
    collection.insert_many([
        {"_id": number, "kind": chance.choice("ab"),
         "p": list(beside(chance, chance.choice(CENTERS), chance.choice([0.01, 1, 30])))}
        for number in range(400)])
    collection.create_index(INDEXES[kind])
    beginning = {"kind": "a"} if kind == "sphere behind" else {}
    made = list(collection.find(beginning))
    measures = {"radians": (lambda one: meters(center, one["p"]) / EARTH, "$nearSphere", list(center))}
    if kind.startswith("sphere"):
        geometry = {"$geometry": point(center)}
        measures["meters"] = (lambda one: meters(center, one["p"]), "$near", geometry)
    else:
        measures["plane"] = (lambda one: math.dist(center, one["p"]), "$near", list(center))
    for distance, operator, operand in measures.values():
        ordered = sorted(distance(one) for one in made)
        near = lambda **bounds: {**beginning, "p": {operator: operand, **bounds}}  # noqa: E731
        found = [distance(one) for one in collection.find(near())]
        assert found == pytest.approx(ordered, rel=1e-6, abs=1e-6)
        first = [distance(one) for one in collection.find(near()).skip(3).limit(5)]
        assert first == pytest.approx(ordered[3:8], rel=1e-6, abs=1e-6)
        low, high = (ordered[len(ordered) // 4] * 1.00001, ordered[len(ordered) // 2] * 1.00001)
        between = [one for one in ordered if low <= one <= high]
        bounded = near()
        inner = bounded["p"][operator]
        target = inner if isinstance(inner, dict) else bounded["p"]
        bounded["p"][operator] = dict(inner) if isinstance(inner, dict) else inner
        target = bounded["p"][operator] if isinstance(inner, dict) else bounded["p"]
        target.update({"$minDistance": low, "$maxDistance": high})
        found = [distance(one) for one in collection.find(bounded)]
        assert found == pytest.approx(between, rel=1e-6, abs=1e-6)
        filtered = [distance(one) for one in collection.find({**near(), "kind": "a"})]
        some = sorted(distance(one) for one in made if one["kind"] == "a")
        assert filtered == pytest.approx(some, rel=1e-6, abs=1e-6)


def test_a_limit_ends_a_search_early(collection):
    chance = random.Random(5)
    collection.insert_many([{"p": [chance.uniform(-170, 170), chance.uniform(-80, 80)]}
                            for _ in range(12000)])
    for kind, operator in [(GEOSPHERE, "$nearSphere"), (GEO2D, "$near")]:
        collection.create_index([("p", kind)], name=kind)
        plan = {"find": collection.name, "filter": {"p": {operator: [10, 10]}}, "limit": 3}
        stats = collection.database.command({"explain": plan, "verbosity": "executionStats"})
        stats = stats["executionStats"]
        assert stats["nReturned"] == 3 and stats["totalDocsExamined"] < 400, kind
        shown = {"d": {"$meta": "geoNearDistance"}}
        distances = [one["d"] for one in collection.find({"p": {operator: [10, 10]}}, shown)]
        assert len(distances) == 12000 and distances == sorted(distances), kind
        collection.drop_indexes()


def test_shapes_are_as_near_as_their_nearest_point(collection):
    collection.create_index([("p", GEOSPHERE)])
    collection.insert_many([
        {"_id": "around", "p": {"type": "Polygon",
                                "coordinates": [[[-9, -9], [9, -9], [9, 9], [-9, 9], [-9, -9]]]}},
        {"_id": "line", "p": {"type": "LineString", "coordinates": [[1, -50], [1, 50]]}},
        {"_id": "points", "p": {"type": "MultiPoint", "coordinates": [[170, 0], [2, 0]]}},
        {"_id": "far", "p": point((-60, 0))}])
    found = collection.find({"p": {"$near": {"$geometry": point((0, 0))}}},
                            {"d": {"$meta": "geoNearDistance"}, "at": {"$meta": "geoNearPoint"}})
    found = list(found)
    assert ids(found) == ["around", "line", "points", "far"]
    expected = [0, meters((0, 0), (1, 0)), meters((0, 0), (2, 0)), meters((0, 0), (60, 0))]
    assert [one["d"] for one in found] == pytest.approx(expected)
    assert found[3]["at"] == point((-60, 0))
    away = collection.find({"p": {"$near": {"$geometry": point((0, 0))}}}).sort("_id", -1)
    assert ids(away) == ["points", "line", "far", "around"]


def test_lists_of_points(collection):
    collection.create_index([("p", GEO2D)])
    collection.insert_many([{"_id": 1, "p": [[0, 0], [50, 50]]}, {"_id": 2, "p": [[1, 1], [9, 9]]},
                            {"_id": 3, "p": {"lng": 2, "lat": 2, "name": "x"}}])
    assert ids(collection.find({"p": {"$near": [49, 49]}})) == [1, 2, 3]
    assert ids(collection.find({"p": {"$geoWithin": {"$center": [[50, 50], 1]}}})) == [1]
    with pytest.raises(WriteError) as refused:
        collection.update_one({"_id": 1}, {"$push": {"p": [181, 0]}})
    assert refused.value.code == 13027


def test_geo_near_shows_distances(collection):
    collection.create_index([("p", GEOSPHERE)])
    collection.insert_many([{"_id": number, "kind": "ab"[number % 2], "p": point((number, 0))}
                            for number in range(50)])
    stage = {"near": point((0, 0)), "distanceField": "at.distance", "includeLocs": "at.place",
             "distanceMultiplier": 0.001, "query": {"kind": "b"}, "maxDistance": 800000,
             "minDistance": 150000}
    found = list(collection.aggregate([{"$geoNear": stage}, {"$sort": {"_id": -1}}]))
    assert ids(found) == [7, 5, 3]
    assert found[2]["at"]["distance"] == pytest.approx(meters((0, 0), (3, 0)) / 1000)
    assert found[2]["at"]["place"] == point((3, 0))
    counted = collection.aggregate([{"$geoNear": stage}, {"$count": "n"}]).next()
    assert counted == {"n": 3}
    stage = {"near": [0, 0], "distanceField": "d", "spherical": True, "maxDistance": 0.05}
    found = list(collection.aggregate([{"$geoNear": stage}, {"$limit": 2}, {"$project": {"d": 1}}]))
    assert [one["d"] for one in found] == pytest.approx([0, math.radians(1)])
    collection.update_one({"_id": 0}, {"$set": {"list": [{"d": 1}, {"d": 2}]}})
    for shown, expected in (({"distanceField": "list.d"}, {"list": {"d": 0}}),
                            ({"distanceField": "x", "includeLocs": "x"}, {"x": point((0, 0))})):
        nearest = collection.aggregate([{"$geoNear": stage | shown}]).next()
        assert nearest | expected == nearest
    shown = {"$addFields": {"again": {"$meta": "geoNearDistance"}}}
    found = list(collection.aggregate([{"$geoNear": stage}, shown]))
    assert all(one["again"] == one["d"] for one in found)


def test_geo_near_takes_its_collation_from_the_command(collection):
    collection.create_index([("p", GEO2D)])
    collection.insert_one({"_id": 1, "p": [1, 1], "s": "A"})
    insensitive = {"locale": "en", "strength": 2}
    stage = {"near": [0, 0], "distanceField": "d", "query": {"s": "a"}}
    assert ids(collection.aggregate([{"$geoNear": stage}], collation=insensitive)) == [1]
    with pytest.raises(OperationFailure) as refused:
        collection.aggregate([{"$geoNear": {**stage, "collation": insensitive}}])
    assert refused.value.code == 40227


def test_geo_near_takes_variables(collection):
    database = collection.database
    collection.create_index([("p", GEO2D)])
    collection.insert_many([{"_id": number, "p": [number, 0]} for number in range(9)])
    stage = {"$geoNear": {"near": "$$pt", "distanceField": "d", "maxDistance": {"$add": ["$$far", 1]}}}
    found = collection.aggregate([stage], let={"pt": [7, 0], "far": 0})
    assert [(one["_id"], one["d"]) for one in found] == [(7, 0), (6, 1), (8, 1)]
    database["other"].insert_many([{"_id": "a", "at": [2, 0]}, {"_id": "b", "at": [8, 0]}])
    join = {"from": "c", "let": {"pt": "$at", "far": 0}, "pipeline": [stage], "as": "near"}
    joined = {one["_id"]: ids(one["near"]) for one in database["other"].aggregate([{"$lookup": join}])}
    assert joined == {"a": [2, 1, 3], "b": [8, 7]}
    with pytest.raises(OperationFailure) as refused:
        collection.aggregate([stage], let={"pt": 5, "far": 0})
    assert refused.value.code == 5860401


def test_geo_near_reads_views_and_joins(collection):
    database = collection.database
    collection.create_index([("p", GEOSPHERE)])
    collection.insert_many([{"_id": number, "p": point((number, 0))} for number in range(9)])
    stage = {"$geoNear": {"near": point((8, 0)), "distanceField": "d"}}
    database.create_collection("view", viewOn="c", pipeline=[stage, {"$limit": 3}])
    assert ids(database["view"].find()) == [8, 7, 6]
    database["other"].insert_one({"_id": 1})
    join = {"from": "c", "pipeline": [stage, {"$limit": 2}], "as": "near"}
    joined = database["other"].aggregate([{"$lookup": join}]).next()
    assert ids(joined["near"]) == [8, 7]
    with pytest.raises(OperationFailure) as refused:
        database["view"].aggregate([stage])
    assert refused.value.code == 40602


def test_near_in_updates_and_deletes(collection):
    collection.create_index([("p", GEO2D)])
    collection.insert_many([{"_id": number, "p": [number, 0]} for number in range(9)])
    collection.update_one({"p": {"$near": [7, 0]}}, {"$set": {"x": 1}})
    assert ids(collection.find({"x": 1})) == [7]
    collection.delete_one({"p": {"$near": [7, 0]}})
    assert collection.delete_many({"p": {"$near": [0, 0], "$maxDistance": 2}}).deleted_count == 3
    assert ids(collection.find()) == [3, 4, 5, 6, 8]
    assert collection.find_one_and_delete({"p": {"$near": [9, 0]}})["_id"] == 8
    assert collection.distinct("_id", {"p": {"$near": [0, 0], "$maxDistance": 4}}) == [3, 4]


def test_near_behind_a_field_that_must_only_be_there(collection):
    """Regression: the index was used only if the filter restricted its first field."""
    collection.create_index([("a", 1), ("p", GEOSPHERE)])
    collection.insert_many([{"_id": 0, "a": 1, "p": [2, 0]}, {"_id": 1, "p": [0, 0]},
                            {"_id": 2, "a": None, "p": [1, 0]}])
    near = {"$nearSphere": [0, 0]}
    assert ids(collection.find({"a": {"$exists": True}, "p": near})) == [2, 0]
    required = {"required": ["a"]}
    assert ids(collection.find({"$jsonSchema": required, "p": near})) == [2, 0]
    assert ids(collection.find({"$jsonSchema": {"allOf": [required]}, "p": near})) == [2, 0]
    with pytest.raises(OperationFailure) as error:
        list(collection.find({"p": near}))
    assert error.value.code == 291


@pytest.mark.parametrize("condition, said", [
    ({"$near": [0, 0]}, "maxdist=1.79769e+308 isNearSphere=0"),
    ({"$nearSphere": [0, 0], "$maxDistance": 2.5}, "maxdist=2.5 isNearSphere=1"),
    ({"$near": {"$geometry": point((0, 0)), "$maxDistance": 500}}, "maxdist=500 isNearSphere=0"),
])
def test_the_field_that_has_no_index_is_told(collection, condition, said):
    """Some applications find the name of the field in the message, create the index and try again.
    """
    collection.insert_one({"a": {"b": [0, 0]}})
    with pytest.raises(OperationFailure) as error:
        list(collection.find({"a.b": condition}))
    assert error.value.code == 291
    assert f"ns={collection.full_name}Tree: GEONEAR  field=a.b {said}\n" in str(error.value)
    assert "unable to find index for $geoNear query" in str(error.value)


@pytest.mark.parametrize("query, code", [
    ({"q": {"$near": [0, 0]}}, 291),
    ({"p": {"$near": [0, 0]}}, 291),
    ({"$or": [{"p": {"$nearSphere": [0, 0]}}]}, None),
    ({"$or": [{"p": {"$nearSphere": [0, 0]}}, {"a": 1}]}, 2),
    ({"p": {"$elemMatch": {"$nearSphere": [0, 0]}}}, 2),
    ({"p": {"$not": {"$nearSphere": [0, 0]}}}, 2),
    ({"p": {"$nearSphere": [0, 0]}, "$text": {"$search": "x"}}, 2),
    ({"p": {"$nearSphere": [0, 100]}}, 2),
    ({"p": {"$nearSphere": {"$geometry": point((0, 0))}, "$maxDistance": 5}}, 2),
    ({"p": {"$nearSphere": point((0, 0)), "$maxDistance": 500_000}}, None),
    ({"p": {"$nearSphere": [0, 0], "$maxDistance": -1}}, 16896),
    ({"p": {"$nearSphere": [0, 0], "$maxDistance": float("inf")}}, 16896),
    ({"p": {"$geoWithin": {"$geometry": point((0, 0))}}}, 2),
    ({"p": {"$geoWithin": {"$box": [[0, 0], [1, 1], [0, 0]]}}}, None),
    ({"p": {"$geoWithin": {"$box": [[0, 0], [1, float("inf")]]}}}, 2),
    ({"p": {"$geoWithin": {"$center": [[0, float("nan")], 1]}}}, 2),
    ({"p": {"$geoWithin": {"$polygon": [[0, 0], [3, 0], [0, float("-inf")]]}}}, 2),
    ({"p": {"$geoIntersects": {"$geometry": [1, 1]}}}, None),
    ({"p": {"$geoIntersects": {"$geometry": {"lng": 1, "lat": 1}}}}, None),
    ({"p": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": {"x": 1, "y": 1}}}}}, None),
    ({"p": {"$geoIntersects": {"$geometry": {"x": 1, "y": 1, "z": 1}}}}, 2),
    ({"p": {"$geoIntersects": {"$geometry": {"type": "Spot", "coordinates": [1, 1]}}}}, 2),
    ({"p": {"$geoIntersects": {"$box": [[0, 0], [1, 1]]}}}, 2),
    ({"p": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [
        [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}}}}, 2),
])
def test_what_cannot_be_asked_is_refused(collection, query, code):
    collection.create_index([("p", GEOSPHERE)])
    collection.insert_one({"p": [1, 1]})
    if code is None:
        assert len(list(collection.find(query))) == 1
        return
    with pytest.raises(OperationFailure) as refused:
        list(collection.find(query))
    assert refused.value.code == code


def test_near_stands_only_where_order_is_asked_for(collection):
    database = collection.database
    collection.create_index([("p", GEOSPHERE)])
    collection.insert_one({"p": [1, 1]})
    near = {"p": {"$nearSphere": [0, 0]}}
    refusals = [
        (lambda: collection.aggregate([{"$match": near}]), 5626500),
        (lambda: collection.count_documents(near), 5626500),
        (lambda: database.create_collection("v", validator=near), 2),
        (lambda: collection.aggregate([{"$geoNear": {"near": [0, 0]}}]), 16606),
        (lambda: collection.aggregate([{"$geoNear": {"distanceField": "d"}}]), 16605),
        (lambda: collection.aggregate([{"$limit": 1}, {"$geoNear": {
            "near": [0, 0], "distanceField": "d"}}]), 40602),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "limit": 5}}]), 50858),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "key": 5}}]), 14),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "key": "$p"}}]), 16410),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d\0"}}]), 16411),
        (lambda: collection.aggregate([{"$geoNear": {"near": "$p", "distanceField": "d"}}]), 5860402),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "minDistance": "$a"}}]), 7555701),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "maxDistance": "$a"}}]), 7555702),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "distanceMultiplier": {"$add": [1, 2]}}}]), 14),
        (lambda: collection.aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d", "x": 1}}]), 2),
        (lambda: database["none"].aggregate([{"$geoNear": {
            "near": [0, 0], "distanceField": "d"}}]), 26),
        (lambda: collection.create_index("a", partialFilterExpression=near), 67),
    ]
    for ask, code in refusals:
        with pytest.raises(OperationFailure) as refused:
            list(ask() or [])
        assert refused.value.code == code, refused.value
    assert collection.estimated_document_count() == 1
    assert database.command({"count": "c", "query": near})["n"] == 1
    collection.create_index([("q", GEOSPHERE)])
    stage = {"near": point((0, 0)), "distanceField": "d"}
    with pytest.raises(OperationFailure) as refused:
        collection.aggregate([{"$geoNear": stage}])
    assert refused.value.code == 27
    assert len(list(collection.aggregate([{"$geoNear": {**stage, "key": "p"}}]))) == 1


def test_plans_say_what_is_read(collection):
    collection.create_index([("p", GEOSPHERE)], name="sphere")
    collection.create_index([("q", GEO2D)], name="plane", bits=20, min=-200, max=200)
    collection.insert_many([{"p": [one, one], "q": [one, one]} for one in range(50)])
    listed = {one["name"]: one for one in collection.list_indexes()}
    assert listed["sphere"]["2dsphereIndexVersion"] == 3
    assert (listed["plane"]["bits"], listed["plane"]["min"]) == (20, -200)
    plan = lambda query: collection.find(query).explain()["queryPlanner"]["winningPlan"]  # noqa: E731
    near = plan({"p": {"$nearSphere": [0, 0]}})
    assert (near["stage"], near["indexName"]) == ("GEO_NEAR_2DSPHERE", "sphere")
    near = plan({"q": {"$near": [0, 0]}})
    assert (near["stage"], near["indexName"]) == ("GEO_NEAR_2D", "plane")
    within = plan({"p": {"$geoWithin": {"$centerSphere": [[3, 3], 0.01]}}})
    assert within["stage"] == "FETCH" and "$geoWithin" in within["filter"]["p"]
    scan = within["inputStage"]
    assert (scan["stage"], scan["indexName"]) == ("IXSCAN", "sphere")
    assert len(scan["indexBounds"]["p"]) > 3
    within = plan({"q": {"$geoWithin": {"$box": [[0, 0], [3, 3]]}}})
    assert within["inputStage"]["indexName"] == "plane"
    within = plan({"p": {"$geoWithin": {"$box": [[0, 0], [3, 3]]}}})
    assert within["stage"] == "COLLSCAN"


@pytest.mark.parametrize("operator, shape", [
    ("$geoWithin", {"$centerSphere": [[13.4, 52.5], 0.01]}), ("$geoWithin", {"$box": [[10, 50], [15, 55]]}),
    ("$geoIntersects", {"$geometry": {"type": "Polygon", "coordinates": [
        [[10, 50], [15, 50], [15, 55], [10, 55], [10, 50]]]}}),
])
def test_places_limit_a_partial_index(collection, operator, shape):
    collection.insert_many(documents(7, lambda chance, center, size: point(beside(chance, center, size))))
    there = {"p": {operator: shape}}
    queries = [there, {**there, "kind": "a"}, {"kind": "a"}, {"kind": "a", "p": {"$exists": True}},
               {"kind": "a", "p": {operator: {"$centerSphere": [[13.4, 52.5], 1]}}} if operator == "$geoWithin"
               else {"kind": {"$in": ["a", "b"]}, **there}]
    expected = [ids(collection.find(query)) for query in queries]
    assert expected[0] and len(expected[0]) < 300
    collection.create_index("kind", name="some", partialFilterExpression=there)
    for query, found in zip(queries, expected):
        assert sorted(ids(collection.find(query))) == found
        implied = query.get("p") == there["p"] and "kind" in query
        plan = collection.find(query).explain()["queryPlanner"]["winningPlan"]
        assert ("some" in str(plan)) == implied, plan
    collection.update_many({"kind": "a"}, {"$set": {"p": point((13.4, 52.5))}})
    collection.update_many({"kind": "b"}, {"$unset": {"p": 1}})
    collection.delete_many({"kind": "c"})
    assert collection.count_documents({"kind": "a", **there}, hint="some") == collection.count_documents({})\
        - collection.count_documents({"kind": "b"})
    assert collection.database.command("validate", "c")["valid"]


@pytest.mark.parametrize("indexed", [False, True])
def test_the_edge_of_a_circle_is_where_the_sum_of_centre_and_radius_is(collection, indexed):
    """Regression: 5.0001 - 5 is more than 0.0001 as a double, so the point was outside."""
    around = [(4.9999, 52), (5, 52), (5.0001, 52), (5, 52.0001), (5, 51.9999)]
    corners = [(x, y) for x in (4.9999, 5.0001) for y in (51.9999, 52.0001)]
    collection.insert_many({"_id": number, "p": list(place)} for number, place in enumerate(around + corners))
    if indexed:
        collection.create_index([("p", GEO2D)])
    circle = {"p": {"$geoWithin": {"$center": [[5, 52], 0.0001]}}}
    assert sorted(ids(collection.find(circle))) == [0, 1, 2, 3, 4]


def test_points_that_repeat_at_the_end_of_a_ring_count_once(collection):
    collection.create_index([("p", GEOSPHERE)])
    shell = [[-3, -3], [3, -3], [3, 3], [-3, 3], [-3, -3]]
    hole = [[-2, -2], [2, -2], [2, 2], [-2, 2], [-2, -2], [-2, -2]]
    collection.insert_one({"_id": 1, "p": {"type": "Polygon", "coordinates": [shell, hole]}})
    for place, expected in (((2.5, 0), [1]), ((0, 0), [])):
        assert ids(collection.find({"p": {"$geoIntersects": {"$geometry": point(place)}}})) == expected


def test_unique_documents_mean_nothing_to_a_stage(collection):
    collection.create_index([("p", GEO2D)])
    collection.insert_one({"p": [1, 1]})
    stage = {"$geoNear": {"near": [0, 0], "distanceField": "d", "uniqueDocs": True}}
    assert len(list(collection.aggregate([stage]))) == 1


@pytest.mark.parametrize("ring", [
    [[1, 1]] * 4, [[1, 1], [1, 1], [2, 2], [1, 1]], [[1, 1], [2, 2], [2, 2], [1, 1], [1, 1]],
])
def test_a_ring_of_fewer_than_three_places_is_none(collection, ring):
    """Regression: a ring with a single position ended an index build, at every start again."""
    polygon = {"type": "Polygon", "coordinates": [ring]}
    with pytest.raises(OperationFailure) as error:
        list(collection.find({"p": {"$geoWithin": {"$geometry": polygon}}}))
    assert error.value.code == 2
    collection.insert_one({"p": polygon})
    with pytest.raises(OperationFailure) as error:
        collection.create_index([("p", GEOSPHERE)])
    assert error.value.code == 16755
    assert list(collection.index_information()) == ["_id_"]
