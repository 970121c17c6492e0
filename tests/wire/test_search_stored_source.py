"""`storedSource` of search indexes and `returnStoredSource` of `$search`."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

DOCUMENT = {"_id": 1, "text": "a word", "a": {"b": 1, "c": [{"d": 2, "e": 3}]}, "n": 4}


def index_of(collection, stored):
    collection.insert_one(DOCUMENT)
    definition = {"mappings": {"dynamic": True}, "storedSource": stored}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))


def found(collection, **options):
    operator = {"text": {"query": "word", "path": "text"}, **options}
    return list(collection.aggregate([{"$search": operator}]))


@pytest.mark.parametrize("stored, expected", [
    (True, DOCUMENT),
    ({"include": ["n", "a.c.d"]}, {"_id": 1, "a": {"c": [{"d": 2}]}, "n": 4}),
    ({"include": ["a", "a.b", "_id"]}, {"_id": 1, "a": DOCUMENT["a"]}),
    ({"include": ["_id"]}, {"_id": 1}),
    ({"exclude": ["a.c", "text"]}, {"_id": 1, "a": {"b": 1}, "n": 4}),
    ({"exclude": ["_id"]}, DOCUMENT),
])
def test_searches_return_the_stored_fields(collection, stored, expected):
    index_of(collection, stored)
    assert found(collection, returnStoredSource=True) == [expected]
    assert found(collection) == found(collection, returnStoredSource=False) == [DOCUMENT]


def test_highlights_and_later_stages_see_what_they_should(collection):
    index_of(collection, {"include": ["n"]})
    operator = {"text": {"query": "word", "path": "text"}, "highlight": {"path": "text"},
                "returnStoredSource": True}
    stages = [{"$search": operator}, {"$match": {"n": 4}},
              {"$set": {"text": {"$ifNull": ["$text", "not stored"]},
                        "marks": {"$meta": "searchHighlights"}}}]
    [row] = collection.aggregate(stages)
    assert row["text"] == "not stored"
    assert [part["value"] for part in row["marks"][0]["texts"]] == ["a ", "word"]
    collection.update_one({"_id": 1}, {"$set": {"n": 5}})
    assert found(collection, returnStoredSource=True) == [{"_id": 1, "n": 5}]


def test_an_index_without_stored_fields_refuses(collection):
    index_of(collection, False)
    with pytest.raises(OperationFailure) as error:
        found(collection, returnStoredSource=True)
    assert "storedSource" in str(error.value)


@pytest.mark.parametrize("stored", [
    1, {}, {"include": []}, {"include": [1]}, {"exclude": [""]}, {"fields": ["a"]},
    {"include": ["a"], "exclude": ["b"]},
])
def test_malformed_definitions_are_refused(collection, stored):
    with pytest.raises(OperationFailure) as error:
        index_of(collection, stored)
    assert error.value.code == 9
    assert "storedSource" in str(error.value)
