"""Traces of commands, at a collector of OpenTelemetry."""

import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import threading
import time

import pymongo
import pytest

from windrow_server import Server, binary, free_port

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import certificates  # noqa: E402

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Takes spans over HTTP, or HTTPS with a certificate. `status` is the status of its answers,
    `pause` the seconds before them."""

    def __init__(self, port=0, certificate=None):
        self.spans, self.requests, self.status, self.pause = [], [], 200, 0
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(collector.pause)
                collector.requests.append((self.path, self.headers["Content-Type"], body))
                if collector.status == 200:
                    for resource in json.loads(body)["resourceSpans"]:
                        for scope in resource["scopeSpans"]:
                            collector.spans += scope["spans"]
                self.send_response(collector.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def options(self):
        return ["--otlp-endpoint", f"{self.scheme}://127.0.0.1:{self.port}"]

    def wait_for(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not (found := [span for span in list(self.spans) if condition(span)]):
            assert time.monotonic() < deadline, [span["name"] for span in self.spans]
            time.sleep(0.05)
        return found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.close()


def attributes(span):
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def counts(client):
    return client.admin.command("serverStatus")["windrow"]["traces"]


def test_a_command_is_a_span(tmp_path, collector):
    with Server(tmp_path, options=collector.options) as server:
        client = server.client(appname="shop")
        client.shop.orders.insert_one({"secret": 47114711471147})
        before = time.time_ns()
        client.shop.orders.find_one({"secret": 47114711471147, "name": "geheim"})
        [span] = collector.wait_for(lambda span: span["name"] == "find orders")
        path, content_type, _ = collector.requests[0]
        assert path == "/v1/traces" and content_type == "application/json"
        found = attributes(span)
        assert found.items() >= {
            "db.system.name": "mongodb", "db.namespace": "shop", "db.collection.name": "orders",
            "db.operation.name": "find", "server.address": "127.0.0.1",
            "server.port": str(server.port), "windrow.client.application": "shop",
            "windrow.plan_summary": "COLLSCAN"}.items()
        assert span["kind"] == 2 and "status" not in span and "parentSpanId" not in span
        assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert before - 10**9 < start < end < time.time_ns() + 10**9
        with pytest.raises(pymongo.errors.OperationFailure):
            client.shop.orders.find_one({"a": {"$foo": "geheim"}})
        [failed] = collector.wait_for(lambda span: "status" in span)
        assert failed["status"] == {"code": 2}
        assert attributes(failed)["error.type"] == "BadValue"
        assert attributes(failed)["db.response.status_code"] == "2"
        content = b"".join(body for _, _, body in collector.requests)
        assert b"geheim" not in content and b"47114711471147" not in content
        resource = json.loads(collector.requests[0][2])["resourceSpans"][0]["resource"]
        assert attributes(resource)["service.name"] == "windrow"
        assert len({span["traceId"] for span in collector.spans}) == len(collector.spans)


def test_a_comment_has_the_parent(tmp_path, collector):
    """The client decides whether a command is traced. A command without a parent is not."""
    options = [*collector.options, "--otlp-sample-rate", "0"]
    with Server(tmp_path, options=options) as server:
        c = server.client().shop.orders
        c.find_one({}, comment=f"00-{TRACE}-{SPAN}-01")
        c.insert_one({}, comment={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        c.find_one({}, comment=f"00-{TRACE}-{SPAN}-00")
        c.find_one({})
        c.find_one({}, comment="a comment")
        assert server.stop() == 0
    assert [(span["traceId"], span["parentSpanId"]) for span in collector.spans] == [
        (TRACE, SPAN)] * 2
    assert sorted(span["name"] for span in collector.spans) == ["find orders", "insert orders"]
    assert len({span["spanId"] for span in collector.spans}) == 2


def test_spans_that_wait_are_sent_at_the_end(tmp_path, collector):
    with Server(tmp_path, options=collector.options) as server:
        client = server.client()
        for _ in range(1500):
            client.a.c.find_one()
        assert server.stop() == 0
    assert sum(span["name"] == "find c" for span in collector.spans) == 1500
    assert len(collector.requests) < 100


def test_a_collector_that_is_away(tmp_path):
    """Commands do not wait. Lost spans are counted, and the log has a line."""
    port = free_port()
    options = ["--otlp-endpoint", f"http://127.0.0.1:{port}", "--metrics-listen",
               f"127.0.0.1:{(metrics := free_port())}"]
    with Server(tmp_path, options=options) as server:
        client = server.client()
        began = time.monotonic()
        for _ in range(100):
            client.a.c.find_one()
        assert time.monotonic() - began < 2
        deadline = time.monotonic() + 20
        while not counts(client)["failed"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "The collector does not take traces" in server.log()
        page = subprocess.run(["curl", "-s", f"http://127.0.0.1:{metrics}/metrics"],
                              capture_output=True, text=True, check=True).stdout
        assert 'windrow_trace_spans_total{outcome="failed"}' in page
        collector = Collector(port)
        try:
            client.a.back.find_one()
            collector.wait_for(lambda span: span["name"] == "find back")
            deadline = time.monotonic() + 10
            while not counts(client)["exported"]:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert "The collector takes traces again" in server.log()
        finally:
            collector.close()


def test_a_slow_collector_drops_spans(tmp_path, collector):
    collector.pause = 5
    with Server(tmp_path, options=collector.options) as server:
        client = server.client()

        def load():
            connection = server.client()
            for _ in range(4000):
                connection.a.c.find_one()

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = counts(client)
        assert found["dropped"] > 0 and found["recorded"] >= 8192
        collector.pause = 0


def test_a_collector_that_refuses(tmp_path, collector):
    collector.status = 400
    with Server(tmp_path, options=collector.options) as server:
        client = server.client()
        client.a.c.find_one()
        deadline = time.monotonic() + 20
        while not counts(client)["failed"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "it answered 400" in server.log()


def test_an_encrypted_collector(tmp_path, monkeypatch):
    """Its certificate must be signed by an authority that the system or SSL_CERT_FILE names."""
    folder = certificates.make(tmp_path / "tls")
    collector = Collector(certificate=folder / "server.pem")
    try:
        with Server(tmp_path / "stranger", options=collector.options) as server:
            client = server.client()
            client.a.c.find_one()
            deadline = time.monotonic() + 20
            while not counts(client)["failed"]:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert "invalid peer certificate" in server.log()
        assert not collector.requests
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
        with Server(tmp_path / "friend", options=collector.options) as server:
            server.client().a.c.find_one()
            collector.wait_for(lambda span: span["name"] == "find c")
    finally:
        collector.close()


@pytest.mark.parametrize("given, message", [
    (["--otlp-endpoint", "h:4318"], "not an endpoint"),
    (["--otlp-sample-rate", "2"], "not a number from 0 to 1"),
])
def test_wrong_options(tmp_path, given, message):
    command = [str(binary()), "serve", "--data", str(tmp_path / "data"), *given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and message in ended.stderr, ended.stderr


def test_without_an_endpoint_there_are_no_traces(tmp_path):
    with Server(tmp_path) as server:
        assert "traces" not in server.client().admin.command("serverStatus")["windrow"]
