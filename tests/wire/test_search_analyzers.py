"""Custom analyzers of search indexes."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from test_search import ids, search
from windrow_server import Server

KEYWORD = {"type": "keyword"}
STANDARD = {"type": "standard"}
LOWERCASE = {"type": "lowercase"}


def definition_of(analyzers, fields):
    return {"analyzers": analyzers, "mappings": {"dynamic": False, "fields": fields}}


def index_of(collection, tokenizer, filters=(), characters=(), **options):
    """Indexes `text` by a custom analyzer."""
    own = {"name": "own", "tokenizer": tokenizer, "tokenFilters": list(filters),
           "charFilters": list(characters)}
    fields = {"text": {"type": "string", "analyzer": "own", **options}}
    model = SearchIndexModel(definition=definition_of([own], fields), name="default")
    collection.create_search_index(model)


def load(collection, *texts):
    collection.insert_many([{"_id": number, "text": text} for number, text in enumerate(texts)])


def found(collection, query, operator="text", **options):
    return sorted(ids(search(collection, {operator: {"query": query, "path": "text", **options}})))


def test_whole_values_are_found_in_any_case(collection):
    load(collection, "Wile E. Coyote", "wile e coyote", "Road  Runner", "Coyote")
    mapping = {"type": "mapping", "mappings": {".": "", "  ": " "}}
    index_of(collection, KEYWORD, [LOWERCASE], [mapping])
    assert found(collection, "WILE E COYOTE") == [0, 1]
    assert found(collection, "coyote") == [3]
    assert found(collection, "road runner") == [2]
    assert found(collection, "*Coy*", "wildcard", allowAnalyzedField=True) == [0, 1, 3]
    collection.update_one({"_id": 2}, {"$set": {"text": "coyote"}})
    assert found(collection, "coyote") == [2, 3]
    collection.insert_one({"_id": 9, "text": ["COYOTE", "x"]})
    assert found(collection, "coyote") == [2, 3, 9]


def test_html_is_removed_and_highlighted_in_place(collection):
    load(collection, "<p>The <b>quick</b> fox</p>", "<script>var fox;</script>no", "f&ouml;x &amp; co")
    folding = {"type": "icuFolding"}
    index_of(collection, STANDARD, [folding], [{"type": "htmlStrip"}])
    assert found(collection, "FOX") == [0, 2]
    assert found(collection, "script") == found(collection, "p") == []
    assert found(collection, "quick fox", "phrase") == [0]
    stage = {"text": {"query": "fox", "path": "text"}, "highlight": {"path": "text"}}
    rows = collection.aggregate([{"$search": stage}, {"$project": {
        "marks": {"$meta": "searchHighlights"}}}])
    hits = {row["_id"]: [part["value"] for mark in row["marks"] for part in mark["texts"]
                         if part["type"] == "hit"] for row in rows}
    assert hits == {0: ["fox"], 2: ["f&ouml;x"]}


def test_parts_of_words_are_found(collection):
    load(collection, "auth0@mongodb.com", "PowerShot-2000", "jane.doe@example.org", "wi-fi")
    parts = {"type": "wordDelimiterGraph",
             "delimiterOptions": {"preserveOriginal": True, "concatenateAll": True},
             "protectedWords": {"words": ["Wi-Fi"]}}
    index_of(collection, {"type": "whitespace"}, [parts, LOWERCASE])
    assert found(collection, "shot") == [1]
    assert found(collection, "2000") == [1]
    assert found(collection, "auth0@mongodb.com") == [0]
    assert found(collection, "doe") == found(collection, "janedoeexampleorg") == [2]
    assert found(collection, "fi") == []


def test_tokens_at_one_position_are_alternatives(collection):
    load(collection, "Siân ate", "Sian ate", "ate Sian", "Siân slept")
    index_of(collection, STANDARD, [{"type": "asciiFolding", "originalTokens": "include"}])
    assert found(collection, "Siân ate", "phrase") == [0, 1]
    assert found(collection, "Sian ate", "phrase") == [0, 1]
    assert found(collection, "Siân ate", matchCriteria="all") == [0, 1, 2]
    assert found(collection, "Siân") == [0, 1, 2, 3]


@pytest.mark.parametrize("tokenizer, filters, text, finds, misses", [
    ({"type": "regexSplit", "pattern": "[-. ]+"}, [], "123-456.7890", ["456", "0.7890"], ["45", "89"]),
    ({"type": "regexCaptureGroup", "pattern": "^\\((\\w+)\\)", "group": 1}, [],
     "(SITE) visited", ["(SITE) seen"], ["SITE", "visited"]),
    ({"type": "edgeGram", "minGram": 2, "maxGram": 4}, [], "coyote", ["co", "coyo"], ["yote"]),
    ({"type": "nGram", "minGram": 4, "maxGram": 6}, [], "coyote", ["yote", "oyot"], ["zzzz"]),
    (STANDARD, [{"type": "asciiFolding", "originalTokens": "include"}], "Siân", ["Siân", "Sian"],
     ["sian"]),
    (STANDARD, [{"type": "englishPossessive"}, LOWERCASE], "Jane's Car", ["jane", "car"], ["s"]),
    (STANDARD, [{"type": "length", "min": 4}], "one three", ["three"], ["one"]),
    (STANDARD, [{"type": "stopword", "tokens": ["The"]}], "the THE end", ["end"], ["the"]),
    (KEYWORD, [{"type": "regex", "pattern": "\\d+", "replacement": "#", "matches": "first"}],
     "a12b34", ["a12b34", "a7b34"], ["a#b34", "a12b#", "12"]),
    (STANDARD, [{"type": "reverse"}], "abc", ["abc"], ["cba"]),
    (STANDARD, [LOWERCASE, {"type": "snowballStemming", "stemmerName": "french"}],
     "continuellement", ["continuelle", "Continuel"], ["cont"]),
    (STANDARD, [{"type": "icuNormalizer", "normalizationForm": "nfkc"}], "１００ ﬁn", ["100", "fin"], ["1"]),
    (KEYWORD, [{"type": "trim"}, {"type": "flattenGraph"}, {"type": "removeDuplicates"}],
     "  a b ", ["a b", " a b"], ["a"]),
    ({"type": "whitespace", "maxTokenLength": 3}, [], "abcdef x", ["abc", "def x"], ["ab"]),
])
def test_tokenizers_and_filters(collection, tokenizer, filters, text, finds, misses):
    load(collection, text, "other")
    index_of(collection, tokenizer, filters)
    for query in finds:
        assert found(collection, query) == [0], query
    for query in misses:
        assert found(collection, query) == [], query


def test_shingles_and_their_own_search_analyzer(collection):
    load(collection, "quick brown fox jumps", "brown fox")
    shingles = {"name": "pairs", "tokenizer": STANDARD,
                "tokenFilters": [LOWERCASE,
                                 {"type": "shingle", "minShingleSize": 2, "maxShingleSize": 2}]}
    whole = {"name": "whole", "tokenizer": KEYWORD, "tokenFilters": [LOWERCASE]}
    fields = {"text": {"type": "string", "analyzer": "pairs", "searchAnalyzer": "whole",
                       "multi": {"words": {"type": "string", "analyzer": "lucene.standard"}}}}
    collection.create_search_index(SearchIndexModel(
        definition=definition_of([shingles, whole], fields), name="default"))
    assert found(collection, "Brown FOX") == [0, 1]
    assert found(collection, "quick fox") == found(collection, "fox") == []
    words = {"text": {"query": "fox", "path": {"value": "text", "multi": "words"}}}
    assert sorted(ids(search(collection, words))) == [0, 1]


def test_analyzers_serve_completion_and_survive_a_restart(tmp_path):
    own = {"name": "own", "tokenizer": KEYWORD, "tokenFilters": [LOWERCASE]}
    fields = {"text": {"type": "autocomplete", "analyzer": "own", "maxGrams": 20}}
    definition = definition_of([own], fields)
    with Server(tmp_path) as server:
        collection = server.client().d.c
        load(collection, "Día de los Muertos", "Dialog")
        collection.create_search_index(SearchIndexModel(definition=definition, name="default"))
        assert found(collection, "dia de lo", "autocomplete") == [0]
        server.restart()
        collection = server.client().d.c
        assert found(collection, "DIA", "autocomplete") == [0, 1]
        [listed] = collection.list_search_indexes()
        assert listed["latestDefinition"] == definition


@pytest.mark.parametrize("change, code, message", [
    ({"name": "lucene.own"}, 9, "begin with"),
    ({"tokenizer": None}, 9, "tokenizer"),
    ({"tokenizer": {"type": "icu"}}, 2, "unknown tokenizer \"icu\""),
    ({"tokenizer": {"type": "standard", "max": 3}}, 9, "tokenizer.max"),
    ({"tokenizer": {"type": "nGram", "minGram": 3, "maxGram": 2}}, 9, "minGram"),
    ({"tokenizer": {"type": "nGram", "minGram": 3}}, 9, "maxGram"),
    ({"tokenizer": {"type": "regexSplit", "pattern": "("}}, 2, "pattern"),
    ({"tokenizer": {"type": "regexCaptureGroup", "pattern": "a", "group": 1}}, 9, "group"),
    ({"tokenFilters": [{"type": "kStemming"}]}, 238, "kStemming"),
    ({"tokenFilters": [{"type": "stemming"}]}, 2, "unknown token filter"),
    ({"tokenFilters": [{"type": "shingle", "minShingleSize": 1, "maxShingleSize": 2}]}, 9, "2"),
    ({"tokenFilters": [{"type": "snowballStemming", "stemmerName": "basque"}]}, 238, "basque"),
    ({"tokenFilters": {"type": "trim"}}, 9, "array"),
    ({"charFilters": [{"type": "mapping", "mappings": {}}]}, 9, "mappings"),
    ({"charFilters": [{"type": "icu"}]}, 2, "character filter"),
    ({"filters": []}, 9, "filters"),
])
def test_malformed_analyzers_are_refused(collection, change, code, message):
    own = {"name": "own", "tokenizer": STANDARD, **change}
    own = {name: value for name, value in own.items() if value is not None}
    model = SearchIndexModel(definition=definition_of([own], {}), name="default")
    with pytest.raises(OperationFailure) as error:
        collection.create_search_index(model)
    assert error.value.code == code
    assert message in str(error.value)


def test_unknown_and_double_analyzers_are_refused(collection):
    own = {"name": "own", "tokenizer": STANDARD}
    for analyzers, fields in [([own, own], {}),
                              ([own], {"text": {"type": "string", "analyzer": "other"}})]:
        model = SearchIndexModel(definition=definition_of(analyzers, fields), name="default")
        with pytest.raises(OperationFailure):
            collection.create_search_index(model)
