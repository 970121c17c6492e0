"""No area of recorded conversations passes less than its floor."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import replay  # noqa: E402


def first_words():
    return sorted({path.name.removesuffix(".jsonl.xz") for path in replay.case_files()})


@pytest.fixture(scope="module")
def counted():
    return replay.count(replay.replay(left_out=replay.read_differences()))


@pytest.mark.parametrize("word", first_words())
def test_no_area_falls_below_its_floor(counted, word):
    passed, whole = counted
    floors = {area: floor for area, floor in replay.read_floors().items()
              if area.split("/", 1)[0] == word}
    assert whole[word] > 0, f"no case of {word} was run"
    assert replay.below_floor(passed, whole, floors) == []


def test_every_difference_on_purpose_names_a_case_and_a_reason():
    lines = replay.DIFFERENCES.read_text(encoding="utf-8").splitlines()
    named = [line.split(maxsplit=1) for line in lines if line.strip() and line[0] != "#"]
    known = {case["name"] for path in replay.case_files() for case in replay.read_cases(path)}
    assert [words for words in named if len(words) < 2 or words[0] not in known] == []


def test_cases_are_compared_as_the_comparison_says():
    """Tests the comparison itself. With a wrong one, every area would pass."""
    from bson import Int64, ObjectId
    from bson.son import SON
    from comparison import check

    def verdict(reply, expected, command=None, compare=None, codes=()):
        case = {"steps": [{"reply": expected}], "compare": compare, "codes": codes}
        wrong = check(case, [command or {"find": "c"}], [SON(reply)], replay.decode)
        return wrong and wrong.split("\n")[1].strip()

    one = {"$numberDouble": "1.0"}
    assert verdict({"ok": 1.0, "n": 1}, {"n": {"$numberInt": "1"}, "ok": one}) is None
    assert "missing" in verdict({"ok": 1.0}, {"n": {"$numberInt": "1"}, "ok": one})
    assert verdict({"n": Int64(1), "ok": 1}, {"n": {"$numberInt": "1"}, "ok": one}) is not None
    assert verdict({"ok": 1, "more": 2}, {"ok": one}) is None
    assert "writeErrors" in verdict({"ok": 1, "writeErrors": []}, {"ok": one})
    assert verdict({"ok": 0, "errmsg": "x", "code": 2},
                   {"ok": {"$numberDouble": "0.0"}, "code": {"$numberInt": "2"}}) is None
    failed = {"ok": {"$numberDouble": "0.0"}, "code": {"$numberInt": "2"}}
    assert verdict({"ok": 0, "code": 14}, failed) is not None
    assert verdict({"ok": 0, "code": 14}, failed, codes=[9, 14]) is None
    assert verdict({"ok": 1}, failed, codes=[9, 14]) is not None
    assert verdict({"ok": 1}, failed, codes=[0]) is None
    assert verdict({"ok": 0, "code": 14}, {"ok": one}, codes=[14]) is not None
    written = {"ok": one, "writeErrors": [{"code": {"$numberInt": "4"}}]}
    assert verdict({"ok": 1, "writeErrors": [{"code": 5}]}, written) is not None
    assert verdict({"ok": 1, "writeErrors": [{"code": 5}]}, written, codes=[5]) is None
    fields = {"d": {"a": {"$numberInt": "1"}, "b": {"$numberInt": "2"}}}
    assert "fields" in verdict({"d": SON(b=2, a=1)}, fields)
    assert verdict({"v": -0.0}, {"v": {"$numberDouble": "0.0"}}) is not None
    assert verdict({"v": ObjectId()}, {"v": "<generated ObjectId>"}) is None
    batch = {"cursor": {"firstBatch": [{"a": {"$numberInt": "1"}}, {"a": {"$numberInt": "2"}}],
                        "id": {"$numberInt": "0"}}}
    other = {"cursor": SON([("firstBatch", [{"a": 2}, {"a": 1}]), ("id", 0)])}
    assert verdict(other, batch) is not None
    assert verdict(other, batch, compare="unordered") is None
