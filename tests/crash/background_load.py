"""Maintenance beside the writers when a server is killed: index rebuilds, compaction, validation,
and collections that are created, renamed and dropped."""

import random
import threading

from model import until_it_dies

SCRATCH = "scratch"


class BackgroundLoad:
    """One connection that runs maintenance commands until the server is killed."""

    def __init__(self, uri, seed):
        self.uri = uri
        self.random = random.Random(seed)
        self.failure = None
        self.done = 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        works = [self.rebuild_indexes, self.compact, self.validate, self.create_and_drop]

        def work(database):
            self.random.choice(works)(database)
            self.done += 1
            return True

        self.failure = until_it_dies(self.uri, work)

    def rebuild_indexes(self, database):
        # `indexed` is left out: reIndex is refused while an index is being built.
        database.command("reIndex", self.random.choice(["texts", "clustered"]))

    def compact(self, database):
        database.command("compact", self.random.choice(["plain", "clustered"]))

    def validate(self, database):
        name = self.random.choice(["plain", "indexed", "texts", "clustered"])
        full = self.random.random() < 0.5
        found = database.command("validate", name, full=full)
        assert found["valid"], found

    def create_and_drop(self, database):
        """Creates a collection with an index and documents, renames and drops it."""
        scratch = database[SCRATCH]
        scratch.insert_many([{"a": number % 10} for number in range(200)])
        scratch.create_index("a")
        if self.random.random() < 0.5:
            scratch.rename("renamed", dropTarget=True)
        if self.random.random() < 0.7:
            scratch.drop()
