"""The object store of the tests of this folder."""

import os
import shutil
import subprocess
import uuid

import pytest

from object_store import CREDENTIALS, PROGRAM, ObjectStore, StoreServer, install


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    if not PROGRAM.exists() and shutil.which("go") is None:
        pytest.skip("Go is not there to build the S3 server")
    try:
        install()
    except subprocess.SubprocessError as error:
        pytest.skip(f"the S3 server could not be built: {error}")
    os.environ.update(CREDENTIALS)
    store = ObjectStore(tmp_path_factory.mktemp("store"))
    yield store
    store.stop()


@pytest.fixture
def prefix():
    """A prefix in the object store for one test."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def pair(store, prefix, tmp_path):
    """A primary, and a server that follows it."""
    with StoreServer(tmp_path / "one", store, prefix) as one, \
            StoreServer(tmp_path / "two", store, prefix, is_follower=True) as two:
        yield one, two
