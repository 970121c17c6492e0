"""Typical uses by applications: references, queues of jobs, sessions that expire."""

import threading
from datetime import datetime, timedelta, timezone

import pytest
from answers import ids, refused
from bson import DBRef
from pymongo import ReturnDocument


@pytest.fixture
def referring(database):
    """Documents that refer to others by `$id`, as object mappers store them."""
    database.people.insert_many([{"_id": one, "name": f"p{one}"} for one in range(3)])
    database.c.insert_many([
        {"_id": one, "by": DBRef("people", one), "all": [DBRef("people", two) for two in range(one)]}
        for one in range(3)])
    return database.c


@pytest.mark.parametrize("ask, expected", [
    (lambda c: ids(c.find({"by.$id": 2})), [2]),
    (lambda c: ids(c.find().sort("by.$id", -1)), [2, 1, 0]),
    (lambda c: c.find_one({"_id": 1}, {"_id": 0, "by.$id": 1}), {"by": {"$id": 1}}),
    (lambda c: c.distinct("all.$id"), [0, 1]),
    (lambda c: ids(c.aggregate([{"$group": {"_id": "$by.$id"}}, {"$sort": {"_id": 1}}])), [0, 1, 2]),
    (lambda c: next(c.aggregate([{"$match": {"_id": 2}}, {"$project": {"_id": 0, "x": "$all.$id"}}])),
     {"x": [0, 1]}),
    (lambda c: [one["found"][0]["name"] for one in c.aggregate([{"$sort": {"_id": 1}}, {"$lookup": {
        "from": "people", "localField": "by.$id", "foreignField": "_id", "as": "found"}}])],
     ["p0", "p1", "p2"]),
    (lambda c: [len(one["found"]) for one in c.aggregate([{"$sort": {"_id": 1}}, {"$lookup": {
        "from": "people", "let": {"who": "$all.$id"}, "as": "found",
        "pipeline": [{"$match": {"$expr": {"$in": ["$_id", "$$who"]}}}]}}])], [0, 1, 2]),
    (lambda c: c.aggregate([{"$unwind": "$all"}, {"$match": {"all.$id": 1}},
                            {"$project": {"_id": 0, "x": "$all.$ref"}}]).to_list(),
     [{"x": "people"}]),
])
@pytest.mark.parametrize("index", [None, "by.$id", "all.$id"])
def test_references_are_followed_by_their_fields(referring, ask, expected, index):
    if index:
        referring.create_index(index)
    assert ask(referring) == expected


def test_no_other_field_of_a_path_begins_with_a_dollar_sign(referring):
    refused(lambda: referring.aggregate([{"$project": {"x": "$by.$name"}}]), 16410)
    refused(lambda: list(referring.find().sort("by.$name")), 16410)
    refused(lambda: referring.distinct("by.$name"), 16410)


def test_an_operator_within_another_is_refused_as_applications_expect(collection):
    """Applications look for these words to distinguish a wrong update from a failure of the server.
    """
    collection.insert_one({"_id": 1, "a": [{"$unknown": 1}]})
    refusal = refused(lambda: collection.update_one({"_id": 1}, {"$set": {"$rename": {"a": "b"}}}), 52)
    assert "'$rename' in '$rename' is not allowed in the context of an update's" in str(refusal)
    refused(lambda: collection.find_one({"a": {"$all": [{"$gt": 1}]}}), 2)
    refused(lambda: collection.find_one({"a": {"$all": [{"$near": [0, 0]}]}}), 2)
    assert collection.count_documents({"a": {"$all": [{"$unknown": 1}]}}) == 1
    assert collection.count_documents({"a": {"$all": [{"$unknown": 2}]}}) == 0


def test_each_job_of_a_queue_is_taken_once(collection):
    """Workers take the job that is due first, lock it, and return it if they cannot do it."""
    now = datetime.now(timezone.utc)
    collection.create_index([("state", 1), ("due", 1)])
    collection.insert_many([
        {"_id": one, "state": "waiting", "due": now - timedelta(seconds=one), "tries": 0}
        for one in range(200)])
    taken, lock = [], threading.Lock()

    def work(worker):
        while job := collection.find_one_and_update(
                {"state": "waiting", "due": {"$lte": now}},
                {"$set": {"state": "taken", "by": worker}, "$inc": {"tries": 1}},
                sort=[("due", 1)], return_document=ReturnDocument.AFTER):
            if job["tries"] == 1 and job["_id"] % 10 == 0:
                collection.update_one({"_id": job["_id"], "by": worker},
                                      {"$set": {"state": "waiting"}, "$unset": {"by": ""}})
                continue
            with lock:
                taken.append(job["_id"])
            collection.update_one({"_id": job["_id"], "by": worker}, {"$set": {"state": "done"}})

    workers = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(200))
    assert collection.count_documents({"state": "done"}) == 200
    assert collection.count_documents({"tries": 2}) == 20


def test_a_session_is_kept_while_it_is_used(collection):
    """Session stores upsert by a key of their own, and expire sessions by an index."""
    collection.create_index("expires", expireAfterSeconds=0)
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    first = collection.update_one({"_id": "s"}, {"$set": {"expires": until, "session": "{}"}}, upsert=True)
    again = collection.update_one({"_id": "s"}, {"$set": {"expires": until, "session": "{}"}}, upsert=True)
    assert (first.upserted_id, again.upserted_id, again.matched_count) == ("s", None, 1)
    live = {"$or": [{"expires": {"$exists": False}}, {"expires": {"$gt": datetime.now(timezone.utc)}}]}
    assert collection.find_one({"_id": "s", **live})["session"] == "{}"
