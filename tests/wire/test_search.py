"""`$search` and `$searchMeta` over the wire, as an application uses them."""

import datetime
import uuid

import pytest
from bson import Binary, ObjectId
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


def test_ranges_of_ids(books):
    """Of types that are values but neither numbers nor dates."""
    uuids = [uuid.UUID(int=number << 64) for number in (1, 5, 9)]
    ids_of_objects = [ObjectId(f"{number:024x}") for number in (1, 5, 9)]
    books.insert_many([{"_id": 10 + n, "u": Binary.from_uuid(uuids[n]), "o": ids_of_objects[n],
                        "b": n == 1} for n in range(3)])

    def within(path, **limits):
        return sorted(ids(search(books, {"range": {"path": path, **limits}})))

    assert within("u", gte=Binary.from_uuid(uuids[1])) == [11, 12]
    assert within("u", lt=Binary.from_uuid(uuids[1])) == [10]
    assert within("o", gt=ids_of_objects[0], lte=ids_of_objects[1]) == [11]
    assert within("o", gt=ids_of_objects[0]) == [11, 12]
    assert within("b", gte=True) == [11]
    with pytest.raises(OperationFailure, match="both of one type"):
        within("o", gt=ids_of_objects[0], lt=5)


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


def test_documents_like_others(books):
    books.insert_many([{"_id": 4, "title": "Tea and cakes"}, {"_id": 5, "title": "Shop"}])
    like = {"moreLikeThis": {"like": {"_id": 9, "title": "The shop with coffee"}}}
    assert ids(search(books, like))[0] == 2
    assert sorted(ids(search(books, like))) == [1, 2, 5]


def test_score_details(books):
    text = {"text": {"query": "coffee shop", "path": "title"}, "scoreDetails": True}
    project = {"$project": {"score": {"$meta": "searchScore"},
                            "details": {"$meta": "searchScoreDetails"}}}
    rows = search(books, text, project)
    assert ids(rows) == [2, 1]
    assert [row["details"]["value"] for row in rows] == [row["score"] for row in rows]
    assert rows[0]["details"]["description"] == "sum of:"
    coffee, shop = rows[0]["details"]["details"]
    assert shop["description"] == "$type:string/title:shop [BM25Similarity], result of:"
    assert coffee["details"][0]["value"] == coffee["value"] < shop["value"]


def test_explain(books):
    text = {"text": {"query": "coffee", "path": "title"}}
    command = {"aggregate": books.name, "pipeline": [{"$search": text}, {"$limit": 1}], "cursor": {}}
    explained = books.database.command("explain", command, verbosity="executionStats")
    first, limit = explained["stages"]
    assert first["$search"]["mongotQuery"] == text
    plan = {"stage": "SEARCH", "indexName": "default", "indexVersion": 0,
            "parsedQuery": 'title:"coffee"', "limitAmount": 1}
    assert first["$search"]["explain"] == plan
    assert first["nReturned"] == limit["nReturned"] == 1
    assert first["indexesUsed"] == ["default"]
    assert first["totalKeysExamined"] > 0
    assert "keysSkipped" in first


def test_searches_in_other_pipelines(client, books):
    """A search begins the pipeline of a `$lookup` or `$unionWith`, not of a `$facet`."""
    tea = {"$search": {"text": {"query": "tea", "path": "title"}}}
    lookup = {"$lookup": {"from": books.name, "pipeline": [tea, {"$project": {"title": 1}}], "as": "tea"}}
    rows = list(books.aggregate([{"$match": {"_id": 1}}, lookup]))
    assert rows[0]["tea"] == [{"_id": 3, "title": "Tea"}]
    union = {"$unionWith": {"coll": books.name, "pipeline": [tea]}}
    assert ids(books.aggregate([{"$match": {"_id": 1}}, union])) == [1, 3]
    shops = {"text": {"query": "shop", "path": "title"}}
    assert ids(search(books, shops, union)) == [2, 3]
    for pipeline in [[{"$facet": {"a": [tea]}}], [{"$match": {}}, tea],
                     [{"$unionWith": {"coll": books.name, "pipeline": [{"$match": {}}, tea]}}]]:
        with pytest.raises(OperationFailure) as error:
            list(books.aggregate(pipeline))
        assert error.value.code in (40600, 40602), pipeline


@pytest.mark.parametrize("operator", [
    {"text": {"query": "a"}},
    {"text": {"query": "a", "path": "title"}, "highlight": {}},
    {"autocomplete": {"query": "a", "path": "title"}},
    {"span": {"term": {"query": "a", "path": "title"}}},
    {"wildcard": {"query": "a*", "path": "title"}},
])
def test_what_is_not_there_is_refused(books, operator):
    with pytest.raises(OperationFailure) as error:
        search(books, operator)
    assert error.value.code == 2
    assert books.count_documents({}) == 3


@pytest.fixture
def films(collection):
    when = [datetime.datetime(1990 + n % 30, 1, 1) for n in range(300)]
    collection.insert_many(
        {"_id": n, "plot": "love" if n % 2 else "war", "genres": [f"g{n % 3}", f"g{n % 5}"],
         "year": 1990 + n % 30, "released": when[n]} for n in range(300))
    fields = {"plot": {"type": "string"}, "genres": {"type": "token"},
              "year": {"type": "number"}, "released": {"type": "date"}}
    definition = {"mappings": {"fields": fields}}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
    return collection


FACETS = {
    "genres": {"type": "string", "path": "genres", "numBuckets": 2},
    "years": {"type": "number", "path": "year", "boundaries": [2000, 2010], "default": "others"},
    "dates": {"type": "date", "path": "released",
              "boundaries": [datetime.datetime(1990, 1, 1), datetime.datetime(1991, 1, 1)]},
}


def test_facets_are_counted(films):
    facet = {"operator": {"text": {"query": "love", "path": "plot"}}, "facets": FACETS}
    expected = {
        "count": {"lowerBound": 150},
        "facet": {
            # Of the numbers below 15: g0 0 3 5 6 9 10 12, g1 1 4 6 7 10 11 13, g2 2 5 7 8 11 12 14.
            "genres": {"buckets": [{"_id": "g0", "count": 70}, {"_id": "g1", "count": 70}]},
            "years": {"buckets": [{"_id": 2000, "count": 50}, {"_id": "others", "count": 100}]},
            "dates": {"buckets": [{"_id": datetime.datetime(1990, 1, 1), "count": 0}]},
        },
    }
    assert list(films.aggregate([{"$searchMeta": {"facet": facet}}])) == [expected]
    # The same beside the documents.
    rows = list(films.aggregate([
        {"$search": {"facet": facet}}, {"$limit": 2},
        {"$project": {"plot": 1, "meta": "$$SEARCH_META"}},
    ]))
    assert [row["plot"] for row in rows] == ["love", "love"]
    assert all(row["meta"] == expected for row in rows)


def test_metadata_are_read_in_later_stages(films):
    search = {"text": {"query": "war", "path": "plot"}, "count": {"type": "total"}}
    rows = list(films.aggregate([
        {"$search": search}, {"$limit": 3},
        {"$facet": {"docs": [{"$project": {"_id": 1}}],
                    "meta": [{"$replaceWith": "$$SEARCH_META"}, {"$limit": 1}]}},
    ]))
    assert len(rows[0]["docs"]) == 3 and rows[0]["meta"] == [{"count": {"total": 150}}]
    grouped = list(films.aggregate([
        {"$search": search}, {"$group": {"_id": None, "n": {"$sum": 1}}},
        {"$set": {"meta": "$$SEARCH_META.count.total"}},
    ]))
    assert grouped == [{"_id": None, "n": 150, "meta": 150}]
    inner = [{"$search": {"text": {"query": "love", "path": "plot"}}}, {"$limit": 1},
             {"$project": {"_id": 0, "meta": "$$SEARCH_META.count.lowerBound"}}]
    union = [{"$match": {"_id": 0}}, {"$project": {"_id": 1}},
             {"$unionWith": {"coll": films.name, "pipeline": inner}}]
    assert list(films.aggregate(union)) == [{"_id": 0}, {"meta": 150}]
    lookup = [{"$match": {"_id": 0}}, {"$project": {"_id": 1}},
              {"$lookup": {"from": films.name, "pipeline": inner, "as": "found"}}]
    assert list(films.aggregate(lookup)) == [{"_id": 0, "found": [{"meta": 150}]}]
    for first in ({"$match": {}}, {"$searchMeta": search}):
        with pytest.raises(OperationFailure) as error:
            list(films.aggregate([first, {"$project": {"meta": "$$SEARCH_META"}}]))
        assert error.value.code == 6347902


def test_facets_need_indexed_fields(films):
    facets = {"f": {"type": "string", "path": "plot"}}
    with pytest.raises(OperationFailure, match='not indexed as a "token" field') as error:
        list(films.aggregate([{"$searchMeta": {"facet": {"facets": facets}}}]))
    assert error.value.code == 2


def test_results_are_sorted_and_paged(films):
    """Pages with tokens show each film once, in the order of the fields, and lead back."""
    query = {"text": {"query": "war", "path": "plot"}, "sort": {"released": -1, "year": 1}}
    token = {"$project": {"released": 1, "token": {"$meta": "searchSequenceToken"}}}
    found, page = [], search(films, query, {"$limit": 40}, token)
    while page:
        found += page
        after = {**query, "searchAfter": page[-1]["token"]}
        page = search(films, after, {"$limit": 40}, token)
    assert sorted(ids(found)) == list(range(0, 300, 2))
    dates = [row["released"] for row in found]
    assert dates == sorted(dates, reverse=True)
    before = search(films, {**query, "searchBefore": found[40]["token"]}, {"$limit": 40}, token)
    assert before[::-1] == found[:40]
    with pytest.raises(OperationFailure, match="plot is not indexed as sortable"):
        search(films, {**query, "sort": {"plot": 1}})


def test_words_of_files_in_any_language(collection):
    """Documents are found by the stems of their own language and by the parts of their words."""
    collection.insert_many([
        {"_id": 1, "language": "de", "text": "Alte Häuser und Straßen"},
        {"_id": 2, "language": "en", "text": "call notmuch_database_open in HashMap"},
        {"_id": 3, "text": "l'amour, 東京都, Häuser"},
    ])
    words = {"type": "string", "analyzer": "windrow.words", "searchAnalyzer": "windrow.wordParts"}
    stems = {"type": "string", "analyzer": "windrow.stems"}
    definition = {"mappings": {"fields": {"text": {**words, "multi": {"stems": stems}}}}}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))

    def found(query, path="text", operator="phrase"):
        return sorted(ids(search(collection, {operator: {"query": query, "path": path}})))

    own = {"value": "text", "multi": "stems"}
    assert found("haus", own, "text") == [1]
    assert found("hausers", own, "text") == [1, 3]
    assert found("calling", own, "text") == [2]
    assert found("HAUSER") == [1, 3]
    assert found("strasse", own, "text") == [1]
    assert found("database open") == found("hash map") == found("hashMap") == [2]
    assert found("amour") == found("京都") == [3]
    assert found("データ") == found("hash")[1:] == []
    collection.update_one({"_id": 3}, {"$set": {"language": "de"}})
    assert found("haus", own, "text") == [1, 3]


def test_similar_terms_are_suggested(books):
    """An extension of Windrow: MongoDB has no such collector."""
    def suggested(**options):
        [reply] = books.aggregate([{"$searchMeta": {"suggest": {"path": "title", **options}}}])
        assert reply["count"] == {"lowerBound": 3}
        return reply["suggest"]

    coffee = [{"term": "coffee", "edits": 1, "documents": 2}]
    assert suggested(query=["Cofee", "coffee", "two words", "xyz"]) == [
        {"query": "Cofee", "suggestions": coffee, "documents": 0},
        {"query": "coffee", "suggestions": [], "documents": 2},
        {"query": "two words", "suggestions": []},
        {"query": "xyz", "suggestions": [], "documents": 0},
    ]
    # The words of a text.
    assert suggested(query="Cofee, xyz") == [
        {"query": "cofee", "suggestions": coffee, "documents": 0},
        {"query": "xyz", "suggestions": [], "documents": 0},
    ]
    assert suggested(query="xoffee", prefixLength=0)[0]["suggestions"] == coffee
    assert suggested(query="cofe", maxEdits=1)[0]["suggestions"] == []
    for wrong in [{"path": 1, "query": "tea"}, {"query": []}, {"query": "tea", "maxEdits": 3},
                  {"query": "tea", "best": True}, {"query": ["tea"] * 101}]:
        with pytest.raises(OperationFailure) as error:
            suggested(**wrong)
        assert error.value.code == 2
    with pytest.raises(OperationFailure, match="suggest"):
        search(books, {"suggest": {"query": "tea", "path": "title"}})


def test_a_search_joins_collections(books):
    """With an equality, and in each input of a fusion."""
    orders = books.database.search_orders
    orders.insert_many([{"_id": 1, "books": [1, 3]}, {"_id": 2, "books": [2]}, {"_id": 3}])
    text = {"$search": {"text": {"query": "coffee tea", "path": {"wildcard": "*"}}}}
    lookup = {"$lookup": {"from": books.name, "localField": "books", "foreignField": "_id", "as": "found",
                          "pipeline": [text, {"$match": {"year": 2024}}, {"$project": {"_id": 1}}]}}
    rows = orders.aggregate([lookup, {"$sort": {"_id": 1}}])
    assert [ids(row["found"]) for row in rows] == [[3], [2], []]
    fusion = {"$rankFusion": {"input": {"pipelines": {
        "words": [{"$search": {"text": {"query": "shop", "path": "title"}}}, {"$limit": 5}],
        "new": [{"$sort": {"year": -1, "_id": -1}}]}}}}
    assert ids(books.aggregate([fusion])) == [2, 3, 1]
    orders.drop()


def test_views_are_not_searched(books):
    """They have no search indexes, so a search would find nothing."""
    view = books.database.search_view
    books.database.command("create", view.name, viewOn=books.name, pipeline=[{"$match": {"year": 2024}}])
    operator = {"text": {"query": "coffee", "path": "title"}}
    for stage in ["$search", "$searchMeta"]:
        with pytest.raises(OperationFailure, match="put the stages of the view after it") as refused:
            list(view.aggregate([{stage: operator}]))
        assert refused.value.code == 166
    view.drop()


def test_a_view_of_search_results(books):
    """The stages of a view can begin with a search. Its readers see what is found now."""
    view = books.database.search_view
    by_word = {"$search": {"text": {"query": "coffee", "path": "title"}}}
    books.database.command("create", view.name, viewOn=books.name,
                           pipeline=[by_word, {"$set": {"score": {"$meta": "searchScore"}}}])
    assert sorted(ids(view.find())) == [1, 2]
    assert ids(view.find({"year": 2024})) == [2]
    assert view.count_documents({}) == 2
    assert view.distinct("year") == [2020, 2024]
    best = next(view.aggregate([{"$limit": 1}]))
    assert best["score"] == max(view.distinct("score")) > 0
    books.insert_one({"_id": 9, "title": "More coffee"})
    assert sorted(ids(view.find())) == [1, 2, 9]
    explained = books.database.command("explain", {"find": view.name, "filter": {}})
    assert "$search" in explained["stages"][0]
    outer = books.database.search_view_2
    books.database.command("create", outer.name, viewOn=view.name,
                           pipeline=[{"$match": {"year": 2020}}])
    assert ids(outer.find()) == [1]
    join = {"$lookup": {"from": view.name, "pipeline": [], "as": "found"}}
    assert len(next(books.aggregate([join]))["found"]) == 3
    outer.drop()
    view.drop()


@pytest.mark.parametrize("operator, reason", [
    ({"range": {"path": "year", "gt": float("nan")}}, "must not be NaN"),
    ({"text": {"query": "tea", "path": "title", "score": {"boost": {"value": 1e31}}}}, "from 0 to 1e30"),
    ({"text": {"query": "tea", "path": "title", "score": {"constant": {"value": -1}}}}, "from 0 to 1e30"),
])
def test_limits_of_numbers(books, operator, reason):
    with pytest.raises(OperationFailure, match=reason):
        search(books, operator)


def test_boosts_multiply_within_the_limit(books):
    tea = {"text": {"query": "tea", "path": "title", "score": {"boost": {"value": 1e30}}}}
    within = {"compound": {"should": [tea, {"text": {"query": "coffee", "path": "title"}}],
                           "score": {"boost": {"value": 1e30}}}}
    found = search(books, within, {"$project": {"score": {"$meta": "searchScore"}}})
    assert ids(found)[0] == 3 and len(found) == 3
    assert all(row["score"] < float("inf") for row in found)


def test_phrases_need_positions(collection):
    collection.insert_one({"_id": 1, "t": "rye bread"})
    field = {"type": "string", "indexOptions": "freqs"}
    definition = {"mappings": {"dynamic": False, "fields": {"t": field}}}
    collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
    with pytest.raises(OperationFailure, match='the field "t" has no positions'):
        search(collection, {"phrase": {"query": "rye bread", "path": "t"}})
    assert ids(search(collection, {"phrase": {"query": "rye", "path": "t"}})) == [1]
