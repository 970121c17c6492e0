"""`$search` and `$searchMeta` over the wire, as an application uses them."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

DOCUMENTS = [
    {"_id": 1, "title": "Coffee and cakes", "year": 2020},
    {"_id": 2, "title": "The coffee shop", "year": 2024},
    {"_id": 3, "title": "Tea", "year": 2024, "notes": ["no coffee", "much tea"]},
]


@pytest.fixture
def books(collection):
    collection.insert_many(DOCUMENTS)
    model = SearchIndexModel(definition={"mappings": {"dynamic": True}}, name="default")
    assert collection.create_search_index(model) == "default"
    return collection


def search(collection, operator, *stages):
    return list(collection.aggregate([{"$search": operator}, *stages]))


def ids(rows):
    return [row["_id"] for row in rows]


def test_documents_come_by_score(books):
    text = {"text": {"query": "coffee shop", "path": "title"}}
    score = {"$project": {"title": 1, "score": {"$meta": "searchScore"}}}
    rows = search(books, text, score)
    assert ids(rows) == [2, 1]
    assert rows[0]["score"] > rows[1]["score"] > 0
    assert ids(search(books, text, {"$limit": 1})) == [2]
    assert ids(search(books, text, {"$match": {"year": 2020}})) == [1]


def test_filters_and_counts(books):
    operator = {"compound": {
        "must": [{"text": {"query": "coffee", "path": {"wildcard": "*"}}}],
        "filter": [{"range": {"path": "year", "gte": 2024}}],
    }}
    assert sorted(ids(search(books, operator))) == [2, 3]
    meta = list(books.aggregate([{"$searchMeta": {**operator, "count": {"type": "total"}}}]))
    assert meta == [{"count": {"total": 2}}]


def test_what_is_acknowledged_is_found(books):
    """Inserts, updates and deletions are searched as soon as they are acknowledged."""
    tea = {"text": {"query": "tea", "path": "title"}}
    books.insert_one({"_id": 4, "title": "Green tea"})
    assert sorted(ids(search(books, tea))) == [3, 4]
    books.update_one({"_id": 3}, {"$set": {"title": "Water"}})
    assert ids(search(books, tea)) == [4]
    books.delete_one({"_id": 4})
    assert search(books, tea) == []


def test_many_documents(books):
    """Words of many documents are packed, and read in part for the best."""
    books.insert_many({"_id": 100 + n, "title": "word " * (1 + n % 3) + "filler " * (n % 17)}
                      for n in range(3_000))
    word = {"text": {"query": "word", "path": "title"}}
    rows = search(books, word)
    assert len(rows) == 3_000
    assert ids(search(books, word, {"$limit": 25})) == ids(rows)[:25]
    phrase = {"phrase": {"query": "word word word", "path": "title"}}
    assert len(search(books, phrase)) == 1_000


def test_query_strings(books):
    """`AND` and `OR` have no precedence: `AND` makes the clauses beside it required."""
    def found(query):
        operator = {"queryString": {"defaultPath": "title", "query": query}}
        return sorted(ids(search(books, operator)))
    assert found("coffee AND NOT cakes") == [2]
    assert found("(tea OR shop) AND NOT notes:coffee") == [2]
    assert found("tea OR coffee AND cakes") == [1]
    assert found('"the coffee" notes:"much tea"') == [2, 3]
    assert found("cofee~1 OR t?a") == [1, 2, 3]
    assert found("title:[sh TO si]") == [2]
    with pytest.raises(OperationFailure) as error:
        found("coffee AND (tea")
    assert error.value.code == 2
    assert "character 16" in str(error.value)


def test_highlights(books):
    text = {"text": {"query": "coffee", "path": "notes"}, "highlight": {"path": ["notes", "title"]}}
    project = {"$project": {"found": {"$meta": "searchHighlights"}}}
    row, = search(books, text, {"$sort": {"year": 1}}, project)
    highlight, = row["found"]
    assert highlight.pop("score") > 0
    assert highlight == {"path": "notes", "texts": [{"value": "no ", "type": "text"},
                                                    {"value": "coffee", "type": "hit"}]}


@pytest.mark.parametrize("operator", [
    {"text": {"query": "a"}},
    {"text": {"query": "a", "path": "title"}, "highlight": {}},
    {"autocomplete": {"query": "a", "path": "title"}},
    {"wildcard": {"query": "a*", "path": "title"}},
])
def test_what_is_not_there_is_refused(books, operator):
    with pytest.raises(OperationFailure) as error:
        search(books, operator)
    assert error.value.code == 2
    assert books.count_documents({}) == 3
