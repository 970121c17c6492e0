"""A model of the writes to a server that may die at any moment. A writer has documents of its own
and at most one running operation. Acknowledged writes must be there after a crash. Each document of
the running operation may be as before it or as after it."""

import random
import string

from pymongo import MongoClient, WriteConcern
from pymongo.errors import ConnectionFailure, DuplicateKeyError

WORDS = ["apple", "banana", "cherry", "grape", "lemon", "mango", "olive", "peach"]
COLLECTIONS = ("plain", "indexed", "texts", "clustered")
JOURNALED = WriteConcern(w=1, j=True)


def until_it_dies(uri, step):
    """Calls `step` with a database until it returns False or the connection fails. Returns other
    errors."""
    client = MongoClient(uri, maxPoolSize=1, retryWrites=False, serverSelectionTimeoutMS=3000)
    try:
        while step(client.crash):
            pass
    except ConnectionFailure:
        pass
    except Exception as error:  # noqa: BLE001 - the test asks for it and fails with it
        return error
    finally:
        client.close()
    return None


class Writer:
    """One connection that writes at random until the server dies or the writer is stopped."""

    def __init__(self, number, seed):
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        self.made = 0
        # collection → _id → document, as acknowledged
        self.documents = {name: {} for name in COLLECTIONS}
        # (collection, {_id: document after, or None}) of the operation without an answer
        self.under_way = None
        self.acknowledged = 0
        self.failure = None

    def run(self, uri, stop):
        """Writes until `stop` is set or the connection fails. Any other error is recorded."""
        def write(database):
            if stop.is_set():
                return False
            self.one_operation(database)
            self.acknowledged += 1
            return True

        self.failure = until_it_dies(uri, write)

    def one_operation(self, database):
        name = self.random.choice(COLLECTIONS)
        collection = database[name]
        if self.random.random() < 0.3:
            collection = collection.with_options(write_concern=JOURNALED)
        operations = [(self.insert_one, 30), (self.insert_batch, 12), (self.update_one, 25),
                      (self.update_many, 4), (self.replace_one, 8), (self.find_and_modify, 5),
                      (self.delete_one, 12), (self.delete_many, 2), (self.duplicate, 2)]
        (operation,) = self.random.choices([one for one, _ in operations],
                                           [weight for _, weight in operations])
        operation(name, collection)

    def acknowledge(self, name, after, act):
        """Runs `act`. Until it returns, its outcome for each document is unknown."""
        self.under_way = (name, after)
        result = act()
        for identifier, document in after.items():
            if document is None:
                self.documents[name].pop(identifier, None)
            else:
                self.documents[name][identifier] = document
        self.under_way = None
        return result

    def make(self):
        self.made += 1
        return {"_id": f"{self.number}-{self.made}", "w": self.number, "n": self.random.randrange(40),
                "u": self.number * 10 ** 9 + self.made,
                "t": [self.random.randrange(300) for _ in range(self.random.randrange(6))],
                "s": " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 5))),
                "rare": " ".join(self.word() for _ in range(self.random.randrange(60))),
                "pad": "".join(self.random.choices(string.ascii_letters, k=10))
                       * self.random.randrange(1, 60)}

    def word(self):
        """A word that nothing else has, not even as a stem. Each word is a key of its own in a text
        index."""
        letters = self.random.choices(string.ascii_lowercase, k=self.random.randrange(3, 12))
        return "q" + "".join(letters)

    def some(self, name):
        """The _id of a document of this writer, or None."""
        known = self.documents[name]
        if not known:
            return None
        # Both the newest and the oldest documents matter. Drawing any one would copy the dict.
        place = self.random.randrange(min(len(known), 50))
        ends = reversed(known) if self.random.random() < 0.5 else iter(known)
        for _ in range(place):
            next(ends)
        return next(ends)

    def insert_one(self, name, collection):
        one = self.make()
        self.acknowledge(name, {one["_id"]: one}, lambda: collection.insert_one(one))

    def insert_batch(self, name, collection):
        batch = [self.make() for _ in range(self.random.randrange(1, 300))]
        self.acknowledge(name, {one["_id"]: one for one in batch},
                         lambda: collection.insert_many(batch, ordered=self.random.random() < 0.5))

    def changed(self, one):
        """Returns an update and the document that results from `one`."""
        n, word = self.random.randrange(40), self.random.choice(WORDS)
        t = [*one["t"], n]
        update = {"$set": {"n": n, "s": f"{one['s']} {word}"}, "$push": {"t": n}}
        if len(t) > 8:
            t = t[:2]
            update = {"$set": {"n": n, "s": word, "t": t}}
            return update, {**one, "n": n, "s": word, "t": t}
        return update, {**one, "n": n, "s": f"{one['s']} {word}", "t": t}

    def update_one(self, name, collection):
        identifier = self.some(name)
        if identifier is None:
            return
        update, after = self.changed(self.documents[name][identifier])
        result = self.acknowledge(name, {identifier: after},
                                  lambda: collection.update_one({"_id": identifier}, update))
        assert result.matched_count == 1, f"{identifier} of {name} is not found by its _id"

    def update_many(self, name, collection):
        n = self.random.randrange(40)
        after = {identifier: {**one, "n": n + 1, "t": [n]}
                 for identifier, one in self.documents[name].items() if one["n"] == n}
        result = self.acknowledge(name, after, lambda: collection.update_many(
            {"w": self.number, "n": n}, {"$set": {"n": n + 1, "t": [n]}}))
        assert result.matched_count == len(after), f"{result.matched_count} are not {len(after)}"

    def replace_one(self, name, collection):
        identifier = self.some(name)
        if identifier is None:
            return
        after = {**self.make(), "_id": identifier}
        self.acknowledge(name, {identifier: after},
                         lambda: collection.replace_one({"_id": identifier}, after))

    def find_and_modify(self, name, collection):
        identifier = self.some(name)
        if identifier is None:
            return
        before = self.documents[name][identifier]
        update, after = self.changed(before)
        found = self.acknowledge(name, {identifier: after}, lambda: collection.find_one_and_update(
            {"_id": identifier}, update))
        assert found == before, f"{found} is not {before}"

    def delete_one(self, name, collection):
        identifier = self.some(name)
        if identifier is None:
            return
        result = self.acknowledge(name, {identifier: None},
                                  lambda: collection.delete_one({"_id": identifier}))
        assert result.deleted_count == 1, f"{identifier} of {name} is not there to delete"

    def delete_many(self, name, collection):
        n = self.random.randrange(40)
        after = {identifier: None for identifier, one in self.documents[name].items()
                 if one["n"] == n}
        result = self.acknowledge(name, after, lambda: collection.delete_many(
            {"w": self.number, "n": n}))
        assert result.deleted_count == len(after), f"{result.deleted_count} are not {len(after)}"

    def duplicate(self, name, collection):
        """Checks that a second document with an existing unique key is refused."""
        identifier = self.some("indexed")
        if identifier is None:
            return
        second = {**self.make(), "u": self.documents["indexed"][identifier]["u"]}
        try:
            collection.database.indexed.insert_one(second)
        except DuplicateKeyError:
            return
        raise AssertionError(f"a second document with u = {second['u']} was let in")

    def settle(self, found):
        """Accepts the outcome of the running operation. `found` has all existing documents."""
        if self.under_way is None:
            return []
        name, after = self.under_way
        self.under_way = None
        wrong = []
        for identifier, document in after.items():
            before = self.documents[name].get(identifier)
            is_there = found[name].get(identifier)
            if is_there not in (before, document):
                wrong.append(f"{name} {identifier} is {is_there}, neither {before} nor {document}")
            elif is_there is None:
                self.documents[name].pop(identifier, None)
            else:
                self.documents[name][identifier] = is_there
        return wrong
