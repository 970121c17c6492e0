"""The values of a `distinct` are one reply. Values that do not fit into 16 MB are refused by every
plan, and by the bytes of the reply, not by those of the index's keys, which may be a fifth of them.
"""

import pytest
from pymongo.errors import OperationFailure

INDEXES = [("o", 1)], [("o", -1)], [("p", 1), ("o", 1)]
PLANS = {
    "documents": ({"$natural": 1}, {}, "COLLSCAN"),
    "keys": ({"o": 1}, {}, "DISTINCT_SCAN"),
    "keys backward": ({"o": -1}, {}, "DISTINCT_SCAN"),
    "keys behind others": ({"p": 1, "o": 1}, {"p": 0}, "DISTINCT_SCAN"),
}
SMALL_NUMBERS = [i % 100 for i in range(1500)]


@pytest.mark.parametrize("count, rest, fits", [
    (600, SMALL_NUMBERS, True),
    (1000, SMALL_NUMBERS, True),
    (1500, SMALL_NUMBERS, False),
    (2500, SMALL_NUMBERS, False),
    (2000, [None] * 1200, True),
    (4000, [None] * 2400, False),
])
def test_what_the_reply_would_take_is_counted_on_every_plan(database, count, rest, fits):
    collection = database.c
    for index in INDEXES:
        collection.create_index(index)
    for start in range(0, count, 500):
        collection.insert_many({"_id": i, "p": 0, "o": {"l": [i] + rest}} for i in range(start, min(start + 500, count)))
    for hint, query, stage in PLANS.values():
        command = {"distinct": "c", "key": "o", "query": query, "hint": hint}
        assert stage in str(database.command("explain", command, verbosity="queryPlanner")["queryPlanner"])
        if fits:
            values = database.command(command)["values"]
            assert [value["l"][0] for value in values] == list(range(count))
            continue
        with pytest.raises(OperationFailure) as refused:
            database.command(command)
        assert refused.value.code == 17217


@pytest.mark.parametrize("text", ["x" * 1015, "\0" * 1015], ids=["letters", "zeros"])
def test_the_same_number_of_values_fits_on_every_plan(database, text):
    """Each value takes about 1031 bytes. 4 KB are reserved for the rest of the reply."""
    collection = database.c
    for index in INDEXES:
        collection.create_index(index)
    collection.insert_many({"_id": i, "p": 0, "o": f"{i:05}{text}"} for i in range(16_300))
    whole = 16 * 2**20 - 4096
    taken, fitting = 0, 0
    while taken + 1 + len(str(fitting)) + 1 + 4 + 1020 + 1 < whole:
        taken += 1 + len(str(fitting)) + 1 + 4 + 1020 + 1
        fitting += 1
    for hint, query, _ in PLANS.values():
        within = {"$lt": f"{fitting:05}"}
        assert len(collection.distinct("o", {**query, "o": within}, hint=hint)) == fitting
        with pytest.raises(OperationFailure) as refused:
            collection.distinct("o", {**query, "o": {"$lt": f"{fitting + 1:05}"}}, hint=hint)
        assert refused.value.code == 17217
