#!/usr/bin/env python3
"""W6: folders become searchable documents, beside Recoll's recollindex where that is installed.

    bench/w6/run.py [--windrow PATH] [--kinds html,pdf] [--rounds N]

For each kind of file (`corpus.py`): `windrow index` from nothing

- with one worker, on one core, and with one for each core, then once more without a change;
- without a queue between reading and writing (`--queue 0`): each worker's documents are written before it
  reads on, as on an assembly line;
- with so little memory that many temporary sections are written and merged (`--memory 128MiB`);

and recollindex from nothing, with its threads off and on. All files are in the page cache: they are read
once before. Writes bench/out/w6/results.json and a page with plots, bench/out/w6/index.html.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from corpus import chosen_kinds

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "w6"
FILES = OUT / "files"
KINDS = ["html", "pdf", "text", "source", "mail", "office", "mixed"]
CORES = os.cpu_count() or 1

RECOLL_CONFIG = """topdirs = {folder}
idxniceprio = 0
nopopups = 1
idxflushmb = 100
skippedNames =
thrQSizes = {queues}
"""


class Run:
    """The costs of a process: seconds, processor seconds, and its largest resident memory in MB."""

    def __init__(self, command, **options):
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen([str(part) for part in command], stdout=output,
                                       stderr=subprocess.DEVNULL, **options)
            _, status, usage = os.wait4(process.pid, 0)
            output.seek(0)
            self.output = output.read()
        self.seconds = time.monotonic() - began
        self.cpu = usage.ru_utime + usage.ru_stime
        self.megabytes = usage.ru_maxrss / 1000
        if os.waitstatus_to_exitcode(status) not in (0,):
            raise SystemExit(f"{command[0]} failed: {status}")


def windrow(program, folder, work, workers, *options):
    """Measures the first run and one without changes, and reads what is stored."""
    data = work / "data"
    command = [program, "index", folder, "--data", data, "--workers", workers, *options]
    first, second = Run([*command, "--explain-pipeline=json"]), Run(command)
    first.pipeline = json.loads(first.output.splitlines()[-1])
    status = subprocess.run([program, "status", "--data", data, "--json"], capture_output=True,
                            check=True)
    counts = json.loads(status.stdout)
    shutil.rmtree(data)
    return first, second, counts


def recoll(folder, work, threads):
    config = work / "recoll"
    config.mkdir()
    # -1: no threads; 0: as Recoll chooses.
    queues = "0 0 0" if threads else "-1 -1 -1"
    (config / "recoll.conf").write_text(RECOLL_CONFIG.format(folder=folder, queues=queues))
    # Debian's Python has the modules that Recoll's filters use.
    environment = {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}",
                   "RECOLL_CONFDIR": str(config)}
    run = Run(["recollindex", "-c", config, "-z"], env=environment)
    shutil.rmtree(config)
    return run


def read_all(folder):
    """Reads the files once. Returns their number and size."""
    count = size = 0
    for path in folder.rglob("*"):
        if path.is_file():
            count, size = count + 1, size + len(path.read_bytes())
    return count, size


def median(runs):
    return round(statistics.median(run.seconds for run in runs), 2)


def measure(kind, arguments):
    folder = FILES / kind
    files, size = read_all(folder)
    row = {"kind": kind, "files": files, "megabytes": round(size / 1e6)}
    has_recoll = shutil.which("recollindex") is not None
    one, all_cores, unchanged, line, sections, off, on = [], [], [], [], [], [], []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(dir=OUT) as work:
            work = Path(work)
            one.append(windrow(arguments.windrow, folder, work, 1)[0])
            first, second, counts = windrow(arguments.windrow, folder, work, CORES)
            all_cores.append(first)
            unchanged.append(second)
            line.append(windrow(arguments.windrow, folder, work, CORES, "--queue", 0)[0])
            sections.append(windrow(arguments.windrow, folder, work, CORES, "--memory", "128MiB")[0])
            if has_recoll:
                off.append(recoll(folder, work, threads=False))
                on.append(recoll(folder, work, threads=True))
    row |= {
        "documents": sum(counts["documents"].values()),
        "failures": sum(counts["failures"].values()),
        "skipped": sum(counts["skipped"].values()),
        "one_worker": median(one), "all_workers": median(all_cores),
        "unchanged": median(unchanged),
        "assembly_line": median(line),
        "temporary_sections": median(sections),
        "pipeline": all_cores[-1].pipeline,
        "cpu": round(statistics.median(run.cpu for run in all_cores), 2),
        "peak_megabytes": round(max(run.megabytes for run in all_cores)),
    }
    if has_recoll:
        row |= {"recoll_off": median(off), "recoll_on": median(on),
                "recoll_peak_megabytes": round(max(run.megabytes for run in on))}
    return row


def ratio(row):
    """Returns how many times as fast Windrow is as the faster run of Recoll."""
    recoll_seconds = [row[name] for name in ("recoll_off", "recoll_on") if name in row]
    return min(recoll_seconds) / row["all_workers"] if recoll_seconds else None


def table(rows):
    """A Markdown table, as in RESULTS.md."""
    lines = ["| kind | files, MB | Windrow, 1 worker; all | unchanged | recollindex, off; on | ratio | peak, MB |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        recoll_cell = "–"
        if "recoll_on" in row:
            recoll_cell = f"{row['recoll_off']:.1f} s; {row['recoll_on']:.1f} s"
        speed = ratio(row)
        peaks = str(row["peak_megabytes"])
        if "recoll_peak_megabytes" in row:
            peaks += f"; {row['recoll_peak_megabytes']}"
        lines.append(f"| {row['kind']} | {row['files']:,}, {row['megabytes']} "
                     f"| {row['one_worker']:.2f} s; {row['all_workers']:.2f} s | {row['unchanged']:.2f} s "
                     f"| {recoll_cell} | {f'{speed:.1f} times as fast' if speed else '–'} | {peaks} |")
    return "\n".join(lines)


BARS = [("recoll_off", "recollindex, threads off", "#9aa4af"),
        ("recoll_on", "recollindex, threads on", "#6e7781"),
        ("one_worker", "windrow, 1 worker, 1 core", "#54aeff"),
        ("assembly_line", "windrow, no queue", "#54aeff"),
        ("temporary_sections", "windrow, temporary sections", "#54aeff"),
        ("all_workers", f"windrow, {CORES} workers", "#1f6feb")]


def plot(row):
    """Bars of the seconds of one kind."""
    bars = [(label, row[name], colour) for name, label, colour in BARS if name in row]
    longest = max(seconds for _, seconds, _ in bars)
    body, y = [], 8
    for label, seconds, colour in bars:
        length = 420 * seconds / longest
        body.append(f'<text x="190" y="{y + 15}" text-anchor="end">{escape(label)}</text>'
                    f'<rect x="200" y="{y}" width="{length:.1f}" height="20" fill="{colour}"/>'
                    f'<text x="{208 + length:.1f}" y="{y + 15}">{seconds:.2f} s</text>')
        y += 28
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {y}" width="720" height="{y}" '
            f'font-family="sans-serif" font-size="13" role="img">{"".join(body)}</svg>')


PARTS = [("busy", "works", "#1f6feb"), ("output_wait", "waits for the next stage", "#f0883e"),
         ("input_wait", "waits for the stage before", "#d0d7de")]


def plot_pipeline(pipeline):
    """Plots what the threads of each stage did, as parts of their time."""
    body, y = [], 8
    for stage in pipeline["stages"]:
        capacity = pipeline["elapsed"] * stage["threads"]
        body.append(f'<text x="190" y="{y + 15}" text-anchor="end">{escape(stage["stage"])}, '
                    f'{stage["threads"]} threads</text>'
                    f'<rect x="200" y="{y}" width="420" height="20" fill="none" stroke="#d0d7de"/>')
        x = 200
        for name, _, colour in PARTS:
            length = 420 * min(stage[name] / capacity, 1)
            body.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="20" fill="{colour}"/>')
            x += length
        label = f'{100 * stage["busy"] / capacity:.0f} %'
        if "queue_bytes_mean" in stage:
            label += f', queue {stage["queue_bytes_mean"] / 1e6:.1f} MB'
        body.append(f'<text x="630" y="{y + 15}">{label}</text>')
        y += 28
    x = 200
    for _, label, colour in PARTS:
        body.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>'
                    f'<text x="{x + 18}" y="{y + 11}">{label}</text>')
        x += 190
    y += 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {y}" width="800" height="{y}" '
            f'font-family="sans-serif" font-size="13" role="img">{"".join(body)}</svg>')


def page(rows):
    sections = []
    for row in rows:
        rate = row["files"] / row["all_workers"]
        speed = row["one_worker"] / row["all_workers"]
        sections.append(
            f"<h2>{escape(row['kind'])}</h2><p>{row['files']:,} files, {row['megabytes']} MB, "
            f"{row['documents']:,} documents, {row['failures']:,} failures, {row['skipped']:,} skipped. "
            f"{rate:,.0f} files/s; {CORES} workers over one: {speed:.2f} times as fast; "
            f"without a change {row['unchanged']:.2f} s.</p>{plot(row)}"
            f"<h3>Stages with {CORES} workers</h3>{plot_pipeline(row['pipeline'])}")
    return ("<!doctype html><html lang=en><meta charset=utf-8><title>W6: folders of files</title>"
            "<style>body{font-family:sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}</style>"
            f"<h1>W6: folders of files</h1><p>From nothing to searchable, on {CORES} cores, files in the "
            f"page cache.</p>{''.join(sections)}</html>")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", default=os.environ.get("WINDROW", "target/release/windrow"))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    arguments.windrow = str(Path(arguments.windrow).resolve())
    rows = []
    for kind in chosen_kinds(parser, arguments.kinds, KINDS):
        print(f"{kind} …", file=sys.stderr)
        rows.append(measure(kind, arguments))
    (OUT / "results.json").write_text(json.dumps(rows, indent=1))
    (OUT / "index.html").write_text(page(rows))
    print(table(rows))
    print(f"\nThe page with plots: {OUT / 'index.html'}")


if __name__ == "__main__":
    main()
