"""Text indexes: matches, scores and languages."""

import random
import threading

import pytest
from pymongo import TEXT
from pymongo.errors import OperationFailure, WriteError

STORES = [
    {"_id": 1, "name": "Java Hut", "description": "Coffee and cakes"},
    {"_id": 2, "name": "Burger Buns", "description": "Gourmet hamburgers"},
    {"_id": 3, "name": "Coffee Shop", "description": "Just coffee"},
    {"_id": 4, "name": "Clothes Clothes Clothes", "description": "Discount clothing"},
    {"_id": 5, "name": "Java Shopping", "description": "Indonesian goods"},
]
SCORE = {"score": {"$meta": "textScore"}}


@pytest.fixture
def stores(collection):
    collection.insert_many(STORES)
    collection.create_index([("name", TEXT), ("description", TEXT)])
    return collection


def found(collection, search, **options):
    query = {"$text": {"$search": search, **options}}
    return sorted(one["_id"] for one in collection.find(query))


def scores(collection, search, **options):
    query = {"$text": {"$search": search, **options}}
    return {one["_id"]: one["score"] for one in collection.find(query, SCORE)}


@pytest.mark.parametrize("search, expected", [
    ("java coffee shop", [1, 3, 5]),
    ('"coffee shop"', [3]),
    ('java "coffee shop"', [3]),
    ("java shop -coffee", [5]),
    ("-coffee", []),
    ("java - coffee", [1, 3, 5]),
    ('java -"coffee shop"', [1, 5]),
    ("JAVA", [1, 5]),
    ("cake", [1]),
    ("the and of", []),
    ("", []),
    ("hamburger", [2]),
    ("clothing", [4]),
    ("nothing-like-it", []),
    ("java\tcoffee", [1, 3, 5]),
])
def test_what_matches(stores, search, expected):
    assert found(stores, search) == expected


@pytest.mark.parametrize("body, word, expected", [
    ("Baking a cake", "cake", 0.75),
    ("cake", "cake", 1.1),
    ("Cake", "cake", 1.1),
    ("cakes", "cake", 1.0),
    ("cake cake", "cake", 1.5 * 1.0),
    ("baking cake cake", "cake", 1.5 * (0.5 * 2 / 3 + 0.5)),
    (["cake", "Baking a cake"], "cake", 1.1 + 0.75),
])
def test_scores_are_mongodbs(collection, body, word, expected):
    collection.create_index([("body", TEXT)])
    collection.insert_one({"_id": 1, "body": body})
    assert scores(collection, word)[1] == pytest.approx(expected, rel=1e-12)


def test_weights_multiply_and_terms_add_up(collection):
    collection.create_index([("a", TEXT), ("b", TEXT)], weights={"a": 10, "b": 3})
    collection.insert_many([{"_id": 1, "a": "baking cake"}, {"_id": 2, "b": "baking cake"},
                            {"_id": 3, "a": "baking cake", "b": "baking cake"}])
    assert scores(collection, "cake") == pytest.approx({1: 7.5, 2: 2.25, 3: 9.75})
    assert scores(collection, "cake baking") == pytest.approx({1: 15, 2: 4.5, 3: 19.5})


def test_sorted_by_score(stores):
    order = stores.find({"$text": {"$search": "java coffee shop"}}, SCORE).sort(
        [("score", {"$meta": "textScore"})])
    ids = [one["_id"] for one in order]
    values = scores(stores, "java coffee shop")
    assert ids[0] == 3 and [values[one] for one in ids] == sorted(values.values(), reverse=True)
    best = stores.find({"$text": {"$search": "java coffee shop"}}, SCORE).sort(
        [("score", {"$meta": "textScore"})]).limit(1)
    assert [one["_id"] for one in best] == [3]


def test_built_before_or_after_is_the_same(database):
    chance = random.Random(5)
    words = ["baking", "cakes", "run", "running", "the", "naïve", "Ärger", "x-ray", "don't", "42"]
    documents = [{"_id": one, "t": " ".join(chance.choices(words, k=12)),
                  "l": [" ".join(chance.choices(words, k=3)) for _ in range(3)]}
                 for one in range(500)]
    key = [("t", TEXT), ("l", TEXT)]
    database.before.create_index(key)
    database.before.insert_many(documents)
    database.after.insert_many(documents)
    database.after.create_index(key)
    for search in [*words, "run cakes", "-run cakes", '"running the"', "naive", "arger"]:
        assert scores(database.before, search) == scores(database.after, search), search
    for name in ("before", "after"):
        assert database.command({"validate": name, "full": True})["valid"]


def test_the_index_follows_updates_and_deletes(stores):
    stores.update_one({"_id": 2}, {"$set": {"description": "now with coffee"}})
    assert found(stores, "coffee") == [1, 2, 3]
    assert found(stores, "gourmet") == []
    stores.delete_one({"_id": 3})
    assert found(stores, "coffee") == [1, 2]
    stores.replace_one({"_id": 1}, {"name": "tea"})
    assert (found(stores, "coffee"), found(stores, "tea")) == ([2], [1])


@pytest.mark.parametrize("search, options, expected", [
    ("cafe", {}, [1, 2, 3]),
    ("café", {}, [1, 2, 3]),
    ("café", {"$diacriticSensitive": True}, [2]),
    ("Cafe", {"$caseSensitive": True}, [3]),
    ("CAFE", {"$caseSensitive": True}, []),
    ('"CAFE BAR"', {}, [1]),
])
def test_case_and_diacritics(collection, search, options, expected):
    collection.create_index([("t", TEXT)], default_language="none")
    collection.insert_many([{"_id": 1, "t": "cafe bar"}, {"_id": 2, "t": "café"},
                            {"_id": 3, "t": "Cafe"}])
    assert found(collection, search, **options) == expected


@pytest.mark.parametrize("language, text, search, matches", [
    ("english", "running runs", "run", True), ("none", "running runs", "run", False),
    ("none", "the", "the", True), ("english", "the", "the", False),
    ("german", "Häuser", "haus", True), ("de", "und", "und", False),
    ("french", "chevaux", "cheval", True), ("spanish", "corriendo", "correr", True),
    ("russian", "книги", "книга", True), ("turkish", "IŞIK", "ışık", True),
    ("portuguese", "quilométricas", "quilométricos", True), ("italian", "amici", "amico", True),
    ("dutch", "lichamelijke", "lichamelijk", True), ("swedish", "flickor", "flicka", True),
    ("danish", "huse", "hus", True), ("norwegian", "biler", "bil", True),
    ("finnish", "taloja", "talo", True), ("hungarian", "házak", "ház", True),
    ("romanian", "copiilor", "copii", True),
])
def test_languages(collection, language, text, search, matches):
    collection.create_index([("t", TEXT)], default_language=language)
    collection.insert_one({"_id": 1, "t": text})
    assert found(collection, search) == ([1] if matches else [])


def test_a_document_may_name_its_language(collection):
    collection.create_index([("t", TEXT)])
    collection.insert_many([
        {"_id": 1, "t": "the running", "language": "none"},
        {"_id": 2, "t": "the running"},
        {"_id": 3, "sub": {"t": "x"}, "t": "Häuser", "language": "german"}])
    assert found(collection, "running", **{"$language": "none"}) == [1]
    assert found(collection, "run") == [2]
    assert found(collection, "haus", **{"$language": "german"}) == [3]


@pytest.mark.parametrize("value, code", [(5, 17261), ("klingon", 17262)])
def test_languages_that_do_not_exist(collection, value, code):
    collection.create_index([("t", TEXT)])
    with pytest.raises(WriteError) as error:
        collection.insert_one({"t": "x", "language": value})
    assert error.value.code == code
    with pytest.raises(OperationFailure):
        found(collection, "x", **{"$language": "klingon"})


def test_another_field_may_hold_the_language(collection):
    collection.create_index([("t", TEXT)], language_override="idioma")
    collection.insert_one({"_id": 1, "t": "the end", "idioma": "none", "language": 5})
    assert found(collection, "the", **{"$language": "none"}) == [1]


def test_every_string_by_the_wildcard(collection):
    collection.create_index([("$**", TEXT)])
    collection.insert_many([{"_id": 1, "a": {"b": ["deep apple"]}}, {"_id": 2, "x": "apple"},
                            {"_id": 3, "n": 5}])
    assert found(collection, "apples") == [1, 2]


def test_prefix_fields_need_an_equality(collection):
    collection.create_index([("category", 1), ("t", TEXT)])
    collection.insert_many([{"_id": 1, "category": "x", "t": "apple"},
                            {"_id": 2, "category": "y", "t": "apple"}])
    query = {"$text": {"$search": "apple"}}
    assert [one["_id"] for one in collection.find({"category": "x", **query})] == [1]
    with pytest.raises(OperationFailure):
        list(collection.find(query))


def test_beside_other_conditions(stores):
    query = {"$text": {"$search": "java coffee"}}
    assert [one["_id"] for one in stores.find({**query, "_id": {"$gt": 3}})] == [5]
    either = {"$or": [query, {"_id": 2}]}
    assert sorted(one["_id"] for one in stores.find(either)) == [1, 2, 3, 5]
    assert stores.count_documents(query) == 3
    grouped = stores.aggregate([{"$match": query}, {"$project": SCORE},
                                {"$sort": {"score": -1}}, {"$limit": 1}])
    assert [one["_id"] for one in grouped] == [3]


@pytest.mark.parametrize("query", [
    {"$nor": [{"$text": {"$search": "x"}}]},
    {"$and": [{"$text": {"$search": "x"}}, {"$text": {"$search": "y"}}]},
    {"$or": [{"$text": {"$search": "x"}}, {"unindexed": 1}]},
    {"$text": {"$search": 5}}, {"$text": "x"}, {"$text": {}},
    {"$text": {"$search": "x", "$unknown": 1}},
])
def test_where_text_cannot_stand(stores, query):
    with pytest.raises(OperationFailure):
        list(stores.find(query))


def test_text_needs_its_index(collection):
    collection.insert_one({"t": "x"})
    with pytest.raises(OperationFailure) as error:
        found(collection, "x")
    assert error.value.code == 27
    collection.create_index([("t", TEXT)])
    with pytest.raises(OperationFailure) as error:
        list(collection.find({"$text": {"$search": "x"}}).hint([("_id", 1)]))
    assert error.value.code in (2, 291)
    with pytest.raises(OperationFailure) as error:
        list(collection.find({"$text": {"$search": "x"}}).sort("$natural", 1))
    assert error.value.code in (2, 291)


@pytest.mark.parametrize("options", [
    {"weights": {"t": 0}}, {"weights": {"t": 100_000}}, {"default_language": "klingon"},
    {"default_language": 5}, {"language_override": 5}, {"textIndexVersion": 9}, {"unique": True,
                                                                               "weights": "x"},
])
def test_text_indexes_that_cannot_be(collection, options):
    with pytest.raises((OperationFailure, TypeError)):
        collection.create_index([("t", TEXT)], **options)


def test_how_the_index_is_listed(collection):
    collection.create_index([("t", TEXT), ("u", TEXT)], weights={"t": 5}, default_language="german")
    about = next(one for one in collection.list_indexes() if one["name"] != "_id_")
    assert dict(about) == {
        "v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": "t_text_u_text",
        "default_language": "german", "language_override": "language",
        "weights": {"t": 5, "u": 1}, "textIndexVersion": 3}


@pytest.mark.parametrize("text, search, matches", [
    ("日本語 テキスト", "日本語", True), ("emoji 👍🏽 here", "emoji", True),
    ("e\u0301cole", "école", True), ("ＦＵＬＬ", "full", False), ("a\u00adb", "ab", False),
    ("x" * 300 + " tail", "tail", True), ("x" * 300, "x" * 300, True),
    ("nul\0byte", "nul", None), ("co-operate", "operate", True), ("it's", "it's", None),
    ("foo_bar", "foo", None), ("", "x", False), (" \n\t", "x", False),
])
def test_unusual_text(collection, text, search, matches):
    collection.create_index([("t", TEXT)], default_language="none")
    collection.insert_one({"_id": 1, "t": text})
    result = found(collection, search)
    assert result in ([1], []) if matches is None else result == ([1] if matches else [])
    assert collection.database.command({"validate": collection.name, "full": True})["valid"]


def test_long_texts_and_many_terms(collection):
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=8)) for _ in range(100_000)]
    collection.create_index([("t", TEXT)], default_language="none")
    collection.insert_one({"_id": 1, "t": " ".join(words)})
    assert found(collection, words[77_777]) == [1]
    assert found(collection, " ".join(words[:500])) == [1]


def test_progress_and_result_of_a_large_build(server, database):
    chance = random.Random(2)
    words = ["".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(20_000)]
    for start in range(0, 60_000, 10_000):
        database.c.insert_many({"_id": one, "t": " ".join(chance.choices(words, k=25))}
                               for one in range(start, start + 10_000))
    seen, done = [], threading.Event()

    def watch():
        client = server.client()
        while not done.is_set():
            for one in client.admin.command("currentOp")["inprog"]:
                if "progress" in one:
                    seen.append((one["msg"], one["progress"]["done"], one["progress"]["total"]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    database.c.create_index([("t", TEXT)])
    done.set()
    watcher.join()
    assert seen and all(0 <= part <= whole for _, part, whole in seen), seen[:5]
    assert any("Index Build" in message for message, _, _ in seen)
    word = words[123]
    expected = [one["_id"] for one in database.c.find({"t": {"$regex": rf"\b{word}\b"}})]
    assert found(database.c, f'"{word}"') == sorted(expected) and expected


def test_a_hidden_index_answers_no_search(stores):
    [name] = [name for name in stores.index_information() if name != "_id_"]
    stores.database.command("collMod", stores.name, index={"name": name, "hidden": True})
    with pytest.raises(OperationFailure) as failure:
        found(stores, "coffee")
    assert failure.value.code == 291
    stores.database.command("collMod", stores.name, index={"name": name, "hidden": False})
    assert found(stores, "coffee") == [1, 3]


def test_a_unique_text_index_has_each_term_with_a_score_once(collection):
    """Regression: the index was refused. MongoDB accepts it: its entries are the terms with their
    scores."""
    collection.create_index([("a", 1), ("s", TEXT), ("b", -1)], name="t", unique=True)
    collection.insert_many([{"_id": 1, "s": "bob"}, {"_id": 2, "s": "bob smith"}, {"_id": 3, "a": 1, "s": "bob"},
                            {"_id": 4, "s": "bob", "b": 2}, {"_id": 5}, {"_id": 6}])

    def double(write):
        with pytest.raises(WriteError) as error:
            write()
        assert error.value.code == 11000
        return error.value.details["keyPattern"], error.value.details["keyValue"]

    pattern = {"a": 1, "_fts": "text", "_ftsx": 1, "b": -1}
    assert double(lambda: collection.insert_one({"_id": 7, "s": "Bob"})) == (
        pattern, {"a": None, "_fts": "bob", "_ftsx": 1.1, "b": None})
    assert double(lambda: collection.update_one({"_id": 3}, {"$set": {"a": None}}))[0] == pattern
    assert double(lambda: collection.insert_one({"_id": 7, "s": "smith jones"}))[1]["_ftsx"] == 0.75
    collection.update_one({"_id": 1}, {"$set": {"s": "bob smith bob"}})
    collection.insert_one({"_id": 7, "s": "bob"})
    query = {"a": None, "$text": {"$search": "bob"}}
    assert {one["_id"]: one["score"] for one in collection.find(query, SCORE)} == {1: 1.25, 2: 0.75, 4: 1.1, 7: 1.1}
    collection.drop_index("t")
    with pytest.raises(OperationFailure) as error:
        collection.create_index([("s", TEXT)], name="u", unique=True)
    assert error.value.code == 11000
    collection.delete_many({"_id": {"$in": [3, 4]}})
    collection.create_index([("s", TEXT)], name="u", unique=True)
    assert found(collection, "bob smith") == [1, 2, 7]
    assert collection.database.command("validate", "c")["valid"]
    collection.drop_index("u")
    collection.create_index([("s", TEXT)], name="v")
    with pytest.raises(OperationFailure) as error:
        collection.database.command("collMod", "c", index={"name": "v", "prepareUnique": True})
    assert error.value.code == 67


def test_a_partial_index_answers_only_what_it_holds(collection):
    """Regression: a partial text index answered searches without its condition with only the
    documents that it has. MongoDB finds no plan for such a search."""
    collection.insert_many({"_id": i, "t": "red wine", "n": i} for i in range(10))
    collection.create_index([("t", TEXT)], partialFilterExpression={"n": {"$gte": 5}})
    search = {"$text": {"$search": "wine"}}
    or_below = {"$or": [{**search, "n": 8}, {"_id": 1}]}
    for query in ({**search, "n": {"$gte": 5}}, {**search, "n": {"$gt": 5}}, {"n": 7, "$and": [search]}):
        expected = [i for i in range(5, 10) if query.get("n") != 7 or i == 7]
        expected = [i for i in expected if query.get("n") != {"$gt": 5} or i > 5]
        assert sorted(one["_id"] for one in collection.find(query)) == expected, query
    # Numbers compare alike in every collation.
    assert len(list(collection.find({**search, "n": 8}, collation={"locale": "fr"}))) == 1
    assert sorted(one["_id"] for one in collection.find(or_below)) == [1, 8]
    for query in (search, {**search, "n": {"$gte": 4}}, {**search, "t": "red wine"},
                  {"$or": [search, {"_id": 1}]}):
        for refused in (lambda: list(collection.find(query)),
                        lambda: list(collection.aggregate([{"$match": query}])),
                        lambda: collection.update_many(query, {"$set": {"a": 1}})):
            with pytest.raises(OperationFailure, match="failed to use text index") as error:
                refused()
            assert error.value.code == 291, query
