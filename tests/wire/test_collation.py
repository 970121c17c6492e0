"""Collations in updates, pipelines and views: strings compare as the language says."""

import pytest
from pymongo.errors import DuplicateKeyError, OperationFailure

ANY_CASE = {"locale": "en", "strength": 2}


def updated(collection, document, update, filter=None, **options):
    """The document after an update with the collation."""
    collection.drop()
    collection.insert_one({"_id": 1, **document})
    collection.update_one(filter or {}, update, collation=ANY_CASE, **options)
    after = collection.find_one()
    del after["_id"]
    return after


@pytest.mark.parametrize("before, update, after", [
    ({"s": "B"}, {"$min": {"s": "a"}}, {"s": "a"}),
    ({"s": "a"}, {"$max": {"s": "B"}}, {"s": "B"}),
    ({"s": "a"}, {"$max": {"s": "A"}}, {"s": "a"}),
    ({"t": ["a"]}, {"$addToSet": {"t": "A"}}, {"t": ["a"]}),
    ({"t": ["a"]}, {"$addToSet": {"t": {"$each": ["b", "B", "A"]}}}, {"t": ["a", "b"]}),
    ({}, {"$addToSet": {"t": {"$each": ["b", "B"]}}}, {"t": ["b"]}),
    ({"t": ["a", "A", "b"]}, {"$pull": {"t": "A"}}, {"t": ["b"]}),
    ({"t": ["a", "B", "c"]}, {"$pull": {"t": {"$gte": "b"}}}, {"t": ["a"]}),
    ({"t": [{"x": "A"}, {"x": "b"}]}, {"$pull": {"t": {"x": "a"}}}, {"t": [{"x": "b"}]}),
    ({"t": ["a", "A", "b"]}, {"$pullAll": {"t": ["A", "B"]}}, {"t": []}),
    ({"t": ["b", "C"]}, {"$push": {"t": {"$each": ["a", "D"], "$sort": 1}}}, {"t": ["a", "b", "C", "D"]}),
    ({"t": [{"x": "b"}, {"x": "C"}]}, {"$push": {"t": {"$each": [{"x": "A"}], "$sort": {"x": -1}}}},
     {"t": [{"x": "C"}, {"x": "b"}, {"x": "A"}]}),
    ({"s": "a"}, [{"$set": {"r": {"$eq": ["$s", "A"]}, "m": {"$max": ["B", "a"]}}}],
     {"s": "a", "r": True, "m": "B"}),
    ({"t": ["b", "C", "a"]}, [{"$set": {"t": {"$sortArray": {"input": "$t", "sortBy": 1}}}}],
     {"t": ["a", "b", "C"]}),
])
def test_updates_compare_by_the_collation(collection, before, update, after):
    assert updated(collection, before, update) == after


def test_places_in_arrays_are_found_by_the_collation(collection):
    assert updated(collection, {"t": ["a", "b"]}, {"$set": {"t.$": "x"}}, {"t": "B"}) == {"t": ["a", "x"]}
    filters = [{"e": "B"}]
    assert updated(collection, {"t": ["a", "b"]}, {"$set": {"t.$[e]": "x"}},
                   array_filters=filters) == {"t": ["a", "x"]}


def test_a_collection_s_own_collation_holds(database):
    collated = database.create_collection("own", collation=ANY_CASE)
    collated.insert_one({"_id": 1, "t": ["a"], "s": "b"})
    collated.update_one({}, {"$addToSet": {"t": "A"}, "$min": {"s": "A"}})
    assert collated.find_one() == {"_id": 1, "t": ["a"], "s": "A"}
    after = collated.find_one_and_update({"s": "a"}, {"$pull": {"t": "A"}}, return_document=True)
    assert after == {"_id": 1, "t": [], "s": "A"}
    collated.update_one({"_id": 2}, {"$addToSet": {"t": {"$each": ["x", "X"]}}}, upsert=True)
    assert collated.find_one({"_id": 2}) == {"_id": 2, "t": ["x"]}


@pytest.fixture
def words(collection):
    words = ["a", "B", "A", "c", "b"]
    collection.insert_many([{"_id": place, "s": word, "l": words[:place]} for place, word in enumerate(words)])
    return collection


def aggregated(collection, *stages):
    return list(collection.aggregate(list(stages), collation=ANY_CASE))


@pytest.mark.parametrize("accumulator, expected", [
    ({"$addToSet": "$s"}, ["a", "B", "c"]),
    ({"$min": "$s"}, "a"),
    ({"$max": "$s"}, "c"),
    ({"$minN": {"input": "$s", "n": 3}}, ["a", "A", "B"]),
    ({"$maxN": {"input": "$s", "n": 2}}, ["c", "B"]),
    ({"$top": {"output": "$s", "sortBy": {"s": 1}}}, "a"),
    ({"$bottomN": {"output": "$s", "sortBy": {"s": 1}, "n": 2}}, ["b", "c"]),
])
def test_accumulators_compare_by_the_collation(words, accumulator, expected):
    assert aggregated(words, {"$group": {"_id": None, "r": accumulator}}) == [{"_id": None, "r": expected}]


def test_stages_compare_by_the_collation(words):
    buckets = aggregated(words, {"$bucket": {"groupBy": "$s", "boundaries": ["a", "b", "d"]}})
    assert buckets == [{"_id": "a", "count": 2}, {"_id": "b", "count": 3}]
    buckets = aggregated(words, {"$bucketAuto": {"groupBy": "$s", "buckets": 2}})
    assert [one["count"] for one in buckets] == [4, 1]
    joined = aggregated(words, {"$match": {"_id": 1}},
                        {"$lookup": {"from": words.name, "localField": "s", "foreignField": "s", "as": "r"}})
    assert [one["_id"] for one in joined[0]["r"]] == [1, 4]
    numbered = aggregated(words, {"$setWindowFields": {
        "partitionBy": "$s", "sortBy": {"_id": 1}, "output": {"n": {"$documentNumber": {}}}}}, {"$sort": {"_id": 1}})
    assert [one["n"] for one in numbered] == [1, 1, 2, 1, 2]


def test_a_graph_is_followed_by_the_collation(collection):
    collection.insert_many([{"_id": 1, "from": "A", "to": "B"}, {"_id": 2, "from": "b", "to": "C"},
                            {"_id": 3, "from": "c", "to": "a"}])
    found = aggregated(collection, {"$match": {"_id": 1}}, {"$graphLookup": {
        "from": collection.name, "startWith": "$to", "connectFromField": "to", "connectToField": "from", "as": "r"}})
    assert sorted(one["_id"] for one in found[0]["r"]) == [1, 2, 3]


def test_merge_meets_documents_by_the_collation(words, database):
    target = database.create_collection("target", collation=ANY_CASE)
    target.create_index("s", unique=True)
    target.insert_one({"_id": 9, "s": "A", "n": 0})
    merge = {"$merge": {"into": "target", "on": "s", "whenMatched": [{"$set": {"n": {"$eq": ["$s", "$$new.s"]}}}],
                        "whenNotMatched": "discard"}}
    with pytest.raises(OperationFailure) as error:
        list(words.aggregate([{"$match": {"_id": 0}}, {"$unset": "_id"}, merge]))
    assert error.value.code == 51183
    aggregated(words, {"$match": {"_id": 0}}, {"$unset": "_id"}, merge)
    assert list(target.find()) == [{"_id": 9, "s": "A", "n": True}]


def test_a_view_has_a_collation_of_its_own(words, database):
    database.create_collection("v", viewOn=words.name, pipeline=[], collation=ANY_CASE)
    view = database.v
    assert view.options()["collation"]["strength"] == 2
    assert view.count_documents({"s": "a"}) == 2
    assert [one["_id"] for one in view.find({"s": "B"}).sort("_id")] == [1, 4]
    assert [one["s"] for one in view.find().sort([("s", 1), ("_id", 1)])] == ["a", "A", "B", "b", "c"]
    assert [one.lower() for one in view.distinct("s")] == ["a", "b", "c"]
    assert view.count_documents({"s": "a"}, collation=ANY_CASE) == 2
    database.create_collection("same", viewOn="v", pipeline=[], collation=ANY_CASE)
    assert database.same.count_documents({"s": "a"}) == 2
    joins = [{"$lookup": {"from": "v", "localField": "s", "foreignField": "s", "as": "r"}}]
    assert len(aggregated(words, *joins)[0]["r"]) == 2
    for refused in (lambda: list(view.find(collation={"locale": "de"})),
                    lambda: view.distinct("s", collation={"locale": "simple"}),
                    lambda: list(words.aggregate(joins)),
                    lambda: database.create_collection("other", viewOn="v", pipeline=[])):
        with pytest.raises(OperationFailure) as error:
            refused()
        assert error.value.code == 167


def test_variables_of_a_command_are_compared_as_it_compares(database):
    """Regression: the `let` of a command was computed by bytes, whatever the command's collation.
    """
    let = {"same": {"$eq": ["a", "A"]}}
    insensitive = {"locale": "en", "strength": 2}
    database.create_collection("c", collation=insensitive)
    database.c.insert_one({"_id": 1})
    database.plain.insert_one({"_id": 1})
    for collection, collation, expected in (("c", None, True), ("c", {"locale": "simple"}, False),
                                            ("plain", insensitive, True), ("plain", None, False)):
        options = {"let": let, **({"collation": collation} if collation else {})}
        aggregate = {"aggregate": collection, "pipeline": [{"$set": {"same": "$$same"}}], "cursor": {}, **options}
        find = {"find": collection, "projection": {"same": "$$same"}, **options}
        for command in (aggregate, find):
            assert database.command(command)["cursor"]["firstBatch"] == [{"_id": 1, "same": expected}]


def test_a_double_key_is_shown_by_the_bytes_of_its_sort_key(database):
    """The sort key itself is not text."""
    database.create_collection("k", collation=ANY_CASE)
    database.k.create_index([("s", 1), ("n", 1)], unique=True)
    database.k.insert_one({"_id": "\u65e5\u672c", "s": "A", "n": 1})
    for document, index, encoded in (({"_id": "\u65e5\u672c"}, "_id_", [True]),
                                     ({"s": "a", "n": 1}, "s_1_n_1", [True, False])):
        with pytest.raises(DuplicateKeyError) as error:
            database.k.insert_one(document)
        details = error.value.details
        value = details["keyValue"]
        first = next(iter(value.values()))
        assert bytes.fromhex(first) and details["hexEncoded"] == encoded and details["collation"]["strength"] == 2
        assert value.get("n", 1) == 1 and f"index: {index} collation: {{ locale: \"en\"" in details["errmsg"]
        assert f"CollationKey(0x{first})" in details["errmsg"]


def test_no_number_is_shown_by_its_bytes(database):
    database.create_collection("k", collation=ANY_CASE).create_index("n", unique=True)
    database.k.insert_one({"n": float("nan")})
    with pytest.raises(DuplicateKeyError) as error:
        database.k.insert_one({"n": float("nan")})
    assert error.value.details["hexEncoded"] == [False]


@pytest.mark.parametrize("options, changed", [({}, "a"), ({"collation": ANY_CASE}, "A")])
def test_several_ids_that_compare_the_same_are_put_in_order(database, options, changed):
    database.c.insert_many([{"_id": "a", "n": 1}, {"_id": "A", "n": 2}])
    found = database.c.find_one_and_update({"_id": "a"}, {"$set": {"m": 1}}, sort=[("n", -1)], **options)
    assert found["_id"] == changed
