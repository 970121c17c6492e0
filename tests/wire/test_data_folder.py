"""A data folder that cannot be used is refused with a sentence that gives the reason."""

import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from windrow_server import Server, binary, free_port


def refused(folder, seconds=30):
    """Starts a server that must fail to start. Returns its output."""
    command = [str(binary()), "serve", "--data", str(folder), "--listen",
               f"127.0.0.1:{free_port()}"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        pytest.fail("the server runs on a folder that it must refuse")
    assert ended.returncode not in (0, 101), ended.stderr  # 101 is a panic
    return ended.stdout + ended.stderr


def files_below(folder):
    return sorted((path for path in pathlib.Path(folder).rglob("*") if path.is_file()),
                  key=lambda path: -path.stat().st_size)


@pytest.fixture
def filled(tmp_path):
    """A data folder with data, without a running server."""
    with Server(tmp_path) as server:
        client = server.client()
        client.d.c.create_index("n")
        for start in range(0, 100_000, 10_000):
            client.d.c.insert_many([{"_id": one, "n": one * 31 % 1_009, "pad": f"{one:0300}"}
                                    for one in range(start, start + 10_000)])
        assert server.stop() == 0
        yield server


def folder_warnings(server):
    """The warnings of the start, without that about logins."""
    warnings = server.client().admin.command("getLog", "startupWarnings")["log"]
    assert sum('"id":22120' in line for line in warnings) == 1
    return [line for line in warnings if '"id":22120' not in line]


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("options", [["--bind-ip-all"], ["--metrics-listen", "0.0.0.0:0"],
                                     ["--metrics-listen", "127.0.0.1:0", "--metrics-token-file", "/none"],
                                     ["--web", "0.0.0.0:0"]])
def test_a_refused_start_leaves_no_data_folder(tmp_path, options, is_there):
    """Otherwise the next start could not encrypt the folder."""
    data = tmp_path / "data"
    if is_there:
        data.mkdir()
    command = [str(binary()), "serve", "--data", str(data), "--port", str(free_port()), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr
    assert data.exists() == is_there and not (is_there and list(data.iterdir()))


def test_in_use(tmp_path):
    with Server(tmp_path) as server:
        server.client().d.c.insert_one({"_id": 1})
        said = refused(server.data)
        assert "use" in said and str(server.data) in said
        assert server.client().d.c.find_one() == {"_id": 1}


def test_a_port_in_use(tmp_path):
    with Server(tmp_path / "one") as server:
        command = [str(binary()), "serve", "--data", str(tmp_path / "two"), "--listen",
                   f"127.0.0.1:{server.port}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert ended.returncode not in (0, 101) and str(server.port) in ended.stdout + ended.stderr


def test_of_an_unknown_format(filled):
    (mark,) = [path for path in files_below(filled.data) if path.name == "FORMAT"]
    original = mark.read_bytes()
    mark.write_bytes(b"something else entirely\n")
    said = refused(filled.data)
    assert "format" in said.lower() or "FORMAT" in said
    mark.write_bytes(original)
    filled.start()
    assert filled.client().d.c.count_documents({}) == 100_000


def test_with_strange_files_and_no_format(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "holiday.jpg").write_bytes(b"not ours")
    said = refused(folder)
    assert str(folder) in said
    assert (folder / "holiday.jpg").read_bytes() == b"not ours"


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "data").write_text("a file")
    assert str(tmp_path / "data") in refused(tmp_path / "data")


@pytest.mark.skipif(os.getuid() == 0, reason="the permissions of root cannot be taken away")
def test_without_permission(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    said = refused(folder)
    assert "permission" in said.lower() and str(folder) in said


def test_a_missing_run_is_named(filled):
    runs = [path for path in files_below(filled.data) if path.suffix == ".run"]
    if not runs:
        pytest.skip("nothing was folded into a run")
    runs[0].unlink()
    assert runs[0].name in refused(filled.data)


@pytest.mark.parametrize("where", [0.3, 0.5, 0.9])
def test_a_damaged_block_is_named_and_not_served(filled, where):
    largest = files_below(filled.data)[0]
    content = bytearray(largest.read_bytes())
    place = int(len(content.rstrip(b"\0")) * where)
    content[place] ^= 0x40
    largest.write_bytes(content)
    expected = {one: f"{one:0300}" for one in range(100_000)}
    try:
        filled.start()
    except RuntimeError as error:
        assert largest.name in str(error), error
        return
    # The server may start if nothing has read the block yet. Then a read must fail and name the
    # block.
    try:
        for one in filled.client().d.c.find():
            assert expected.pop(one["_id"]) == one["pad"]
        # The damage is in an index, or in a place that is not used any more.
        assert not expected
        filled.client().d.command({"validate": "c", "full": True})
    except Exception as error:  # noqa: BLE001 - any failure must name the file
        if isinstance(error, AssertionError):
            raise
        assert largest.name in str(error) or largest.name in filled.log(), error


def test_a_log_cut_off_loses_only_its_end(tmp_path):
    """A power cut can leave a torn record at the end of the log. It is cut off."""
    with Server(tmp_path) as server:
        server.client().d.c.insert_many([{"_id": one} for one in range(100)])
        server.kill()
        logs = sorted(path for path in files_below(server.data) if path.suffix == ".log")
        with open(logs[-1], "r+b") as log:
            content = log.read().rstrip(b"\0")
            log.truncate(len(content) - 3)
        server.start()
        assert server.client().d.c.count_documents({}) in (0, 100)
        server.client().d.c.insert_one({"_id": "after"})
        server.restart()
        assert server.client().d.c.find_one({"_id": "after"})


def test_a_copy_of_a_folder_that_was_left_in_order_starts(filled, tmp_path):
    shutil.copytree(filled.data, tmp_path / "copy" / "data")
    with Server(tmp_path / "copy") as copy:
        assert copy.client().d.c.count_documents({}) == 100_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 MB, if the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)],
                             capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no permission to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_writes_and_goes_on_reading(small_disk, tmp_path):
    with Server(small_disk, memory=64 << 20) as server:
        c = server.client().d.c
        stored = 0
        failure = None
        for start in range(0, 400_000, 1_000):
            try:
                c.insert_many([{"_id": one, "pad": os.urandom(200)}
                               for one in range(start, start + 1_000)])
                stored = start + 1_000
            except Exception as error:  # noqa: BLE001 - the driver's, of whichever kind
                failure = error
                break
        assert failure is not None and stored > 0
        assert c.count_documents({"_id": {"$lt": stored}}) == stored
        assert c.find_one({"_id": 0})
        server.kill()
        shutil.copytree(server.data, tmp_path / "copy" / "data")
    with Server(tmp_path / "copy") as copy:
        c = copy.client().d.c
        assert c.count_documents({"_id": {"$lt": stored}}) == stored
        c.insert_one({"_id": "room again"})
        assert copy.client().d.command({"validate": "c", "full": True})["valid"]


def test_only_the_owner_can_use_the_files(tmp_path):
    """Regression: the files were readable for every user of the machine."""
    before = os.umask(0)
    try:
        log = tmp_path / "log"
        with Server(tmp_path, options=["--log-path", str(log)]) as server:
            client = server.client()
            client.d.c.insert_many([{"n": n} for n in range(1_000)])
            client.d.c.create_index("n")
            client.admin.command("logRotate")
            assert server.stop() == 0
            server.start()
            # mongosh shows these.
            assert folder_warnings(server) == []
            created = [server.data, *server.data.rglob("*"), *tmp_path.glob("log*")]
            modes = {str(path): stat.S_IMODE(path.stat().st_mode) for path in created}
            assert {mode for path, mode in modes.items() if os.path.isdir(path)} == {0o700}
            assert {mode for path, mode in modes.items() if os.path.isfile(path)} == {0o600}, modes
            server.stop()
            server.data.chmod(0o750)
            server.start()
            [warning] = folder_warnings(server)
            assert "its mode is 750" in warning
            assert stat.S_IMODE(server.data.stat().st_mode) == 0o750
    finally:
        os.umask(before)
