"""Programs of Debian for tests, without installing them."""

import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "debian"


def program(package, path):
    """The program at `path` of a package: installed, or unpacked into the cache. Skips the test if
    the package cannot be downloaded."""
    installed = shutil.which(Path(path).name)
    if installed:
        return installed
    folder = CACHE / package
    if not (folder / path).exists():
        folder.mkdir(parents=True, exist_ok=True)
        download = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, text=True)
        archives = list(folder.glob("*.deb"))
        if download.returncode or not archives:
            pytest.skip(f"{package} cannot be downloaded: {download.stderr.strip()[-200:]}")
        subprocess.run(["dpkg", "-x", archives[0], folder], check=True, capture_output=True)
    return str(folder / path)
