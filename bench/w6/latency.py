#!/usr/bin/env python3
"""Searches among many small files: how long each takes, by every element of the query language.

    bench/w6/latency.py [--windrow PATH] [--files N] [--repetitions N] [--keep]

The files are pieces of the texts and sources of `corpus.py`, and a tenth of them are mails. They are
indexed twice: from nothing, and without a change. Then each query runs

- over the wire, from one client of a running server: the pipeline that `windrow search --show-pipeline`
  prints, sent again and again. The time includes the client's;
- from a command line beside a running server;
- from a cold command line: `windrow search` opens the data folder by itself.

Prints the medians, the 95th percentiles and the slowest queries, and writes bench/out/w6/latency.json.
Needed: PyMongo.
"""

import argparse
import email.utils
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bson import json_util

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from windrow_server import Server  # noqa: E402

OUT = HERE.parent / "out" / "w6"
WORK = OUT / "latency"
PIECE_CHARACTERS = 500
FOLDER_FILES = 500
SEED = 1
WIRE_MS, COLD_MS, UNCHANGED_SECONDS = 20, 150, 1

# Every element of the language, on frequent and on rare words.
QUERIES = [
    # words in any form
    "kernel", "the", "return", "memory allocation", "driver device register", "file system mount option",
    "running", "scheduler", "anarchism", "zsmalloc",
    # this form of a word
    "Linux", '"error"', "HashMap", "PostgreSQL",
    # alternatives
    "kernel OR driver", "(memory OR disk) error", "buffer OR cache OR page OR block",
    "(open OR close) (file OR socket) error",
    # exclusion
    "kernel -driver", "error NOT memory", "python -(class OR def)", "return -the",
    # phrases and nearness
    '"the kernel"', '"return value"', '"memory management" -kernel', '"of the"', '"for example"',
    '"error message"p5', '"device driver"p', '"in the kernel"p3',
    # names with parts
    "file_operations", "os.path.join", "self.assertEqual", "e-mail",
    # patterns
    "regist*", "allocat*", "k?rnel", "*alloc", "s*e", "module_*", "a*",
    # similar words
    "~kernal", "~memmory", "~buffr", "~shedule",
    # parts of documents
    "title:kernel", "subject:notes", "from:writer7", "to:list3 kernel", "author:writer11", "path:django",
    "filename:piece-12*.rs", "title:\"file system\"", "(from:writer1 OR from:writer2) memory",
    # properties
    "ext:rs", "ext:py,go kernel", "kind:mail error", "kind:mail", "lang:en return", "mime:text/markdown",
    "mime:text/* kernel",
    # folders
    "dir:text", "dir:source/0010", "dir:text kernel", "return -dir:text",
    # dates and sizes
    "date:2024", "date:2020-03 kernel", "date:2015..2018 error", "date<2016 return", "date:P30D", "size>1k",
    "size:500..700 kernel", "size<600 driver",
    # everything together
    'kind:mail date:2020..2023 from:writer5 (kernel OR driver) -"the device"',
    "ext:c,h regist* -static size<1k date>2019", 'memory "page table" OR buffer lang:en dir:text',
]

# Orders, counts and similar files: options of the command line.
OPTIONS = [
    ("kernel", "--sort", "newest"), ("return", "--sort", "newest"), ("error", "--sort", "oldest"),
    ("memory", "--sort", "largest"), ("kernel", "--limit", "100"), ("kernel", "--skip", "500"),
    ("error", "--count-by", "ext"), ("return", "--count-by", "year"), ("kernel", "--count-by", "dir"),
]


def pieces(kind):
    """The texts of the corpus, cut at ends of lines."""
    for path in sorted((OUT / "files" / kind).rglob("*")):
        if not path.is_file():
            continue
        lines, length = [], 0
        for line in path.read_text(errors="replace").replace("\0", " ").splitlines(keepends=True):
            lines.append(line)
            length += len(line)
            if length >= PIECE_CHARACTERS:
                yield path.suffix, "".join(lines)
                lines, length = [], 0


def mail(number, text, seconds):
    return (f"From: Writer {number % 97} <writer{number % 97}@example.org>\n"
            f"To: list{number % 7}@example.org\nSubject: Notes {number}\n"
            f"Date: {email.utils.formatdate(seconds)}\nMessage-ID: <{number}@example.org>\n"
            f"Content-Type: text/plain; charset=utf-8\n\n{text}")


def write_files(folder, count):
    """Half of the files are texts as far as there are enough."""
    generator = random.Random(SEED)
    number = 0
    for kind, share in [("text", count // 2), ("source", count)]:
        for suffix, text in pieces(kind):
            if number >= share:
                break
            seconds = generator.randrange(1_420_000_000, 1_760_000_000)
            if number % 10 == 9:
                suffix, text = ".eml", mail(number, text, seconds)
            path = folder / kind / f"{number // FOLDER_FILES:04}" / f"piece-{number}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (seconds, seconds))
            number += 1
    return number


def seconds_of(command):
    began = time.monotonic()
    ended = subprocess.run([str(part) for part in command], capture_output=True)
    seconds = time.monotonic() - began
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{command} failed: {ended.stderr.decode(errors='replace')}")
    return seconds


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(times):
    """Summarizes milliseconds by query: the median and 95th percentile of all, and the slowest
    queries."""
    every = [one for found in times.values() for one in found]
    slowest = sorted(times, key=lambda query: -statistics.median(times[query]))
    return {
        "median_ms": round(statistics.median(every), 2), "p95_ms": round(percentile(every, 0.95), 2),
        "slowest": [[query, round(statistics.median(times[query]), 2)] for query in slowest[:12]],
    }


class Searches:
    """The queries on a data folder."""

    def __init__(self, program, data, repetitions):
        self.program, self.data, self.repetitions = program, data, repetitions
        self.queries = [(query,) for query in QUERIES] + OPTIONS
        self.pipelines = {" ".join(query): self.pipeline(query) for query in self.queries
                          if "--count-by" not in query}

    def command(self, query):
        return [self.program, "search", *query, "--data", self.data, "--no-history"]

    def pipeline(self, query):
        command = [str(part) for part in [*self.command(query), "--show-pipeline"]]
        shown = subprocess.run(command, capture_output=True, check=True)
        return json_util.loads(shown.stdout)

    def commands(self):
        return {" ".join(query): [1000 * seconds_of(self.command(query)) for _ in range(3)]
                for query in self.queries}

    def over_the_wire(self, documents):
        times = {}
        for query, pipeline in self.pipelines.items():
            times[query] = []
            list(documents.aggregate(pipeline))
            for _ in range(self.repetitions):
                began = time.monotonic()
                list(documents.aggregate(pipeline))
                times[query].append(1000 * (time.monotonic() - began))
        return times


def measure(arguments):
    folder, data = WORK / "files", WORK / "data"
    complete = WORK / f"{arguments.files}.complete"
    if not complete.exists():
        shutil.rmtree(WORK, ignore_errors=True)
        print("writing the files …", file=sys.stderr)
        written = write_files(folder, arguments.files)
        if written < arguments.files:
            sys.exit(f"the corpus has only {written} pieces")
        complete.touch()
    shutil.rmtree(data, ignore_errors=True)
    print("indexing …", file=sys.stderr)
    index = [arguments.windrow, "index", folder, "--data", data]
    result = {"files": arguments.files, "index_seconds": round(seconds_of(index), 1),
              "unchanged_seconds": round(statistics.median(seconds_of(index) for _ in range(3)), 2)}
    searches = Searches(arguments.windrow, data, arguments.repetitions)
    print("searching …", file=sys.stderr)
    result["queries"] = len(searches.queries)
    result["cold"] = summary(searches.commands())
    with Server(WORK, memory=1 << 30) as server:
        documents = server.client().files.documents
        result["wire"] = summary(searches.over_the_wire(documents))
        result["beside_server"] = summary(searches.commands())
    return result


def table(result):
    def cell(value, target, unit):
        shown = f"{value:,} {unit}"
        return f"**{shown}**" if value > target else shown

    lines = ["| case | median | 95th percentile | target | slowest |", "|---|---|---|---|---|"]
    cases = [("wire", "over the wire", WIRE_MS), ("beside_server", "command line beside a server", COLD_MS),
             ("cold", "cold command line", COLD_MS)]
    for name, title, target in cases:
        row = result[name]
        slowest = "; ".join(f"`{query}` {ms:,.0f} ms" for query, ms in row["slowest"][:4])
        lines.append(f"| {title} | {row['median_ms']:,} ms | {cell(row['p95_ms'], target, 'ms')} "
                     f"| ≤ {target} ms | {slowest} |")
    unchanged = cell(result["unchanged_seconds"], UNCHANGED_SECONDS, "s")
    lines.append(f"\n{result['files']:,} files, {result['queries']} queries. From nothing: "
                 f"{result['index_seconds']} s; without a change: {unchanged}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", default=os.environ.get("WINDROW", "target/release/windrow"))
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--keep", action="store_true", help="keep the data folder")
    arguments = parser.parse_args()
    arguments.windrow = str(Path(arguments.windrow).resolve())
    os.environ["WINDROW"] = arguments.windrow
    for kind in ("text", "source"):
        if not (OUT / f"{kind}.complete").exists():
            sys.exit(f"the files of {kind} are not there; run bench/w6/corpus.py")
    result = measure(arguments)
    (OUT / "latency.json").write_text(json.dumps(result, indent=1))
    print(table(result))
    if not arguments.keep:
        shutil.rmtree(WORK / "data")


if __name__ == "__main__":
    main()
