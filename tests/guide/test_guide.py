"""The guide: its examples run as they are written, and its links lead somewhere.

Blocks are run by their language, in the order of a page: `python` blocks of a page share their variables,
`sh` blocks are run in a folder of their own with `windrow` in the path, `javascript` and `go` blocks are
whole programs. `text` blocks are not run.
"""

import os
import re
import shutil
import subprocess

import pytest

from windrow_server import ROOT, Server, binary

GUIDE = ROOT / "docs/guide/src"
PAGES = sorted(path.name for path in GUIDE.glob("*.md"))
ADDRESS = "mongodb://127.0.0.1:27017"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Documents whose links are checked.
DOCUMENTS = [*GUIDE.glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"),
             *(ROOT / "bench").glob("*.md")]


def blocks(page, language):
    found = BLOCK.findall((GUIDE / page).read_text())
    return [content for name, content in found if name == language]


def pages_with(language):
    return [page for page in PAGES if blocks(page, language)]


def test_each_block_has_a_known_language():
    languages = {name for page in PAGES for name, _ in BLOCK.findall((GUIDE / page).read_text())}
    assert languages == {"python", "javascript", "go", "sh", "text"}


def test_the_summary_names_all_pages():
    summary = (GUIDE / "SUMMARY.md").read_text()
    assert sorted([*LINK.findall(summary), "SUMMARY.md"]) == PAGES


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_examples(page, tmp_path):
    with Server(tmp_path) as server:
        variables = {}
        for content in blocks(page, "python"):
            code = content.replace(ADDRESS, server.uri)
            exec(compile(code, page, "exec"), variables)


@pytest.mark.parametrize("page", pages_with("sh"))
def test_shell_examples(page, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/windrow").symlink_to(binary())
    (tmp_path / "work").mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
                   "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    for content in blocks(page, "sh"):
        ended = subprocess.run(["bash", "-euo", "pipefail", "-c", content], cwd=tmp_path / "work",
                               env=environment, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, f"{content}\n{ended.stdout}{ended.stderr}"


@pytest.mark.parametrize("page", pages_with("javascript"))
def test_node_examples(page, tmp_path):
    modules = ROOT / ".cache/mongosh/node_modules"
    if not (modules / "mongodb").exists():
        pytest.skip("Node's driver is not installed; `make test` does it")
    with Server(tmp_path) as server:
        for content in blocks(page, "javascript"):
            program = tmp_path / "example.js"
            code = content.replace(ADDRESS, server.uri)
            program.write_text(f"(async () => {{\n{code}\n}})();\n")
            ended = subprocess.run(["node", program], capture_output=True, text=True, timeout=60,
                                   env={**os.environ, "NODE_PATH": str(modules)})
            assert (ended.stdout, ended.returncode) == ("Rye bread\n", 0), ended.stderr


@pytest.mark.parametrize("page", pages_with("go"))
def test_go_examples(page, tmp_path):
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    cache = ROOT / ".cache/go"
    environment = {**os.environ, "GOPATH": str(cache), "GOFLAGS": "-mod=mod -modcacherw",
                   "GOCACHE": str(cache / "build")}
    with Server(tmp_path) as server:
        for content in blocks(page, "go"):
            (tmp_path / "main.go").write_text(content.replace(ADDRESS, server.uri))

            def go(*arguments):
                return subprocess.run(["go", *arguments], cwd=tmp_path, env=environment,
                                      capture_output=True, text=True, timeout=300)
            go("mod", "init", "example")
            got = go("get", "go.mongodb.org/mongo-driver/v2/mongo")
            if got.returncode:
                pytest.skip(f"Go's driver cannot be had: {got.stderr}")
            ended = go("run", ".")
            assert (ended.stdout, ended.returncode) == ("Rye bread\n", 0), ended.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            continue
        path, _, _ = link.partition("#")
        assert (document.parent / path).exists(), f"{document}: {link}"
