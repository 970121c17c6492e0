"""Windrow's own commands log in to a server that has the data folder open."""

import json
import stat
import subprocess

from logins import code
from windrow_server import Server, binary


def run(*arguments):
    done = subprocess.run([str(binary()), *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_files_are_indexed_and_searched(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "one.txt").write_text("a lighthouse on the coast")
    with Server(tmp_path / "server", options=["--auth"]) as server:
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        status, output = run("index", folder, "--data", server.data)
        assert status == 0, output
        status, output = run("search", "lighthouse", "--data", server.data)
        assert status == 0 and "one.txt" in output, output
        address = server.data / "server.json"
        assert stat.S_IMODE(address.stat().st_mode) == 0o600
        password = json.loads(address.read_text())["password"]
        assert password not in server.log()
        own = server.client(username="__system", password=password, authSource="local")
        assert own.files.documents.count_documents({}) == 1
        wrong = server.client(username="__system", password="x", authSource="local")
        assert code(wrong.files.documents.find_one) == 18
        users = own.admin.command("usersInfo", {"forAllDBs": True})["users"]
        assert [user["user"] for user in users] == ["root"]
        server.restart()
        # Each start creates another password.
        again = server.client(username="__system", password=password, authSource="local")
        assert code(again.files.documents.find_one) == 18


def test_no_core_dumps(tmp_path):
    with Server(tmp_path) as server:
        limits = open(f"/proc/{server.process.pid}/limits").read()
        [line] = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        assert line.split()[4] == "0"
