"""Soak: minutes of mixed load with clients that vanish; nothing may grow, nothing may be lost.

`./check.sh --long` runs it for ten minutes; TESSERA_SOAK_SECONDS sets another length.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any, Iterator

import httpx
import pytest

from conftest import GGUF, Served, start_server

pytestmark = pytest.mark.long
SECONDS = float(os.environ.get("TESSERA_SOAK_SECONDS", "600"))
CLIENTS = 12


@pytest.fixture(scope="module")
def soaked(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of its own with little KV memory, so that pages run out and the cache is evicted."""
    server = start_server(tmp_path_factory.mktemp("soak") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2", "--kv-memory", "96m", "--max-batch", "8",
                          "--speculate", "ngram")
    yield server
    server.process.terminate()
    assert server.process.wait(60) == 0, server.log.read_text()


def metrics(served: Served) -> dict[str, float]:
    values: dict[str, float] = {}
    for line in served.get("/metrics").text.split("\n"):
        if line.startswith("tessera_") and "_bucket" not in line:
            name = line.split("{")[0].split(" ")[0]
            values[name] = values.get(name, 0) + float(line.rsplit(" ", 1)[1])
    return values


def resident_bytes(served: Served) -> int:
    pages = int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(served: Served) -> int:
    return len(os.listdir(f"/proc/{served.process.pid}/fd"))


def body_of(rng: random.Random) -> dict[str, Any]:
    words = ["river", "stone", "light", "cloud", "tree", "seven", "north", "quiet"]
    prompt = " ".join(rng.choice(words) for _ in range(rng.choice([3, 20, 150, 600])))
    body: dict[str, Any] = {"model": "smollm2", "prompt": prompt, "stream": rng.random() < 0.5,
                            "max_tokens": rng.choice([1, 8, 40]), "temperature": rng.choice([0, 1]),
                            "priority": rng.choice([0, 0, 0, -1, 2])}
    kind = rng.random()
    if kind < 0.08:
        body |= {"num_beams": 3, "n": 2, "temperature": 0, "max_tokens": 8}
    elif kind < 0.16 and not body["stream"]:
        body |= {"n": 2, "best_of": 3}
    elif kind < 0.24:
        body |= {"echo": True, "logprobs": 1}
    elif kind < 0.30:
        body |= {"timeout": 0.05}
    return body


async def one_client(url: str, number: int, until: float, counts: dict[str, int]) -> None:
    rng = random.Random(number)
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        while time.monotonic() < until:
            body = body_of(rng)
            counts["sent"] += 1
            if rng.random() < 0.2:  # Goes away in the middle.
                try:
                    await asyncio.wait_for(client.post("/v1/completions", json=body),
                                           rng.random() * 0.3)
                    counts["answered"] += 1
                except (asyncio.TimeoutError, httpx.HTTPError):
                    counts["left"] += 1
                continue
            answer = await client.post("/v1/completions", json=body)
            assert answer.status_code in (200, 504), answer.text
            assert answer.status_code == 200 or "timeout" in body
            counts["answered"] += 1


def test_minutes_of_load_leave_nothing_behind(soaked: Served) -> None:
    counts = {"sent": 0, "answered": 0, "left": 0}
    samples: list[tuple[float, int, int]] = []

    async def load(seconds: float) -> None:
        until = time.monotonic() + seconds
        clients = [asyncio.create_task(one_client(soaked.url, i, until, counts))
                   for i in range(CLIENTS)]
        begin = time.monotonic()
        while not all(task.done() for task in clients):
            await asyncio.sleep(1)
            samples.append((time.monotonic() - begin, resident_bytes(soaked), open_files(soaked)))
        await asyncio.gather(*clients)

    asyncio.run(load(SECONDS))
    assert counts["sent"] == counts["answered"] + counts["left"]
    assert counts["left"] > 0 and counts["answered"] > counts["left"]
    deadline = time.monotonic() + 30  # Those who left are gone within a step; sockets take longer.
    while time.monotonic() < deadline and metrics(soaked)["tessera_num_requests_running"] > 0:
        time.sleep(0.2)
    after = metrics(soaked)
    assert after["tessera_num_requests_running"] == 0 and after["tessera_num_requests_waiting"] == 0
    assert after["tessera_kv_cache_usage_perc"] == 0, "all pages are back"
    assert after["tessera_num_preemptions_total"] > 0, "pages did run out"
    # Memory is flat once everything has been touched: the second half against the first.
    half = len(samples) // 2
    first = max(rss for _, rss, _ in samples[half // 2:half])
    second = max(rss for _, rss, _ in samples[half:])
    assert second <= first * 1.03 + (8 << 20), f"{first} bytes, then {second}"
    assert max(files for _, _, files in samples) <= min(f for _, _, f in samples) + 4 * CLIENTS
    assert open_files(soaked) <= samples[0][2] + 2 * CLIENTS
    assert soaked.post("/v1/completions", {"model": "smollm2", "prompt": "x",
                                           "max_tokens": 1}).status_code == 200
