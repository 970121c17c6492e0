"""`autocomplete` of `$search`, as a field for searches uses it while a person types."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from test_search import ids, search

TITLES = ["Men With Guns", "Without a Trace", "Off the Record", "The Official Story",
          "Résumé of a Life", "Coffee and Cigarettes"]


def index_of(collection, **options):
    """Indexes `title` for completion, and in `both` also as a string."""
    completion = {"type": "autocomplete", **options}
    fields = {"title": completion, "both": [completion, {"type": "string"}]}
    definition = {"mappings": {"dynamic": False, "fields": fields}}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))


@pytest.fixture
def titles(collection):
    collection.insert_many([{"_id": number, "title": title, "both": title}
                            for number, title in enumerate(TITLES)])
    return collection


def completed(collection, typed, path="title", **options):
    found = search(collection, {"autocomplete": {"query": typed, "path": path, **options}})
    return sorted(ids(found))


def test_words_are_completed_while_they_are_typed(titles):
    index_of(titles)
    assert completed(titles, "off") == [2, 3]
    assert completed(titles, "OFFI") == [3]
    assert completed(titles, "resu") == completed(titles, "Résu") == [4]
    assert completed(titles, "fee") == []
    # Below `minGrams` only whole words are found.
    assert completed(titles, "a") == [1, 4]
    # A gram has 15 characters at most, and so has what is typed.
    assert completed(titles, "without a trace of", tokenOrder="sequential") == [1]
    titles.insert_one({"_id": 9, "title": ["Officers", {"x": 1}]})
    assert completed(titles, "offic") == [3, 9]
    titles.delete_one({"_id": 3})
    assert completed(titles, "offic") == [9]
    assert ids(search(titles, {"exists": {"path": "title"}})) == [0, 1, 2, 4, 5, 9]


def test_the_order_of_words(titles):
    index_of(titles)
    assert completed(titles, "men with") == [0, 1]
    assert completed(titles, "men with", tokenOrder="sequential") == [0]
    assert completed(titles, "with men", tokenOrder="sequential") == []
    assert completed(titles, ["men wi", "coffee an"], tokenOrder="sequential") == [0, 5]


def test_typing_errors(titles):
    index_of(titles)
    assert completed(titles, "ofic") == []
    assert completed(titles, "ofic", fuzzy={"maxEdits": 1, "prefixLength": 1}) == [3]
    assert completed(titles, "cofe", fuzzy={"maxEdits": 1}) == [5]


def test_whole_words_come_first(titles):
    index_of(titles)
    titles.insert_one({"_id": 10, "both": "With Official With Officers With"})
    titles.insert_one({"_id": 11, "both": "with some other words in it and more"})
    found = search(titles, {"autocomplete": {"query": "with", "path": "both"}})
    assert set(ids(found)) == {0, 1, 10, 11}
    # `Without` has the gram, but not the word.
    assert ids(found)[-1] == 1


@pytest.mark.parametrize("tokenization, typed, expected", [
    ("rightEdgeGram", "cial", [3]),
    ("rightEdgeGram", "offi", []),
    ("rightEdgeGram", "cial story", [3]),
    ("nGram", "fici", [3]),
    ("nGram", "off", [2, 3, 5]),
])
def test_tokenizations(titles, tokenization, typed, expected):
    index_of(titles, tokenization=tokenization, minGrams=3, maxGrams=10)
    assert completed(titles, typed, tokenOrder="sequential") == expected


def test_diacritics_can_count(titles):
    index_of(titles, foldDiacritics=False)
    assert completed(titles, "resu") == []
    assert completed(titles, "résu") == [4]


@pytest.mark.parametrize("path", ["title", "both"])
def test_what_was_typed_is_highlighted(titles, path):
    index_of(titles)
    operator = {"autocomplete": {"query": "offi", "path": path}, "highlight": {"path": path}}
    show = {"$project": {"marks": {"$meta": "searchHighlights"}}}
    (found,) = search(titles, operator, show)
    (mark,) = found["marks"]
    assert mark["path"] == path
    assert mark["texts"] == [{"value": "The ", "type": "text"}, {"value": "Offi", "type": "hit"},
                             {"value": "cial Story", "type": "text"}]


def test_the_index_stays_valid(titles):
    index_of(titles)
    titles.update_many({}, {"$set": {"title": "Changed titles"}})
    assert completed(titles, "chan") == [0, 1, 2, 3, 4, 5]
    assert titles.database.command("validate", titles.name, full=True)["valid"]


@pytest.mark.parametrize("operator, part", [
    ({"query": "a", "path": "other"}, "not indexed with the type"),
    ({"query": "a"}, '"autocomplete.path" is required'),
    ({"path": "title"}, '"autocomplete.query" is required'),
    ({"query": "a", "path": "title", "tokenOrder": "none"}, "sequential"),
    ({"query": "a", "path": "title", "fuzzy": {"prefixLength": 20}}, "maxGrams"),
    ({"query": "a", "path": "title", "other": 1}, "autocomplete.other"),
])
def test_what_is_wrong_is_refused(titles, operator, part):
    index_of(titles)
    with pytest.raises(OperationFailure) as error:
        search(titles, {"autocomplete": operator})
    assert error.value.code == 2
    assert part in str(error.value)
