"""Batches at the gateway, over HTTP and through OpenAI's client: rows, crashes, orders, refusals."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any, Callable

import httpx
import openai
import pytest

from test_gateway import Gateway, cache, gateway  # noqa: F401  (fixtures)

OVER = {"completed", "failed", "cancelled"}


def prompts(texts: list[str], tokens: int = 4, **more: Any) -> dict[str, Any]:
    return {"prompts": texts, "max_new_tokens": tokens, "temperature": 0, **more}


def create(gateway: Gateway, out: Path | str, content: Any = None, version: str = "v2",
           model: str = "smol", **fields: Any) -> httpx.Response:
    path = {"v1": "/v1/llm/batch-completions", "v2": "/v2/batch-completions"}[version]
    body = {"output_data_path": str(out), "model_config": {"model": model}, "content": content,
            **fields}
    return gateway.http.post(path, json=body)


def job(gateway: Gateway, id: str) -> dict[str, Any]:
    return gateway.http.get(f"/v2/batch-completions/{id}").json()["job"]


def wait(gateway: Gateway, id: str, until: Callable[[dict[str, Any]], bool] | None = None,
         seconds: float = 60) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = job(gateway, id)
        if now["status"] in OVER if until is None else until(now):
            return now
        time.sleep(0.02)
    raise AssertionError(json.dumps(now))


def endpoints(gateway: Gateway) -> list[str]:
    got = gateway.http.get("/v1/llm/model-endpoints").json()["model_endpoints"]
    return [e["name"] for e in got if e["status"] != "DELETE_IN_PROGRESS"]


def test_prompts_on_an_endpoint_of_their_own(gateway: Gateway, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out.json"
    texts = ["The capital of France is", "One two three", "The capital of France is", "ü☃"]
    made = create(gateway, out, prompts(texts, return_token_log_probs=True), version="v1")
    assert made.status_code == 200 and set(made.json()) == {"job_id"}
    ended = wait(gateway, made.json()["job_id"])
    assert ended["status"] == "completed" and ended["status_reason"] == "4 rows were answered"
    assert ended["counts"] == {"total": 4, "completed": 4, "failed": 0} and ended["progress"] == 1
    assert ended["created_at"] <= ended["started_at"] <= ended["completed_at"] < ended["expires_at"]
    rows = json.loads(out.read_text())
    assert "Paris" in rows[0]["text"] and rows[0] == rows[2]
    assert all(r["num_completion_tokens"] == len(r["tokens"]) for r in rows)
    end = time.monotonic() + 30
    while endpoints(gateway):  # Its worker drains.
        assert time.monotonic() < end, "the temporary endpoint is gone"
        time.sleep(0.05)
    assert [p.name for p in out.parent.iterdir()] == ["out.json"]


def test_requests_on_an_endpoint_that_is_there(gateway: Gateway) -> None:
    gateway.create("a", per_worker=2)
    gateway.ready("a")
    rows = [{"messages": [{"role": "user", "content": "Say hi"}], "max_tokens": 3, "temperature": 0},
            {"prompt": "x", "max_tokens": -5}, {"neither": 1},
            {"prompt": "The capital of France is", "max_tokens": 3, "temperature": 0}]
    made = create(gateway, "files://answers.json", rows, model="a", metadata={"for": "me"}).json()
    ended = wait(gateway, made["job_id"])
    assert ended["status"] == "completed" and ended["counts"]["failed"] == 2
    assert ended["metadata"] == {"for": "me"} and ended["endpoint"] == "a"
    text = gateway.http.get(f"/v1/files/{ended['output_file_id']}/content").json()["content"]
    out = json.loads(text)
    assert [o.get("object") for o in out] == ["chat.completion", None, None, "text_completion"]
    assert out[0]["model"] == "a" and "max_tokens" in out[1]["error"]["message"]
    assert "messages or prompt" in out[2]["error"]["message"]
    results = f"/v2/batch-completions/{made['job_id']}/results"
    page = gateway.http.get(results, params={"limit": 1, "after": 0}).json()
    assert [r["row"] for r in page["results"]] == [1] and page["has_more"] is True
    failed = gateway.http.get(results, params={"status": "failed"}).json()["results"]
    assert [(r["row"], r["status"]) for r in failed] == [(1, 400), (2, 0)]
    assert endpoints(gateway) == ["a"]


def test_input_from_files_and_paths(gateway: Gateway, tmp_path: Path) -> None:
    gateway.create("a")
    content = json.dumps(prompts(["One"], 2))
    (tmp_path / "in.json").write_text(content)
    uploaded = gateway.http.post("/v1/files", files={"file": ("in.json", content)}).json()["id"]
    lines = '{"prompt": "One", "max_tokens": 2, "temperature": 0}\n' * 2
    (tmp_path / "in.jsonl").write_text(lines)
    texts = []
    for source in (tmp_path / "in.json", uploaded, tmp_path / "in.jsonl"):
        made = create(gateway, tmp_path / "out.json", None, model="a", input_data_path=str(source))
        assert made.status_code == 200, made.text
        assert wait(gateway, made.json()["job_id"])["status"] == "completed"
        first = json.loads((tmp_path / "out.json").read_text())[0]
        texts.append(first["text"] if "text" in first else first["choices"][0]["text"])
    assert len(set(texts)) == 1


def test_what_is_refused_at_once(gateway: Gateway, tmp_path: Path) -> None:
    good = prompts(["x"])
    secret = Path("/etc/hostname")
    (tmp_path / "link").symlink_to(secret)
    for fields, word in [
        ({"out": "s3://bucket/x"}, "s3://"), ({"out": "/etc/x"}, "output_data_path"),
        ({"out": str(tmp_path / ".." / ".." / ".." / "etc" / "x")}, "output_data_path"),
        ({"out": str(tmp_path / "link" / "x")}, "output_data_path"),
        ({"content": None, "input_data_path": str(secret)}, "input_data_path"),
        ({"content": None, "input_data_path": str(tmp_path / "link")}, "link"),
        ({"content": None, "input_data_path": str(tmp_path / "absent")}, "No such file"),
        ({"content": None}, "content"), ({"model": "no-such-model"}, "model"),
        ({"content": prompts([])}, "rows"), ({"content": {"prompts": ["x"]}}, "max_new_tokens"),
        ({"priority": "urgent"}, "priority"), ({"max_runtime_sec": 0}, "max_runtime_sec"),
        ({"tool_config": {"name": "code_evaluator"}}, "tool_config"),
        ({"version": "v1", "data_parallelism": 2}, "data_parallelism"),
    ]:
        reply = create(gateway, **{"out": tmp_path / "o.json", "content": good, **fields})
        assert reply.status_code in {400, 422}, (fields, reply.text)
        assert word in json.dumps(reply.json()["detail"]), (fields, reply.text)
    unknown = create(gateway, tmp_path / "o.json", None, input_data_path="file-none")
    assert unknown.status_code == 404
    assert gateway.http.get("/v2/batch-completions").json()["jobs"] == []
    assert list((gateway.dir / "state" / "batches").iterdir()) == []
    for call in (gateway.http.get, gateway.http.delete):
        assert call("/v2/batch-completions/batch-none").status_code == 404


def test_a_killed_gateway_goes_on_at_the_first_row_that_is_not_done(gateway: Gateway,
                                                                    tmp_path: Path) -> None:
    gateway.create("a", per_worker=2)
    gateway.ready("a")
    texts = [f"Line {i}" for i in range(40)]
    id = create(gateway, tmp_path / "out.json", prompts(texts, 24), model="a").json()["job_id"]
    wait(gateway, id, lambda j: j["counts"]["completed"] >= 6)
    gateway.kill()
    kept = (gateway.dir / "state" / "batches" / id / "results.jsonl").read_text()
    done = [json.loads(line)["row"] for line in kept.splitlines()]
    assert 6 <= len(done) < 40
    gateway.start()
    assert wait(gateway, id)["counts"] == {"total": 40, "completed": 40, "failed": 0}
    after = (gateway.dir / "state" / "batches" / id / "results.jsonl").read_text()
    assert after.startswith(kept), "what was done stays as it was"
    assert sorted(json.loads(line)["row"] for line in after.splitlines()) == list(range(40))
    assert len(json.loads((tmp_path / "out.json").read_text())) == 40


def test_a_killed_worker_costs_no_row(gateway: Gateway, tmp_path: Path) -> None:
    import os
    import signal
    gateway.create("a", per_worker=4)
    gateway.ready("a")
    id = create(gateway, tmp_path / "o.json", prompts([f"{i}" for i in range(12)], 40),
                model="a").json()["job_id"]
    wait(gateway, id, lambda j: j["counts"]["completed"] >= 1)
    os.kill(gateway.workers("a")[0]["pid"], signal.SIGKILL)
    assert wait(gateway, id)["counts"] == {"total": 12, "completed": 12, "failed": 0}


def test_cancel_and_runtime_end_open_rows(gateway: Gateway, tmp_path: Path) -> None:
    gateway.create("a", per_worker=2)
    gateway.ready("a")
    long = prompts(["Long story"] * 64, 400)
    id = create(gateway, tmp_path / "x.json", long, model="a").json()["job_id"]
    wait(gateway, id, lambda j: j["status"] == "running")
    cancel = f"/v2/batch-completions/{id}/actions/cancel"
    assert gateway.http.post(cancel, json={}).json() == {"success": True}
    assert wait(gateway, id, seconds=10)["status"] == "cancelled"
    assert gateway.http.post(cancel, json={}).json() == {"success": False}
    brief = create(gateway, tmp_path / "x.json", long, model="a", max_runtime_sec=1).json()
    ended = wait(gateway, brief["job_id"], seconds=10)
    assert ended["status"] == "failed" and "max_runtime_sec" in ended["status_reason"]
    assert not (tmp_path / "x.json").exists()
    one = f"/v2/batch-completions/{id}"
    assert gateway.http.delete(one).json() == {"deleted": True}
    assert gateway.http.get(one).status_code == 404


def test_higher_priorities_go_first(gateway: Gateway, tmp_path: Path) -> None:
    gateway.create("a", min_workers=0, max_workers=0, per_worker=1)
    rows = prompts(["x"] * 6, 8)
    ids = {p: create(gateway, tmp_path / f"{p}.json", rows, model="a", priority=p).json()["job_id"]
           for p in ("low", "7", "high")}
    normal = create(gateway, tmp_path / "n.json", rows, model="a").json()["job_id"]
    url = f"/v2/batch-completions/{ids['low']}"
    changed = gateway.http.post(url, json={"job_id": ids["low"], "priority": "9"}).json()
    assert changed["success"] is True and changed["priority"] == "9"
    assert gateway.http.post(url, json={"priority": "urgent"}).status_code == 400
    wait(gateway, normal, lambda j: "switched off" in j["status_reason"])
    gateway.http.put("/v1/llm/model-endpoints/a", json={"max_workers": 1})
    order = [ids["low"], ids["7"], ids["high"], normal]
    for first, then in zip(order, order[1:]):
        wait(gateway, first)
        assert job(gateway, then)["status"] not in OVER
    assert wait(gateway, normal)["status"] == "completed"


def test_lists_and_owners(gateway: Gateway, tmp_path: Path) -> None:
    gateway.create("a", min_workers=0, max_workers=0)
    ids = [create(gateway, tmp_path / f"{i}.json", prompts(["x"]), model="a").json()["job_id"]
           for i in range(3)]
    url = "/v2/batch-completions"
    assert [j["job_id"] for j in gateway.http.get(url).json()["jobs"]] == ids[::-1]
    page = gateway.http.get(url, params={"limit": 1, "after": ids[2]}).json()
    assert [j["job_id"] for j in page["jobs"]] == [ids[1]] and page["has_more"] is True
    gateway.http.post(f"{url}/{ids[0]}/actions/cancel", json={})
    wait(gateway, ids[0])
    cancelled = gateway.http.get(url, params={"status": "cancelled"}).json()["jobs"]
    assert [j["job_id"] for j in cancelled] == [ids[0]]
    for bad in ({"status": "asleep"}, {"limit": 0}, {"after": "batch-none"}):
        assert gateway.http.get(url, params=bad).status_code == 422
    other = httpx.Client(base_url=gateway.url, auth=("other", ""))
    assert other.get(url).json()["jobs"] == []
    for path in ("", "/results"):
        assert other.get(f"{url}/{ids[1]}{path}").status_code == 404
    assert other.post(f"{url}/{ids[1]}/actions/cancel", json={}).status_code == 404


def test_openai_client(gateway: Gateway) -> None:
    gateway.create("a", per_worker=4)
    ai = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="me", max_retries=0)
    rows = [{"custom_id": f"row-{i}", "method": "POST", "url": "/v1/chat/completions",
             "body": {"model": "a", "max_tokens": 3, "temperature": 0,
                      "messages": [{"role": "user", "content": f"Say {i}"}]}} for i in range(4)]
    rows[2]["body"]["max_tokens"] = -1  # type: ignore[index]
    data = "".join(json.dumps(r) + "\n" for r in rows).encode() + b"no json\n"
    file = ai.files.create(file=("in.jsonl", data), purpose="batch")
    batch = ai.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions",
                              completion_window="24h", metadata={"a": "b"})
    assert batch.object == "batch" and batch.status in {"validating", "in_progress"}
    for _ in range(1500):
        batch = ai.batches.retrieve(batch.id)
        if batch.status == "completed":
            break
        time.sleep(0.02)
    assert batch.request_counts is not None and batch.output_file_id and batch.error_file_id
    assert (batch.request_counts.completed, batch.request_counts.failed) == (3, 2)
    lines = [json.loads(l) for l in ai.files.content(batch.output_file_id).text.splitlines()]
    assert [l["custom_id"] for l in lines] == ["row-0", "row-1", "row-3"]
    assert all(l["response"]["status_code"] == 200 and
               l["response"]["body"]["object"] == "chat.completion" for l in lines)
    errors = [json.loads(l) for l in ai.files.content(batch.error_file_id).text.splitlines()]
    assert [e["custom_id"] for e in errors] == ["row-2", None]
    assert errors[0]["response"]["status_code"] == 400 and errors[1]["error"]["message"]
    assert [b.id for b in ai.batches.list(limit=1)] == [batch.id]
    with pytest.raises(openai.ConflictError):
        ai.batches.cancel(batch.id)
    with pytest.raises(openai.NotFoundError):
        ai.batches.retrieve("batch-none")


def test_a_full_disk_refuses_a_batch_and_keeps_the_state(gateway: Gateway, tmp_path: Path) -> None:
    limits = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
    gateway.create("a", min_workers=0, max_workers=0)
    kept = create(gateway, tmp_path / "o.json", prompts(["x"]), model="a").json()["job_id"]
    resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    full = create(gateway, tmp_path / "o.json", prompts(["x" * 1000] * 4000), model="a")
    assert full.status_code == 507 and "nothing of it was kept" in full.json()["detail"]
    assert [p.name for p in (gateway.dir / "state" / "batches").iterdir()] == [kept]
    resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, limits)
    gateway.http.put("/v1/llm/model-endpoints/a", json={"max_workers": 1})
    assert wait(gateway, kept)["status"] == "completed"
