"""A pipeline returns the same as a whole, stage by stage, and within other stages. The pipelines
are random. The name of each test has its seed."""

import random

import pytest

SEEDS = 40
PIPELINES = 12
OTHER = "other"


def value(chance):
    return chance.choice([None, 0, 1, 2, 2.5, "", "a", "ab", True, [], [1, "a"], {"p": 1}])


def document(chance, number):
    made = {"_id": number}
    for name in ("n", "s", "l", "o"):
        if chance.random() < 0.8:
            made[name] = value(chance)
    if chance.random() < 0.5:
        made["l"] = [value(chance) for _ in range(chance.randrange(4))]
    return made


def path(chance):
    return chance.choice(["n", "s", "l", "o", "o.p", "v", "_id"])


def comparison(chance):
    operator = chance.choice(["$eq", "$ne", "$lt", "$gte"])
    operands = [chance.choice(["$" + path(chance), {"$literal": value(chance)}]) for _ in range(2)]
    return {operator: operands}


def condition(chance):
    return chance.choice([
        lambda: {path(chance): {chance.choice(["$gte", "$lt", "$ne", "$eq"]): value(chance)}},
        lambda: {path(chance): {"$exists": chance.random() < 0.5}},
        lambda: {"$expr": comparison(chance)},
        lambda: {"$nor": [{"$expr": comparison(chance)}]},
        lambda: {"$or": [condition(chance), condition(chance)]},
        lambda: {**condition(chance), **condition(chance)},
    ])()


def stage(chance):
    return chance.choice([
        lambda: {"$match": condition(chance)},
        lambda: {"$match": condition(chance)},
        lambda: {"$set": {"v": comparison(chance), chance.choice("nso"): "$" + path(chance)}},
        lambda: {"$project": {name: 1 for name in chance.sample("nslov", 2)}},
        lambda: {"$unset": chance.choice("nslo")},
        lambda: {"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": chance.random() < 0.5}},
        lambda: {"$replaceWith": {"_id": "$_id", "v": "$" + path(chance), "n": 1}},
        lambda: {"$group": {"_id": "$" + path(chance), "n": {"$sum": 1}}},
        lambda: {"$sort": {"_id": chance.choice([1, -1])}},
        lambda: {"$count": "n"},
        lambda: {"$unionWith": OTHER},
        lambda: {"$lookup": {"from": OTHER, "localField": path(chance), "foreignField": "n", "as": "v"}},
        lambda: {"$facet": {"l": [{"$match": condition(chance)}], "s": [{"$count": "n"}]}},
    ])()


def variants(database, name, stages, chance):
    """Returns (description, collection, an equivalent pipeline)."""
    unpacked = [{"$unwind": "$l"}, {"$replaceWith": "$l"}]
    yield "in $unionWith", "missing", [{"$unionWith": {"coll": name, "pipeline": stages}}]
    yield "in $lookup", "one", [{"$lookup": {"from": name, "pipeline": stages, "as": "l"}}, *unpacked]
    if not any("$facet" in one for one in stages):
        yield "in $facet", name, [{"$facet": {"l": stages}}, *unpacked]
    place = chance.randrange(len(stages) + 1)
    database.drop_collection("view")
    database.create_collection("view", viewOn=name, pipeline=stages[:place])
    yield f"of a view of {place} stages", "view", stages[place:]


def stage_by_stage(database, rows, stages):
    """Each stage gets the rows of the one before as literals, so no stage can move."""
    for one in stages:
        rows = list(database.aggregate([{"$documents": {"$literal": rows}}, one]))
    return rows


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_pipeline_gives_the_same_in_whatever_it_stands(database, collection, seed):
    chance = random.Random(seed)
    collection.insert_many(document(chance, number) for number in range(8))
    database[OTHER].insert_many(document(chance, number) for number in range(100, 104))
    database.one.insert_one({})
    for _ in range(PIPELINES):
        stages = [stage(chance) for _ in range(chance.randint(1, 5))]
        rows = stage_by_stage(database, list(collection.find()), stages)
        expected = sorted(map(repr, rows))
        assert sorted(map(repr, collection.aggregate(stages))) == expected, stages
        for what, name, other in variants(database, collection.name, stages, chance):
            found = sorted(map(repr, database[name].aggregate(other, batchSize=chance.choice([1, 100]))))
            assert found == expected, f"{what}: {stages}"
