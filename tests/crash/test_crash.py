"""A loaded server is killed at random moments. No acknowledged write is lost, and every index
equals its collection. CRASH_ROUNDS and CRASH_SEED in the environment set the number of rounds and
repeat a run."""

import os
import pathlib
import random
import sys
import threading
import time

import pytest
from pymongo import TEXT
from pymongo.errors import ConnectionFailure, InvalidOperation, OperationFailure

from windrow_server import Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from background_load import BackgroundLoad  # noqa: E402
from model import COLLECTIONS, WORDS, Writer  # noqa: E402

ROUNDS = int(os.environ.get("CRASH_ROUNDS", 10))
SEED = int(os.environ.get("CRASH_SEED", time.time_ns() % 1_000_000))
WRITERS = 4
RESTART_SECONDS = 5
# So little memory that folds and merges always run.
MEMORY = 64 << 20
INDEXES = {"u_1": [("u", 1)], "t_1": [("t", 1)], "n_1_u_-1": [("n", 1), ("u", -1)]}
BUILT_LATE = ("pad_1", [("pad", 1), ("t", 1)])


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """Runs all rounds. Each test checks a part of their results."""
    with Server(tmp_path_factory.mktemp("crash"), memory=MEMORY) as server:
        rounds = Rounds(server)
        rounds.prepare()
        for number in range(ROUNDS):
            rounds.run(number)
            if rounds.wrong:
                break
        yield rounds


class Rounds:
    def __init__(self, server):
        self.server = server
        self.random = random.Random(SEED)
        self.writers = [Writer(number, SEED) for number in range(WRITERS)]
        self.wrong = []
        self.restarts = []
        self.builds_seen = 0
        self.background_steps = 0

    def prepare(self):
        database = self.server.client().crash
        for name in COLLECTIONS:
            by_id = {"key": {"_id": 1}, "unique": True}
            options = {"clusteredIndex": by_id} if name == "clustered" else {}
            database.create_collection(name, **options)
        database.clustered.create_index("t")
        for name, key in INDEXES.items():
            database.indexed.create_index(key, name=name, unique=name == "u_1")
        database.texts.create_index([("s", TEXT), ("rare", TEXT)])
        database.texts.create_index("t")

    def run(self, number):
        """Load, SIGKILL, restart, check."""
        stop = threading.Event()
        threads = [threading.Thread(target=one.run, args=(self.server.uri, stop))
                   for one in self.writers]
        build = Build(self.server) if number % 2 else None
        load = BackgroundLoad(self.server.uri, f"{SEED}/{number}")
        threads.append(load.thread)
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(0.2, 1.5))
        if build:
            build.start(self.random.uniform(0, 0.3))
        self.server.kill()
        stop.set()
        for thread in [*threads, *([build.thread] if build else [])]:
            thread.join()
        self.restarts.append(self.server.start())
        self.background_steps += load.done
        self.note(number, [f"writer {one.number}: {one.failure!r}" for one in self.writers
                           if one.failure])
        self.note(number, [f"background load: {load.failure!r}"] if load.failure else [])
        database = self.server.client().crash
        self.note(number, self.check_documents(database))
        self.note(number, self.check_indexes(database))
        if build:
            self.builds_seen += build.was_seen
            self.note(number, build.check(database, self.expected("indexed")))

    def note(self, number, wrong):
        self.wrong += [f"round {number}, seed {SEED}: {one}" for one in wrong[:5]]

    def expected(self, name):
        return {identifier: document for writer in self.writers
                for identifier, document in writer.documents[name].items()}

    def check_documents(self, database):
        found = {name: {one["_id"]: one for one in database[name].find()} for name in COLLECTIONS}
        wrong = [one for writer in self.writers for one in writer.settle(found)]
        for name in COLLECTIONS:
            expected = self.expected(name)
            if found[name] != expected:
                wrong += differences(name, expected, found[name])
        return wrong

    def check_indexes(self, database):
        wrong = []
        for name in COLLECTIONS:
            result = database.command({"validate": name, "full": True})
            if not result["valid"] or result["nrecords"] != len(self.expected(name)):
                wrong.append(f"validate of {name}: {result}")
        for index in ["_id_", *INDEXES]:
            wrong += same_ids(database.indexed, index, self.expected("indexed"))
        for index in ["_id_", "t_1"]:
            wrong += same_ids(database.texts, index, self.expected("texts"))
        wrong += same_ids(database.clustered, "t_1", self.expected("clustered"))
        for name in database.list_collection_names():
            if not database.command("validate", name)["valid"]:
                wrong.append(f"{name} is not valid")
        return wrong + self.check_words(database.texts) + self.check_elements(database)

    def check_words(self, texts):
        wrong = []
        for word in WORDS:
            expected = sum(word in one["s"].split() for one in self.expected("texts").values())
            found = texts.count_documents({"$text": {"$search": word}})
            if found != expected:
                wrong.append(f"$text finds {found} documents with {word}, there are {expected}")
        return wrong

    def check_elements(self, database):
        wrong = []
        for name in ("indexed", "texts", "clustered"):
            for element in self.random.sample(range(300), 20):
                expected = {identifier for identifier, one in self.expected(name).items()
                            if element in one["t"]}
                found = {one["_id"] for one in database[name].find({"t": element}).hint("t_1")}
                if found != expected:
                    wrong.append(f"{name}: t = {element} finds {len(found)} of {len(expected)}")
        return wrong


class Build:
    """An index build that the kill interrupts, on a collection that is written to."""

    def __init__(self, server):
        self.server = server
        self.thread = threading.Thread(target=self.create)
        self.was_seen = False

    def create(self):
        try:
            client = self.server.client()
            client.crash.indexed.drop_index(BUILT_LATE[0])
        except (OperationFailure, ConnectionFailure, InvalidOperation):
            pass  # it was never built, or the server has ended
        try:
            client.crash.indexed.create_index(BUILT_LATE[1], name=BUILT_LATE[0])
        except (ConnectionFailure, InvalidOperation):
            pass  # the server or its client has ended

    def start(self, seconds):
        """Returns soon after the build was seen in currentOp, or after about `seconds`."""
        self.thread.start()
        until = time.monotonic() + seconds + 0.5
        client = self.server.client()
        while time.monotonic() < until and not self.was_seen:
            operations = client.admin.command("currentOp")["inprog"]
            # Other builds run too, and this one may wait for them.
            self.was_seen = any("Index Build" in one.get("msg", "") for one in operations
                                if one.get("command", {}).get("createIndexes") == "indexed")
        time.sleep(seconds / 10)

    def check(self, database, expected):
        """Checks that a build that had begun ends by itself, and that the index equals its
        collection."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                return same_ids(database.indexed, BUILT_LATE[0], expected)
            except OperationFailure as error:
                if error.code != 2:
                    raise
            if not self.was_seen:
                return []
            time.sleep(0.1)
        return [f"the build of {BUILT_LATE[0]} was under way and did not go on"]


def same_ids(collection, index, expected):
    """Checks that a full read by an index returns each document once."""
    ids = [one["_id"] for one in collection.find({}, {"_id": 1}).hint(index)]
    if len(ids) != len(set(ids)):
        return [f"{collection.name}.{index} gives {len(ids) - len(set(ids))} documents twice"]
    if set(ids) != set(expected):
        return [f"{collection.name}.{index} gives {len(ids)} documents of {len(expected)}"]
    return []


def differences(name, expected, found):
    lost = [one for one in expected if one not in found]
    risen = [one for one in found if one not in expected]
    changed = [one for one in expected if one in found and expected[one] != found[one]]
    return [f"{name}: {len(lost)} lost {lost[:3]}, {len(risen)} too many {risen[:3]}, "
            f"{len(changed)} changed {[(expected[one], found[one]) for one in changed[:1]]}"]


def test_no_acknowledged_write_is_lost_and_every_index_equals_its_collection(crashed):
    assert crashed.wrong == []
    assert len(crashed.restarts) == ROUNDS
    assert sum(writer.acknowledged for writer in crashed.writers) > ROUNDS * 20
    assert crashed.background_steps > ROUNDS


def test_a_killed_server_answers_again_soon(crashed):
    assert max(crashed.restarts) < RESTART_SECONDS, crashed.restarts


def test_some_kills_met_a_build_under_way(crashed):
    assert crashed.builds_seen > 0 or ROUNDS < 4 or crashed.wrong
