"""A server for one test: a data folder, a free port, and every way to end it."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import pymongo
import pymongo.errors

ROOT = pathlib.Path(__file__).resolve().parent.parent
START_SECONDS = 60
STOP_SECONDS = 60


def binary():
    """The server's binary: WINDROW, or the release build of this checkout."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return pathlib.Path(os.environ.get("WINDROW", target / "release" / "windrow"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(check, seconds=20):
    """Waits until `check` returns a true value."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def complete_lines(path):
    """The lines of a log that have their ends. The last one can be in writing while it is read."""
    text = path.read_text(errors="replace")
    return text[:text.rfind("\n") + 1]


class Server:
    """`windrow serve` on `folder`/data. Starts at once; a `with` block stops it."""

    def __init__(self, folder, memory=256 << 20, port=None, start=True, options=(),
                 connection=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.memory = memory
        self.options = list(options)
        # Options of every MongoClient, such as those of TLS.
        self.connection = dict(connection or {})
        self.port = port or free_port()
        self.process = None
        self.clients = []
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.kill()
        # A killed server leaves this file behind in a shared folder.
        pathlib.Path(f"/tmp/mongodb-{self.port}.sock").unlink(missing_ok=True)

    def command(self):
        return [str(binary()), "serve", "--data", str(self.data),
                "--listen", f"127.0.0.1:{self.port}", "--memory", str(self.memory),
                *self.options]

    def start(self):
        """Returns the seconds until the server answered."""
        if not binary().exists():
            raise RuntimeError(f"{binary()} is not there; `make build` makes it")
        began = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        while not self.answers():
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise RuntimeError(f"the server ended with {code}:\n{self.log()[-2000:]}")
            if time.monotonic() - began > START_SECONDS:
                raise RuntimeError(f"the server does not answer:\n{self.log()[-2000:]}")
            time.sleep(0.01)
        return time.monotonic() - began

    def answers(self):
        try:
            with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=500,
                                     **self.connection) as client:
                return client.admin.command("ping")["ok"] == 1
        except pymongo.errors.PyMongoError:
            return False

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def client(self, **options):
        """A client that lives until the server ends."""
        client = pymongo.MongoClient(self.uri, **{"serverSelectionTimeoutMS": 10_000,
                                                  **self.connection, **options})
        self.clients.append(client)
        return client

    def log(self):
        return complete_lines(self.log_path) if self.log_path.exists() else ""

    def stop(self):
        """Asks the server to end; returns its exit code."""
        return self.end(signal.SIGTERM)

    def kill(self):
        """Ends the server without warning."""
        return self.end(signal.SIGKILL)

    def end(self, how):
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            # Not earlier: a test may wait for a client to notice the end of the server.
            for client in self.clients:
                # Closing a client would search for the server for 10 s to end the client's
                # sessions.
                client._topology.pop_all_sessions()
                client.close()
            self.clients.clear()

    def restart(self):
        """Kills the server and starts it again; returns the seconds until it answered."""
        self.kill()
        return self.start()
