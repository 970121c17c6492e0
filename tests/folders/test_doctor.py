"""`windrow doctor`: what would make Windrow fail, as text and as JSON."""

import json
import os
import pathlib
import resource
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from test_folders import windrow  # noqa: E402
from windrow_server import Server  # noqa: E402


@pytest.fixture
def work(tmp_path):
    (tmp_path / "docs/a/b").mkdir(parents=True)
    (tmp_path / "docs/a.txt").write_text("campanula")
    configure(tmp_path)
    return tmp_path


def configure(work, more=""):
    (work / "index.toml").write_text(f'data = "data"\n{more}\n[[folder]]\npath = "docs"\n')


def examine(work, *arguments, code=0, **options):
    ended = windrow("doctor", "--json", "--config", work / "index.toml", *arguments, **options)
    assert ended.returncode == code, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert found["ok"] == (code == 0)
    checks = {}
    for check in found["checks"]:
        checks.setdefault(check["name"], check)
        assert ("advice" in check) == (check["level"] in ("warning", "problem")), check
    return checks


def test_nothing_is_wrong(work):
    checks = examine(work)
    assert checks["data folder"]["level"] == "skipped" and not (work / "data").exists()
    assert windrow("index", "--config", work / "index.toml").returncode == 0
    checks = examine(work)
    for name in ("version", "configuration", "data folder", "free disk", "clock", "memory", "open files",
                 "watched folders"):
        assert checks[name]["level"] in ("ok", "warning"), checks[name]
    assert "3, the limit" in checks["watched folders"]["message"]
    shown = windrow("doctor", "--config", work / "index.toml")
    assert shown.returncode == 0 and "ok       data folder" in shown.stdout


def test_a_served_folder_is_read_through_its_server(work):
    assert windrow("index", "--config", work / "index.toml").returncode == 0
    with Server(work):
        assert "open in a server" in examine(work)["data folder"]["message"]


def test_a_damaged_data_folder_is_a_problem(work):
    assert windrow("index", "--config", work / "index.toml").returncode == 0
    for path in (work / "data").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * path.stat().st_size)
    check = examine(work, code=1)["data folder"]
    assert check["level"] == "problem" and str(work / "data") in check["message"]


def test_an_invalid_configuration_is_a_problem(work):
    configure(work, "nice = 99")
    check = examine(work, code=1)["configuration"]
    assert check["level"] == "problem" and "nice = 99" in check["message"]
    (work / "index.toml").unlink()
    assert "index.toml" in examine(work, code=1)["configuration"]["message"]


def test_a_missing_folder_is_a_warning(work):
    (work / "docs/a.txt").unlink()
    (work / "docs").rename(work / "gone")
    check = examine(work)["indexed folder"]
    assert check["level"] == "warning" and "docs" in check["message"]


def test_missing_programs_are_problems(work):
    configure(work, '[convert."a/b"]\ncommand = ["no-such-program", "%f"]\n')
    check = examine(work, code=1)["missing program"]
    assert check["message"] == "no-such-program for a/b"
    configure(work, '[ocr]\nlanguages = ["eng"]\n')
    (work / "bin").mkdir()
    check = examine(work, code=1, env={**os.environ, "PATH": str(work / "bin")})["missing program"]
    assert check["message"] == "tesseract for image/*"
    for name, languages in (("tesseract", "eng"), ("pdftoppm", "")):
        program = work / "bin" / name
        program.write_text(f"#!/bin/sh\necho 'List of languages (1):'\necho {languages}\n")
        program.chmod(0o755)
    path = {**os.environ, "PATH": f"{work}/bin:/usr/bin:/bin"}
    assert examine(work, env=path)["ocr languages"]["level"] == "ok"
    configure(work, '[ocr]\nlanguages = ["eng", "tlh"]\n')
    assert "tlh" in examine(work, code=1, env=path)["ocr languages"]["message"]


def test_limits_are_checked(work):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    assert examine(work, preexec_fn=lower)["open files"]["level"] == "warning"
    configure(work, 'memory = "900TiB"\n')
    assert examine(work, code=1)["memory"]["level"] == "problem"


def test_a_clock_before_the_last_run_is_a_problem(work):
    assert windrow("index", "--config", work / "index.toml").returncode == 0
    from pymongo import MongoClient
    import datetime
    with Server(work) as server:
        runs = MongoClient(port=server.port).files.runs
        runs.update_one({}, {"$set": {"ended": datetime.datetime(2100, 1, 1)}})
        assert examine(work, code=1)["clock"]["level"] == "problem"


def test_a_wrong_command_line_is_reported():
    ended = windrow("doctor", "--colour")
    assert ended.returncode == 2 and "--colour" in ended.stderr
