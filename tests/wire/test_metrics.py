"""The page of metrics: its format, its values, its access control, and Prometheus itself."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import debian
from windrow_server import Server, free_port

SAMPLE = re.compile(r'^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? ([-+0-9.e]+|\+Inf|NaN)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def read(port, token=None, path="/metrics"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.read().decode()


def parse(text):
    """`{(name, labels): value}`. Fails if a line is malformed, a sample comes twice, or its family is
    not the one before it."""
    samples, families, family = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in families and len(line.split()) > 3, line
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family
            families[family] = line.split()[3]
        else:
            found = SAMPLE.match(line)
            assert found, line
            name, labels, value = found.groups()
            suffixes = ["_bucket", "_sum", "_count"] if families[family] == "histogram" else [""]
            assert name in [family + suffix for suffix in suffixes], line
            key = (name, tuple(sorted(LABEL.findall(labels or ""))))
            assert key not in samples, line
            samples[key] = float(value)
    return samples


def value(samples, name, **labels):
    return samples[(name, tuple(sorted(labels.items())))]


@pytest.fixture
def server(tmp_path):
    port = free_port()
    with Server(tmp_path, options=["--metrics-listen", f"127.0.0.1:{port}"]) as started:
        started.metrics_port = port
        yield started


def test_operations_are_counted(server):
    before = parse(read(server.metrics_port))
    collection = server.client().shop['a "quoted" name\\']
    collection.create_index("n")
    collection.insert_many({"_id": n, "n": n} for n in range(500))
    for n in range(20):
        collection.find_one({"n": n})
    collection.delete_many({"n": {"$lt": 100}})
    with pytest.raises(Exception):
        server.client().shop.command("aggregate", 1, pipeline=[{"$nothing": {}}], cursor={})
    after = parse(read(server.metrics_port))

    def grown(name, **labels):
        key = (name, tuple(sorted(labels.items())))
        return after[key] - before.get(key, 0)

    assert grown("windrow_operations_total", kind="insert") == 500
    assert grown("windrow_operations_total", kind="query") == 20
    assert grown("windrow_commands_total", command="find") == 20
    assert grown("windrow_commands_failed_total", command="aggregate") == 1
    assert grown("windrow_documents_total", action="inserted") == 500
    assert grown("windrow_documents_total", action="deleted") == 100
    assert grown("windrow_command_duration_seconds_count", command="find") == 20
    assert grown("windrow_command_duration_seconds_bucket", command="find", le="+Inf") == 20
    assert 0 < grown("windrow_command_duration_seconds_sum", command="find") < 20
    assert grown("windrow_network_bytes_total", direction="in") > 10_000
    names = {"database": "shop", "collection": 'a \\"quoted\\" name\\\\'}
    assert value(after, "windrow_collection_documents", **names) == 400
    assert value(after, "windrow_collection_duration_seconds_count", **names, **{"class": "reads"}) == 20
    assert value(after, "windrow_index_bytes", **names, index="n_1") > 0
    assert value(after, "windrow_connections", state="active") + value(after, "windrow_connections", state="idle") >= 1
    assert value(after, "windrow_data_folder_bytes", kind="log") > 0
    assert value(after, "windrow_log_written_position") >= value(after, "windrow_log_synced_position") > 0
    assert value(after, "process_resident_memory_bytes") > 1 << 20
    assert value(after, "windrow_disk_free_bytes") > 0


def test_histograms_are_cumulative(server):
    server.client().a.b.insert_one({})
    samples = parse(read(server.metrics_port))
    series = {}
    for (name, labels), count in samples.items():
        if name.endswith("_bucket"):
            rest = tuple(label for label in labels if label[0] != "le")
            bound = float(dict(labels)["le"])
            series.setdefault((name, rest), []).append((bound, count))
    assert len(series) > 5
    for (name, labels), buckets in series.items():
        counts = [count for _, count in sorted(buckets)]
        assert counts == sorted(counts), (name, labels)
        total = samples[(name.replace("_bucket", "_count"), labels)]
        assert counts[-1] == total, (name, labels)


def test_readers_need_the_token(tmp_path):
    token, port = tmp_path / "token", free_port()
    token.write_text("a-long-token\n")
    token.chmod(0o600)
    options = ["--metrics-listen", f"127.0.0.1:{port}", "--metrics-token-file", str(token)]
    with Server(tmp_path, options=options):
        assert "windrow_build_info" in read(port, "a-long-token")
        for wrong in [None, "a-long-toke", "another"]:
            with pytest.raises(urllib.error.HTTPError) as error:
                read(port, wrong)
            assert error.value.code == 401
    with pytest.raises(RuntimeError, match="need a token"):
        Server(tmp_path / "open", options=["--metrics-listen", f"0.0.0.0:{port}"])
    token.chmod(0o644)
    with pytest.raises(RuntimeError, match="its mode is 644"):
        Server(tmp_path / "readable", options=options)


def test_only_metrics_are_served(server):
    for path in ["/", "/metrics/", "/../metrics", "/metrics/../../etc/passwd"]:
        with pytest.raises(urllib.error.HTTPError) as error:
            read(server.metrics_port, path=path)
        assert error.value.code == 404, path


def test_prometheus_accepts_the_page(server):
    promtool = debian.program("prometheus", "usr/bin/promtool")
    server.client().shop.fruit.insert_one({"name": "apple"})
    checked = subprocess.run([promtool, "check", "metrics"], input=read(server.metrics_port),
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_prometheus_scrapes_the_server(server, tmp_path):
    prometheus = debian.program("prometheus", "usr/bin/prometheus")
    port = free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(f"""
scrape_configs:
  - job_name: windrow
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{{targets: ["127.0.0.1:{server.metrics_port}"]}}]
""")
    server.client().shop.fruit.insert_many({"_id": n} for n in range(30))
    command = [prometheus, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'series'}",
               f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/api/v1/query?query=windrow_collection_documents"
        deadline, found = time.monotonic() + 60, []
        while not found and time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    found = json.load(answer)["data"]["result"]
            except (urllib.error.URLError, ConnectionError):
                pass
        counts = {one["metric"]["collection"]: one["value"][1] for one in found}
        assert counts.get("fruit") == "30"
    finally:
        process.terminate()
        process.wait()


def test_the_exporter_reads_server_status(tmp_path):
    """prometheus-mongodb-exporter of Debian reads `serverStatus`."""
    exporter = debian.program("prometheus-mongodb-exporter", "usr/bin/prometheus-mongodb-exporter")
    with Server(tmp_path) as server:
        server.client().shop.fruit.insert_many({"_id": n} for n in range(30))
        port = free_port()
        command = [exporter, f"-web.listen-address=127.0.0.1:{port}", "-mongodb.uri",
                   f"mongodb://127.0.0.1:{server.port}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline, text = time.monotonic() + 30, ""
            while "mongodb_op_counters_total" not in text and time.monotonic() < deadline:
                time.sleep(0.2)
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                        text = answer.read().decode()
                except (urllib.error.URLError, ConnectionError):
                    pass
            assert 'mongodb_op_counters_total{type="insert"} 30' in text
            assert "mongodb_connections" in text
        finally:
            process.terminate()
            process.wait()
