"""The gateway with real workers: from creation to a call, crashes, restarts, updates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Iterator

import httpx
import openai
import pytest

from conftest import GGUF, TESSERA, free_port, tessera, wait_for_gateway

ME = ("me", "")


class Gateway:
    def __init__(self, dir: Path, cache: Path) -> None:
        self.dir, self.cache = dir, cache
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (dir / "models.toml").write_text(f'[models]\nsmol = "{GGUF}"\n')
        self.http = httpx.Client(base_url=self.url, auth=ME, timeout=120)
        self.start()

    def start(self, *more: str) -> None:
        log = (self.dir / "gateway.log").open("ab")
        self.process = subprocess.Popen(
            [str(TESSERA), "gateway", "--port", str(self.port), "--state-dir",
             str(self.dir / "state"), "--models", str(self.dir / "models.toml"), "--cache-dir",
             str(self.cache), "--idle-timeout", "3", "--scale-down-after", "2", "--drain-seconds",
             "10", *more], stdout=log, stderr=log)
        wait_for_gateway(self.process, self.http, self.dir / "gateway.log")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=60)

    def create(self, name: str, **fields: Any) -> httpx.Response:
        body = {"name": name, "model_name": "smol", "min_workers": 1, "max_workers": 1,
                "per_worker": 4, **fields}
        return self.http.post("/v1/llm/model-endpoints", json=body)

    def record(self, name: str) -> dict[str, Any]:
        return self.http.get(f"/v1/llm/model-endpoints/{name}").json()

    def workers(self, name: str) -> list[dict[str, Any]]:
        return self.http.get(f"/v1/llm/model-endpoints/{name}/workers").json()["workers"]

    def ready(self, name: str, workers: int = 1, seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            record = self.record(name)
            state = record["spec"]["deployment_state"]
            if record["status"] == "READY" and state["available_workers"] == workers:
                return record
            time.sleep(0.02)
        raise AssertionError(json.dumps(record))

    def complete(self, name: str, **fields: Any) -> httpx.Response:
        body = {"prompt": "The capital of France is", "max_new_tokens": 4, "temperature": 0,
                **fields}
        return self.http.post("/v1/llm/completions-sync", params={"model_endpoint_name": name},
                              json=body)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One bundle for all gateways of this file."""
    path = tmp_path_factory.mktemp("gateway_cache")
    done = tessera("compile", GGUF, "--cache-dir", path)
    assert done.returncode == 0, done.stderr.decode()
    return path


@pytest.fixture
def gateway(tmp_path: Path, cache: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path, cache)
    yield made
    if made.process.poll() is None:
        assert made.stop() == 0, (tmp_path / "gateway.log").read_text()


def test_from_creation_to_a_call_and_back_to_nothing(gateway: Gateway) -> None:
    assert set(gateway.create("a").json()) == {"endpoint_creation_task_id"}
    record = gateway.ready("a")
    assert record["ready"] is True and record["status_reason"] == "1 worker ready"
    answer = gateway.complete("a")
    assert answer.status_code == 200 and "Paris" in answer.json()["output"]["text"]
    (worker,) = gateway.workers("a")
    kinds = [e["kind"] for e in gateway.http.get("/v1/llm/model-endpoints/a/events").json()["events"]]
    assert kinds == ["created", "worker_started", "worker_ready"]
    assert "serving a at" in gateway.http.get("/v1/llm/model-endpoints/a/logs").json()["logs"][0]["text"]
    assert gateway.http.delete("/v1/llm/model-endpoints/a").json() == {"deleted": True}
    for _ in range(600):
        if gateway.http.get("/v1/llm/model-endpoints/a").status_code == 404:
            break
        time.sleep(0.02)
    assert not Path(f"/proc/{worker['pid']}").exists()
    assert gateway.complete("a").status_code == 404


def test_a_killed_gateway_comes_back_with_its_workers(gateway: Gateway) -> None:
    gateway.create("a")
    before = gateway.ready("a")
    pid = gateway.workers("a")[0]["pid"]
    gateway.kill()
    assert Path(f"/proc/{pid}").exists(), "workers outlive it"
    gateway.start()
    assert gateway.ready("a")["id"] == before["id"]
    assert [w["pid"] for w in gateway.workers("a")] == [pid]
    assert gateway.complete("a").status_code == 200


def test_a_killed_worker_is_replaced_and_its_calls_are_held(gateway: Gateway) -> None:
    gateway.create("a")
    gateway.ready("a")
    pid = gateway.workers("a")[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert gateway.complete("a").status_code == 200
    gateway.ready("a")
    assert gateway.workers("a")[0]["pid"] != pid


def test_no_worker_until_somebody_calls(gateway: Gateway) -> None:
    gateway.create("a", min_workers=0)
    gateway.ready("a")
    gateway.ready("a", workers=0)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: gateway.complete("a"), range(8)))
    assert [a.status_code for a in answers] == [200] * 8
    assert len({a.json()["output"]["text"] for a in answers}) == 1
    gateway.ready("a", workers=0)


def test_updates_under_load_fail_no_call(gateway: Gateway) -> None:
    gateway.create("a")
    gateway.ready("a")
    codes: list[int] = []

    def call(until: float) -> None:
        while time.monotonic() < until:
            codes.append(gateway.complete("a").status_code)

    first = gateway.workers("a")[0]["pid"]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(call, time.monotonic() + 6) for _ in range(4)]
        for length in (512, 1024):
            time.sleep(1)
            body = {"max_model_len": length}
            assert gateway.http.put("/v1/llm/model-endpoints/a", json=body).status_code == 200
        for job in jobs:
            job.result()
    gateway.ready("a")
    assert set(codes) == {200} and len(codes) > 4
    assert gateway.workers("a")[0]["pid"] != first


def test_a_page_of_endpoints_is_in_order_and_says_what_follows(gateway: Gateway) -> None:
    for name in ("b", "c", "a"):
        assert gateway.create(name, min_workers=0, max_workers=0).status_code == 200

    def page(**query: str) -> tuple[list[str], bool]:
        body = gateway.http.get("/v1/llm/model-endpoints", params=query).json()
        return [e["name"] for e in body["model_endpoints"]], body["has_more"]

    assert page() == (["b", "c", "a"], False)
    assert page(limit="2") == (["b", "c"], True)
    assert page(limit="2", after="b") == (["c", "a"], False)
    assert page(limit="1", order_by="alphabetical") == (["a"], True)
    assert page(order_by="newest", after="c") == (["b"], False)
    assert page(name="c") == (["c"], False)


def test_streams_of_both_dialects(gateway: Gateway) -> None:
    gateway.create("a")
    gateway.ready("a")
    client = openai.OpenAI(base_url=gateway.url + "/v2", api_key="me", max_retries=0)
    assert [m.id for m in client.models.list()] == ["a"]
    chunks = list(client.chat.completions.create(
        model="a", messages=[{"role": "user", "content": "Hi"}], max_tokens=6, temperature=0,
        stream=True))
    whole = client.chat.completions.create(
        model="a", messages=[{"role": "user", "content": "Hi"}], max_tokens=6, temperature=0)
    assert whole.model == "a"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == \
        whole.choices[0].message.content
    with gateway.http.stream("POST", "/v1/llm/completions-stream",
                             params={"model_endpoint_name": "a"},
                             json={"prompt": "x", "max_new_tokens": 3, "temperature": 0}) as reply:
        text = reply.read().decode()
    assert "[DONE]" not in text
    events = [json.loads(line[5:]) for line in text.split("\r\n\r\n") if line.startswith("data:")]
    assert [e["output"]["finished"] for e in events] == [False] * (len(events) - 1) + [True]
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="b", messages=[{"role": "user", "content": "Hi"}])


def test_a_model_that_cannot_start_says_why(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    gateway.stop()
    (tmp_path / "models.toml").write_text(f'[models]\nbroken = "{tmp_path}/broken.gguf"\n')
    gateway.start()
    assert gateway.create("a", model_name="broken").status_code == 200
    for _ in range(400):
        record = gateway.record("a")
        if record["status"] == "UPDATE_FAILED":
            break
        time.sleep(0.05)
    assert record["status"] == "UPDATE_FAILED" and "broken.gguf" in record["status_reason"]
    refused = gateway.create("b", model_name="brokn")
    assert refused.status_code == 400 and "did you mean broken" in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/llm/model-endpoints/..%2f..%2fetc", "/v1/llm/model-endpoints/%27%20OR%201=1--",
                                  "/v1/llm/model-endpoints/%D0%B0", "/v1/llm/model-endpoints/" + "a" * 5000])
def test_hostile_names_are_not_found(gateway: Gateway, path: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        reply = gateway.http.request(method, path, json={} if method == "PUT" else None)
        assert reply.status_code in {400, 404} and "detail" in reply.json()


def test_second_gateway_of_a_state_folder_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    done = tessera("gateway", "--port", "0", "--state-dir", tmp_path / "state")
    assert done.returncode == 1 and b"--state-dir" in done.stderr


def test_other_machines_need_more_than_a_name(tmp_path: Path) -> None:
    done = tessera("gateway", "--host", "0.0.0.0", "--port", "0", "--state-dir", tmp_path / "state")
    assert done.returncode == 1 and b"--allow-unauthenticated" in done.stderr
