"""The workloads run at a small size, beside their baselines, and check the results of the server.
"""

import json
import os
import subprocess

import pytest

import certificates
from windrow_server import ROOT, binary

SMALL = {
    "w1": (["--scale", "0.01"], 5),
    "w1 natural": (["--scale", "0.002", "--natural", str(ROOT / "crates")], 5),
    "w1 variant": (["--scale", "0.01", "--language", "none", "--text-version", "2",
                    "--build-memory", "50", "--cores", "1"], 5),
    "w2": (["--documents", "2000", "--rival-seconds", "5"], 11),
    "w2 find": (["--documents", "2000", "--rival-seconds", "5", "--find-every", "100"], 14),
    "w3": (["--documents", "20000", "--rival-seconds", "5"], 11),
    "w4": (["--documents", "5000"], 11),
    "w4 unacknowledged": (["--documents", "5000", "--concern", "none"], 11),
    "w5": (["--documents", "5000"], 12),
    "w7": (["--documents", "2000", "--natural", str(ROOT / "crates"), "--queries", "6", "--seconds",
            "0", "--writers", "2", "--settle", "1"], 116),
    "w7 patterns": (["--documents", "2000", "--cases", "patterns", "--queries", "3", "--seconds", "0",
                     "--settle", "1"], 32),
    "w8": (["--documents", "5000", "--operations", "1000", "--connections", "1,8",
            "--cases", "small,large,single,journaled,find", "--calibration", "2000"], 22),
    "w8 login": (["--documents", "5000", "--operations", "1000", "--connections", "1,2", "--user", "cook",
                  "--cases", "small,find,login", "--calibration", "2000"], 16),
    "reads": (["--documents", "20000", "--settle", "1", "--seconds", "1"], 10),
    "concurrency": (["--documents", "20000", "--operations", "2000", "--seconds", "1"], 14),
    "space": (["--documents", "5000", "--settle", "1"], 13),
    "w9": (["--documents", "5000", "--calibration", "2000"], 17),
}


# With tantivy, W1 has one more row. `make rivals` does not compile it.
HAS_TANTIVY = (ROOT / "bench" / "out" / "tantivy").exists()
HAS_INSIDE = (ROOT / "bench" / "out" / "inside-search").exists()


def run(workload, arguments, folder):
    command = [str(binary().with_name("windrow-bench")), workload.split()[0], "--server",
               str(binary()), "--rivals", str(ROOT / "bench" / "out"), "--memory", "256MiB",
               "--folder", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.mark.parametrize("workload", SMALL)
def test_a_workload_runs_small(workload, tmp_path):
    arguments, rows = SMALL[workload]
    ended = run(workload, arguments, tmp_path)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout.splitlines()[-1])
    more = HAS_TANTIVY if workload.startswith("w1") else 25 * HAS_INSIDE if workload.startswith("w7") else 0
    assert len(report["rows"]) == rows + more
    assert all(row["ours"] > 0 for row in report["rows"]), report
    assert report["machine"] and report["hash"] and report["seed"] == 1
    assert os.listdir(tmp_path) == []


def test_a_workload_uses_tls(tmp_path):
    folder = certificates.make(tmp_path / "tls")
    arguments = ["--documents", "2000", "--operations", "20", "--cases", "small,login", "--connections", "2",
                 "--user", "cook", "--password", "p@ss", "--tls-folder", str(folder)]
    ended = run("w8", arguments, tmp_path)
    assert ended.returncode == 0, ended.stderr
    names = [row["name"] for row in json.loads(ended.stdout.splitlines()[-1])["rows"]]
    assert names[0] == "insert small by 1000, 2 conn." and "login, 2 conn., server's processor" in names
    (folder / "ca.pem").write_text("")
    assert run("w8", arguments, tmp_path).returncode == 2
    assert run("w8", ["--cases", "login"], tmp_path).returncode == 2


def test_a_report_of_w1_draws_its_plots(tmp_path):
    rivals = tmp_path / "rivals"
    rivals.mkdir()
    (rivals / "stable_sort").symlink_to(ROOT / "bench" / "out" / "stable_sort")
    ended = run("w1-report", ["--scale", "0.005", "--rivals", str(rivals)], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert len(json.loads(ended.stdout.splitlines()[-1])["rows"]) == 15
    page = (rivals / "w1.html").read_text()
    assert page.count("<svg") == 4 and page.count("<tr><td>") == 15


def test_the_same_seed_gives_the_same_answers(tmp_path):
    hashes = {json.loads(run("w1", ["--documents", "500", "--seed", seed],
                             tmp_path).stdout.splitlines()[-1])["hash"]
              for seed in ("7", "7")}
    assert len(hashes) == 1


@pytest.mark.parametrize("arguments, said", [
    (["w10"], "there is no workload"), (["w1", "--speed", "3"], "there is no option --speed"),
    (["w1", "--server", "/nowhere/windrow", "--documents", "1"], "/nowhere/windrow"),
])
def test_what_is_wrong_is_said(arguments, said):
    command = [str(binary().with_name("windrow-bench")), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (1, 2) and said in ended.stderr
