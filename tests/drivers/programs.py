"""The programs in tests/drivers/logins. Those in compiled languages are compiled once into .cache/logins."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pymongo
import pytest
from pymongo.errors import OperationFailure

from windrow_server import ROOT

SOURCES = Path(__file__).parent / "logins"
CACHE = ROOT / ".cache" / "logins"
MODULES = ROOT / ".cache" / "mongosh" / "node_modules"
SECONDS = 300


def run(command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS, **options)


def lines_of(command, uris, **options):
    """Returns the output of a program for each connection string."""
    ended = run(command, input="".join(f"{uri}\n" for uri in uris), **options)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout.splitlines()


def compiled(language, build):
    """Returns the folder of a compiled program. `build(folder)` fills it if the cache does not have
    it."""
    source = hashlib.sha256()
    for file in sorted((SOURCES / language).iterdir()):
        source.update(file.read_bytes())
    folder = CACHE / f"{language}-{source.hexdigest()[:16]}"
    if not (folder / "ready").exists():
        for old in CACHE.glob(f"{language}-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        build(folder)
        (folder / "ready").touch()
    return folder


def needed(*names):
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


def build_go(folder):
    cache = ROOT / ".cache" / "go"
    environment = {**os.environ, "GOPATH": str(cache), "GOCACHE": str(cache / "build"), "GOFLAGS": "-modcacherw"}
    downloaded = run(["go", "mod", "download", "go.mongodb.org/mongo-driver/v2"], cwd=SOURCES / "go", env=environment)
    if downloaded.returncode:
        pytest.skip(f"Go's driver cannot be downloaded: {downloaded.stderr[-300:]}")
    built = run(["go", "build", "-o", folder / "login", "."], cwd=SOURCES / "go", env=environment)
    assert built.returncode == 0, built.stderr


def build_java(folder):
    copied = run(["mvn", "--quiet", "--batch-mode", f"--file={SOURCES / 'java' / 'pom.xml'}",
                  "dependency:copy-dependencies", f"-DoutputDirectory={folder}"])
    if copied.returncode:
        pytest.skip(f"Java's driver cannot be downloaded: {copied.stdout[-300:]}")
    built = run(["javac", "-cp", f"{folder}/*", "-d", folder, SOURCES / "java" / "Login.java"])
    assert built.returncode == 0, built.stderr


class Login:
    """How a client logs in: its connection string, and the certificates that it takes from a folder."""

    def __init__(self, uri, folder=None, certificate=None):
        self.plain_uri, self.folder, self.certificate = uri, folder, certificate

    @property
    def uri(self):
        """Returns the connection string with the certificate files, as most drivers take them."""
        if not self.folder:
            return self.plain_uri
        own = f"&tlsCertificateKeyFile={self.folder}/{self.certificate}.pem" if self.certificate else ""
        return f"{self.plain_uri}&tls=true&tlsCAFile={self.folder}/ca.pem{own}"

    @property
    def line(self):
        """Returns the connection string, the folder of the certificates and the name of one, for
        Java."""
        return "\t".join(str(part) for part in (self.plain_uri, self.folder, self.certificate) if part)


def go(logins):
    needed("go")
    return lines_of([compiled("go", build_go) / "login"], [login.uri for login in logins])


def java(logins):
    needed("java", "javac", "mvn")
    folder = compiled("java", build_java)
    return lines_of(["java", "-cp", f"{folder}:{folder}/*", "Login"], [login.line for login in logins])


def node(logins):
    if not (MODULES / "mongodb").exists():
        pytest.skip("Node's driver is not installed; `make test` does it")
    return lines_of(["node", SOURCES / "node" / "login.js"], [login.uri for login in logins],
                    env={**os.environ, "NODE_PATH": str(MODULES)})


def mongosh(logins):
    if not (MODULES / "mongosh").exists():
        pytest.skip("mongosh is not installed; `make test` does it")
    uris = json.dumps([login.uri for login in logins])
    return lines_of([MODULES / ".bin" / "mongosh", "--nodb", "--quiet", "--norc", "--eval", f"const URIS = {uris}",
                     "--file", SOURCES / "node" / "mongosh.js"], [])


def python(logins):
    def answer(login):
        try:
            with pymongo.MongoClient(login.uri) as client:
                inserted = client.shop.cakes.insert_one({"driver": "python"}).inserted_id
                return "found" if client.shop.cakes.find_one(inserted)["driver"] == "python" else "another document"
        except OperationFailure as error:
            return str(error.code)

    return [answer(login) for login in logins]


DRIVERS = [python, node, go, java, mongosh]
