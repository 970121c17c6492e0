"""Windrow over an object store (versitygw on the local disk) beside an embedded database.

    measure.py --windrow PATH --bench PATH [--parts w8,lag,start] [--rounds N] [--gigabytes N]
               [--random-bytes N]

w8: insertion in batches of 1,000 with w: 1 and with j: true, which waits for the store, over 1 and 64
connections, and single inserts with j: true. lag: how long a write of the primary takes to be visible
on a follower while batches are inserted at full rate. start: a server without local data, from its
start to its first find by _id, and what it has read of the store by then. Its documents have values
of 1,000 bytes, a random piece of --random-bytes that repeats: the fewer, the better they compress.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "store")]

import pymongo
from pymongo.write_concern import WriteConcern

from object_store import CREDENTIALS, ObjectStore, StoreServer, install

WRITTEN = WriteConcern(w=1)
LAG_SECONDS = 20
VALUE_BYTES = 1000


def wrapper(folder, store, windrow):
    """A program that starts the server over the store, each time on a prefix of its own."""
    path = folder / "windrow-over-store"
    path.write_text(f"""#!/bin/sh
case "$1" in
serve) exec {windrow} "$@" --store "s3://bucket/bench-$$" \\
    --store-option aws_endpoint=http://127.0.0.1:{store.port} ;;
*) exec {windrow} "$@" ;;
esac
""")
    path.chmod(0o755)
    return path


def run_w8(options, folder, server, case, connections, documents):
    results = folder / "results.jsonl"
    results.unlink(missing_ok=True)
    amount = ["--operations", str(documents)] if case == "journaled" else \
        ["--documents", str(documents)]
    subprocess.run([str(options.bench), "w8", "--server", str(server), "--cases", case,
                    "--connections", str(connections), *amount, "--results", str(results),
                    "--rivals", str(folder), "--folder", str(folder)],
                   check=True, capture_output=True)
    rows = json.loads(results.read_text().splitlines()[-1])["rows"]
    return {row["name"]: row["ours"] for row in rows}


def w8(options, folder, store):
    over = wrapper(folder, store, options.windrow)
    cases = [("embedded, w: 1", options.windrow, "small", 1, 1_000_000),
             ("store, w: 1", over, "small", 1, 1_000_000),
             ("store, j: true", over, "small-journaled", 1, 1_000_000),
             ("embedded, w: 1, 64 connections", options.windrow, "small", 64, 1_000_000),
             ("store, w: 1, 64 connections", over, "small", 64, 1_000_000),
             ("store, j: true, 64 connections", over, "small-journaled", 64, 1_000_000),
             ("store, single inserts, j: true", over, "journaled", 1, 3000)]
    found = {name: [] for name, *_ in cases}
    for _ in range(options.rounds):
        for name, *case in cases:
            found[name].append(run_w8(options, folder, *case))
    for name, rows in found.items():
        for row in rows[0]:
            values = [it[row] for it in rows]
            print(f"{name}: {row}: median {statistics.median(values):,.0f} of "
                  f"{', '.join(f'{value:,.0f}' for value in values)}", flush=True)


def lag(folder, store):
    prefix = f"lag-{os.getpid()}"
    with StoreServer(folder / "one", store, prefix) as one, \
            StoreServer(folder / "two", store, prefix, is_follower=True) as two:
        ends, delays, inserted = threading.Event(), [], [0]

        def insert():
            collection = one.client().get_database("load", write_concern=WRITTEN).c
            batch = [{"a": i, "text": "x" * 30} for i in range(1000)]
            while not ends.is_set():
                for document in batch:
                    document.pop("_id", None)
                collection.insert_many(batch, ordered=False)
                inserted[0] += 1000

        def mark():
            collection = one.client().get_database("load", write_concern=WRITTEN).marks
            number = 0
            while not ends.is_set():
                number += 1
                collection.insert_one({"_id": number, "time": time.monotonic()})
                time.sleep(0.01)

        def watch():
            client = two.client(readPreference="secondaryPreferred")
            seen = 0
            while not ends.is_set():
                for found in client.load.marks.find({"_id": {"$gt": seen}}).sort("_id"):
                    delays.append(time.monotonic() - found["time"])
                    seen = found["_id"]
                time.sleep(0.002)
        threads = [threading.Thread(target=work) for work in (insert, mark, watch)]
        for thread in threads:
            thread.start()
        time.sleep(LAG_SECONDS)
        ends.set()
        for thread in threads:
            thread.join()
    delays.sort()
    at = [f"p{part} {delays[len(delays) * part // 100] * 1000:.0f} ms" for part in (50, 90, 99)]
    print(f"lag: {', '.join(at)}, largest {delays[-1] * 1000:.0f} ms, of {len(delays)} writes, while "
          f"{inserted[0] / LAG_SECONDS:,.0f} documents/s were inserted", flush=True)


def start(folder, store, gigabytes, random_bytes):
    prefix = f"start-{os.getpid()}"
    count = int(gigabytes * 1e9 / VALUE_BYTES)
    with StoreServer(folder / "filled", store, prefix, options=["--cache-bytes", "1GB"]) as server:
        began = time.monotonic()
        fill(server, count, random_bytes)
        server.client().test.command("compact", "c")
        print(f"start: {count:,} documents in {time.monotonic() - began:.0f} s", flush=True)
        assert server.stop() == 0
    runs = store.objects / prefix / "runs"
    stored = sum(path.stat().st_size for path in runs.iterdir())
    with StoreServer(folder / "new", store, prefix, start=False) as server:
        began = time.monotonic()
        server.start()
        client = server.client()
        found = client.test.c.find_one({"_id": count // 3})
        seconds = time.monotonic() - began
        assert found["value"] == value_of(count // 3, random_bytes)
        read = client.admin.command("serverStatus")["windrow"]["store"]["bytesRead"]
        began = time.monotonic()
        source = random.Random(1)
        for _ in range(20):
            assert client.test.c.find_one({"_id": source.randrange(count)})
        each = (time.monotonic() - began) / 20
    print(f"start: {stored / 1e9:.1f} GB in {len(list(runs.iterdir()))} runs; the first find by _id "
          f"{seconds:.2f} s after the start, {read / 1e6:.1f} MB read; further ones {each * 1000:.0f} ms "
          "each", flush=True)


def value_of(number, random_bytes):
    piece = random.Random(number).randbytes(random_bytes)
    return (piece * (VALUE_BYTES // random_bytes + 1))[:VALUE_BYTES]


def fill(server, count, random_bytes):
    threads, each = 4, 1000

    def work(first):
        collection = server.client().get_database("test", write_concern=WRITTEN).c
        for begin in range(first * each, count, threads * each):
            collection.insert_many([{"_id": i, "value": value_of(i, random_bytes)}
                                    for i in range(begin, min(begin + each, count))], ordered=False)
    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", type=pathlib.Path, required=True)
    parser.add_argument("--bench", type=pathlib.Path, required=True)
    parser.add_argument("--parts", default="w8,lag,start")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--random-bytes", type=int, default=VALUE_BYTES)
    options = parser.parse_args()
    os.environ.update(CREDENTIALS)
    os.environ["WINDROW"] = str(options.windrow.resolve())
    options.windrow, options.bench = options.windrow.resolve(), options.bench.resolve()
    install()
    with tempfile.TemporaryDirectory(prefix="windrow-bench-store-") as folder:
        folder = pathlib.Path(folder)
        (folder / "store").mkdir()
        store = ObjectStore(folder / "store")
        try:
            if "w8" in options.parts:
                w8(options, folder, store)
            if "lag" in options.parts:
                lag(folder, store)
            if "start" in options.parts:
                start(folder, store, options.gigabytes, options.random_bytes)
        finally:
            store.stop()


if __name__ == "__main__":
    main()
