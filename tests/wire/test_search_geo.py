"""Fields of the type `geo`: `near` with a point, `geoWithin` and `geoShape` of `$search`."""

import math
import random

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from test_search import ids, search

RADIUS = 6_371_008.7714


def point(x, y):
    return {"type": "Point", "coordinates": [x, y]}


def square(low, high):
    (left, bottom), (right, top) = low, high
    ring = [[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]]
    return {"type": "Polygon", "coordinates": [ring]}


def line(*positions):
    return {"type": "LineString", "coordinates": [list(position) for position in positions]}


def index_of(collection, **fields):
    definition = {"mappings": {"dynamic": False, "fields": fields}}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))


def meters(one, other):
    """The distance of two positions, by the haversine formula."""
    (x, y), (u, v) = [map(math.radians, position) for position in (one, other)]
    half = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * RADIUS * math.asin(min(1, math.sqrt(half)))


def scored(collection, operator, *stages):
    """The documents found, with their scores."""
    return search(collection, operator, {"$addFields": {"score": {"$meta": "searchScore"}}}, *stages)


def found(collection, operator, **options):
    return sorted(ids(search(collection, {operator: options})))


@pytest.fixture
def places(collection):
    """Points all over the earth, the first hundred near Rome."""
    randomness = random.Random(7)
    near = [(12.5 + randomness.gauss(0, 0.2), 41.9 + randomness.gauss(0, 0.2)) for _ in range(100)]
    far = [(randomness.uniform(-180, 180), math.degrees(math.asin(randomness.uniform(-1, 1))))
           for _ in range(900)]
    collection.insert_many([{"_id": number, "at": point(x, y), "kind": "ab"[number % 2]}
                            for number, (x, y) in enumerate(near + far)])
    index_of(collection, at={"type": "geo"}, kind={"type": "token"})
    return collection, near + far


def test_circles_have_the_points_within_their_radius(places):
    collection, positions = places
    for center, radius in [((12.5, 41.9), 5_000), ((12.5, 41.9), 30_000), ((179, 10), 2e6),
                           ((0, 90), 3e6), ((-60, -30), 1e7), ((0, 0), 3e7), ((5, 5), 0)]:
        expected = [number for number, position in enumerate(positions)
                    if meters(position, center) <= radius]
        circle = {"center": point(*center), "radius": radius}
        assert found(collection, "geoWithin", path="at", circle=circle) == expected


def test_boxes_are_bounded_by_longitudes_and_latitudes(places):
    collection, positions = places
    for low, high in [((12.4, 41.8), (12.6, 42.0)), ((-100, -40), (100, 60)),
                      ((170, -50), (-160, 50)), ((-180, -90), (180, 90)), ((0, 60), (90, 90))]:
        crosses = low[0] > high[0]
        expected = [number for number, (x, y) in enumerate(positions)
                    if low[1] <= y <= high[1]
                    and (x >= low[0] or x <= high[0] if crosses else low[0] <= x <= high[0])]
        box = {"bottomLeft": point(*low), "topRight": point(*high)}
        assert found(collection, "geoWithin", path="at", box=box) == expected
    assert len(expected) > 10


def test_polygons_are_those_of_the_query_language(places):
    collection, _ = places
    for area in [square((12.4, 41.8), (12.6, 42.0)), square((-50, -20), (60, 50)),
                 {"type": "MultiPolygon", "coordinates": [
                     square((0, 0), (20, 20))["coordinates"], square((40, 0), (60, 9))["coordinates"]]}]:
        expected = [found["_id"] for found in
                    collection.find({"at": {"$geoWithin": {"$geometry": area}}}).sort("_id")]
        assert expected
        assert found(collection, "geoWithin", path="at", geometry=area) == expected
        rows = scored(collection, {"geoWithin": {"path": "at", "geometry": area}})
        assert {row["score"] for row in rows} == {1.0}


def test_near_points_have_high_scores(places):
    collection, positions = places
    origin, pivot = (12.5, 41.9), 10_000
    near = {"near": {"path": "at", "origin": point(*origin), "pivot": pivot}}
    rows = scored(collection, near, {"$limit": 50})
    expected = sorted(range(len(positions)), key=lambda it: meters(positions[it], origin))
    assert ids(rows) == expected[:50]
    for row in rows:
        distance = meters(positions[row["_id"]], origin)
        assert row["score"] == pytest.approx(pivot / (pivot + distance), rel=1e-5)
    # The next pages, and a place with no point near it.
    pages = []
    while len(pages) < 1_000:
        token = {"searchAfter": rows[-1]["token"]} if pages else {}
        rows = search(collection, {**near, **token}, {"$limit": 300},
                      {"$project": {"token": {"$meta": "searchSequenceToken"}}})
        pages += ids(rows)
    assert pages == expected
    pole = {"near": {"path": "at", "origin": point(0, 90), "pivot": 0.001}}
    nearest = min(range(len(positions)), key=lambda it: meters(positions[it], (0, 90)))
    assert ids(search(collection, pole, {"$limit": 1})) == [nearest]
    assert len(search(collection, pole)) == 1_000
    circle = {"center": point(*origin), "radius": 15_000}
    within = {"geoWithin": {"path": "at", "circle": circle}}
    both = {"compound": {"must": [near], "filter": [within, {"equals": {"path": "kind", "value": "a"}}]}}
    expected = [number for number in expected
                if meters(positions[number], origin) <= 15_000 and number % 2 == 0]
    assert expected and ids(search(collection, both)) == expected


def test_points_follow_writes(places):
    collection, _ = places
    circle = {"center": point(100, 0), "radius": 100}
    at_100 = lambda: found(collection, "geoWithin", path="at", circle=circle)
    assert at_100() == []
    collection.update_one({"_id": 5}, {"$set": {"at": point(100, 0)}})
    collection.insert_one({"_id": 2000, "at": [point(1, 1), point(100, 0.0001)]})
    collection.insert_many([{"_id": 2001, "at": [100, 0]}, {"_id": 2002, "at": point(300, 0)},
                            {"_id": 2003, "at": {"type": "Point"}}, {"_id": 2004, "at": "here"},
                            {"_id": 2005, "at": square((99, -1), (101, 1))}])
    assert at_100() == [5, 2000]
    rows = scored(collection, {"near": {"path": "at", "origin": point(100, 0), "pivot": 1000}})
    assert [(row["_id"], round(row["score"], 2)) for row in rows[:2]] == [(5, 1.0), (2000, 0.99)]
    collection.update_one({"_id": 5}, {"$unset": {"at": 1}})
    collection.delete_one({"_id": 2000})
    assert at_100() == []
    assert 5 not in ids(search(collection, {"exists": {"path": "at"}}))


SHAPES = {1: square((0, 0), (10, 10)), 2: square((2, 2), (3, 3)), 3: line((1, 1), (20, 1)),
          4: point(2.5, 2.5), 5: square((30, 30), (40, 40)), 6: point(35, 35),
          7: [point(2.5, 2.5), square((50, 50), (51, 51))],
          8: {"type": "GeometryCollection", "geometries": [point(1, 5), line((1, 5), (2, 6))]}}


@pytest.fixture
def shapes(collection):
    collection.insert_many([{"_id": number, "at": shape, "points": shape}
                            for number, shape in SHAPES.items()])
    collection.insert_one({"_id": 9, "at": "nowhere"})
    index_of(collection, at={"type": "geo", "indexShapes": True}, points={"type": "geo"})
    return collection


def test_shapes_have_relations(shapes):
    small, large = square((2.2, 2.2), (2.8, 2.8)), square((-1, -1), (11, 11))
    for relation, geometry, expected in [
            ("intersects", small, [1, 2, 4, 7]),
            ("intersects", line((5, 0), (5, 3)), [1, 3]),
            ("intersects", point(35, 35), [5, 6]),
            ("disjoint", small, [3, 5, 6, 8]),
            ("disjoint", square((-60, -60), (-50, -50)), [1, 2, 3, 4, 5, 6, 7, 8]),
            ("within", large, [1, 2, 4, 8]),
            ("within", square((29, 29), (41, 41)), [5, 6]),
            ("contains", small, [1, 2]),
            ("contains", point(2.5, 2.5), [1, 2, 4, 7]),
            ("contains", line((31, 31), (32, 39)), [5]),
            ("contains", large, [])]:
        options = {"path": "at", "relation": relation, "geometry": geometry}
        assert found(shapes, "geoShape", **options) == expected, (relation, geometry)
        rows = scored(shapes, {"geoShape": options})
        assert all(row["score"] == 1 for row in rows)
    # Points only.
    assert found(shapes, "geoWithin", path="at", geometry=large) == [4, 7]
    # Fields whose shapes are not indexed, and others.
    for path in ["points", "other"]:
        options = {"path": path, "relation": "intersects", "geometry": small}
        assert found(shapes, "geoShape", **options) == []
    circle = {"center": point(2.5, 2.5), "radius": 10}
    assert found(shapes, "geoWithin", path=["points", "other"], circle=circle) == [4, 7]
    assert found(shapes, "geoWithin", path={"wildcard": "*"}, circle=circle) == [4, 7]
    negated = {"compound": {"mustNot": [{"geoShape": {"path": "at", "relation": "intersects",
                                                     "geometry": large}}]}}
    assert sorted(ids(search(shapes, negated))) == [5, 6, 9]


def test_intersections_are_those_of_the_query_language(collection):
    randomness = random.Random(3)

    def shape():
        x, y = randomness.uniform(-170, 160), randomness.uniform(-80, 70)
        width = randomness.choice([0.01, 1, 9])
        return randomness.choice([point(x, y), line((x, y), (x + width, y + width)),
                                  square((x, y), (x + width, y + width))])

    collection.insert_many([{"_id": number, "at": shape()} for number in range(2_000)])
    index_of(collection, at={"type": "geo", "indexShapes": True})
    sizes = set()
    for _ in range(20):
        x, y = randomness.uniform(-170, 130), randomness.uniform(-80, 40)
        area = square((x, y), (x + randomness.uniform(1, 40), y + randomness.uniform(1, 40)))
        for relation, operator in [("intersects", "$geoIntersects"), ("within", "$geoWithin")]:
            wanted = {"at": {operator: {"$geometry": area}}}
            expected = [row["_id"] for row in collection.find(wanted, {"_id": 1}).sort("_id")]
            options = {"path": "at", "relation": relation, "geometry": area}
            assert found(collection, "geoShape", **options) == expected
            sizes.add(len(expected))
    assert max(sizes) > 50


def test_explain_and_counts(places):
    collection, _ = places
    circle = {"center": point(12.5, 41.9), "radius": 1e5}
    stage = {"geoWithin": {"path": "at", "circle": circle}}
    meta = list(collection.aggregate([{"$searchMeta": {**stage, "count": {"type": "total"}}}]))
    assert meta[0]["count"]["total"] >= 99
    plan = collection.database.command(
        "explain", {"aggregate": collection.name, "pipeline": [{"$search": stage}], "cursor": {}})
    assert "geoWithin(at" in str(plan)


def refused(collection, operator, part, **options):
    with pytest.raises(OperationFailure) as error:
        search(collection, {operator: options})
    assert error.value.code == 2 and part in str(error.value), str(error.value)


def test_bad_input(places):
    collection, _ = places
    circle = {"center": point(0, 0), "radius": 1}
    refused(collection, "geoWithin", "one of", path="at")
    refused(collection, "geoWithin", "one of", path="at", circle=circle, geometry=square((0, 0), (1, 1)))
    refused(collection, "geoWithin", "path", circle=circle)
    refused(collection, "geoWithin", "radius", path="at", circle={"center": point(0, 0)})
    refused(collection, "geoWithin", "radius", path="at", circle={**circle, "radius": "1"})
    refused(collection, "geoWithin", "radius", path="at", circle={**circle, "radius": math.nan})
    refused(collection, "geoWithin", "GeoJSON", path="at", circle={**circle, "center": [0, 0]})
    refused(collection, "geoWithin", "out of bounds", path="at", circle={**circle, "center": point(0, 91)})
    refused(collection, "geoWithin", "Polygon", path="at", geometry=point(0, 0))
    refused(collection, "geoWithin", "circle.x", path="at", circle={**circle, "x": 1})
    refused(collection, "geoWithin", "north", path="at",
            box={"bottomLeft": point(0, 5), "topRight": point(1, 1)})
    refused(collection, "geoShape", "relation", path="at", geometry=square((0, 0), (1, 1)))
    refused(collection, "geoShape", "touches", path="at", relation="touches", geometry=point(0, 0))
    refused(collection, "geoShape", "geometry", path="at", relation="within")
    refused(collection, "geoShape", "within", path="at", relation="within", geometry=point(0, 0))
    refused(collection, "near", "GeoJSON", path="at", origin=square((0, 0), (1, 1)), pivot=1)
    refused(collection, "near", "GeoJSON", path="at", origin={"x": 1, "y": 2}, pivot=1)
    refused(collection, "near", "pivot", path="at", origin=point(0, 0), pivot=0)


def test_a_large_search_ends_in_time(collection):
    """Each document is read and its polygon compared."""
    ring = [[10 + math.cos(turn / 500 * math.tau), 10 + math.sin(turn / 500 * math.tau)]
            for turn in range(500)]
    polygon = {"type": "Polygon", "coordinates": [ring + ring[:1]]}
    collection.insert_many([{"at": polygon} for _ in range(3_000)])
    index_of(collection, at={"type": "geo", "indexShapes": True})
    options = {"path": "at", "relation": "intersects", "geometry": line((9, 9), (20, 20))}
    with pytest.raises(OperationFailure) as error:
        list(collection.aggregate([{"$search": {"geoShape": options}}], maxTimeMS=20))
    assert error.value.code == 50
    assert len(found(collection, "geoShape", **options)) == 3_000
