"""Windrow servers over a Ceph cluster, all of whose parts are killed in turn under load.

Transactions move money between accounts, and append to lists and read them. Readers sum the
accounts. In the end the sum must be the same, every acknowledged append must be there once, and the
history must be one of snapshot isolation (history.py).

    tests/cluster/run.py [--seconds 600] [--seed 1] [--folder DIR]
"""

import argparse
import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / part)
                for part in ("", "store", "cluster")]

import pymongo
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

import ceph as ceph_module
from history import FAILED, OK, UNKNOWN, Transaction, check
from object_store import CREDENTIALS, StoreServer
from windrow_server import free_port

SERVERS = 3
ACCOUNTS, MONEY = 10, 100
LISTS_AT_ONCE, APPENDS_TO_A_LIST = 6, 60
# A killed part is started again after this time, and the next one is killed after as much.
DOWN_SECONDS = 8
COMMIT_SECONDS = 60
SNAPSHOT, MAJORITY = ReadConcern("snapshot"), WriteConcern("majority")


class Load:
    """The threads that use the database, and their observations."""

    def __init__(self, uri, seed):
        self.uri, self.seed = uri, seed
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.history, self.problems = [], []
        self.counts = {"transfers": 0, "sums": 0, "failed": 0, "unknown": 0}
        self.next_value = 0
        self.longest_gap, self.last_commit = 0.0, time.monotonic()
        self.threads = [threading.Thread(target=self.guard, args=(work, number))
                        for number, work in enumerate([self.transfer] * 3 + [self.sum_accounts]
                                                      + [self.use_lists] * 4)]

    def client(self):
        return pymongo.MongoClient(self.uri, retryWrites=True, serverSelectionTimeoutMS=60_000,
                                   socketTimeoutMS=30_000, connectTimeoutMS=2_000)

    def guard(self, work, number):
        source = random.Random(f"{self.seed} {number}")
        with self.client() as client:
            while not self.ends.is_set():
                try:
                    work(client, source)
                except PyMongoError as error:
                    self.problems.append(f"{work.__name__}: {error!r}")
                except AssertionError as error:
                    self.problems.append(f"{work.__name__}: {error}")
                    return

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def record_commit(self):
        with self.lock:
            now = time.monotonic()
            self.longest_gap = max(self.longest_gap, now - self.last_commit)
            self.last_commit = now

    def attempt(self, client, body):
        """Runs a transaction once. Returns its outcome and the result of `body`."""
        with client.start_session() as session:
            session.start_transaction(read_concern=SNAPSHOT, write_concern=MAJORITY)
            try:
                result = body(session)
            except (OperationFailure, ConnectionFailure) as error:
                self.end_failed(session)
                if not error.has_error_label("TransientTransactionError"):
                    raise
                self.count("failed")
                return FAILED, None
            outcome = self.commit(session)
            if outcome == OK:
                self.record_commit()
            else:
                self.count("failed" if outcome == FAILED else "unknown")
            return outcome, result

    @staticmethod
    def end_failed(session):
        if session.in_transaction:
            try:
                session.abort_transaction()
            except PyMongoError:
                pass

    @staticmethod
    def commit(session):
        deadline = time.monotonic() + COMMIT_SECONDS
        while True:
            try:
                session.commit_transaction()
                return OK
            except PyMongoError as error:
                if error.has_error_label("TransientTransactionError"):
                    return FAILED
                is_unknown = error.has_error_label("UnknownTransactionCommitResult")
                if not is_unknown and not isinstance(error, ConnectionFailure):
                    raise
                if time.monotonic() > deadline:
                    return UNKNOWN

    def transfer(self, client, source):
        accounts = client.bank.accounts
        giver, taker = source.sample(range(ACCOUNTS), 2)
        amount = source.randint(1, 20)

        def body(session):
            have = accounts.find_one({"_id": giver}, session=session)["balance"]
            if have < amount:
                return
            accounts.update_one({"_id": giver}, {"$set": {"balance": have - amount}}, session=session)
            accounts.update_one({"_id": taker}, {"$inc": {"balance": amount}}, session=session)
        if self.attempt(client, body)[0] == OK:
            self.count("transfers")

    def sum_accounts(self, client, source):
        read = client.get_database("bank", read_concern=SNAPSHOT)
        preference = source.choice([pymongo.ReadPreference.PRIMARY,
                                    pymongo.ReadPreference.SECONDARY_PREFERRED])
        accounts = read.get_collection("accounts", read_preference=preference)
        total = sum(it["balance"] for it in accounts.find())
        assert total == ACCOUNTS * MONEY, f"the accounts have {total}"
        self.count("sums")
        time.sleep(0.05)

    def use_lists(self, client, source):
        lists = client.bank.lists
        with self.lock:
            first = self.next_value // (LISTS_AT_ONCE * APPENDS_TO_A_LIST) * LISTS_AT_ONCE
        keys = [f"list-{first + number}" for number in range(LISTS_AT_ONCE)]
        plan = [(source.random() < 0.5, source.choice(keys)) for _ in range(source.randint(1, 4))]
        operations = []

        def body(session):
            for appends, key in plan:
                if appends:
                    with self.lock:
                        self.next_value += 1
                        value = self.next_value
                    operations.append(("append", key, value))
                    lists.update_one({"_id": key}, {"$push": {"values": value}}, upsert=True,
                                     session=session)
                else:
                    found = lists.find_one({"_id": key}, session=session)
                    operations.append(("read", key, found["values"] if found else []))
        begin = time.monotonic()
        outcome = UNKNOWN
        try:
            outcome, _ = self.attempt(client, body)
        finally:
            transaction = Transaction(operations, outcome, begin, time.monotonic())
            with self.lock:
                self.history.append(transaction)


class Cluster:
    """The Windrow servers, each on one of the gateways, and Ceph below."""

    def __init__(self, ceph, folder):
        self.ceph = ceph
        self.servers = []
        for number in range(SERVERS):
            gateway = number % len(ceph.gateway_ports)
            store = argparse.Namespace(port=ceph.gateway_ports[gateway])
            self.servers.append(StoreServer(
                folder / f"server{number}", store, "test", is_follower=number > 0,
                port=free_port(), options=["--cache-bytes", "64MB"]))
        self.uri = "mongodb://" + ",".join(f"127.0.0.1:{it.port}" for it in self.servers) \
            + "/?replicaSet=rs0"

    def primary(self):
        """Returns a server that reports to be the primary, or any server if none does."""
        for server in self.servers:
            server.is_follower = False
            if server.process and server.answers():
                return server
        return self.servers[0]

    def disturb(self, what, source):
        """Kills one part. Returns its name, and a function that starts it again."""
        if what in ("primary", "follower"):
            primary = self.primary()
            others = [it for it in self.servers if it is not primary]
            server = primary if what == "primary" else source.choice(others)
            server.kill()
            return f"{what} {server.port}", server.begin
        if what == "step down":
            primary = self.primary()
            with pymongo.MongoClient(primary.uri, serverSelectionTimeoutMS=2_000) as client:
                try:
                    client.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=2)
                except PyMongoError as error:
                    return f"step down {primary.port}: {error}", lambda: None
            return f"step down {primary.port}", lambda: None
        kinds = {"osd": ceph_module.OSDS, "mon": ceph_module.MONITORS, "rgw": ceph_module.GATEWAYS}
        name = f"{what}.{source.choice(list(kinds[what]))}"
        self.ceph.kill(name)
        return name, lambda: self.ceph.start(name)

    def stop(self):
        for server in self.servers:
            if server.process:
                server.kill()


PARTS = ["primary", "osd", "follower", "mon", "rgw", "step down"]


def disturb_until(cluster, deadline, source, log):
    counts = dict.fromkeys(PARTS, 0)
    number = 0
    while time.monotonic() + 2 * DOWN_SECONDS < deadline:
        part = PARTS[number % len(PARTS)]
        number += 1
        name, restart = cluster.disturb(part, source)
        log(f"killed {name}" if part != "step down" else name)
        counts[part] += 1
        time.sleep(DOWN_SECONDS)
        restart()
        time.sleep(DOWN_SECONDS)
    return counts


def final_state(uri):
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=120_000) as client:
        database = client.get_database("bank", read_concern=ReadConcern("linearizable"))
        accounts = {number: database.accounts.find_one({"_id": number})["balance"]
                    for number in range(ACCOUNTS)}
        lists = {it["_id"]: it["values"] for it in client.bank.lists.find()}
        return sum(accounts.values()), lists


def prepare(uri):
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=60_000) as client:
        accounts = client.bank.get_collection("accounts", write_concern=MAJORITY)
        accounts.insert_many({"_id": number, "balance": MONEY} for number in range(ACCOUNTS))
        client.bank.create_collection("lists")


def run(options, folder):
    began = time.monotonic()

    def log(text):
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)
    with ceph_module.Ceph(folder / "ceph") as ceph:
        log("Ceph answers")
        CREDENTIALS.update(AWS_ACCESS_KEY_ID=ceph_module.ACCESS_KEY,
                           AWS_SECRET_ACCESS_KEY=ceph_module.SECRET_KEY)
        os.environ.update(CREDENTIALS)
        ceph.create_bucket("bucket")
        cluster = Cluster(ceph, folder)
        try:
            log("the servers answer")
            prepare(cluster.uri)
            load = Load(cluster.uri, options.seed)
            for thread in load.threads:
                thread.start()
            try:
                deadline = time.monotonic() + options.seconds
                killed = disturb_until(cluster, deadline, random.Random(options.seed), log)
            finally:
                load.ends.set()
            for thread in load.threads:
                thread.join()
            log("the load has ended")
            total, lists = final_state(cluster.uri)
        finally:
            cluster.stop()
    panics = [str(it.log_path) for it in cluster.servers if "panicked" in it.log()]
    anomalies = check(load.history, lists)
    if total != ACCOUNTS * MONEY:
        anomalies.append(f"the accounts have {total} in the end")
    anomalies += [problem for problem in load.problems if "the accounts have" in problem]
    anomalies += [f"{path} has a panic" for path in panics]
    return {"seconds": options.seconds, "seed": options.seed, "killed": killed, **load.counts,
            "list transactions": sum(it.outcome == OK for it in load.history),
            "elements": sum(map(len, lists.values())),
            "longest time without a commit": round(load.longest_gap, 1),
            "errors of operations": len(load.problems), "examples of errors": load.problems[:5],
            "anomalies": anomalies}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="the time of the load")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, help="keep all data and logs here")
    options = parser.parse_args()
    missing = ceph_module.missing_programs()
    if missing:
        sys.exit(f"{', '.join(missing)}: not found; on Debian: apt-get install ceph-mon ceph-mgr "
                 "ceph-osd radosgw ceph-common")
    if options.folder:
        result = run(options, options.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="windrow-cluster-") as folder:
            result = run(options, pathlib.Path(folder))
    print(json.dumps(result, indent=2))
    sys.exit(bool(result["anomalies"]))


if __name__ == "__main__":
    main()
