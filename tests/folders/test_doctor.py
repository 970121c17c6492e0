"""`windrow doctor`: reports of problems, as text and as JSON."""

import json
import os
import pathlib
import resource
import socket
import sys

import pytest

for folder in (".", "../wire"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / folder))

from certificates import make as make_certificates  # noqa: E402
from test_folders import windrow  # noqa: E402
from windrow_server import Server, free_port  # noqa: E402


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


def write_server_config(work, certificate=None, **more):
    config = {"storage": {"dbPath": str(work / "data")}, "net": {"port": free_port(), "bindIp": "127.0.0.1"},
              "security": {"authorization": "enabled"},
              "systemLog": {"destination": "file", "path": str(work / "server.log")}}
    if certificate:
        config["net"]["tls"] = {"mode": "requireTLS", "certificateKeyFile": str(certificate)}
    for key, value in more.items():
        config[key] = {**config.get(key, {}), **value}
    path = work / "windrow.conf"
    # JSON is a subset of YAML.
    path.write_text(json.dumps(config))
    return path


def examine_server(work, path, code=0, **options):
    checks = examine(work, "--server-config", path, code=code, **options)
    return {name: check for name, check in checks.items() if check["level"] not in ("ok", "skipped")}


def test_the_configuration_of_a_server(work):
    make_certificates(work / "tls")
    config = write_server_config(work, work / "tls/server.pem", net={"port": free_port()})
    checks = examine(work, "--server-config", config)
    for name in ("server options", "address", "access", "log"):
        assert checks[name]["level"] == "ok", checks[name]
    config = write_server_config(work, work / "tls/server.pem")
    checks = examine(work, "--server-config", config)
    assert checks["certificate"]["level"] == "ok" and "days" in checks["certificate"]["message"]

    wrong = examine_server(work, write_server_config(work, work / "tls/none.pem"), code=1)
    assert list(wrong) == ["certificate"] and "none.pem" in wrong["certificate"]["message"]
    config = write_server_config(work, systemLog={"path": str(work / "missing/server.log")})
    assert list(examine_server(work, config, code=1)) == ["log"]
    config = write_server_config(work, net={"bindIp": "0.0.0.0"}, security={"authorization": "disabled"})
    assert "network" in examine_server(work, config)["access"]["message"]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = write_server_config(work, net={"port": listener.getsockname()[1]})
        assert list(examine_server(work, config, code=1)) == ["address"]
    config.write_text("net: {prot: 1}")
    assert "prot" in examine_server(work, config, code=1)["server options"]["message"]


def test_connections_need_open_files(work):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
    config = write_server_config(work)
    wrong = examine_server(work, config, preexec_fn=lower)["open files"]
    assert wrong["level"] == "warning" and "10,000 connections" in wrong["message"]
    config = write_server_config(work, net={"maxIncomingConnections": 100})
    assert "open files" not in examine_server(work, config, preexec_fn=lower)


def test_the_configuration_of_a_running_server(work):
    with Server(work) as server:
        config = write_server_config(work, net={"port": server.port})
        assert not examine_server(work, config)
        assert "open in a server" in examine(work, "--server-config", config)["data folder"]["message"]


def test_an_encrypted_folder_needs_its_key(work):
    keys = [work / "key", work / "other"]
    for key in keys:
        assert windrow("encryption", "new-key", key).returncode == 0
    with Server(work, options=["--encryption-key-file", str(keys[0])]) as server:
        server.stop()
    for arguments in ([], ["--encryption-key-file", keys[1]]):
        check = examine(work, *arguments, code=1)["data folder"]
        assert "--encryption-key-file" in check["advice"], check
    assert examine(work, "--encryption-key-file", keys[0])["data folder"]["level"] == "ok"
    assert not examine_server(work, write_server_config(work, security={"encryptionKeyFile": str(keys[0])}))
    keys[0].chmod(0o644)
    check = examine(work, "--encryption-key-file", keys[0], code=1)["encryption key"]
    assert "644" in check["message"]


def test_a_wrong_command_line_is_reported():
    ended = windrow("doctor", "--colour")
    assert ended.returncode == 2 and "--colour" in ended.stderr
