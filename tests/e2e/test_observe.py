"""What an operator sees: the log, its lines for requests, and what never stands in it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import httpx
import pytest

from conftest import GGUF, TESSERA, Served, free_port, start_server, tessera

SECRET = "XyzzySentinel"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(scope="module", params=["json", "text"])
def logging(request: pytest.FixtureRequest, cache: Path,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Served]]:
    """A server of its own that logs everything."""
    server = start_server(tmp_path_factory.mktemp("observe") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2", "--log-format", request.param,
                          "--log-level", "trace", "--api-key", "key-" + SECRET)
    yield request.param, server
    server.process.terminate()
    assert server.process.wait(30) == 0, server.log.read_text()


def call(server: Served, path: str, body: Any, method: str = "POST",
         **headers: str) -> httpx.Response:
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return httpx.request(method, server.url + path, content=content, timeout=60,
                         headers={"authorization": "Bearer key-" + SECRET,
                                  "content-type": "application/json", **headers})


def records(server: Served) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def await_line(server: Served, request_id: str, count: int = 1) -> list[str]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [line for line in server.log.read_text().splitlines()
                 if request_id in line and "request_id" in line]
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"no line of {request_id}:\n" + server.log.read_text()[-3000:])


CHAT = [{"role": "user", "content": f"Repeat the word {SECRET} twice."}]
CALLS = {
    "completions": ("/v1/completions", {"prompt": SECRET + " " + SECRET, "max_tokens": 8}),
    "completion-stream": ("/v1/completions", {"prompt": SECRET, "max_tokens": 8, "stream": True}),
    "echo": ("/v1/completions", {"prompt": SECRET, "max_tokens": 4, "echo": True, "logprobs": 1}),
    "chat": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 16}),
    "chat-stream": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 16, "stream": True}),
    "tools": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 16, "tools": [
        {"type": "function", "function": {"name": SECRET, "parameters": {"type": "object"}}}]}),
    "messages": ("/v1/messages", {"messages": CHAT, "max_tokens": 16, "system": SECRET}),
    "messages-stream": ("/v1/messages", {"messages": CHAT, "max_tokens": 16, "stream": True}),
    "count-tokens": ("/v1/messages/count_tokens", {"messages": CHAT}),
    "responses": ("/v1/responses", {"input": SECRET, "max_output_tokens": 16,
                                    "instructions": SECRET}),
    "responses-stream": ("/v1/responses", {"input": SECRET, "max_output_tokens": 16,
                                           "stream": True}),
    "generate": ("/generate", {"text": SECRET, "sampling_params": {"max_completion_tokens": 8}}),
    "embeddings": ("/v1/embeddings", {"input": SECRET}),
    "tokenize": ("/tokenize", {"prompt": SECRET}),
    "apply-template": ("/apply-template", {"messages": CHAT}),
    "guided": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8,
                                        "guided_choice": [SECRET, "other"]}),
    # Errors: what is wrong is the client's to know, and nobody's to log.
    "not-json": ("/v1/completions", '{"prompt": "' + SECRET),
    "bad-field": ("/v1/completions", {"prompt": {"x": SECRET}}),
    "bad-value": ("/v1/chat/completions", {"messages": CHAT, "tool_choice": SECRET}),
    "unknown-field": ("/v1/completions", {"prompt": SECRET, SECRET: SECRET, "max_tokens": 1}),
    "strict": ("/v1/completions", {"prompt": SECRET, SECRET: SECRET, "strict": True}),
    "bad-role": ("/v1/chat/completions", {"messages": [{"role": SECRET, "content": SECRET}]}),
    "bad-schema": ("/v1/chat/completions", {"messages": CHAT, "guided_json": {"$ref": SECRET}}),
    "bad-regex": ("/v1/completions", {"prompt": SECRET, "guided_regex": "(" + SECRET}),
    "bad-message": ("/v1/messages", {"messages": [{"role": "user", "content": {SECRET: 1}}],
                                     "max_tokens": 1}),
    "bad-response": ("/v1/responses", {"input": [{"type": SECRET}]}),
    "bad-generate": ("/generate", {"text": [SECRET, 1]}),
    "wrong-model": ("/v1/completions", {"model": SECRET, "prompt": SECRET}),
    "too-long": ("/v1/completions", {"prompt": SECRET * 9000, "max_tokens": 1}),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_that_was_said_is_logged(logging: tuple[str, Served], name: str) -> None:
    _, server = logging
    path, body = CALLS[name]
    if isinstance(body, dict):
        body = {"model": "smollm2", **body}
    reply = call(server, path, body, **{"x-request-id": "req-" + name})
    assert reply.status_code in (200, 400, 404, 422), reply.text
    await_line(server, "req-" + name)
    assert SECRET not in server.log.read_text(), name


def test_a_wrong_key_is_not_logged(logging: tuple[str, Served]) -> None:
    _, server = logging
    reply = call(server, "/v1/models", "", method="GET",
                 **{"authorization": "Bearer wrong" + SECRET, "x-request-id": "wrong-key"})
    assert reply.status_code == 401
    await_line(server, "wrong-key")
    assert SECRET not in server.log.read_text()


def test_a_line_tells_what_the_request_took(logging: tuple[str, Served]) -> None:
    form, server = logging
    body = {"model": "smollm2", "prompt": "Rivers are", "max_tokens": 5, "ignore_eos": True}
    reply = call(server, "/v1/completions", body, **{"x-request-id": "tells",
                                                     "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    usage = reply.json()["usage"]
    assert reply.headers["traceresponse"].startswith(f"00-{TRACE}-")
    line, = await_line(server, "tells")
    if form == "text":
        time_stamp, level, component, rest = line.split(" ", 3)
        assert RFC3339.fullmatch(time_stamp) and (level, component) == ("info", "http:")
        found: dict[str, Any] = dict(word.split("=", 1) for word in shlex.split(rest)[1:])
        found = {key: json.loads(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value
                 for key, value in found.items()}
    else:
        found = json.loads(line)
        assert RFC3339.fullmatch(found["time"])
        assert (found["level"], found["component"], found["message"]) == ("info", "http", "request")
    assert found["request_id"] == "tells" and found["trace_id"] == TRACE
    assert found["method"] == "POST" and found["path"] == "/v1/completions"
    assert found["status"] == 200 and found["finish_reason"] == "length"
    assert found["prompt_tokens"] == usage["prompt_tokens"]
    assert found["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]
    assert found["output_tokens"] == usage["completion_tokens"] == 5
    assert 0 <= found["queue_ms"] < found["ttft_ms"] < found["e2e_ms"] < 60_000


def test_each_request_has_one_line(logging: tuple[str, Served]) -> None:
    _, server = logging
    for number in range(20):
        call(server, "/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 1},
             **{"x-request-id": f"one-of-{number:02}-"})
    await_line(server, "one-of-19-")
    for number in range(20):
        assert len(await_line(server, f"one-of-{number:02}-")) == 1


def test_no_request_can_forge_a_line(logging: tuple[str, Served]) -> None:
    form, server = logging
    forged = "/x%0A2026-01-01T00:00:00.000Z error http: forged%1B[2J%C2%9B"
    with httpx.Client() as client:
        reply = client.get(server.url + forged, headers={"x-request-id": "forger"})
    assert reply.status_code in (400, 404)
    call(server, "/v1/requests/a%C2%85b%E2%80%A8c", "", method="DELETE",
         **{"x-request-id": "deleter"})
    await_line(server, "deleter")
    text = server.log.read_bytes()
    assert b"\x1b" not in text and "\u0085".encode() not in text and "\u2028".encode() not in text
    for line in text.decode().splitlines():
        assert not line.startswith("2026-01-01T00:00:00.000Z error http: forged")
        if form == "json":
            json.loads(line)


def test_json_is_all_there_is(logging: tuple[str, Served]) -> None:
    form, server = logging
    if form != "json":
        assert "listening on" in server.log.read_text()
        return
    for record in records(server):
        assert RFC3339.fullmatch(record["time"]) and record["level"] in {
            "trace", "debug", "info", "warn", "error"}
        assert isinstance(record["component"], str) and isinstance(record["message"], str)
    assert any("listening on" in record["message"] for record in records(server))


def test_usage_errors_are_json_too(tmp_path: Path) -> None:
    done = tessera("--log-format", "json", "inspect", tmp_path / "nothing.gguf")
    assert done.returncode == 1
    record, = [json.loads(line) for line in done.stderr.splitlines()]
    assert "nothing.gguf" in record["message"]


def test_a_log_that_nobody_reads_stops_no_request(cache: Path) -> None:
    port = free_port()
    process = subprocess.Popen([str(TESSERA), "serve", str(GGUF), "--cache-dir", str(cache),
                                "--port", str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    server = Served(f"http://127.0.0.1:{port}", process, Path("/dev/null"))
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if server.get("/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        with httpx.Client(base_url=server.url, timeout=20) as client:
            for _ in range(1000):  # A pipe takes 64 KiB: a few hundred lines.
                assert client.get("/livez").status_code == 200
            lines: list[bytes] = []
            reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
            reader.start()
            while not any(b"lines were lost" in line for line in lines):
                assert client.get("/livez").status_code == 200 and time.monotonic() < deadline
    finally:
        process.terminate()
        assert process.wait(60) == 0
    reader.join()
    told, = [line for line in lines if b"lines were lost" in line]
    assert int(told.split(b"lines=")[1]) > 100
