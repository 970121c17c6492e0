#!/usr/bin/env python3
"""The memory of `windrow index` and its workers, all processes together, on large files.

    bench/w6/memory.py [--windrow PATH] [--memory SIZE] [--workers N] [--cases pdf,mailbox,text]

Cases: the largest PDF files of `corpus.py`, one mailbox of 1 GB, one text of 100 MB, all at once. Every
20 ms the proportional set sizes of the processes are added up, so memory that they share counts once. The
target is `--memory` and 64 MB for each worker. Writes bench/out/w6/memory.json.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "w6"
FILES = OUT / "files"
WORK = OUT / "memory"
WORKER_BYTES = 64_000_000
MAILBOX_BYTES, TEXT_BYTES, PDF_FILES = 1_000_000_000, 100_000_000, 20
SAMPLE_SECONDS = 0.02
CASES = ["pdf", "mailbox", "text", "all"]
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9}


def bytes_of(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def repeat(paths, size, target):
    """Appends the files to `target`, again and again, up to `size`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written, round_number = 0, 0
    with open(target, "wb") as out:
        while written < size:
            round_number += 1
            for path in paths:
                content = path.read_bytes()
                content = content.replace(b"@example.org>\nContent", b"@%d.example.org>\nContent" % round_number)
                written += out.write(content + b"\n")
                if written >= size:
                    break


def make(case):
    folder = WORK / case
    if folder.exists():
        return folder
    print(f"making {case} …", file=sys.stderr)
    if case == "mailbox":
        repeat(sorted((FILES / "mail").glob("*.mbox")), MAILBOX_BYTES, folder / "large.mbox")
    elif case == "text":
        texts = sorted(path for path in (FILES / "text").rglob("*") if path.is_file())
        repeat(texts, TEXT_BYTES, folder / "large.txt")
    elif case == "pdf":
        paths = sorted((FILES / "pdf").rglob("*.pdf"), key=lambda path: -path.stat().st_size)
        link(paths[:PDF_FILES], folder)
    else:
        link([path for one in CASES[:-1] for path in make(one).iterdir()], folder)
    return folder


def link(paths, folder):
    folder.mkdir(parents=True)
    for number, path in enumerate(paths):
        os.link(path, folder / f"{number}-{path.name}")


def tree(process):
    """A process and those that it started."""
    yield process
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            children = Path(f"/proc/{process}/task/{task}/children").read_text()
            for child in children.split():
                yield from tree(int(child))
    except OSError:
        return


def proportional_bytes(process):
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def peak_of(command):
    """The parts of the largest sum, from the first process on, and the seconds."""
    began = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    peak = []
    while process.poll() is None:
        parts = [proportional_bytes(one) for one in tree(process.pid)]
        if sum(parts) > sum(peak):
            peak = parts
        time.sleep(SAMPLE_SECONDS)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed: {process.returncode}")
    return peak, time.monotonic() - began


def megabytes(count):
    return round(count / 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", default=os.environ.get("WINDROW", "target/release/windrow"))
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    target = bytes_of(arguments.memory) + arguments.workers * WORKER_BYTES
    rows = []
    print("| case | peak, MB | database; workers, MB | time | target |\n|---|---|---|---|---|")
    for case in arguments.cases.split(","):
        if case not in CASES:
            parser.error(f"there is no case {case!r}; the cases are {', '.join(CASES)}")
        folder = make(case)
        shutil.rmtree(WORK / "data", ignore_errors=True)
        peak, seconds = peak_of(
            [Path(arguments.windrow).resolve(), "index", folder, "--data", WORK / "data", "--memory",
             arguments.memory, "--workers", arguments.workers])
        row = {"case": case, "peak_bytes": sum(peak), "parts_bytes": peak, "seconds": round(seconds, 1),
               "target_bytes": target}
        rows.append(row)
        shown = str(megabytes(sum(peak)))
        if sum(peak) > target:
            shown = f"**{shown}**"
        parts = "; ".join([str(megabytes(peak[0])), " + ".join(str(megabytes(one)) for one in peak[1:])])
        print(f"| {case} | {shown} | {parts} | {seconds:.1f} s | {megabytes(target)} |", flush=True)
    shutil.rmtree(WORK / "data", ignore_errors=True)
    (OUT / "memory.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
