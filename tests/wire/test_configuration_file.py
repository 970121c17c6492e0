"""`--config`: options in the form of mongod.conf, and the effects of a reload."""

import json
import signal
import subprocess
import time
import urllib.request

import pymongo
import pytest

from windrow_server import ROOT, Server, binary, complete_lines, free_port

# The file that MongoDB's packages install.
OF_PACKAGES = """\
# mongod.conf

# for documentation of all options, see:
#   http://docs.mongodb.org/manual/reference/configuration-options/

# Where and how to store data.
storage:
  dbPath: {data}
#  engine:
#  wiredTiger:

# where to write logging data.
systemLog:
  destination: file
  logAppend: true
  path: {log}

# network interfaces
net:
  port: {port}
  bindIp: 127.0.0.1

# how the process runs
processManagement:
  timeZoneInfo: /usr/share/zoneinfo

#security:
#operationProfiling:
#replication:
"""


class Configured(Server):
    """A server that gets only a configuration file."""

    def __init__(self, folder, text, start=True, options=()):
        folder.mkdir(exist_ok=True)
        self.file = folder / "windrow.conf"
        self.written_log = folder / "log"
        port = free_port()
        self.values = {"data": folder / "data", "log": self.written_log, "port": port,
                       "folder": folder}
        self.write(text)
        super().__init__(folder, port=port, start=start, options=options)

    def write(self, text):
        self.file.write_text(text.format(**self.values))

    def command(self):
        return [str(binary()), "serve", "--config", str(self.file), *self.options]

    def lines(self, message):
        logged = [json.loads(line) for line in complete_lines(self.written_log).splitlines()]
        return [line for line in logged if line["msg"] == message]

    def reload(self):
        """Reloads the configuration. Returns the lines of the log about it."""
        ended = ("The configuration file was read again",
                 "The configuration file is not used: it has an error")
        count = sum(len(self.lines(message)) for message in ended)
        self.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 10
        while sum(len(self.lines(message)) for message in ended) == count:
            assert time.monotonic() < until
            time.sleep(0.01)
        return [line for message in ended for line in self.lines(message)][-1]


def test_the_file_may_be_a_pipe(tmp_path):
    port = free_port()
    text = f"storage:\n  dbPath: {tmp_path / 'data'}\nnet:\n  port: {port}\n"
    command = [str(binary()), "serve", "--config", "/dev/stdin"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        process.stdin.write(text)
        process.stdin.close()
        with pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=10_000) as client:
            assert client.admin.command("ping")["ok"] == 1
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


MORE = OF_PACKAGES + """\
operationProfiling:
  mode: slowOp
  slowOpThresholdMs: 250
  slowOpSampleRate: 0.5
replication:
  replSetName: rs0
setParameter:
  enableTestCommands: 1
  cursorTimeoutMillis: 5000
"""


def test_the_file_of_packages_is_accepted(tmp_path):
    with Configured(tmp_path, OF_PACKAGES) as server:
        client = server.client()
        options = client.admin.command("getCmdLineOpts")
        assert options["argv"][1:] == ["serve", "--config", str(server.file)]
        assert options["parsed"] == {
            "net": {"bindIp": "127.0.0.1", "port": server.port},
            "storage": {"dbPath": str(server.data)},
            "systemLog": {"destination": "file", "logAppend": True, "path": str(server.written_log)},
            "processManagement": {"timeZoneInfo": "/usr/share/zoneinfo"}}
        assert server.lines("Waiting for connections")
        assert server.stop() == 0


def test_all_options_have_an_effect(tmp_path):
    with Configured(tmp_path, MORE) as server:
        client = server.client()
        assert client.admin.command("hello")["setName"] == "rs0"
        assert client.admin.command("getParameter", cursorTimeoutMillis=1)["cursorTimeoutMillis"] == 5000
        assert client.admin.command("configureFailPoint", "failCommand", mode="off")["ok"] == 1
        profile = client.test.command("profile", -1)
        assert (profile["was"], profile["slowms"], profile["sampleRate"]) == (1, 250, 0.5)
        parsed = client.admin.command("getCmdLineOpts")["parsed"]
        assert parsed["operationProfiling"] == {
            "mode": "slowOp", "slowOpThresholdMs": 250, "slowOpSampleRate": 0.5}
        assert parsed["setParameter"] == {"enableTestCommands": 1, "cursorTimeoutMillis": 5000}


def test_the_command_line_replaces_the_file(tmp_path):
    port = free_port()
    for options in (["--port", str(port)], ["--listen", f"127.0.0.1:{port}"]):
        server = Configured(tmp_path, MORE, start=False,
                            options=[*options, "--slowms", "7", "--set-parameter",
                                     "cursorTimeoutMillis=9"])
        server.port = port
        with server:
            server.start()
            client = server.client()
            assert client.test.command("profile", -1)["slowms"] == 7
            parameter = client.admin.command("getParameter", cursorTimeoutMillis=1)
            assert parameter["cursorTimeoutMillis"] == 9
            assert server.stop() == 0


def test_other_words_of_the_command_line_replace_the_file(tmp_path):
    text = OF_PACKAGES + "security:\n  authorization: enabled\n"
    with Configured(tmp_path, text, options=["--noauth"]) as server:
        assert server.client().test.c.find_one() is None
        parsed = server.client().admin.command("getCmdLineOpts")["parsed"]
        assert parsed["security"] == {"authorization": "disabled"}


@pytest.mark.parametrize("addition, expected", [
    ("sharding:\n  clusterRole: shardsvr\n", ":30: sharding is not an option"),
    ("security:\n  javascriptEnabled: true\n", "security.javascriptEnabled is not an option"),
    ("setParameter:\n  nothing: 1\n", "nothing"),
    ("setParameter:\n  quiet: maybe\n", ":31: setParameter.quiet"),
    ("replication:\n  oplogSizeMB: 5\n", ":31: replication.oplogSizeMB is not an option"),
    ("operationProfiling:\n  mode: some\n", ":31: operationProfiling.mode \"some\" is not a level"),
    ("net:\n  port: 1\n", ":31: net.port is given twice"),
    ("replication: [rs0]\n", ":30: replication cannot have a list"),
    ("replication:\n\treplSetName: rs0\n", ":31: it is not YAML"),
])
def test_errors_are_named_with_their_line(addition, expected, tmp_path):
    server = Configured(tmp_path, OF_PACKAGES + addition, start=False)
    ended = subprocess.run(server.command(), capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2 and expected in ended.stderr, ended.stderr


def test_only_supported_values_are_accepted(tmp_path):
    text = OF_PACKAGES.replace("/usr/share/zoneinfo", "/elsewhere")
    ended = subprocess.run(Configured(tmp_path, text, start=False).command(), capture_output=True,
                           text=True, timeout=30)
    assert ended.returncode == 2
    assert "processManagement.timeZoneInfo \"/elsewhere\" is not supported" in ended.stderr


def test_a_missing_file_is_an_error(tmp_path):
    ended = subprocess.run([str(binary()), "serve", "--config", str(tmp_path / "none")],
                           capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2 and "No such file" in ended.stderr


class TestReload:
    def test_what_can_change_changes(self, tmp_path):
        with Configured(tmp_path, MORE) as server:
            client = server.client()
            server.write(MORE.replace("Ms: 250", "Ms: 33").replace("Millis: 5000", "Millis: 6000"))
            line = server.reload()
            assert line["attr"] == {
                "changed": ["operationProfiling.slowOpThresholdMs", "setParameter.cursorTimeoutMillis"],
                "needRestart": [], "failed": []}
            assert client.test.command("profile", -1)["slowms"] == 33
            parameter = client.admin.command("getParameter", cursorTimeoutMillis=1)
            assert parameter["cursorTimeoutMillis"] == 6000
            # A parameter that a client has changed meanwhile stays.
            client.admin.command("setParameter", cursorTimeoutMillis=1)
            server.reload()
            parameter = client.admin.command("getParameter", cursorTimeoutMillis=1)
            assert parameter["cursorTimeoutMillis"] == 1

    def test_the_rest_needs_a_restart(self, tmp_path):
        with Configured(tmp_path, MORE) as server:
            server.write(MORE.replace("rs0", "rs1").replace("Commands: 1", "Commands: 0"))
            line = server.reload()
            assert line["attr"]["needRestart"] == ["replication.replSetName"]
            assert line["s"] == "E" and "enableTestCommands" in line["attr"]["failed"][0]
            assert server.client().admin.command("hello")["setName"] == "rs0"

    def test_an_error_changes_nothing(self, tmp_path):
        with Configured(tmp_path, MORE) as server:
            server.write(MORE.replace("250", "33") + "nothing: 1\n")
            line = server.reload()
            assert line["s"] == "E" and "nothing is not an option" in line["attr"]["error"]
            assert server.client().test.command("profile", -1)["slowms"] == 250


def test_every_database_has_the_level(tmp_path):
    with Configured(tmp_path, MORE.replace("slowOp\n", "all\n")) as server:
        database = server.client().test
        database.c.insert_one({"_id": 1})
        assert [one["op"] for one in database.system.profile.find({"op": "insert"})] == ["insert"]


def test_a_parameter_that_cannot_be_set_is_an_error(tmp_path):
    """`setParameter` in the file refuses parameters that cannot be set at the start."""
    text = OF_PACKAGES + "setParameter:\n  maxBSONDepth: 5\n"
    ended = subprocess.run(Configured(tmp_path, text, start=False).command(), capture_output=True,
                           text=True, timeout=30)
    assert ended.returncode == 2 and "maxBSONDepth" in ended.stderr


def test_the_packaged_configuration_is_a_server_for_others(tmp_path):
    """docs/security.md shows these steps, with the folders of an installed system."""
    folders = {"/etc/windrow": tmp_path / "etc", "/var/lib/windrow": tmp_path / "data", "/var/log/windrow": tmp_path / "log",
               "/run/windrow": tmp_path / "run"}
    for name in ("etc", "log", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    text = (ROOT / "packaging" / "windrow.conf").read_text()
    for packaged, used in folders.items():
        assert packaged in text
        text = text.replace(packaged, str(used))
    port, metrics = free_port(), free_port()
    config = tmp_path / "etc" / "windrow.conf"
    config.write_text(text.replace("27017", str(port)).replace("9217", str(metrics)))
    for command in (["encryption", "new-key", str(tmp_path / "etc" / "encryption.key")],
                    ["certificate", "--folder", str(tmp_path / "etc" / "tls")]):
        subprocess.run([str(binary()), *command], check=True, capture_output=True)
    process = subprocess.Popen([str(binary()), "serve", "--config", str(config)])
    try:
        options = {"tls": True, "tlsCAFile": str(tmp_path / "etc" / "tls" / "ca.pem")}
        uri = f"mongodb://localhost:{port}"
        with pymongo.MongoClient(uri, **options) as client:
            client.admin.command("createUser", "admin", pwd="secret", roles=["root"])
        with pymongo.MongoClient(uri, username="admin", password="secret", **options) as client:
            client.shop.orders.insert_one({"_id": "a plain text"})
        page = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()
        assert "windrow_connections" in page
        audit_log = complete_lines(tmp_path / "log" / "audit.json")
        events = [json.loads(line)["atype"] for line in audit_log.splitlines()]
        assert {"startup", "createUser", "authenticate", "createCollection"} <= set(events)
        assert (tmp_path / "run" / f"mongodb-{port}.sock").is_socket()
        log = tmp_path / "log" / "windrow.log"
        log.rename(tmp_path / "log" / "windrow.log.1")
        process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 20
        while not log.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.terminate()
        assert process.wait(60) == 0
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"a plain text" not in stored
