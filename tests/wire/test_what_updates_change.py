"""Updates write entries only for indexes that depend on the changed fields. The entries stay equal
to those of the documents."""

import bson
import pytest
from bson.raw_bson import RawBSONDocument

KEYS = [
    {"a.b": "text"}, {"a": 1}, {"a.b": 1}, {"a.$**": 1}, {"$**": 1}, {"a.b": "hashed"},
]


def raw(*elements):
    """A document that may have one name twice."""
    body = b"".join(bson.encode(dict([one]))[4:-1] for one in elements)
    return RawBSONDocument((len(body) + 5).to_bytes(4, "little") + body + b"\0")


CHANGES = [
    # A name with a dot is no path, except in a text index.
    ({"_id": 1, "a.b": "apple"}, {"_id": 1, "a.b": "pear"}),
    ({"_id": 1, "a": {"b": "apple"}}, {"_id": 1, "a": {"b": "pear"}}),
    ({"_id": 1, "a": {"b": "apple"}}, {"_id": 1, "x": 1, "a": {"b": "apple"}}),
    ({"_id": 1, "x": 1, "a": {"b": "apple"}}, {"_id": 1, "a": {"b": "pear"}, "x": 1}),
    (raw(("_id", 1), ("a", {"b": "x"}), ("a", {"b": "apple"})), raw(("_id", 1), ("a", {"b": "x"}), ("a", {"b": "pear"}))),
    (raw(("_id", 1), ("a", {"b": "x"}), ("a", {"b": "pear"})), raw(("_id", 1), ("a", {"b": "pear"}), ("a", {"b": "x"}))),
    ({"_id": 1, "a": {"b": "apple"}, "language": "english"}, {"_id": 1, "a": {"b": "apple"}, "language": "none"}),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("before, after", CHANGES)
def test_an_index_has_what_the_changed_document_says(database, key, before, after):
    database.command("createIndexes", "c", indexes=[{"key": key, "name": "i"}])
    database.c.insert_one(before)
    database.c.replace_one({"_id": 1}, after)
    validated = database.command("validate", "c", full=True)
    assert validated["valid"], validated
    assert bson.encode(database.c.find_one({"_id": 1})) == bson.encode(bson.decode(bson.encode(after)))
