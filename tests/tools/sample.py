"""A database with every kind of index and collection, and everything that a client can see of it."""

import datetime

import bson

INDEXES = [
    ([("a", 1)], {}),
    ([("a", -1)], {"unique": True}),
    ([("a", "hashed")], {}),
    ([("words", "text")], {"weights": {"words": 3}, "default_language": "german"}),
    ([("place", "2d")], {"min": -200, "max": 200, "bits": 20}),
    ([("shape", "2dsphere"), ("a", 1)], {}),
    ([("$**", 1)], {"wildcardProjection": {"q": 1}}),
    ([("at", 1)], {"expireAfterSeconds": 1_000_000_000}),
    ([("p", 1)], {"partialFilterExpression": {"p": {"$gt": 1}}}),
    ([("q", 1)], {"sparse": True, "hidden": True}),
    ([("c", 1)], {"collation": {"locale": "de", "strength": 2}}),
    ([("u", 1)], {"prepareUnique": True}),
]


def fill(database):
    plain = database.create_collection("plain")
    plain.insert_many({
        "_id": i, "a": i, "words": f"word{i}", "place": [i * .1, i * .1], "u": i,
        "shape": {"type": "Point", "coordinates": [i * .5, 1]}, "at": datetime.datetime(2024, 1, 1),
        "decimal": bson.Decimal128("1.50"), "long": bson.Int64(5), "regex": bson.Regex("x", "i"),
        "zero": bson.Timestamp(0, 0), "bytes": b"\0\1", "deep": {"$odd": 1, "a.b": [None, {}]},
    } for i in range(300))
    for key, options in INDEXES:
        plain.create_index(key, **options)
    capped = database.create_collection("capped", capped=True, size=8192, max=10)
    capped.insert_many({"_id": i} for i in range(12))
    clustered = database.create_collection(
        "clustered", clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "own"},
        expireAfterSeconds=100_000_000)
    clustered.insert_many({"_id": i, "x": "y" * i} for i in range(50))
    clustered.create_index("x")
    database.create_collection("checked", validator={"$jsonSchema": {"required": ["a"]}},
                               validationLevel="moderate", validationAction="warn")
    database.create_collection("french", collation={"locale": "fr"}).insert_one({"x": 1})
    database.create_collection("view", viewOn="plain", pipeline=[{"$match": {"a": {"$gt": 3}}}])
    database.create_collection("french_view", viewOn="french", pipeline=[],
                               collation={"locale": "fr"})


def state(database):
    """Everything that a client can see of a database."""
    found = {}
    for information in database.list_collections():
        name = information["name"]
        if name.startswith("system."):
            continue
        information["info"].pop("uuid", None)
        is_view = information["type"] == "view"
        indexes = [] if is_view else [dict(one) for one in database[name].list_indexes()]
        found[name] = {
            "information": information,
            "indexes": sorted(indexes, key=lambda one: one["name"]),
            "documents": [bson.encode(one) for one in database[name].find().sort("_id", 1)],
        }
    return found
