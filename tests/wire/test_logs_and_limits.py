"""How a server is operated: rotated logs, the file with the process id, exit codes, and limits of
connections.
"""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pymongo.errors import OperationFailure

from windrow_server import Server, binary, complete_lines, free_port, wait_until

sys.path.insert(0, str(Path(__file__).parent))
import certificates  # noqa: E402
from raw import Raw, op_msg, section  # noqa: E402


def messages(path):
    return [json.loads(line)["msg"] for line in complete_lines(path).splitlines()]


def rotated(folder):
    return [path for path in folder.iterdir() if path.name.startswith("log.2")]


def start(tmp_path, *options):
    return Server(tmp_path / "server", options=["--logpath", str(tmp_path / "log"), *options])


class TestRotation:
    def test_a_signal_renames_the_file(self, tmp_path):
        with start(tmp_path) as server:
            server.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: rotated(tmp_path))
            server.client().admin.command("ping")
            assert "Waiting for connections" in messages(rotated(tmp_path)[0])
            wait_until(lambda: "Connection accepted" in messages(tmp_path / "log"))
            assert server.stop() == 0
        assert messages(tmp_path / "log")[-1] == "Shutting down"

    def test_a_command_renames_the_file_once_a_second(self, tmp_path):
        with start(tmp_path) as server:
            admin = server.client().admin
            assert admin.command("logRotate")["ok"] == 1
            try:
                admin.command("logRotate", "server")
            except OperationFailure as error:
                assert error.code == 37  # the name of a second is taken
            assert rotated(tmp_path)

    def test_a_file_can_be_reopened(self, tmp_path):
        with start(tmp_path, "--logRotate", "reopen") as server:
            (tmp_path / "log").rename(tmp_path / "moved")
            server.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: (tmp_path / "log").exists())
            server.client().admin.command("ping")
            wait_until(lambda: "Connection accepted" in messages(tmp_path / "log"))
            assert "Waiting for connections" in messages(tmp_path / "moved")
            assert rotated(tmp_path) == []

    def test_a_start_can_keep_the_old_file_apart(self, tmp_path):
        configuration = tmp_path / "windrow.conf"
        configuration.write_text("systemLog: {destination: file, logAppend: false}\n")
        (tmp_path / "log").write_text("old\n")
        with start(tmp_path, "--config", str(configuration)):
            assert rotated(tmp_path)[0].read_text() == "old\n"
            assert messages(tmp_path / "log")[0] == "Windrow starting"


def test_the_log_can_be_that_of_the_system(tmp_path):
    if Path("/dev/log").exists() or os.geteuid() != 0:
        pytest.skip("/dev/log cannot be replaced")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("/dev/log")
        try:
            receiver.settimeout(10)
            with Server(tmp_path, options=["--syslog", "--syslogFacility", "local0"]) as server:
                received = receiver.recv(1 << 16).decode()
                prefix = f"<134>windrow[{server.process.pid}]: "
                assert received.startswith(prefix)
                assert json.loads(received[len(prefix):])["msg"] == "Windrow starting"
                parsed = server.client().admin.command("getCmdLineOpts")["parsed"]
                assert parsed["systemLog"]["destination"] == "syslog"
        finally:
            os.unlink("/dev/log")


def test_the_process_id_is_in_a_file(tmp_path):
    path = tmp_path / "pid"
    with Server(tmp_path / "server", options=["--pidfilepath", str(path)]) as server:
        assert path.read_text() == f"{server.process.pid}\n"
        assert server.stop() == 0
    assert not path.exists()


class TestExitCodes:
    def check(self, *options, code, reason):
        ended = subprocess.run([str(binary()), "serve", *options], capture_output=True, text=True,
                               timeout=60)
        assert ended.returncode == code and reason in ended.stderr, (ended.returncode, ended.stderr)

    def test_of_wrong_options(self, tmp_path):
        data = ["--data", str(tmp_path)]
        self.check(*data, "--nothing", code=2, reason="--nothing")
        self.check(*data, "--set-parameter", "nothing=1", "--port", str(free_port()), code=2,
                   reason="nothing")
        self.check(*data, "--tls-mode", "require", "--tls-certificate-key-file", "/none", code=2,
                   reason="/none")

    def test_of_the_network(self, tmp_path):
        with Server(tmp_path / "server") as server:
            self.check("--data", str(tmp_path / "other"), "--port", str(server.port), code=48,
                       reason="cannot listen on 127.0.0.1")

    def test_of_data_folders(self, tmp_path):
        with Server(tmp_path / "server") as server:
            self.check("--data", str(server.data), "--port", str(free_port()), code=100,
                       reason=str(server.process.pid))
            server.stop()
            (server.data / "FORMAT").write_text("windrow data format 99\n")
            self.check("--data", str(server.data), code=62, reason="99")

    def test_reasons_are_logged(self, tmp_path):
        log = tmp_path / "log"
        self.check("--data", "/proc/none", "--logpath", str(log), code=100, reason="/proc/none")
        line = json.loads(log.read_text().splitlines()[-1])
        assert line["s"] == "F" and "/proc/none" in line["attr"]["error"]


class TestLimits:
    def test_idle_connections_are_closed(self, tmp_path):
        folder = certificates.make(tmp_path / "tls")
        options = certificates.server_options(folder, "allow", "--idle-seconds-max", "1")
        with Server(tmp_path / "server", options=options) as server:
            unix = socket.socket(socket.AF_UNIX)
            unix.connect(f"/tmp/mongodb-{server.port}.sock")
            sockets = [Raw(server).socket, certificates.connect(server, folder), unix]
            for connection in sockets:
                connection.sendall(op_msg(section({"ping": 1, "$db": "admin"})))
                assert connection.recv(1 << 16)
            busy = server.client()
            began = time.monotonic()
            busy.test.c.insert_one({"_id": 1})
            # A command may take longer than the limit.
            with busy.test.watch(max_await_time_ms=2500) as stream:
                assert stream.try_next() is None
            assert 2 < time.monotonic() - began
            for connection in sockets:
                connection.settimeout(10)
                assert connection.recv(1) == b""
            assert "it was idle for too long" in server.log()
            # The driver connects again.
            assert busy.test.c.find_one() == {"_id": 1}

    def test_connections_are_limited(self, tmp_path):
        with Server(tmp_path, options=["--maxConns", "5"]) as server:
            connections = []
            with pytest.raises((ConnectionError, AssertionError)):
                for _ in range(10):
                    connection = Raw(server)
                    connections.append(connection)
                    reply = connection.send(op_msg(section({"ping": 1, "$db": "admin"}))).reply()
                    assert reply["ok"] == 1, reply
            assert len(connections) <= 6
            for connection in connections:
                connection.socket.close()
            wait_until(server.answers)

    def test_a_limit_also_holds_with_tls(self, tmp_path):
        folder = certificates.make(tmp_path / "tls")
        options = certificates.server_options(folder, "require", "--maxConns", "4")
        with Server(tmp_path / "server", options=options,
                    connection=certificates.client_options(folder)) as server:
            connections = []
            with pytest.raises(OSError):
                for _ in range(8):
                    connections.append(certificates.connect(server, folder))
            for connection in connections:
                connection.close()
            wait_until(server.answers)


class TestTerminals:
    """A server that was started from a terminal ends with it. SIGHUP alone is a reload."""

    @pytest.fixture
    def started(self, tmp_path):
        port, log = free_port(), tmp_path / "log"
        process, terminal = pty.fork()
        if process == 0:
            os.execv(str(binary()), [str(binary()), "serve", "--data", str(tmp_path / "data"),
                                     "--port", str(port), "--logpath", str(log)])
        wait_until(lambda: log.exists() and "Waiting for connections" in messages(log), 60)
        yield process, terminal, log
        for end in (lambda: os.kill(process, signal.SIGKILL), lambda: os.waitpid(process, 0)):
            try:
                end()
            except (ProcessLookupError, ChildProcessError):
                pass

    def test_the_end_of_the_terminal_ends_the_server(self, started):
        process, terminal, log = started
        os.close(terminal)
        _, status = os.waitpid(process, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert messages(log)[-1] == "Shutting down"

    def test_a_signal_alone_does_not(self, started):
        process, terminal, log = started
        os.kill(process, signal.SIGHUP)
        time.sleep(0.5)
        assert os.waitpid(process, os.WNOHANG) == (0, 0) and "Shutting down" not in messages(log)
        os.kill(process, signal.SIGTERM)
        _, status = os.waitpid(process, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        os.close(terminal)


def test_operations_wait_for_others(tmp_path):
    """With `--operations-max 1`, reads and writes run one after another."""
    options = ["--operations-max", "1", "--set-parameter", "enableTestCommands=1",
               "--replica-set", "rs0"]
    with Server(tmp_path, options=options) as server:
        client, slow = server.client(), server.client(appName="slow")
        d, failed = client.d, []
        d.c.insert_one({"_id": 1})
        client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data={
            "failCommands": ["find"], "appName": "slow", "blockConnection": True,
            "blockTimeMS": 60_000})
        queue = lambda: client.admin.command("serverStatus")["globalLock"]["currentQueue"]

        def run(function, *arguments, **options):
            def catch():
                try:
                    function(*arguments, **options)
                except OperationFailure as error:
                    failed.append(error.code)
            threads.append(threading.Thread(target=catch))
            threads[-1].start()

        threads = []
        # A transaction that has begun continues, because others may wait for its locks.
        with client.start_session() as session, session.start_transaction():
            d.c.update_one({"_id": 1}, {"$set": {"x": 1}}, session=session)
            run(slow.d.c.find_one)
            blocked = lambda: [op["opid"] for op in client.admin.command("currentOp")["inprog"]
                               if op.get("appName") == "slow" and op["op"] == "query"]
            wait_until(blocked)
            d.c.update_one({"_id": 1}, {"$set": {"x": 2}}, session=session)
        # Others wait, at most for their time limit.
        with pytest.raises(OperationFailure) as caught:
            d.c.find_one(max_time_ms=50)
        assert caught.value.code == 50
        run(d.c.insert_one, {"_id": 2})
        wait_until(lambda: queue() == {"total": 1, "readers": 0, "writers": 1})
        [waiting] = [op for op in client.admin.command("currentOp")["inprog"]
                     if op["op"] == "insert"]
        assert waiting["waitingForLock"] is True
        client.admin.command("killOp", op=waiting["opid"])
        wait_until(lambda: failed == [11601])
        run(d.c.insert_one, {"_id": 3})
        wait_until(lambda: queue()["writers"] == 1)
        client.admin.command("killOp", op=blocked()[0])
        [thread.join(20) for thread in threads]
        assert failed == [11601, 11601]
        assert [row["_id"] for row in d.c.find()] == [1, 3]
        # A cursor that waits for data lets others run.
        with d.c.watch() as stream:
            run(stream.next)
            wait_until(lambda: [op for op in client.admin.command("currentOp")["inprog"]
                                if op["op"] == "getmore"])
            d.c.insert_one({"_id": 4})
            threads[-1].join(20)
            assert not threads[-1].is_alive()
        assert queue()["total"] == 0
