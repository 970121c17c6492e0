"""mongodump, mongorestore, mongoexport and mongoimport. They are taken from PATH or from
.cache/mongo-tools. Without them the tests are skipped."""

import os
import shutil
import subprocess

import pytest

from windrow_server import ROOT

TOOLS = ROOT / ".cache" / "mongo-tools"
SECONDS = 120


def start(name, *arguments):
    """Runs a tool to its end."""
    here = TOOLS / name
    program = str(here) if here.exists() else shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not to be had")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, "HOME": "/nonexistent"})


def run(name, *arguments):
    """Runs a tool that must succeed. Returns its report."""
    done = start(name, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr
