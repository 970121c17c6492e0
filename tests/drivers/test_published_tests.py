"""The published tests of PyMongo against a single server and a replica set with one member.
PyMongo's source distribution has the unified tests of MongoDB's specifications (CRUD, sessions,
transactions, retryable reads and writes, change streams, command monitoring, GridFS, the stable
API) and their runner. It is downloaded from the package index once, and kept in .cache. If it is
not available, the tests are skipped. Tests that need a second member or another service skip
themselves."""

import importlib.metadata
import os
import subprocess
import sys
import tarfile

import pytest

from windrow_server import ROOT, Server

VERSION = importlib.metadata.version("pymongo")
FOLDER = ROOT / ".cache" / "published-tests" / VERSION
SECONDS = 300

# The tests that are left out, by a part of their names, each with its reason.
LEFT_OUT = {
    "TimeseriesCollection": "time-series collections are not there",
    "test_where": "there is no JavaScript",
    "test_to_list_csot_applied": "there is no JavaScript",
    "test_to_list_tailable": "it reads local.oplog.rs, which is not there",
    "create_events_on_views_are_reported": "views are no part of the log",
    "modify_events_are_reported": "a collMod without a change is no part of the log",
    "TestCommandsStrictMode": "it runs a command that only MongoDB's own tests have",
    "network_error_in_response_to": "there are no users, and no commands of them",
    "test_pool_paused_error": "two of its threads have to meet within a second",
    "ErrorPropagationAfterEncounteringMultipleErrors": "they expect a server at the usual port",
    "secondary_read": "it needs a member to read from that is not the primary",
    "secondary_readPreference": "it needs a member to read from that is not the primary",
}

FAIL_POINTS = ["--set-parameter", "enableTestCommands=1"]

# The tests with a single server.
ALONE = [
    "test_crud_unified.py",
    "test_collection_management.py",
    "test_versioned_api_integration.py",
    "test_bulk.py",
    "test_client_bulk_write.py",
    "test_comment.py",
    "test_collation.py",
    "test_collection.py",
    "test_command_logging.py",
    "test_command_monitoring.py",
    "test_custom_types.py",
    "test_grid_file.py",
    "test_gridfs.py",
    "test_gridfs_bucket.py",
    "test_gridfs_spec.py",
    "test_raw_bson.py",
]

# Those that need a replica set.
AS_MEMBER = [
    "test_causal_consistency.py",
    "test_change_stream.py",
    "test_cursor.py",
    "test_retryable_reads.py",
    "test_retryable_reads_unified.py",
    "test_retryable_writes.py",
    "test_retryable_writes_unified.py",
    "test_run_command.py",
    "test_session.py",
    "test_sessions_unified.py",
    "test_transactions.py",
    "test_transactions_unified.py",
]


def unpack():
    """Unpacks the folder with `test` of the distribution."""
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
    # The folder must have no driver, since the installed one is tested.
    (source / "pytest.ini").write_text("[pytest]\nmarkers =\n    default\n    default_async\n")
    return source


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A single server. Many of the tests need its fail points."""
    with Server(tmp_path_factory.mktemp("alone"), options=FAIL_POINTS) as server:
        yield server
        assert server.process.poll() is None and "panicked" not in server.log()


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    """A server that is the only member of a replica set. Its limits allow the largest transaction
    of the tests."""
    with Server(tmp_path_factory.mktemp("member"), memory=1 << 30,
                options=["--replica-set", "rs0", *FAIL_POINTS]) as server:
        yield server
        assert server.process.poll() is None and "panicked" not in server.log()


def check(server, file):
    source = unpack()
    environment = {**os.environ, "DB_IP": "127.0.0.1", "DB_PORT": str(server.port)}
    wanted = " and ".join(f"not {name}" for name in LEFT_OUT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", wanted,
               "--rootdir", str(source), "-c", str(source / "pytest.ini"), f"test/{file}"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("file", ALONE)
def test_published_tests_pass(alone, file):
    check(alone, file)


@pytest.mark.parametrize("file", AS_MEMBER)
def test_published_tests_pass_on_a_member(member, file):
    check(member, file)
