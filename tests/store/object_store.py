"""An S3 server (versitygw, a Go module) for tests of databases in an object store."""

import os
import signal
import socket
import subprocess
import time

import pymongo
import pymongo.errors

from windrow_server import ROOT, Server, free_port

VERSION = "v1.8.0"
PROGRAM = ROOT / ".cache" / "versitygw" / VERSION / "versitygw"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "windrow", "AWS_SECRET_ACCESS_KEY": "windrow-secret",
               "AWS_REGION": "us-east-1"}
ELECTION_SECONDS = 2


def install():
    """Builds the S3 server once."""
    if PROGRAM.exists():
        return
    environment = os.environ | {"GOBIN": str(PROGRAM.parent.resolve())}
    subprocess.run(["go", "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"],
                   env=environment, check=True, capture_output=True, timeout=1200)


class ObjectStore:
    """A running S3 server with one bucket."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "buckets" / "bucket").mkdir(parents=True)
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        with open(self.folder / "s3.log", "ab") as log:
            self.process = subprocess.Popen(
                [str(PROGRAM), "--quiet", "--port", f"127.0.0.1:{self.port}",
                 "--access", CREDENTIALS["AWS_ACCESS_KEY_ID"],
                 "--secret", CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
                 "--keep-alive", "posix", str(self.folder / "buckets")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        began = time.monotonic()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.process.poll() is None, (self.folder / "s3.log").read_text()
                assert time.monotonic() - began < 30
                time.sleep(0.02)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def objects(self):
        """The folder with the objects as files."""
        return self.folder / "buckets" / "bucket"


class StoreServer(Server):
    """A server whose database is in an object store."""

    def __init__(self, folder, store, prefix, port=None, options=(), start=True, url=None,
                 is_follower=False):
        port = port or free_port()
        self.is_follower = is_follower
        self.store_port = store.port
        super().__init__(folder, port=port, start=start, options=[
            "--store", url or f"s3://bucket/{prefix}", "--replica-set", "rs0",
            "--store-option", f"aws_endpoint=http://127.0.0.1:{store.port}",
            "--advertise", f"127.0.0.1:{port}", "--election-timeout", str(ELECTION_SECONDS),
            *options])

    def answers(self):
        """Returns True if the server has the role that the test expects."""
        try:
            with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=500) as client:
                hello = client.admin.command("hello")
                return hello["secondary"] if self.is_follower else hello["isWritablePrimary"]
        except pymongo.errors.PyMongoError:
            return False

    def begin(self):
        """Starts the process without waiting for an answer, because the server may not become the
        primary."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def wait_for_log(self, text, seconds=30):
        began = time.monotonic()
        while text not in self.log():
            assert self.process.poll() is None, self.log()[-2000:]
            assert time.monotonic() - began < seconds, f"{text!r} is not in\n{self.log()[-2000:]}"
            time.sleep(0.02)


class SetServer(Server):
    """A server with several data sets in an object store."""

    SETS = ("main=shop", "logs=logs", "rest=rest*")

    def __init__(self, folder, store, prefix, sets=SETS, options=("--no-auth",), start=True,
                 connection=None):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        sets = [word for name in sets for word in ("--data-set", name)]
        super().__init__(folder, port=port, start=start, connection=connection, options=[
            "--store", f"s3://bucket/{prefix}",
            "--store-option", f"aws_endpoint=http://127.0.0.1:{store.port}",
            "--advertise", self.address, "--election-timeout", str(ELECTION_SECONDS),
            *sets, *options])

    @property
    def uri(self):
        return f"mongodb://{self.address}/"

    def sets(self):
        """The state of each data set, as this server sees it."""
        with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=10_000) as client:
            status = client.admin.command("serverStatus")
        return {described["name"]: described for described in status["dataSets"]}

    def primaries(self):
        return {name: described.get("primary") for name, described in self.sets().items()}


def wait_for_spread(servers, seconds=60):
    """Waits until every server agrees on a primary of its own for each data set."""
    def is_spread():
        views = [server.primaries() for server in servers]
        primaries = views[0].values()
        return (all(view == views[0] for view in views) and len(set(primaries)) == len(servers)
                and all(primaries))
    deadline = time.monotonic() + seconds
    while not is_spread():
        assert time.monotonic() < deadline, [server.primaries() for server in servers]
        time.sleep(0.5)
