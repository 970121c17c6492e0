"""Synonyms of `$search`: mappings of an index, and the collections that they name."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from test_search import ids, search

TEXTS = ["a car for sale", "a used vehicle", "the garage is open", "a car park",
         "fresh brew and pint of ale", "beer garden", "carpark"]


@pytest.fixture
def texts(collection):
    collection.insert_many([{"_id": number, "text": text, "plain": text}
                            for number, text in enumerate(TEXTS)])
    collection.database.words.insert_many([
        {"mappingType": "equivalent", "synonyms": ["car", "vehicle", "automobile"]},
        {"mappingType": "equivalent", "synonyms": ["car park", "garage"]},
        {"mappingType": "explicit", "input": ["beer"], "synonyms": ["brew", "pint of ale"]},
    ])
    fields = {"text": {"type": "string", "analyzer": "lucene.english"},
              "plain": {"type": "string", "indexOptions": "docs", "analyzer": "lucene.english"}}
    mapping = {"name": "own", "analyzer": "lucene.english", "source": {"collection": "words"}}
    definition = {"mappings": {"dynamic": False, "fields": fields}, "synonyms": [mapping]}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
    return collection


def found(collection, query, operator="text", path="text", **options):
    stage = {operator: {"query": query, "path": path, "synonyms": "own", **options}}
    return sorted(ids(search(collection, stage)))


def test_words_are_found_by_their_synonyms(texts):
    assert found(texts, "cars") == found(texts, "automobile") == [0, 1, 3]
    assert found(texts, "garage") == found(texts, "car park") == [2, 3]
    # An explicit mapping replaces its input, and works in one direction.
    assert found(texts, "beer") == [4]
    assert found(texts, "brew") == [4]
    assert found(texts, "used automobile", matchCriteria="all") == [1]
    assert found(texts, ["carpark", "beer"]) == [4, 6]
    assert found(texts, "unknown") == []
    without = search(texts, {"text": {"query": "automobile", "path": "text"}})
    assert ids(without) == []


def test_phrases_are_found_by_their_synonyms(texts):
    assert found(texts, "used car", "phrase") == [1]
    assert found(texts, "fresh beer", "phrase") == [4]
    assert found(texts, "a garage", "phrase") == [2, 3]
    assert found(texts, "open car park", "phrase") == []
    assert found(texts, "car park open", "phrase", slop=1) == [2]


def test_changes_of_the_collection_count_for_the_next_search(texts):
    words = texts.database.words
    words.insert_one({"mappingType": "explicit", "input": ["hops"], "synonyms": ["garden"]})
    assert found(texts, "hops") == [5]
    words.delete_many({})
    assert found(texts, "hops") == found(texts, "automobile") == []
    assert found(texts, "car") == [0, 3]
    words.drop()
    assert found(texts, "car") == [0, 3]


def test_searches_with_synonyms_that_cannot_work_are_refused(texts):
    def refused(**options):
        stage = {"text": {"query": "car", "path": "text", "synonyms": "own", **options}}
        with pytest.raises(OperationFailure) as error:
            search(texts, stage)
        return str(error.value)

    assert "no synonym mapping" in refused(synonyms="other")
    assert "fuzzy" in refused(fuzzy={})
    # Two words next to each other need positions, one word does not.
    assert found(texts, "vehicle", path="plain") == [0, 1, 3]
    assert "positions" in refused(path="plain", query="garage")
    bad = texts.database.words.insert_one({"mappingType": "equal", "synonyms": ["a"]})
    assert "mappingType" in refused()
    texts.database.words.delete_one({"_id": bad.inserted_id})
    many = [f"w{number}" for number in range(40)]
    texts.database.words.insert_one({"mappingType": "equivalent", "synonyms": many})
    with pytest.raises(OperationFailure) as error:
        found(texts, "w1 w2 w3", "phrase")
    assert "phrases" in str(error.value)


@pytest.mark.parametrize("mapping, message", [
    ({"analyzer": "lucene.standard", "source": {"collection": "words"}}, "name"),
    ({"name": "own", "source": {"collection": "words"}}, "analyzer"),
    ({"name": "own", "analyzer": "lucene.none", "source": {"collection": "words"}}, "analyzer"),
    ({"name": "own", "analyzer": "lucene.standard"}, "source"),
    ({"name": "own", "analyzer": "lucene.standard", "source": {"collection": 1}}, "collection"),
    ({"name": "own", "analyzer": "lucene.standard", "source": {"collection": "w"}, "x": 1}, "x"),
])
def test_malformed_mappings_are_refused(collection, mapping, message):
    definition = {"mappings": {"dynamic": True}, "synonyms": [mapping]}
    with pytest.raises(OperationFailure) as error:
        collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
    assert message in str(error.value)


def test_analyzers_of_mapping_and_field_must_be_the_same(collection):
    mapping = {"name": "own", "analyzer": "lucene.english", "source": {"collection": "words"}}
    definition = {"mappings": {"dynamic": True}, "synonyms": [mapping]}
    collection.insert_one({"text": "car"})
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
    with pytest.raises(OperationFailure) as error:
        found(collection, "car")
    assert "lucene.standard" in str(error.value)
