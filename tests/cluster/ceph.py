"""A Ceph cluster on the loopback addresses: three monitors, three OSDs with three copies of each
object, and two gateways with the interface of S3. The programs are those of Debian's packages
ceph-mon, ceph-mgr, ceph-osd and radosgw."""

import datetime
import hashlib
import hmac
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from windrow_server import free_port

PROGRAMS = ["ceph", "ceph-authtool", "ceph-mon", "ceph-mgr", "ceph-osd", "monmaptool", "radosgw",
            "radosgw-admin"]
ACCESS_KEY, SECRET_KEY = "windrow", "windrow-secret"
MONITORS, OSDS, GATEWAYS = "abc", range(3), range(2)
START_SECONDS = 180

CONFIGURATION = """[global]
fsid = {fsid}
mon host = {monitors}
mon initial members = a,b,c
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
osd pool default size = 3
osd pool default min size = 2
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon osd adjust heartbeat grace = false
mon osd down out interval = 600
osd heartbeat grace = 6
osd heartbeat interval = 2
bluestore block size = 8589934592
bluestore block create = true
bluestore cache autotune = false
bluestore cache size = 134217728
run dir = {folder}/run
crash dir = {folder}/run
pid file = {folder}/run/$name.pid
admin socket = {folder}/run/$name.asok
log file = {folder}/$name.log
mon data = {folder}/mon.$id
osd data = {folder}/osd.$id
mgr data = {folder}/mgr.$id
keyring = {folder}/keyring
[osd.0]
public addr = 127.0.0.10
cluster addr = 127.0.0.10
[osd.1]
public addr = 127.0.0.11
cluster addr = 127.0.0.11
[osd.2]
public addr = 127.0.0.12
cluster addr = 127.0.0.12
[mgr]
public addr = 127.0.0.1
"""


def missing_programs():
    return [program for program in PROGRAMS if shutil.which(program) is None]


class Ceph:
    """The daemons by name: mon.a, mgr.x, osd.0, rgw.0 and so on."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        (self.folder / "run").mkdir(parents=True)
        self.processes = {}
        self.commands = {}
        self.gateway_ports = [free_port() for _ in GATEWAYS]
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, *command, check=True, seconds=60):
        """Runs a program of Ceph and returns its output."""
        ended = subprocess.run([*command, "-c", str(self.folder / "ceph.conf")], timeout=seconds,
                               capture_output=True, text=True, cwd=self.folder)
        if check and ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {ended.stderr}")
        return ended

    def start_all(self):
        fsid, ports = str(uuid.uuid4()), (free_port(), free_port())
        addresses = {name: f"[v2:127.0.0.{number + 1}:{ports[0]}/0,v1:127.0.0.{number + 1}:{ports[1]}/0]"
                     for number, name in enumerate(MONITORS)}
        (self.folder / "ceph.conf").write_text(CONFIGURATION.format(
            fsid=fsid, folder=self.folder, monitors=" ".join(addresses.values())))
        self.make_keys()
        self.start_monitors(fsid, addresses)
        (self.folder / "mgr.x").mkdir()
        self.start("mgr.x", "ceph-mgr", "-i", "x")
        for osd in OSDS:
            self.create_osd(osd)
        for number in GATEWAYS:
            self.start(f"rgw.{number}", "radosgw", "-n", f"client.rgw.{number}", "--rgw-frontends",
                       f"beast endpoint=127.0.0.1:{self.gateway_ports[number]} tcp_nodelay=1")
        for number in GATEWAYS:
            self.wait_for_gateway(number)
        self.run("radosgw-admin", "user", "create", "--uid=windrow", "--display-name=windrow",
                 f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}")

    def make_keys(self):
        names = ["mon.", "client.admin", "mgr.x", *(f"client.rgw.{it}" for it in GATEWAYS),
                 *(f"osd.{it}" for it in OSDS)]
        for number, name in enumerate(names):
            create = ["--create-keyring"] if number == 0 else []
            subprocess.run(["ceph-authtool", *create, str(self.folder / "keyring"), "--gen-key",
                            "-n", name, "--cap", "mon", "allow *", "--cap", "osd", "allow *",
                            "--cap", "mgr", "allow *"], check=True, capture_output=True)

    def start_monitors(self, fsid, addresses):
        monmap = str(self.folder / "monmap")
        added = [part for name, address in addresses.items() for part in ("--addv", name, address)]
        subprocess.run(["monmaptool", "--create", "--clobber", "--fsid", fsid, *added, monmap],
                       check=True, capture_output=True)
        for name in MONITORS:
            (self.folder / f"mon.{name}").mkdir()
            self.run("ceph-mon", "--mkfs", "-i", name, "--keyring", str(self.folder / "keyring"),
                     "--monmap", monmap)
            self.start(f"mon.{name}", "ceph-mon", "-i", name)
        self.wait_until("the monitors have a quorum", self.has_quorum)

    def has_quorum(self):
        try:
            return self.run("ceph", "--connect-timeout", "3", "-s", check=False,
                            seconds=10).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def create_osd(self, osd):
        name = str(uuid.uuid4())
        self.run("ceph", "osd", "new", name, str(osd))
        (self.folder / f"osd.{osd}").mkdir()
        self.run("ceph-osd", "-i", str(osd), "--mkfs", "--osd-uuid", name)
        self.start(f"osd.{osd}", "ceph-osd", "-i", str(osd))

    def wait_for_gateway(self, number):
        def answers():
            try:
                urllib.request.urlopen(self.endpoint(number), timeout=2).close()
                return True
            except urllib.error.HTTPError:
                return True
            except OSError:
                return False
        self.wait_until(f"gateway {number} answers", answers)

    def wait_until(self, what, check):
        deadline = time.monotonic() + START_SECONDS
        while not check():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    log = (self.folder / f"{name}.out").read_text()[-2000:]
                    raise RuntimeError(f"{name} has ended:\n{log}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"not in {START_SECONDS} s: {what}")
            time.sleep(0.5)

    def endpoint(self, gateway):
        return f"http://127.0.0.1:{self.gateway_ports[gateway]}"

    def create_bucket(self, name):
        """Creates a bucket by a request with a signature of version 4."""
        host = self.endpoint(0).removeprefix("http://")
        time_text = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        content = hashlib.sha256(b"").hexdigest()
        headers = {"host": host, "x-amz-content-sha256": content, "x-amz-date": time_text}
        lines = [f"{header}:{value}" for header, value in headers.items()]
        request = "\n".join(["PUT", f"/{name}", "", *lines, "", ";".join(headers), content])
        scope = f"{time_text[:8]}/us-east-1/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", time_text, scope,
                          hashlib.sha256(request.encode()).hexdigest()])
        key = b"AWS4" + SECRET_KEY.encode()
        for part in [*scope.split("/"), text]:
            key = hmac.digest(key, part.encode(), "sha256")
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, "
                                    f"SignedHeaders={';'.join(headers)}, Signature={key.hex()}")
        url = f"{self.endpoint(0)}/{name}"
        put = urllib.request.Request(url, method="PUT", headers=headers)
        urllib.request.urlopen(put, timeout=30).close()

    def start(self, name, *command):
        """Starts a daemon, or starts it again as before."""
        if command:
            self.commands[name] = [*command, "-f", "-c", str(self.folder / "ceph.conf")]
        with open(self.folder / f"{name}.out", "ab") as log:
            self.processes[name] = subprocess.Popen(
                self.commands[name], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=os.environ | {"CEPH_CONF": str(self.folder / "ceph.conf")})

    def kill(self, name):
        """Ends a daemon without warning."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self):
        for name in list(self.processes):
            self.kill(name)
