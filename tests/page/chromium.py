"""Chromium, driven by playwright, for tests of the page."""

import json
import os
import shutil
import subprocess

import pytest

from windrow_server import ROOT

MODULES = ROOT / ".cache" / "page"
SCRIPT = ROOT / "tests" / "page" / "browser.mjs"
NAMES = ["chromium", "chromium-browser", "google-chrome"]


def environment():
    """The environment of a run. Skips the test if there is no Chromium."""
    if not (MODULES / "node_modules" / "playwright-core").exists():
        pytest.fail(f"{MODULES} is not complete; `make .cache/page/ready` installs it")
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium, or set CHROMIUM")
    return {**os.environ, "CHROMIUM": chromium, "PAGE_MODULES": str(MODULES)}


def command(scenario, origin, folder, settings):
    return ["node", str(SCRIPT), scenario, origin, str(folder), json.dumps(settings)]


def run(scenario, server, folder, **settings):
    """Runs a scenario. Fails with its problems."""
    ended = subprocess.run(command(scenario, server.origin, folder, settings), env=environment(),
                           capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert not found["problems"], "\n".join(found["problems"])
    return found
