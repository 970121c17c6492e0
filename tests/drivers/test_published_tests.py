"""The driver's own published tests, against this server.

PyMongo's source distribution carries the unified tests of MongoDB's specifications (CRUD, collection
management, the stable API) and what runs them. They come from the package index once, and then stay in
.cache; where they cannot be had the tests are skipped.
"""

import importlib.metadata
import os
import subprocess
import sys
import tarfile

import pytest

from windrow_server import ROOT

VERSION = importlib.metadata.version("pymongo")
FOLDER = ROOT / ".cache" / "published-tests" / VERSION
SECONDS = 300

# What needs a part of MongoDB that docs/differences.md says is not there.
NOT_THERE = [
    "TimeseriesCollection",  # time-series collections
    "PreAndPostImages",  # documents before changes, which a replica set keeps
]


def unpack():
    """The folder with `test` in it, as the distribution has it."""
    source = FOLDER / f"pymongo-{VERSION}"
    if (source / "test" / "unified_format.py").exists():
        return source
    FOLDER.mkdir(parents=True, exist_ok=True)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                "--no-deps", "--no-binary", ":all:", "--dest", str(FOLDER), f"pymongo=={VERSION}"]
    done = subprocess.run(download, capture_output=True, text=True, timeout=SECONDS)
    archives = list(FOLDER.glob("pymongo-*.tar.gz"))
    if done.returncode != 0 or not archives:
        pytest.skip(f"PyMongo's source distribution cannot be had: {done.stderr[-300:]}")
    with tarfile.open(archives[0]) as archive:
        wanted = [one for one in archive if one.name.startswith(f"pymongo-{VERSION}/test/")]
        archive.extractall(FOLDER, members=wanted, filter="data")
    # Beside the tests there is to be no driver: the installed one is tested with.
    (source / "pytest.ini").write_text("[pytest]\nmarkers =\n    default\n    default_async\n")
    return source


@pytest.mark.parametrize("file", [
    "test_crud_unified.py",
    "test_collection_management.py",
    "test_versioned_api_integration.py",
    "test_bulk.py",
    "test_client_bulk_write.py",
    "test_comment.py",
])
def test_published_tests_pass(server, file):
    source = unpack()
    environment = {**os.environ, "DB_IP": "127.0.0.1", "DB_PORT": str(server.port)}
    not_there = " and ".join(f"not {name}" for name in NOT_THERE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", not_there,
               "--rootdir", str(source), "-c", str(source / "pytest.ini"), f"test/{file}"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
