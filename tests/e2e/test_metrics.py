"""The metrics page from outside: what Prometheus' own checker says, memory by owner, the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import GGUF, ROOT, Served, start_server

PROMTOOL = shutil.which("promtool") or str(ROOT / ".cache/bin/promtool")
COMPAT = ["vllm", "tgi", "llamacpp", "sglang"]


@pytest.fixture(scope="module")
def measured(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of its own, with all names that there are."""
    server = start_server(tmp_path_factory.mktemp("metrics") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2", "--metrics-compat", ",".join(COMPAT))
    body = {"model": "smollm2", "prompt": "Rivers are long and " * 50, "max_tokens": 8}
    for _ in range(3):
        server.post("/v1/completions", body).raise_for_status()
    yield server
    server.process.terminate()
    assert server.process.wait(30) == 0, server.log.read_text()


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: Served) -> Samples:
    return {(sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(server.get("/metrics").text)
            for sample in family.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    found = [number for (key, has), number in samples.items()
             if key == name and set(labels.items()) <= has]
    assert found, name
    return sum(found)


def owners(samples: Samples) -> dict[str, float]:
    return {dict(labels)["owner"]: number for (name, labels), number in samples.items()
            if name == "tessera_memory_bytes"}


def test_promtool_finds_nothing(measured: Served) -> None:
    page = measured.get("/metrics").text
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, text=True,
                          capture_output=True, check=False)
    # Names of other servers are as they are; ours have to be right.
    ours = [line for line in (done.stdout + done.stderr).splitlines()
            if not line.startswith(("vllm:", "tgi_", "llamacpp:", "sglang:"))]
    assert ours == []


def test_promtool_finds_nothing_by_default(served: Served) -> None:
    page = "\n".join(line for line in served.get("/metrics").text.splitlines()
                     if not line.removeprefix("# HELP ").removeprefix("# TYPE ")
                     .startswith("vllm:")) + "\n"
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_promtool_takes_the_rules() -> None:
    done = subprocess.run([PROMTOOL, "check", "rules", ROOT / "deploy/prometheus/alerts.yml"],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_memory_by_owner_sums_to_what_is_resident(measured: Served) -> None:
    time.sleep(1.1)  # A reading may be a second old.
    samples = scrape(measured)
    parts = owners(samples)
    assert set(parts) == {"weights", "kv", "arena", "tokenizer", "code", "other"}
    assert all(part > 0 for part in parts.values())
    resident = value(samples, "process_resident_memory_bytes")
    assert sum(parts.values()) == pytest.approx(resident, rel=0.001)
    rollup = Path(f"/proc/{measured.process.pid}/smaps_rollup").read_text()
    seen = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:"))
    assert resident == pytest.approx(seen << 10, rel=0.02, abs=4 << 20)


def test_the_owners_are_what_they_say(measured: Served) -> None:
    maps = Path(f"/proc/{measured.process.pid}/smaps").read_text().splitlines()
    resident: dict[str, int] = {}
    name = ""
    for line in maps:
        first = line.split(maxsplit=5)
        if "-" in first[0] and not first[0].endswith(":"):
            name = first[5] if len(first) > 5 else ""
        elif first[0] == "Rss:":
            resident[name] = resident.get(name, 0) + (int(first[1]) << 10)
    parts = owners(scrape(measured))
    for owner, file in (("weights", "model.irpa"), ("tokenizer", "tokenizer.table")):
        mapped = sum(size for path, size in resident.items() if path.endswith("/" + file))
        assert parts[owner] == pytest.approx(mapped, rel=0.02), owner
    # Three runs of a prompt of some 250 tokens: the KV cache holds at least those.
    card = measured.get("/v1/models/smollm2").json()
    assert card["kv_cache_tokens"] > 0 and parts["kv"] > 200 * 30 * 2 * 3 * 64 * 2


def test_the_process_is_described(measured: Served) -> None:
    samples = scrape(measured)
    fds = len(os.listdir(f"/proc/{measured.process.pid}/fd"))
    assert abs(value(samples, "process_open_fds") - fds) <= 3
    assert value(samples, "process_max_fds") >= fds
    assert value(samples, "process_cpu_seconds_total") > 0
    assert 0 <= time.time() - value(samples, "process_start_time_seconds") < 600
    assert value(samples, "tessera_build_info") == 1
    assert value(samples, "tessera_load_seconds", phase="model") > 0
    assert value(samples, "tessera_load_seconds", phase="engine") > 0
    assert value(scrape(measured), "process_start_time_seconds") == value(
        samples, "process_start_time_seconds")


def test_http_answers_are_counted_by_route(measured: Served) -> None:
    before = scrape(measured)
    for _ in range(2):
        assert measured.get("/nowhere/" + os.urandom(4).hex()).status_code == 404
    httpx.request("BREW", measured.url + "/v1/models", timeout=30)
    assert measured.get("/v1/models/smollm2").status_code == 200
    deadline = time.monotonic() + 10
    wanted = {("none", "GET", "404"): 2, ("none", "other", "405"): 1,
              ("/v1/models/{id...}", "GET", "200"): 1}

    def grown(samples: Samples) -> dict[tuple[str, str, str], float]:
        def count(which: Samples, key: tuple[str, str, str]) -> float:
            return sum(number for (name, labels), number in which.items()
                       if name == "tessera_http_requests_total" and
                       {("route", key[0]), ("method", key[1]), ("code", key[2])} <= labels)
        return {key: count(samples, key) - count(before, key) for key in wanted}

    while (seen := grown(scrape(measured))) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert seen == wanted
    assert value(scrape(measured), "http_requests_total", handler="none", status="4xx") >= 3


def test_what_the_specification_asks_for_is_there(measured: Served) -> None:
    samples = scrape(measured)
    for name in ("time_to_first_token", "inter_token_latency", "request_queue_time",
                 "request_prefill_time", "request_decode_time", "e2e_request_latency",
                 "cancel_latency", "grammar_compile", "request_preparation"):
        low = [float(dict(labels)["le"]) for key, labels in samples
               if key == f"tessera_{name}_seconds_bucket"]
        assert min(low) <= 0.001, name
    assert value(samples, "tessera_request_preparation_seconds_count") >= 3
    for reason in ("off", "never_stored", "differs", "evicted", "prompt_logprobs"):
        value(samples, "tessera_prefix_cache_misses_total", reason=reason)
    assert value(samples, "tessera_prefix_cache_misses_total", reason="never_stored") >= 1
    for result in ("parsed", "broken"):
        value(samples, "tessera_tool_calls_total", result=result)
    value(samples, "tessera_request_success_total", finished_reason="length")


def test_a_cancel_and_a_grammar_are_timed(measured: Served) -> None:
    before = scrape(measured)
    body = {"model": "smollm2", "prompt": "Once", "max_tokens": 4000, "ignore_eos": True,
            "stream": True}
    with httpx.stream("POST", measured.url + "/v1/completions", json=body, timeout=60) as reply:
        next(reply.iter_lines())
    measured.post("/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 2,
                                      "guided_regex": "[a-c]{3}"}).raise_for_status()
    deadline = time.monotonic() + 20
    names = ["tessera_cancel_latency_seconds_count", "tessera_grammar_compile_seconds_count"]
    while time.monotonic() < deadline:
        after = scrape(measured)
        if all(value(after, name) == value(before, name) + 1 for name in names):
            break
        time.sleep(0.05)
    assert [value(after, name) - value(before, name) for name in names] == [1, 1]
