"""$rankFusion: merges several ranked lists by the ranks of their documents."""

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def ranked(collection):
    collection.insert_many([
        {"_id": 1, "a": 30, "b": 10},
        {"_id": 2, "a": 20, "b": 30},
        {"_id": 3, "a": 10, "b": 20},
    ])
    return collection


def stage(*pipelines, **others):
    named = {f"p{number}": pipeline for number, pipeline in enumerate(pipelines)}
    return {"$rankFusion": {"input": {"pipelines": named}, **others}}


def by(path):
    return {"$sort": {path: -1}}


SCORES = {"$project": {"score": {"$meta": "score"}}}


def scores(collection, *pipelines, **others):
    found = collection.aggregate([stage(*pipelines, **others), SCORES])
    return [(one["_id"], one["score"]) for one in found]


def check(found, expected):
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])


def test_scores_are_sums_over_places(ranked):
    check(scores(ranked, [by("a")], [by("b")]),
          [(2, 1 / 62 + 1 / 61), (1, 1 / 61 + 1 / 63), (3, 1 / 63 + 1 / 62)])
    check(scores(ranked, [by("a")], [by("b")], combination={"weights": {"p0": 2}}),
          [(1, 2 / 61 + 1 / 63), (2, 2 / 62 + 1 / 61), (3, 2 / 63 + 1 / 62)])
    check(scores(ranked, [{"$match": {"_id": 3}}, by("a")], [by("b"), {"$limit": 1}]),
          [(2, 1 / 61), (3, 1 / 61)])
    check(scores(ranked, [by("a"), {"$skip": 1}]), [(2, 1 / 61), (3, 1 / 62)])


def test_documents_of_one_sort_key_have_one_place(ranked):
    ranked.update_many({"_id": {"$ne": 3}}, {"$set": {"a": 40}})
    check(scores(ranked, [by("a")]), [(1, 1 / 61), (2, 1 / 61), (3, 1 / 63)])
    sampled = scores(ranked, [by("a"), {"$sample": {"size": 2}}])
    assert [score for _, score in sampled] == pytest.approx([1 / 61, 1 / 62])


def test_details_say_how_a_score_came_about(ranked):
    fused = stage([by("a"), {"$limit": 1}], [by("b"), {"$limit": 1}], scoreDetails=True)
    [first, _] = ranked.aggregate([fused, {"$sort": {"_id": 1}}, {"$project": {
        "details": {"$meta": "scoreDetails"}, "none": {"$meta": "searchScore"}}}])
    assert first["_id"] == 1 and "none" not in first
    assert first["details"]["value"] == pytest.approx(1 / 61)
    assert first["details"]["details"] == [
        {"inputPipelineName": "p0", "rank": 1, "weight": 1.0, "details": []},
        {"inputPipelineName": "p1", "rank": "NA"},
    ]
    for others in ({}, {"scoreDetails": False}):
        with pytest.raises(OperationFailure) as refused:
            ranked.aggregate([stage([by("a")], **others),
                              {"$project": {"details": {"$meta": "scoreDetails"}}}])
        assert refused.value.code == 40218


def test_it_stands_where_documents_are_read_and_there_first(ranked):
    database = ranked.database
    database.create_collection("v", viewOn=ranked.name, pipeline=[{"$match": {"_id": {"$gt": 1}}}])
    check(scores(database.v, [by("a")]), [(2, 1 / 61), (3, 1 / 62)])
    first = stage([by("b")])
    for outer in ({"$facet": {"x": [first]}},
                  {"$lookup": {"from": ranked.name, "pipeline": [first], "as": "x"}}):
        found = list(ranked.aggregate([outer]))
        assert all([one["_id"] for one in row["x"]] == [2, 3, 1] for row in found)
    union = ranked.aggregate([{"$limit": 1}, {"$unionWith": {"coll": "c", "pipeline": [first]}}])
    assert [one["_id"] for one in union] == [1, 2, 3, 1]
    assert list(database.none.aggregate([first])) == []
    for stages in ([{"$match": {}}, first], [first, first], [{"$facet": {"x": [{"$match": {}}, first]}}]):
        with pytest.raises(OperationFailure) as refused:
            ranked.aggregate(stages)
        assert refused.value.code == 10170100


def test_a_text_search_ranks_by_its_score(collection):
    collection.create_index([("t", "text")])
    collection.insert_many([{"_id": 1, "t": "red"}, {"_id": 2, "t": "blue"}, {"_id": 3, "t": "red red"}])
    search = [{"$match": {"$text": {"$search": "red"}}}, {"$sort": {"s": {"$meta": "textScore"}}}]
    found = [name for name, _ in scores(collection, search)]
    assert sorted(found) == [1, 3]
