#!/usr/bin/env python3
"""Measures the page: the first paint, search while a person types, its weight, and many open pages.

    bench/page/measure.py [--windrow PATH] [--files N] [--pages N] [--keep]

The files are those of bench/w6/latency.py. Chromium types words letter by letter; the time is that from
a letter to its results in the page. Then many clients keep a live part open. Prints a table, and writes
bench/out/page.json. Needed: PyMongo, and what tests/page/install.sh installs.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "page"), str(ROOT / "bench" / "w6")]

import chromium  # noqa: E402
import latency  # noqa: E402
from page_client import PageServer  # noqa: E402

OUT = ROOT / "bench" / "out"
WORK = OUT / "page"
WORDS = ["kernel", "memory allocation", "driver device", "file system", "return value", "scheduler",
         "python class", "error message", "regist", "network socket"]
FIRST_PAINT_MS, TYPING_MS, WEIGHT_KB, CORE_PERCENT, MEGABYTES = 200, 50, 150, 5, 100
LIVE_SECONDS = 30
PAINT_ROUNDS = 9


def weight(server):
    """The bytes of the search page with its files, compressed."""
    browser = server.browser()
    page = browser.get("/search?q=kernel")
    names = set(re.findall(r'(?:href|src)="(/assets/[^"]*)"', page.text)) | {"/assets/common.js",
                                                                            "/assets/document.js"}
    sizes = [int(browser.get(name.replace("&amp;", "&")).headers["content-length"]) for name in names]
    return len(gzip.compress(page.body, 1)) + sum(sizes)


def processor_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes(process):
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1000


def live_pages(server, count):
    """What `count` open pages with a live part cost: percent of a core, and megabytes."""
    process = server.process.pid
    time.sleep(2)
    began, before = processor_seconds(process), megabytes(process)
    time.sleep(LIVE_SECONDS / 3)
    idle = (processor_seconds(process) - began) / (LIVE_SECONDS / 3)
    streams = []
    for _ in range(count):
        stream = socket.create_connection(("127.0.0.1", server.web_port))
        stream.sendall(b"GET /overview/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        streams.append(stream)

    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            for stream in streams:
                stream.setblocking(False)
                try:
                    stream.recv(1 << 20)
                except BlockingIOError:
                    pass
            time.sleep(0.5)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(3)
    began, clock = processor_seconds(process), time.monotonic()
    time.sleep(LIVE_SECONDS)
    used = (processor_seconds(process) - began) / (time.monotonic() - clock)
    grown = megabytes(process) - before
    is_over.set()
    reader.join()
    for stream in streams:
        stream.close()
    return 100 * (used - idle), grown


def measure(arguments):
    os.environ["WINDROW"] = str(arguments.windrow)
    files, folder = WORK / "files", WORK / "server"
    shutil.rmtree(folder, ignore_errors=True)
    if not files.exists():
        latency.write_files(files, arguments.files)
    (folder / "data").mkdir(parents=True)
    command = [str(arguments.windrow), "index", str(files), "--data", str(folder / "data")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with PageServer(folder, memory=1 << 30) as server:
        typing = chromium.run("typing", server, WORK / "pictures", words=WORDS, pause=150,
                              rounds=PAINT_ROUNDS)
        result = {
            "files": arguments.files, "searches": typing["count"], "first_paint_ms": typing["paint"],
            "typing_p50_ms": typing["p50"], "typing_p95_ms": typing["p95"], "typing_max_ms": typing["max"],
            "weight_kb": weight(server) / 1000, "pages": arguments.pages,
        }
        result["core_percent"], result["megabytes"] = live_pages(server, arguments.pages)
    if not arguments.keep:
        shutil.rmtree(WORK)
    return result


def table(result):
    rows = [
        ("first paint of the search, median", f"{result['first_paint_ms']:.0f} ms", f"{FIRST_PAINT_MS} ms"),
        ("results after a letter, median", f"{result['typing_p50_ms']:.1f} ms", ""),
        ("results after a letter, 95 %", f"{result['typing_p95_ms']:.1f} ms", f"{TYPING_MS} ms"),
        ("weight of the page, compressed", f"{result['weight_kb']:.0f} KB", f"{WEIGHT_KB} KB"),
        (f"{result['pages']} live pages", f"{result['core_percent']:.1f} % of a core", f"{CORE_PERCENT} %"),
        (f"{result['pages']} live pages", f"{result['megabytes']:.0f} MB", f"{MEGABYTES} MB"),
    ]
    return "\n".join(f"{name:34} {value:>18} {bar:>8}" for name, value, bar in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", type=Path, default=ROOT / "target" / "release" / "windrow")
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--keep", action="store_true", help="keep the files for the next run")
    result = measure(parser.parse_args())
    print(table(result))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "page.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
