"""Clients that vanish: every other request is answered in full, and every page comes back."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path

import pytest

from conftest import GGUF, Served, start_server
from test_prefix_cache import metric

PLACES = 16


async def one(served: Served, number: int, leaves_after: float | None) -> str:
    """"left", or "answered" when all tokens came."""
    port = int(served.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    streams = number % 2 == 0
    body = json.dumps({"model": "smollm2", "prompt": "Word " * (1 + number % 40), "max_tokens": 4,
                       "ignore_eos": True, "stream": streams, "seed": number,
                       **({"stream_options": {"include_usage": True}} if streams else {})}).encode()
    try:
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        async with asyncio.timeout(leaves_after):
            answer = await reader.read()
    except TimeoutError:
        return "left"
    finally:
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert b'"completion_tokens":4' in answer, answer
    assert streams == (b"data: [DONE]" in answer), answer
    return "answered"


def check_requests(served: Served, count: int) -> None:
    rng = random.Random(count)
    before = metric_sum(served, "request_success_total")

    async def run() -> list[str]:
        places = asyncio.Semaphore(PLACES)

        async def with_place(number: int, leaves_after: float | None) -> str:
            async with places:
                return await one(served, number, leaves_after)

        return await asyncio.gather(*(
            with_place(i, rng.random() * 0.06 if rng.random() < 0.2 else None) for i in range(count)))

    outcomes = asyncio.run(run())
    left, answered = outcomes.count("left"), outcomes.count("answered")
    assert left + answered == count and left > count * 0.05
    deadline = time.monotonic() + 30
    while metric(served, "num_requests_running") + metric(served, "num_requests_waiting") > 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    counted = metric_sum(served, "request_success_total") - before
    assert answered <= counted <= count, "a request that was read ends once, in one way"
    assert metric(served, "kv_cache_usage_perc") == 0, "all pages are back"


def metric_sum(served: Served, name: str) -> float:
    lines = served.get("/metrics").text.split("\n")
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"tessera_{name}{{"))


@pytest.mark.parametrize("count", [
    1500, pytest.param(int(os.environ.get("TESSERA_REQUESTS", "10000")), marks=pytest.mark.long)])
def test_a_fifth_of_the_clients_vanishes_and_nothing_is_lost(cache: Path, tmp_path: Path,
                                                             count: int) -> None:
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name",
                          "smollm2", "--kv-memory", "48m", "--max-seq-len", "2048",
                          "--kv-disk", tmp_path / "kv")
    try:
        check_requests(server, count)
    finally:
        server.process.terminate()
        assert server.process.wait(60) == 0, server.log.read_text()
