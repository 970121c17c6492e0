"""Compaction and cleanup of the state of encrypted fields."""

import math

import pytest
from answers import ids, refused
from encrypted_people import compact, encryption, few, people  # noqa: F401
from pymongo.errors import OperationFailure


def test_compaction_keeps_results(people):
    plain, numbers = people.plain, list(range(24))

    def check(more=()):
        for number in range(4):
            found = sorted(ids(plain.find({"ssn": people.equal(f"ssn-{number}")})))
            assert found == [one for one in (*numbers, *more) if one % 4 == number]
        assert sorted(ids(plain.find(people.between({"$and": [{"age": {"$gte": 5}}, {"age": {"$lt": 11}}]})))) == list(range(5, 11))
        people.check()

    plain.insert_many([people.person(number) for number in numbers])
    before = people.state.count_documents({})
    stats = compact(people)
    assert stats["ecoc"] == {"read": before, "deleted": before}
    assert stats["esc"]["deleted"] == before and stats["esc"]["inserted"] == people.state.count_documents({}) < before
    assert people.records.count_documents({}) == 0
    check()
    anchors = people.state.count_documents({})
    assert all("value" in one for one in people.state.find())
    plain.insert_many([people.person(number) for number in (100, 101, 102)])
    check((100, 101, 102))
    compact(people)
    check((100, 101, 102))
    plain.insert_one(people.person(103))
    stats = compact(people, "cleanupStructuredEncryptionData")
    assert stats["ecoc"]["deleted"] > 0 and stats["esc"]["deleted"] > 0
    check((100, 101, 102, 103))
    plain.insert_many([people.person(number) for number in (104, 105, 106, 107)])
    check(range(100, 108))
    cleaned = compact(people, "cleanupStructuredEncryptionData")
    assert cleaned["esc"]["updated"] > 0 or people.contention
    check(range(100, 108))
    assert anchors > 0 and people.records.count_documents({}) == 0
    assert compact(people)["ecoc"] == {"read": 0, "deleted": 0}


@pytest.mark.parametrize("factor", [None, 0.5, 0])
def test_padding_hides_shared_edges(few, factor):
    """Each value has an edge of each of its 8 bits. Neighbours share the upper ones."""
    edges = {(bits, number >> (8 - bits)) for number in range(40) for bits in range(1, 9)}
    few.plain.insert_many([{"_id": number, "age": few.value("age", number)} for number in range(40)])
    assert few.state.count_documents({}) == 40 * 8

    def check(numbers):
        for low, high in ((0, 200), (3, 17), (38, 60)):
            query = few.between({"$and": [{"age": {"$gte": low}}, {"age": {"$lte": high}}]})
            assert sorted(ids(few.plain.find(query))) == [one for one in numbers if low <= one <= high]

    stats = compact(few, **({} if factor is None else {"anchorPaddingFactor": factor}))
    padding = math.ceil((1 if factor is None else factor) * (40 * 8 - len(edges)))
    assert stats["esc"]["inserted"] == few.state.count_documents({}) == len(edges) + padding
    check(range(40))
    few.plain.insert_one({"_id": 40, "age": few.value("age", 40)})
    compact(few, "cleanupStructuredEncryptionData")
    edges |= {(bits, 40 >> (8 - bits)) for bits in range(1, 9)}
    assert few.state.count_documents({}) == len(edges) + (padding > 0)
    check(range(41))
    few.plain.insert_many([{"_id": number, "age": few.value("age", number)} for number in (41, 42, 43)])
    assert compact(few)["esc"]["inserted"] == 3 * 8
    check(range(44))
    few.check()


@pytest.mark.parametrize("factor, code", [(-0.1, 2), (1.5, 2), (float("nan"), 2), ("1", 14)])
def test_padding_factors_are_checked(few, factor, code):
    refused(lambda: few.database.command("compactStructuredEncryptionData", "people", anchorPaddingFactor=factor,
                                         compactionTokens={}), code)


def test_compaction_needs_the_right_tokens(few):
    few.plain.insert_many([few.person(number) for number in range(4)])
    before = few.state.count_documents({}), few.records.count_documents({})
    token = bytes(32)
    padded = {"ecoc": token, "anchorPaddingToken": token}
    tokens = {"ssn": token, "home.city": token, "note": token, "age": padded}
    for changed, code in [
        ({"ssn": 1}, 6346801), ({"ssn": token[1:]}, 6373501), ({"age": {"ecoc": token}}, 40414),
        ({"ssn": None}, 6346801), ({}, (2, 7666502)), ({"age": token}, (2, 8574701)),
    ]:
        with pytest.raises(OperationFailure) as error:
            few.database.command("compactStructuredEncryptionData", "people", compactionTokens={**tokens, **changed})
        assert error.value.code in (code if isinstance(code, tuple) else (code,)), (changed, error.value)
    missing = {path: token for path, token in tokens.items() if path != "ssn"}
    refused(lambda: few.database.command("compactStructuredEncryptionData", "people", compactionTokens=missing), 7294900)
    refused(lambda: few.database.command("cleanupStructuredEncryptionData", "people"), 40414)
    few.database.plain.insert_one({})
    refused(lambda: few.database.command("compactStructuredEncryptionData", "plain", compactionTokens={}), 6346807)
    refused(lambda: few.database.command("compactStructuredEncryptionData", "none", compactionTokens={}), 26)
    assert before == (few.state.count_documents({}), few.records.count_documents({}))
    few.check()
