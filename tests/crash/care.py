"""What goes on beside writers when a server dies: indexes made anew, space given back, validation,
collections that come and go."""

import random
import threading

from model import until_it_dies

SCRATCH = "scratch"


class Care:
    """One connection that looks after collections until the server dies."""

    def __init__(self, uri, seed):
        self.uri = uri
        self.random = random.Random(seed)
        self.failure = None
        self.done = 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        works = [self.make_anew, self.compact, self.validate, self.come_and_go]

        def work(database):
            self.random.choice(works)(database)
            self.done += 1
            return True

        self.failure = until_it_dies(self.uri, work)

    def make_anew(self, database):
        # Of `indexed` an index may be under way, which is then refused.
        database.command("reIndex", self.random.choice(["texts", "clustered"]))

    def compact(self, database):
        database.command("compact", self.random.choice(["plain", "clustered"]))

    def validate(self, database):
        name = self.random.choice(["plain", "indexed", "texts", "clustered"])
        full = self.random.random() < 0.5
        found = database.command("validate", name, full=full)
        assert found["valid"], found

    def come_and_go(self, database):
        """A collection with an index and documents is renamed and dropped."""
        scratch = database[SCRATCH]
        scratch.insert_many([{"a": number % 10} for number in range(200)])
        scratch.create_index("a")
        if self.random.random() < 0.5:
            scratch.rename("renamed", dropTarget=True)
        if self.random.random() < 0.7:
            scratch.drop()
