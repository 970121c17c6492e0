"""Compares replies with recorded ones and finds the first difference. Messages, clocks, cursor
numbers and generated ids do not count. Fields and their order, types, numbers and codes do. A reply
itself may have more fields, in any order."""

import datetime
import json
import math
import uuid

import bson
from bson import json_util
from bson.binary import Binary
from bson.son import SON

# Fields whose values change from one second to the next.
OF_THE_MOMENT = {"$clusterTime", "operationTime", "electionId", "opTime", "localTime",
                 "$gleStats", "recoveryToken", "atClusterTime", "errmsg"}
CURSOR_LISTS = {"cursorsKilled", "cursorsNotFound", "cursorsAlive", "cursorsUnknown"}
# Placeholders in recorded replies for values that differ between runs.
OBJECT_ID = "<generated ObjectId>"
RECENT = "<time of the run>"
TOKEN = "<resume token>"
SESSION = "<session>"
UUID = "<UUID>"
# Commands and fields whose results have no order, always or if the case says so.
UNORDERED_COMMANDS = {"listCollections", "listDatabases"}
BATCHES = {".cursor.firstBatch", ".cursor.nextBatch", ".values"}


def check(case, commands, replies, decode):
    """Returns None if the reply equals the recorded one, otherwise a sentence about the first
    difference."""
    known = set()
    collect_ids(commands, known)
    for number, (command, reply) in enumerate(zip(commands, replies)):
        unordered = (case.get("compare") == "unordered"
                     or next(iter(command)) in UNORDERED_COMMANDS)
        expected = decode(case["steps"][number]["reply"])
        if fails_otherwise(expected, reply, case.get("codes", ())):
            # Fields that follow a success were not recorded.
            if reply.get("ok") == 1.0:
                return None
            continue
        wrong = reply_difference(expected, lasting(reply, known), not unordered)
        if wrong:
            return f"step {number} {shown(command)}\n      {wrong}"
    return None


def fails_otherwise(expected, reply, codes):
    """Returns True if a recorded failure now has one of these codes. The code 0 is success."""
    recorded, errors = expected.get("writeErrors", ()), reply.get("writeErrors", ())
    if recorded and len(recorded) == len(errors):
        return all(error["code"] in codes for error in errors)
    return expected.get("ok") == 0.0 and reply.get("code", 0) in codes


def collect_ids(value, into):
    if isinstance(value, bson.ObjectId):
        into.add(value)
    elif isinstance(value, dict):
        collect_ids(list(value.values()), into)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect_ids(item, into)


def lasting(reply, known):
    """The reply without the values that differ between runs."""
    kept = SON()
    for key, value in reply.items():
        if key in OF_THE_MOMENT:
            continue
        if key == "cursor" and isinstance(value, dict):
            kept_of_cursor = ((name, it) for name, it in value.items() if name not in OF_THE_MOMENT)
            value = SON(kept_of_cursor, id=1 if value.get("id") else 0)
        elif key in CURSOR_LISTS and isinstance(value, list):
            value = len(value)
        elif key in ("writeErrors", "writeConcernError"):
            value = without_messages(value)
        elif key == "ok" and isinstance(value, (int, bool)):
            value = float(value)
        kept[key] = hidden(value, known)
    return kept


def without_messages(value):
    if isinstance(value, list):
        return [without_messages(item) for item in value]
    if not isinstance(value, dict):
        return value
    return SON((key, item) for key, item in value.items() if key not in ("errmsg", "errInfo"))


def hidden(value, known, key=None):
    """Replaces generated ids, and the values of change events that differ between runs."""
    if key == "clusterTime" and isinstance(value, bson.Timestamp):
        return RECENT
    if key == "lsid" and isinstance(value, dict):
        return SESSION
    if key in ("collectionUUID", "ui") and isinstance(value, (uuid.UUID, Binary)):
        return UUID
    if isinstance(value, bson.ObjectId):
        return value if value in known else OBJECT_ID
    if isinstance(value, bson.DBRef):
        value = value.as_doc()
    if isinstance(value, dict):
        if list(value) == ["_data"]:
            return TOKEN
        return SON((name, hidden(item, known, name)) for name, item in value.items()
                   if not is_newer(name, item, value))
    if isinstance(value, list):
        return [hidden(item, known) for item in value]
    return value


def is_newer(name, value, within):
    """Whether change events have had the field only since a version after the recorded one.

    wallTime came with 6.0; truncatedArrays stands in every description, mostly empty (manual,
    reference/change-events).
    """
    if name == "wallTime":
        return isinstance(value, datetime.datetime) and "_data" in within.get("_id", ())
    return name == "truncatedArrays" and value == [] and "updatedFields" in within


def reply_difference(expected, found, ordered):
    for key, value in expected.items():
        if key not in found:
            return f".{key}: missing, expected {shown(value)}; reply {shown(found)}"
        wrong = difference(value, found[key], f".{key}", ordered)
        if wrong:
            return wrong
    if expected.get("ok") == 1.0 and "writeErrors" in found and "writeErrors" not in expected:
        return f".writeErrors: not expected, found {shown(found['writeErrors'])}"
    return None


def difference(expected, found, path, ordered=True):
    if expected == RECENT:
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        return document_difference(expected, found, path, ordered)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        if not ordered and path in BATCHES:
            return set_difference(expected, found, path)
        pairs = enumerate(zip(expected, found))
        found_wrong = (difference(one, other, f"{path}[{place}]", ordered)
                       for place, (one, other) in pairs)
        return next(filter(None, found_wrong), None)
    if same_scalar(expected, found):
        return None
    return f"{path}: expected {shown(expected)}, found {shown(found)}"


def document_difference(expected, found, path, ordered):
    if list(expected) != list(found):
        return f"{path}: expected fields {list(expected)}, found {list(found)}"
    found_wrong = (difference(expected[key], found[key], f"{path}.{key}", ordered)
                   for key in expected)
    return next(filter(None, found_wrong), None)


def set_difference(expected, found, path):
    rest = list(found)
    for item in expected:
        place = next((place for place, other in enumerate(rest)
                      if difference(item, other, path + "[]") is None), None)
        if place is None:
            return f"{path}: expected {shown(item)} among {shown(found)}"
        del rest[place]
    return None


def same_scalar(one, other):
    if type(one) is not type(other) or isinstance(one, (dict, list)):
        return False
    if isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        if one == other == 0:
            return math.copysign(1, one) == math.copysign(1, other)
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, bson.Decimal128):
        return str(one) == str(other)
    return one == other


def shown(value):
    options = json_util.CANONICAL_JSON_OPTIONS
    try:
        text = json_util.dumps(value, json_options=options)
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
    return text if len(text) <= 400 else text[:400] + "…"
