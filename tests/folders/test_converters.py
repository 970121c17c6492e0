"""Converters in the sandbox. A hostile converter affects only the document that it reads."""

import concurrent.futures
import ctypes
import functools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

import pymongo
import pytest
from pymongo.errors import OperationFailure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tree  # noqa: E402
from test_folders import windrow  # noqa: E402
from windrow_server import Server  # noqa: E402

SYSTEM_PATH = "/usr/bin:/bin"


class Work:
    """Files, their configuration, and their index."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "files").mkdir()
        (folder / "bin").mkdir()

    def file(self, name, content="words"):
        return tree.write(self.folder / "files", name, content)

    def script(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def index(self, config, *arguments, path=SYSTEM_PATH, **options):
        (self.folder / "index.toml").write_text(
            f'data = "data"\n{config}\n[[folder]]\npath = "files"\n')
        ended = windrow("index", "--config", self.folder / "index.toml", *arguments,
                        env={**os.environ, "PATH": path}, **options)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def found(self, words):
        ended = windrow("search", words, "-l", "--data", self.folder / "data")
        assert ended.returncode in (0, 1), ended.stderr
        return [line.replace(f"{self.folder}/files/", "") for line in ended.stdout.splitlines()]

    def failures(self):
        ended = windrow("failures", "--data", self.folder / "data")
        assert ended.returncode in (0, 1), ended.stderr
        return ended.stdout

    def status(self):
        return json.loads(windrow("status", "--json", "--data", self.folder / "data").stdout)

    def document(self, words):
        ended = windrow("search", words, "--json", "--data", self.folder / "data")
        return json.loads(ended.stdout.splitlines()[0])


@pytest.fixture
def work(tmp_path):
    return Work(tmp_path)


@functools.cache
def has_sandbox():
    """Returns whether the kernel supports the sandbox."""
    code = "import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    return int(shown) > 0


needs_sandbox = pytest.mark.skipif("not has_sandbox()", reason="the kernel has no Landlock")

UPPER = '#!/bin/sh\ntr a-z A-Z < "$1"\n'


def foo(command, more=""):
    return f"""
[convert."application/x-foo"]
command = {json.dumps(command)}
extensions = ["foo"]
timeout = 5
{more}
"""


def test_files_and_members_are_converted(work):
    script = work.script("upper", '#!/bin/sh\necho "<title>Loud</title><p>marmot &amp; $(cat "$1")</p>"\n')
    work.file("a.foo", "alpha")
    work.file("B.FOO", "beta")
    work.file("box.zip", tree.archive({"in/c.foo": "gamma", "d.txt": "delta"}))
    work.file("other.txt", "epsilon")
    work.index(foo([str(script), "%f"], 'output = "text/html"\nkind = "book"'))
    assert sorted(work.found("marmot")) == ["B.FOO", "a.foo", "box.zip/!/in/c.foo"]
    for word in ("alpha", "beta", "gamma"):
        assert len(work.found(f"marmot {word}")) == 1
    assert work.found("delta epsilon OR delta") == ["box.zip/!/d.txt"]
    assert work.document("alpha")["title"] == "Loud"
    assert work.document("alpha")["kind"] == "book"


def test_the_command_is_words_without_a_shell(work):
    script = work.script("show", '#!/bin/sh\nfor word; do echo "[$word]"; done\n')
    work.file("a $(touch x).foo")
    work.index(foo(f"'{script}' 'two words' %f %m 100%% ;"))
    text = work.document("ext:foo")["snippet"] if "snippet" in work.document("ext:foo") else ""
    ended = windrow("search", "two words", "--json", "--data", work.folder / "data")
    assert ended.returncode == 0, (text, ended.stderr)
    for word in ("application", "100"):
        assert work.found(word) == ["a $(touch x).foo"]


def test_encodings_are_decoded(work):
    script = work.script("copy", '#!/bin/sh\ncat "$1"\n')
    work.file("a.foo", "Größenwahn".encode("utf-16-le"))
    work.index(foo([str(script), "%f"], 'charset = "utf-16le"'))
    assert work.found("Größenwahn") == ["a.foo"]


def test_a_missing_program_is_reported_and_its_installation_noticed(work):
    work.file("a.foo", "walrus")
    work.file("b.foo", "walrus")
    config = foo(["foo-to-text", "%f"])
    work.index(config)
    reason = "missing converter foo-to-text for application/x-foo"
    assert work.failures().count(reason) == 2
    assert work.status()["missing_converters"] == {reason: 2}
    assert f"2   {reason}" in windrow("status", "--data", work.folder / "data").stdout
    assert "0 files" in work.index(config)
    work.script("foo-to-text", UPPER)
    read = work.index(config, path=f"{work.folder}/bin:{SYSTEM_PATH}")
    assert "2 changed" in read and len(work.found("walrus")) == 2
    assert work.status()["missing_converters"] == {}


def test_a_changed_converter_reads_its_files_again(work):
    first = work.script("first", "#!/bin/sh\necho firstword\n")
    second = work.script("second", "#!/bin/sh\necho secondword\n")
    work.file("a.foo")
    work.file("box.zip", tree.archive({"b.foo": "x", "c.txt": "y"}))
    work.file("other.txt")
    work.index(foo([str(first), "%f"]))
    assert len(work.found("firstword")) == 2
    assert "0 files" in work.index(foo([str(first), "%f"]))
    # Without a configuration, settings are not compared with those of the last run.
    windrow("index", work.folder / "files", "--data", work.folder / "data")
    assert len(work.found("firstword")) == 2
    assert "2 changed" in work.index(foo([str(second), "%f"]))
    assert (len(work.found("firstword")), len(work.found("secondword"))) == (0, 2)
    assert "2 changed" in work.index("")
    assert work.found("secondword") == []


def test_other_folders_are_read_again_later(work):
    work.script("x", UPPER)
    work.file("one/a.foo", "walrus")
    work.file("two/b.foo", "walrus")
    work.index(foo([str(work.folder / "bin/x"), "%f"]))
    changed = foo([str(work.folder / "bin/x"), "%f", "more"])
    work.index(changed, work.folder / "files/one")
    assert "1 changed" in work.index(changed)


def test_a_fallback_reads_what_the_extractor_does_not(work):
    script = work.script("rescue", "#!/bin/sh\necho rescuedword\n")
    work.file("good.pdf", tree.pdf("printedword"))
    work.file("cut.pdf", tree.pdf("lostword")[:200])
    work.index(f"""
[convert."application/pdf"]
command = ["{script}", "%f"]
fallback = true
""")
    assert work.found("printedword") == ["good.pdf"]
    assert work.found("rescuedword") == ["cut.pdf"]
    assert work.document("rescuedword")["kind"] == "pdf"
    assert "cut.pdf" not in work.failures()


def test_a_converter_replaces_the_extractor(work):
    script = work.script("other", "#!/bin/sh\necho otherword\n")
    work.file("a.pdf", tree.pdf("printedword"))
    work.index(f'[convert."application/pdf"]\ncommand = ["{script}", "%f"]\n')
    assert (work.found("printedword"), work.found("otherword")) == ([], ["a.pdf"])


HOSTILE = {
    "endless": ("#!/bin/sh\nwhile true; do echo endless endless endless; done\n", ""),
    "hang": ("#!/bin/sh\nsleep 1000\n", "longer than 2 s"),
    "children": ("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8; do sleep 1000 & done\nwait\n", "longer than 2 s"),
    "daemon": ("#!/bin/sh\nsetsid sleep 1000\nexit 3\n", "code 3"),
    "crash": ("#!/bin/sh\nkill -SEGV $$\n", "signal 11"),
    "error": ("#!/bin/sh\necho first >&2\necho 'the file is odd' >&2\nexit 4\n", "code 4: the file is odd"),
    "noise": ("#!/bin/sh\nwhile true; do echo noise; done >&2\n", ""),
    "disk": ("#!/bin/sh\nfor i in 1 2 3 4; do truncate -s 600000000 $i; done\nsleep 1000\n",
             "temporary files exceed"),
    "files": ("#!/bin/sh\ni=0; while true; do i=$((i + 1)); : > $i; done\n", "temporary files exceed"),
    "memory": ("#!/bin/sh\nexec python3 -c 'bytearray(4 << 30)'\n", "MemoryError"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_converter_harms_only_its_own_document(work, name):
    script, reason = HOSTILE[name]
    path = work.script(name, script)
    work.file("a.foo")
    work.file("other.txt", "unharmed")
    began = time.monotonic()
    work.index(foo([str(path), "%f"]).replace("timeout = 5", "timeout = 20" if name in ("disk", "files") else "timeout = 2")
               + '[limits]\nfile-size = "1MB"\n')
    assert time.monotonic() - began < 30
    failures = work.failures()
    assert "a.foo" in failures and reason in failures, failures
    assert work.found("unharmed") == ["other.txt"]
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "sleep 1000" not in shown.splitlines() and str(path) not in shown


def output(work, script):
    """Returns the output of a script in the sandbox."""
    path = work.script("probe", script)
    work.file("a.foo", "content")
    work.index(foo([str(path), "%f"]))
    assert "a.foo" not in work.failures(), work.failures()
    shown = windrow("search", "ext:foo", "--json", "--show-text", "--data", work.folder / "data")
    return shown.stdout


@needs_sandbox
def test_other_files_are_out_of_reach(work):
    secret = work.file("secret.txt", "hiddenword")
    target = work.folder / "written"
    path = work.script("probe", f"""#!/bin/sh
cat "$1"; cat {secret} && echo stolen; ls {work.folder}/files && echo listed
echo x > {target} && echo written; echo x >> "$1" && echo appended; rm "$1" && echo removed
mv "$1" {target}; touch /usr/windrow-test && echo system; kill -0 $PPID && echo signalled
echo x > own && cat own && pwd | grep -q windrow-converter && echo privatework
""")
    work.file("a.foo", "innocent")
    work.index(foo([str(path), "%f"]))
    assert work.found("innocent privatework") == ["a.foo"]
    for word in ("stolen", "listed", "written", "appended", "removed", "system"):
        assert work.found(word) == [], word
    assert work.found("hiddenword") == ["secret.txt"]
    assert not target.exists() and (work.folder / "files/a.foo").read_text() == "innocent"


@needs_sandbox
def test_sockets_and_other_processes_are_out_of_reach(work):
    path = work.script("probe", """#!/usr/bin/env python3
import ctypes, os, socket
def attempt(name, call):
    try:
        call()
        print(name, "succeeded")
    except OSError as error:
        print(name, "refused", error.errno)
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    attempt(family.name, lambda: socket.socket(family))
attempt("setsid", os.setsid)
attempt("setpgid", lambda: os.setpgid(0, 0))
attempt("ptrace", lambda: call(101, 16, os.getppid(), 0, 0))
attempt("unshare", lambda: call(272, 0x10000000))
attempt("parent", lambda: os.kill(os.getppid(), 0))
attempt("environ", lambda: open(f"/proc/{os.getppid()}/environ").read())
print("variables", "SECRET" in os.environ, os.environ["HOME"] == os.getcwd())
""")
    work.file("a.foo")
    os.environ["SECRET"] = "x"
    try:
        work.index(foo([str(path), "%f"]))
    finally:
        del os.environ["SECRET"]
    assert work.failures() == "" or "a.foo" not in work.failures(), work.failures()
    assert work.found("variables") == ["a.foo"] and work.found('"variables False True"') == ["a.foo"]
    assert work.found("succeeded") == []


def without_landlock():
    """Simulates a kernel without Landlock: a seccomp filter makes its system calls fail with ENOSYS."""
    libc = ctypes.CDLL(None, use_errno=True)
    allow, absent = 0x7FFF0000, 0x00050000 | 38
    program = b"".join(struct.pack("<HBBI", *step) for step in [
        (0x20, 0, 0, 0),  # the number of the call
        (0x35, 0, 2, 444), (0x25, 1, 0, 446),  # landlock_create_ruleset to landlock_restrict_self
        (0x06, 0, 0, absent), (0x06, 0, 0, allow)])
    code = ctypes.create_string_buffer(program)
    filter = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0


@needs_sandbox
@pytest.mark.parametrize("sandbox", ["best-effort", "required"])
def test_the_sandbox_can_be_required(work, sandbox):
    path = work.script("x", UPPER)
    work.file("a.foo", "walrus")
    config = f'sandbox = "{sandbox}"\n' + foo([str(path), "%f"])
    work.index(config, preexec_fn=without_landlock)
    shown = windrow("status", "--data", work.folder / "data", preexec_fn=without_landlock).stdout
    assert "Sandbox      incomplete: no Landlock" in shown
    doctor = windrow("doctor", "--config", work.folder / "index.toml", preexec_fn=without_landlock)
    if sandbox == "required":
        assert work.found("walrus") == [] and "the kernel has no Landlock" in work.failures()
        assert doctor.returncode == 1 and "problem  sandbox" in doctor.stdout
    else:
        assert work.found("walrus") == ["a.foo"]
        assert doctor.returncode == 0 and "warning  sandbox" in doctor.stdout
    # With sandbox support, the failure is retried.
    work.index(config, "--retry")
    assert work.found("walrus") == ["a.foo"]
    assert "Sandbox" not in windrow("status", "--data", work.folder / "data").stdout


PERSISTENT = """#!/usr/bin/env python3
import os, sys, time
def read():
    parameters = {}
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\\n":
            return parameters
        name, size = line.split()
        parameters[name.rstrip(b":").decode()] = sys.stdin.buffer.read(int(size)).decode()
def answer(**fields):
    for name, value in fields.items():
        value = value.encode()
        sys.stdout.buffer.write(b"%s: %d\\n" % (name.encode(), len(value)) + value)
    sys.stdout.buffer.write(b"\\n")
    sys.stdout.buffer.flush()
files = 0
while True:
    parameters = read()
    if parameters["filename"]:
        files += 1
        text = open(parameters["filename"]).read()
        part = 0
    part += 1
    if text == "hang":
        time.sleep(1000)
    elif text == "end":
        sys.exit("no colour")
    elif text == "garbage":
        print("hello", flush=True)
    elif text == "bad":
        answer(Fileerror="")
    elif text == "endless":
        answer(Document="x", Ipath=str(part), Mimetype="text/plain")
    elif text == "missing":
        print("RECFILTERROR HELPERNOTFOUND unfoo", flush=True)
    elif text == "parts" and part == 2:
        answer(Subdocerror="")
    elif text == "parts":
        answer(Document="partword %d" % part, Ipath="%d.txt" % part, **({"Eofnext": ""} if part == 3 else {}))
    else:
        answer(Document="<p>wholeword %s file%d</p>" % (text, files), title="Heading", author="Ada", Eofnext="")
"""


def test_a_persistent_converter_reads_file_after_file(work):
    path = work.script("persist", PERSISTENT)
    for name in ("a1", "a2", "a3"):
        work.file(f"{name}.foo", name)
    work.file("parts.foo", "parts")
    work.index("workers = 1\n" + foo([str(path)], "persistent = true"))
    assert sorted(work.found("wholeword")) == ["a1.foo", "a2.foo", "a3.foo"]
    assert work.found("wholeword file3") == ["a3.foo"]
    assert work.document("a2")["title"] == "Heading"
    assert sorted(work.found("partword")) == ["parts.foo/!/1.txt", "parts.foo/!/3.txt"]


def test_a_persistent_converter_that_breaks_is_started_again(work):
    path = work.script("persist", PERSISTENT)
    for name in ("hang", "end", "garbage", "bad", "endless", "missing"):
        work.file(f"{name}.foo", name)
        work.file(f"{name}-after.foo", "after")
    work.index("workers = 1\n" + foo([str(path)], "persistent = true").replace("timeout = 5", "timeout = 2")
               + "[limits]\narchive-members = 100\n")
    failures = work.failures()
    for name, reason in [("hang", "longer than 2 s"), ("end", "it ended before its answer: no colour"), ("garbage", "protocol"),
                         ("bad", "cannot read the file"), ("endless", "more than 100 documents"),
                         ("missing", "missing converter unfoo for application/x-foo")]:
        line = next(line for line in failures.splitlines() if f"/{name}.foo" in line)
        assert reason in line, failures
    assert len(work.found("wholeword after")) == 6


def test_a_handler_of_recoll_can_be_used(work):
    handler = pathlib.Path("/usr/share/recoll/filters/rcldia.py")
    info = handler.with_name("rclinfo.py")
    if not info.exists() or not os.path.exists("/usr/bin/python3"):
        pytest.skip("Recoll is not installed")
    work.file("a.myarc", tree.archive({"x/inner.txt": "zippedword"}))
    work.index(f"""
[convert."application/x-myarc"]
command = ["python3", "{handler.with_name('rclzip.py')}"]
extensions = ["myarc"]
persistent = true
""")
    assert work.found("zippedword") == ["a.myarc/!/x/inner.txt"], work.failures()


def test_the_time_of_all_programs_of_a_file_is_limited(work):
    path = work.script("slow", "#!/bin/sh\nsleep 1\necho slowword\n")
    work.file("box.zip", tree.archive({f"{number}.foo": "x" for number in range(8)}))
    work.index(foo([str(path), "%f"]) + "[limits]\nprogram-seconds = 3\nseconds = 2\n")
    assert len(work.found("slowword")) in (1, 2)
    assert "the programs of the file took longer than 3 s" in work.failures()


def test_a_slow_converter_may_take_longer_than_a_file(work):
    path = work.script("slow", "#!/bin/sh\nsleep 4\necho slowword\n")
    work.file("a.foo")
    work.index(foo([str(path), "%f"]) + "[limits]\nseconds = 1\n")
    assert work.found("slowword") == ["a.foo"], work.failures()


def test_other_commands_work_while_files_are_read(work):
    path = work.script("slow", "#!/bin/sh\nsleep 4\necho slowword\n")
    work.file("first.txt", "firstword")
    config = foo([str(path), "%f"])
    work.index(config)
    work.file("a.foo")
    more = work.folder / "more"
    tree.write(more, "second.txt", "secondword")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        slow = threads.submit(work.index, config)
        address = work.folder / "data/server.json"
        end = time.monotonic() + 20
        while not address.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert work.found("firstword") == ["first.txt"]
        # Other users of the machine cannot read the files.
        with pymongo.MongoClient(f"mongodb://{json.loads(address.read_text())['address']}/?directConnection=true") as client:
            with pytest.raises(OperationFailure) as refused:
                client.files.documents.find_one()
            assert refused.value.code == 13
            with pytest.raises(OperationFailure) as refused:
                client.admin.command("createUser", "eve", pwd="x", roles=["root"])
            assert refused.value.code == 13
        ended = windrow("index", more, "--data", work.folder / "data")
        assert ended.returncode == 0, ended.stderr
        assert work.found("secondword") and not work.found("slowword") and not slow.done()
        assert "1 new," in slow.result()
    assert not address.exists()
    assert work.found("slowword") == ["a.foo"], work.failures()
    assert work.found("firstword") == ["first.txt"]


def test_private_folders_are_removed(work):
    path = work.script("litter", '#!/bin/sh\nmkdir -p a/b; echo x > a/b/c; cat "$1"\n')
    work.file("box.zip", tree.archive({"a.foo": "litterword"}))
    temporary = work.folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    try:
        work.index(foo([str(path), "%f"]))
    finally:
        del os.environ["TMPDIR"]
    assert work.found("litterword") and list(temporary.iterdir()) == []
    # Including those of a converter that still runs at the end.
    persistent = work.script("persist", PERSISTENT)
    os.environ["TMPDIR"] = str(temporary)
    try:
        work.index(foo([str(persistent)], "persistent = true"))
    finally:
        del os.environ["TMPDIR"]
    assert work.found("wholeword") and list(temporary.iterdir()) == []


def test_a_server_marks_the_files_of_a_changed_converter(work):
    path = work.script("x", UPPER)
    work.file("a.foo", "walrus")
    work.file("box.zip", tree.archive({"b.foo": "walrus", "c.txt": "y"}))
    work.file("d.txt")
    with Server(work.folder):
        work.index("")
        assert "2 changed" in work.index(foo([str(path), "%f"]))
        assert "0 files" in work.index(foo([str(path), "%f"]))
        assert len(work.found("walrus")) == 2


@pytest.mark.parametrize("program, media_type, extension, make", [
    ("djvutxt", "image/vnd.djvu", "djvu", ["c44", "{ppm}", "{out}"]),
    ("ps2ascii", "application/postscript", "ps", None),
])
def test_usual_converters_work(work, program, media_type, extension, make):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    if make is None:
        work.file(f"a.{extension}", "%!PS-Adobe-3.0\n/Helvetica findfont 20 scalefont setfont\n"
                  "100 500 moveto (quillword) show showpage\n")
    else:
        ppm = work.folder / "a.ppm"
        ppm.write_bytes(b"P6 40 40 255\n" + bytes(40 * 40 * 3))
        out = work.folder / f"files/a.{extension}"
        subprocess.run([word.format(ppm=ppm, out=out) for word in make], check=True, capture_output=True)
        text = '(page 0 0 40 40 "quillword")'
        (work.folder / "text").write_text(text)
        subprocess.run(["djvused", out, "-e", f"select 1; set-txt {work.folder}/text; save"], check=True)
    work.index(f'[convert."{media_type}"]\ncommand = ["{program}", "%f"]\nextensions = ["{extension}"]\n')
    assert work.found("quillword") == [f"a.{extension}"], work.failures()


@pytest.mark.parametrize("lines, expected", [
    ('[convert."x"]\ncommand = ["a", "%f"]', "media type"),
    ('[convert."a/b"]\ncommand = ["a"]', "%f is missing"),
    ('[convert."a/b"]\ncommand = ["a", "%q", "%f"]', "%q is not known"),
    ('[convert."a/b"]\nextensions = ["a"]', "command"),
    ('[ocr]\nlanguages = ["e n"]', "ocr.languages"),
    ('sandbox = "none"', "sandbox"),
])
def test_wrong_settings_are_reported(tmp_path, lines, expected):
    (tmp_path / "index.toml").write_text(lines)
    ended = windrow("config", "check", "--config", tmp_path / "index.toml")
    assert ended.returncode == 1 and expected in ended.stderr, ended.stderr
