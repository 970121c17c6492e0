#!/usr/bin/env python3
"""Replays recorded conversations with MongoDB against Windrow and counts what passes.

    replay.py                        all areas, against the floors in ../oracle-floor.txt
    replay.py --only filter/regex --show 100
    replay.py --uri mongodb://127.0.0.1:27017    against a server that runs already
    replay.py --write-floor          raise the floors to what passes now; never lowers one

An area is a case's name up to its last "/"; what stands before the first "/" is an area too. No
area may pass less than its floor. ../oracle-differences.txt names cases in which Windrow differs
on purpose, one `case-name  reason` a line; they are left out. Those whose reason begins with "but for"
differ in fields that the comparison passes over, so they are replayed as any other; "but for codes 9, 14:"
says with which codes commands may fail that failed with another one, 0 that they may succeed.
"""

import argparse
import collections
import multiprocessing
import pathlib
import re
import shutil
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison import check  # noqa: E402
from conversation import Connection, decode, hold, read_cases  # noqa: E402
from windrow_server import Server  # noqa: E402

FLOORS = HERE.parent / "oracle-floor.txt"
DIFFERENCES = HERE.parent / "oracle-differences.txt"
CODES = re.compile(r"but for codes? ([0-9, ]+):")
# The number of cases in a share. It is so small that the processes end at about the same time.
SHARE = 200

Outcome = collections.namedtuple("Outcome", "name wrong")


def case_files():
    return sorted(HERE.glob("cases*/*.jsonl.xz"))


def named_differences():
    """Returns (case, reason) of every line."""
    lines = DIFFERENCES.read_text(encoding="utf-8").splitlines() if DIFFERENCES.exists() else ()
    return [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]


def read_differences():
    """Returns the names of the cases that are left out."""
    return {name for name, reason in named_differences() if not reason.startswith("but for ")}


def read_codes():
    """Returns, by case, the codes of errors that later versions have instead of the recorded ones.
    """
    found = ((name, CODES.match(reason)) for name, reason in named_differences())
    return {name: [int(code) for code in match[1].split(",")] for name, match in found if match}


def read_floors():
    if not FLOORS.exists():
        return {}
    lines = FLOORS.read_text(encoding="utf-8").splitlines()
    pairs = (line.rsplit(maxsplit=1) for line in lines if line.strip() and line[0] != "#")
    return {area: int(count) for area, count in pairs}


def write_floors(floors):
    head = "# How many recorded conversations must pass, by area. `make oracle-floor` raises it.\n"
    lines = (f"{area} {floors[area]}\n" for area in sorted(floors))
    FLOORS.write_text(head + "".join(lines), encoding="utf-8")


def options_for(path):
    """The options of the server for the cases of a file, which are those of the recorded server."""
    return ("--replica-set", "oracle") if path.parent.name == "cases-replica-set" else ()


class Replayer:
    """Runs cases one after another against one server, its own unless a port is given."""

    def __init__(self, port=None):
        self.given_port = port
        self.options = ()
        self.server = None
        self.connection = None

    def connect(self):
        if self.given_port:
            return Connection(self.given_port)
        if self.server is None or self.server.process.poll() is not None:
            # The data folder of a server that died is dropped, so the next case gets a new one.
            self.end_server()
            self.server = Server(tempfile.mkdtemp(prefix="windrow-oracle-"), options=self.options)
        return Connection(self.server.port)

    def be(self, options):
        """Uses a server with these options from now on."""
        if options != self.options:
            self.close()
            self.options, self.server = options, None

    def run(self, case):
        commands = [decode(step["run"]) for step in case["steps"]]
        try:
            self.connection = self.connection or self.connect()
            replies = hold(self.connection, commands)
        except OSError as error:
            self.disconnect()
            return Outcome(case["name"], f"{type(error).__name__}: {error}")
        return Outcome(case["name"], check(case, commands, replies, decode))

    def disconnect(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def end_server(self):
        if self.server:
            self.server.kill()
            shutil.rmtree(self.server.folder, ignore_errors=True)

    def close(self):
        self.disconnect()
        self.end_server()


def shares(only):
    """Returns (file, first case, end) of every share of the work that has a selected case."""
    for path in case_files():
        names = [case["name"] for case in read_cases(path)]
        for first in range(0, len(names), SHARE):
            end = min(first + SHARE, len(names))
            if any(only in name for name in names[first:end]):
                yield path, first, end


def work(tasks, outcomes, only, left_out, port):
    """Runs in a process: takes shares until it takes None."""
    replayer = Replayer(port)
    codes = read_codes()
    try:
        for path, first, end in iter(tasks.get, None):
            replayer.be(options_for(path))
            for case in read_cases(path)[first:end]:
                if only in case["name"] and case["name"] not in left_out:
                    case["codes"] = codes.get(case["name"], ())
                    outcomes.put(replayer.run(case))
    finally:
        replayer.close()
        outcomes.put(None)


def replay(only="", port=None, processes=2, left_out=()):
    """Runs all selected cases. Yields an Outcome for each as soon as it is there."""
    processes = 1 if port else processes
    tasks, outcomes = multiprocessing.Queue(), multiprocessing.Queue()
    for share in shares(only):
        tasks.put(share)
    workers = [multiprocessing.Process(target=work, args=(tasks, outcomes, only, left_out, port))
               for _ in range(processes)]
    for worker in workers:
        tasks.put(None)
        worker.start()
    running = processes
    while running:
        outcome = outcomes.get()
        if outcome is None:
            running -= 1
        else:
            yield outcome
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a process ended before its share was done")


def areas_of(name):
    """The areas of a case: its first word, and all in front of the last "/"."""
    return {name.split("/", 1)[0], name.rsplit("/", 1)[0]}


def count(outcomes):
    """Returns the numbers of passed and of all cases, for every area."""
    passed, whole = collections.Counter(), collections.Counter()
    for outcome in outcomes:
        for area in areas_of(outcome.name):
            whole[area] += 1
            passed[area] += outcome.wrong is None
    return passed, whole


def below_floor(passed, whole, floors):
    """Returns a sentence for each area that passes less than its floor. Areas that were not run do
    not count."""
    return [f"{area}: {passed[area]} pass of {whole[area]}, the floor is {floor}"
            for area, floor in sorted(floors.items()) if area in whole and passed[area] < floor]


def print_table(passed, whole, floors, every_area):
    areas = [area for area in sorted(whole) if every_area or "/" not in area]
    print(f"{'area':44} {'pass':>6} {'of':>6} {'floor':>6}")
    for area in areas:
        print(f"{area:44} {passed[area]:6} {whole[area]:6} {floors.get(area, 0):6}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", help="a server that runs already")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--show", type=int, default=0, help="how many differences to print")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--areas", action="store_true", help="every area, not only the first word")
    parser.add_argument("--write-floor", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    began = time.monotonic()
    port = urllib.parse.urlparse(arguments.uri).port or 27017 if arguments.uri else None
    outcomes = []
    for outcome in replay(arguments.only, port, arguments.processes, read_differences()):
        outcomes.append(outcome)
        if outcome.wrong and arguments.show > 0:
            arguments.show -= 1
            print(f"{outcome.name}: {outcome.wrong}")
    passed, whole = count(outcomes)
    floors = read_floors()
    print_table(passed, whole, floors, arguments.areas or bool(arguments.only))
    good = sum(outcome.wrong is None for outcome in outcomes)
    print(f"{good} of {len(outcomes)} pass, {time.monotonic() - began:.0f} s")
    if arguments.write_floor and not arguments.only:
        raised = {area: max(floors.get(area, 0), passed[area]) for area in whole}
        write_floors(floors | raised)
        return 0
    # A part of an area says nothing about the whole area.
    wrong = [] if arguments.only else below_floor(passed, whole, floors)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
