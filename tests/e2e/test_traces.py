"""Traces: spans of requests at a collector, and a server whose collector is dead."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator

import httpx
import pytest

from conftest import GGUF, Served, free_port, start_server, tessera

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SECRET = "XyzzySentinel"


class Collector(BaseHTTPRequestHandler):
    calls: list[tuple[str, str, dict[str, Any]]] = []

    def do_POST(self) -> None:  # noqa: N802 (the base class names it)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.calls.append((self.path, self.headers["content-type"], json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


def spans() -> list[dict[str, Any]]:
    return [span for _, _, body in Collector.calls for resource in body["resourceSpans"]
            for scope in resource["scopeSpans"] for span in scope["spans"]]


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span["attributes"]}


@pytest.fixture(scope="module")
def traced(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    server = start_server(tmp_path_factory.mktemp("traces") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2", "--otlp-endpoint",
                          f"http://127.0.0.1:{collector.server_port}")
    yield server
    if server.process.poll() is None:
        server.process.terminate()
        assert server.process.wait(30) == 0
    collector.shutdown()


def await_spans(trace: str, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [span for span in spans() if span["traceId"] == trace]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{count} spans of {trace} were expected: {spans()}")


@pytest.mark.parametrize("path,body,operation", [
    ("/v1/completions", {"prompt": SECRET}, "text_completion"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}]}, "chat"),
    ("/v1/messages", {"messages": [{"role": "user", "content": SECRET}]}, "chat"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_a_span_with_its_stages(traced: Served, path: str, body: dict[str, Any],
                                             operation: str, stream: bool) -> None:
    trace = f"{abs(hash((path, stream))):032x}"
    reply = traced.post(path, {"model": "smollm2", "max_tokens": 6, "stream": stream, **body},
                        headers={"traceparent": f"00-{trace}-{PARENT}-01",
                                 "tracestate": "vendor=1"})
    reply.raise_for_status()
    server, *stages = await_spans(trace, 4)
    assert reply.headers["traceresponse"] == f"00-{trace}-{server['spanId']}-01"
    assert server["name"] == f"POST {path}" and server["kind"] == 2
    assert server["parentSpanId"] == PARENT and server["traceState"] == "vendor=1"
    found = attributes(server)
    assert found["gen_ai.operation.name"] == operation
    assert found["gen_ai.request.model"] == "smollm2"
    assert int(found["gen_ai.usage.input_tokens"]) > 0
    assert 0 < int(found["gen_ai.usage.output_tokens"]) <= 6
    assert found["http.response.status_code"] == "200" and found["http.route"] == path
    assert [stage["name"] for stage in stages] == ["queue", "prefill", "decode"]
    at = int(server["startTimeUnixNano"])
    assert abs(at - time.time_ns()) < 60e9
    for stage in stages:
        assert stage["parentSpanId"] == server["spanId"]
        assert int(stage["startTimeUnixNano"]) == at
        at = int(stage["endTimeUnixNano"])
    assert at <= int(server["endTimeUnixNano"])
    assert SECRET not in json.dumps(spans())


def test_the_collector_gets_what_the_protocol_says(traced: Served) -> None:
    traced.get("/livez")
    await_spans(spans()[0]["traceId"] if spans() else "", 0)
    deadline = time.monotonic() + 20
    while not Collector.calls and time.monotonic() < deadline:
        time.sleep(0.05)
    path, content_type, body = Collector.calls[0]
    assert path == "/v1/traces" and content_type == "application/json"
    assert attributes(body["resourceSpans"][0]["resource"])["service.name"] == "tessera"


def test_what_the_caller_does_not_sample_is_not_sent(traced: Served) -> None:
    trace = "a" * 32
    traced.post("/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 1},
                headers={"traceparent": f"00-{trace}-{PARENT}-00"}).raise_for_status()
    later = "b" * 32
    traced.post("/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 1},
                headers={"traceparent": f"00-{later}-{PARENT}-01"}).raise_for_status()
    await_spans(later, 4)
    assert not [span for span in spans() if span["traceId"] == trace]


def test_the_last_spans_come_with_the_drain(traced: Served) -> None:
    trace = "c" * 32
    traced.post("/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 1},
                headers={"traceparent": f"00-{trace}-{PARENT}-01"}).raise_for_status()
    traced.process.terminate()
    assert traced.process.wait(30) == 0
    assert len(await_spans(trace, 4)) == 4


def test_a_dead_collector_costs_one_warning(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name",
                          "smollm2", "--otlp-endpoint", f"http://127.0.0.1:{free_port()}")
    try:
        with httpx.Client(base_url=server.url, timeout=20) as client:
            begin = time.monotonic()
            for _ in range(200):
                assert client.get("/livez").status_code == 200
            assert time.monotonic() - begin < 20
        deadline = time.monotonic() + 20
        while "otlp" not in server.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0
    warnings = [line for line in server.log.read_text().splitlines() if " otlp: " in line]
    assert len(warnings) == 1 and " warn " in warnings[0]


@pytest.mark.parametrize("url", ["https://localhost:4318", "localhost:4318", "http://:1"])
def test_a_wrong_address_is_one_sentence(url: str) -> None:
    done = tessera("serve", GGUF, "--port", str(free_port()), "--otlp-endpoint", url)
    assert done.returncode == 1
    line, = done.stderr.decode().splitlines()
    assert "--otlp-endpoint" in line and "http://" in line
