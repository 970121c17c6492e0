"""The stages of `windrow index`: how many cores and threads they use, how they share a large file, and what
is said of them."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from windrow_server import Server, binary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import windrow  # noqa: E402
from tree import MAIL  # noqa: E402

MAILS = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A mailbox of 9 MB and two small files."""
    folder = tmp_path_factory.mktemp("stages") / "files"
    folder.mkdir()
    with open(folder / "large.mbox", "w") as box:
        for number in range(MAILS):
            body = f"kestrel{number} " + "plover avocet dunlin " * 140
            box.write(MAIL.format(mark=f"m{number}", subject=f"Mail {number}", body=body))
    (folder / "a.txt").write_text("grebe")
    (folder / "b.txt").write_text("smew")
    assert (folder / "large.mbox").stat().st_size > 8 << 20
    return folder


def index(folder, data, *options):
    """Indexes, and returns the stages by their names."""
    ended = windrow("index", folder, "--data", data, "--explain-pipeline=json", *options)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout.splitlines()[-1])
    return {stage["stage"]: stage for stage in report["stages"]}


def stored(data):
    """The `_id`s of all documents, of failures, and the newest run."""
    with Server(data.parent) as server:
        files = server.client()["files"]
        ids = sorted(document["_id"] for document in files.documents.find({}, {"_id": 1}))
        failures = [failure["_id"] for failure in files.failures.find()]
        run = files.runs.find_one(sort=[("started", -1)])
    return ids, failures, run


@pytest.mark.parametrize("options, shares, writers", [
    (("--threads", "3,2,2"), 3, 2),
    (("--threads", "2,1,1", "--queue", "64KiB"), 2, 1),
    (("--threads", "2,2,2", "--queue", "0"), 2, 2),
    (("--workers", "1"), 1, 1),
])
def test_a_large_mailbox_is_read_in_shares(folder, tmp_path, options, shares, writers):
    stages = index(folder, tmp_path / "data", *options)
    assert stages["extract"]["items"] == shares + 2
    assert stages["write"]["items"] == MAILS + 2
    assert stages["write"]["threads"] == writers
    assert ("queue_bytes_max" in stages["extract"]) == ("0" not in options)
    ids, failures, run = stored(tmp_path / "data")
    assert len(ids) == len(set(ids)) == MAILS + 2
    assert {f"{folder}/large.mbox/#{number}" for number in range(1, MAILS + 1)} < set(ids)
    assert failures == []
    assert [stage["stage"] for stage in run["pipeline"]] == list(stages)
    found = windrow("search", "kestrel2999", "--data", tmp_path / "data", "-l")
    assert found.stdout.strip().endswith("large.mbox/#3000"), found.stdout
    assert index(folder, tmp_path / "data", *options)["extract"]["items"] == 0


def test_a_killed_run_reads_a_shared_mailbox_again(folder, tmp_path):
    index(folder, tmp_path / "whole" / "data")
    expected, _, _ = stored(tmp_path / "whole" / "data")
    data = tmp_path / "data"
    command = [str(binary()), "index", folder, "--data", data, "--threads", "2,2,2", "--queue", "64KiB"]
    for seconds in [0.15, 0.3, 0.5, 0.8]:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.kill()
        process.wait()
    index(folder, data)
    ids, failures, _ = stored(data)
    assert ids == expected
    assert failures == []


def test_the_explanation_names_the_busiest_stage(folder, tmp_path):
    ended = windrow("index", folder, "--data", tmp_path / "data", "--explain-pipeline")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    stages = ["walk", "extract", "write", "index", "merge", "finish"]
    start = next(number for number, line in enumerate(lines) if line.startswith("stage "))
    assert [line.split()[0] for line in lines[start + 1:start + 7]] == stages
    assert lines[-1].startswith("the busiest stage is "), lines[-1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_one_worker_uses_one_core(folder, tmp_path):
    process = subprocess.Popen([str(binary()), "index", folder, "--data", tmp_path / "data", "--workers", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = set()
    while process.poll() is None:
        try:
            seen.add(len(os.sched_getaffinity(process.pid)))
        except ProcessLookupError:
            break
        time.sleep(0.005)
    assert process.wait() == 0
    # The process is restricted only after it has parsed its command line.
    assert 1 in seen
    assert windrow("index", folder, "--data", tmp_path / "data", "--workers", "1", "--threads",
                   "1,1,1").returncode == 2
