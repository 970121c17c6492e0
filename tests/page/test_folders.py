"""Folders on the page: what is indexed, failures, runs, the configuration."""

import html
import os
import re
import subprocess
import time

import pytest

import chromium
from indexed import IndexedServer, write_files
from page_client import PageServer
from test_browser import PICTURES
from windrow_server import binary, free_port


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A temporary home folder with a configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def server(home):
    files = {"a.txt": "flour", "b.pdf": "%PDF-1.4 broken", "c.pdf": "%PDF-1.7 broken, too"}
    with IndexedServer(home / "server", files=files) as server:
        yield server
        assert "panicked" not in server.log()


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_is_indexed_is_shown(server):
    text = server.browser().get("/folders").text
    assert str(server.files) in text and "Last run" in text
    assert "Damaged" in text and "<svg" in text


def test_failures_have_reasons(server):
    browser = server.browser()
    text = browser.get("/folders/failures").text
    assert server.path("b.pdf") in text and server.path("c.pdf") in text
    assert server.path("b.pdf") not in browser.get("/folders/failures?class=encrypted").text


def test_failed_files_are_read_again(server):
    (server.files / "b.pdf").write_text("no PDF at all, but flour")
    (server.files / "new.txt").write_text("flour")
    browser = server.browser()
    browser.get("/folders/failures")
    documents = server.client().files.documents
    answer = browser.post("/folders/run", {"retries": "1"})
    assert (answer.status, answer.headers["location"]) == (303, "/folders?started=1")
    until(lambda: documents.find_one({"_id": server.path("new.txt")}))
    until(lambda: "data-running" not in browser.get("/folders").text)


@pytest.fixture
def slow_files(server, home):
    """400 new files, each of which takes a worker at least a tenth of a second on any machine."""
    write_files(server.files, {f"many/{number}.slow": f"flour {number} " + "bread " * 2_000 for number in range(400)})
    configuration = home / "config" / "windrow" / "index.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(
        'workers = 2\n[convert."application/x-slow"]\nextensions = ["slow"]\n'
        'command = ["sh", "-c", "sleep 0.1; cat \\"$0\\"", "%f"]\n'
        f"[[folder]]\npath = '{server.files}'\n")


def test_a_started_run_shows_its_progress_until_it_is_stopped(server, slow_files):
    """A run that was started from the page used to be shown without any counters."""
    browser = server.browser()
    browser.get("/folders")
    assert browser.post("/folders/stop").headers["location"] == "/folders"
    assert browser.post("/folders/run").status == 303
    shown = {}

    def has_numbers():
        shown["text"] = text = browser.get("/folders").text
        return re.search(r"[1-9][\d,]* of 400 files", text) and "Queue: " in text

    until(has_numbers)
    text = shown["text"]
    assert re.search(r"[1-9][\d,]* files/s, [\d.]+ MB/s", text) and "Where the time goes" in text
    for stage in ["Find files", "Read files", "Store documents"]:
        assert re.search(rf'aria-label="{stage}: \d+ % working', text), stage
    assert "a run is already active" in browser.post("/folders/run").text
    assert browser.post("/folders/stop").headers["location"] == "/folders?stopped=1"
    text = browser.get("/folders").text
    assert "data-running" not in text and "The run failed" not in text
    count = server.client().files.documents.count_documents({})
    assert count < 401
    # The next run continues the stopped one.
    assert browser.post("/folders/run").status == 303
    until(lambda: "data-running" not in browser.get("/folders").text, seconds=180)
    assert server.client().files.documents.count_documents({"unread": None}) == 401


def test_a_started_run_is_drawn(server, slow_files):
    found = chromium.run("folderRun", server, PICTURES)
    assert found["isHidden"] and "files/s" in found["text"] and "Queue" in found["text"]


def test_the_configuration_is_checked_and_saved(server, home):
    browser = server.browser()
    file = home / "config" / "windrow" / "index.toml"
    assert str(file) in browser.get("/folders/configuration").text
    wrong = browser.post("/folders/configuration", {"text": "worker = 3", "save": "1"})
    assert wrong.status == 422 and "unknown field" in wrong.text and not file.exists()
    missing = browser.post("/folders/configuration", {"text": '[[folder]]\r\npath = "/nothing"\r\n'})
    assert "do not exist" in missing.text and "has no errors" in missing.text and not file.exists()
    right = browser.post("/folders/configuration", {"text": "workers = 3\r\n", "save": "1"})
    assert right.status == 200 and file.read_text() == "workers = 3\n"
    shown = re.search(r"<textarea[^>]*>([^<]*)</textarea>", browser.get("/folders/configuration").text)
    assert html.unescape(shown.group(1)).strip() == "workers = 3"


def test_a_read_only_page_changes_nothing(home):
    with IndexedServer(home / "server", files={"a.txt": "flour"}, options=["--web-read-only"]) as server:
        browser = server.browser()
        assert "/folders/run" not in browser.get("/folders").text
        assert browser.post("/folders/run").status == 403
        assert browser.post("/folders/stop").status == 403
        assert browser.post("/folders/configuration", {"text": "", "save": "1"}).status == 403


def test_another_user_of_the_machine_changes_nothing(server):
    """The configuration names programs to run, and other users of the machine reach the loopback address."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    script = ("import http.client; c = http.client.HTTPConnection('127.0.0.1', %d); "
              "c.request('GET', '/folders/configuration'); print(c.getresponse().status)" % server.web_port)
    ended = subprocess.run(["python3", "-c", script], capture_output=True, text=True,
                           user=65534, timeout=30)
    assert ended.stdout == "403\n", ended.stderr


def test_a_folder_is_watched_with_a_page(home):
    folder, port = home / "folder", free_port()
    write_files(folder, {f"{number}.txt": f"flour {number}" for number in range(50)})
    command = [str(binary()), "index", str(folder), "--data", str(home / "data"),
               "--web", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line == f"windrow: the page is at http://127.0.0.1:{port}\n"
        browser = PageServer.browser(type("Process", (), {"web_port": port})())
        until(lambda: "50 documents" in browser.get("/search?q=flour").text)
        (folder / "late.txt").write_text("latecomer")
        until(lambda: "late.txt" in browser.get("/search?q=latecomer").text)
        assert str(folder) in browser.get("/folders").text
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_index_does_not_serve_the_page_of_a_server(server, home):
    command = [str(binary()), "index", str(server.files), "--data", str(server.data),
               "--web", f"127.0.0.1:{free_port()}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and "start that server with --web" in ended.stderr


@pytest.mark.parametrize("role, expected", [([], 403), (["readWriteAnyDatabase"], 403), (["root"], 303)])
def test_a_user_of_the_database_does_not_run_programs(home, role, expected):
    """A proxy may run as the user of the server, so the owner of a connection does not identify its user."""
    with IndexedServer(home / "server", files={"a.txt": "flour"}) as server:
        client = server.client()
        client.admin.command("createUser", "ada", pwd="pw", roles=role)
        if role != ["root"]:
            client = server.client(username="ada", password="pw")
        browser = server.browser()
        browser.log_in("ada", "pw")
        browser.get("/folders")
        assert browser.token and browser.post("/folders/run").status == expected
        saved = browser.post("/folders/configuration", {"text": "workers = 3", "save": "1"})
        assert (saved.status == 403) == (expected == 403)
        for name in ["X-Forwarded-For", "Forwarded", "Via"]:
            assert browser.post("/folders/run", headers={name: "192.0.2.1"}).status == 403
