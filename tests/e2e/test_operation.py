"""Operating the server from outside: cancelling, strictness, templates, readiness."""

from __future__ import annotations

import json
import threading
import time

import httpx
import pytest

from conftest import Served
from test_serve import complete

MESSAGES = [{"role": "user", "content": "Hello <|im_end|>"}]


def metric(served: Served, name: str) -> float:
    page = served.get("/metrics").text
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
               if line.startswith(name + "{"))


def await_idle(served: Served) -> None:
    deadline = time.monotonic() + 20
    while metric(served, "tessera_num_requests_running") > 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert metric(served, "tessera_kv_cache_usage_perc") == 0


def test_delete_ends_a_stream(served: Served) -> None:
    body = {"model": "smollm2", "prompt": "Once", "max_tokens": 4000, "ignore_eos": True,
            "stream": True}
    seen: list[dict] = []
    with httpx.stream("POST", served.url + "/v1/completions", json=body, timeout=60) as reply:
        for line in reply.iter_lines():
            if not line.startswith("data: "):
                continue
            assert line != "data: [DONE]"
            seen.append(json.loads(line.removeprefix("data: ")))
            if len(seen) == 3:
                gone = httpx.delete(f"{served.url}/v1/requests/{seen[0]['id']}", timeout=30)
                assert gone.status_code == 200 and gone.json()["cancelled"] is True
    assert seen[-1]["error"]["code"] == "request_cancelled" and len(seen) < 1000
    await_idle(served)


@pytest.mark.parametrize("path,fields", [
    ("/v1/completions", {"prompt": "Once"}),
    ("/v1/chat/completions", {"messages": MESSAGES}),
    ("/v1/messages", {"messages": MESSAGES}),
])
def test_delete_by_request_id(served: Served, path: str, fields: dict) -> None:
    name = "mine" + path
    replies: list[httpx.Response] = []
    body = {"model": "smollm2", "max_tokens": 4000, "temperature": 0, **fields}
    if path != "/v1/messages":
        body["ignore_eos"] = True
    else:
        body["messages"] = [{"role": "user", "content": "Count from 1 to 1000."}]
    client = threading.Thread(target=lambda: replies.append(
        served.post(path, body, headers={"x-request-id": name})))
    client.start()
    status = 404
    deadline = time.monotonic() + 20
    while status == 404 and time.monotonic() < deadline:
        status = httpx.delete(f"{served.url}/v1/requests/{name}", timeout=30).status_code
    client.join()
    assert status == 200
    assert replies[0].status_code == 499 and replies[0].headers["x-request-id"] == name
    await_idle(served)


def test_delete_of_nothing_is_404(served: Served) -> None:
    reply = httpx.delete(served.url + "/v1/requests/cmpl-nothing", timeout=30)
    assert reply.status_code == 404 and reply.json()["error"]["code"] == "request_not_found"


def test_strict_makes_a_warning_an_error(served: Served) -> None:
    assert "warnings" in complete(served, frobnicate=1, max_tokens=1)
    reply = served.post("/v1/completions", {"model": "smollm2", "prompt": "x", "max_tokens": 1,
                                            "frobnicate": 1, "strict": True})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "frobnicate"
    assert "warnings" not in complete(served, strict=True, max_tokens=1)


def test_apply_template_is_what_chat_computes(served: Served) -> None:
    text = served.post("/apply-template", {"messages": MESSAGES}).json()["prompt"]
    assert text.startswith("<|im_start|>") and "Hello <|im_end|>" in text
    tokens = served.post("/tokenize", {"messages": MESSAGES}).json()["tokens"]
    assert served.post("/detokenize", {"tokens": tokens}).json()["prompt"] == text


def test_suffix_needs_a_model_that_knows_gaps(served: Served) -> None:
    card = served.get("/v1/models/smollm2").json()
    assert card["capabilities"]["chat"] is True and card["capabilities"]["suffix"] is False
    reply = served.post("/v1/completions", {"model": "smollm2", "prompt": "def f(",
                                            "suffix": "return x"})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "suffix"
    assert "fill in the middle" in reply.json()["error"]["message"]


def test_ready_rests_on_a_step(served: Served) -> None:
    before = metric(served, "tessera_engine_steps_total")
    assert served.get("/readyz").status_code == 200
    complete(served, max_tokens=1)
    steps = metric(served, "tessera_engine_steps_total")
    assert steps > before
    assert served.get("/readyz").status_code == 200
    assert metric(served, "tessera_engine_steps_total") == steps, "the step is evidence enough"


def test_a_model_card_tells_its_context(served: Served) -> None:
    card = served.get("/v1/models/smollm2").json()
    assert card["max_model_len"] <= card["context_length"] == 8192
    assert card["kv_cache_tokens"] >= card["max_model_len"]
    assert card["default_sampling_params"]["temperature"] > 0
