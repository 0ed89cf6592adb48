"""/openapi.json of the gateway: real answers validate against it, and what it allows never gives a 5xx."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import httpx
import jsonschema
import pytest

from conftest import TESSERA, free_port
from test_gateway import Gateway, cache  # noqa: F401

ENDPOINTS = "/v1/llm/model-endpoints"
ONE = f"{ENDPOINTS}/described"
ASK = {"prompt": "The capital of France is", "max_new_tokens": 3, "temperature": 0}

ANSWERED: list[tuple[str, str, Any]] = [
    ("GET", "/healthz", None), ("GET", ENDPOINTS, None), ("GET", f"{ENDPOINTS}?limit=1", None),
    ("GET", ONE, None), ("GET", f"{ONE}/workers", None), ("GET", f"{ONE}/events", None),
    ("GET", f"{ONE}/logs", None), ("GET", "/v1/models", None), ("GET", "/v2/models", None),
    ("GET", "/v1/llm/fine-tunes", None), ("PUT", ONE, {"labels": {"team": "red"}}),
    ("POST", "/v1/llm/completions-sync?model_endpoint_name=described", ASK),
    ("POST", "/v1/llm/completions-sync?model_endpoint_name=described",
     {**ASK, "return_token_log_probs": True}),
    ("POST", "/v1/llm/completions-sync?model_endpoint_name=described",
     {"prompts": ["a", "b"], "max_new_tokens": 3, "temperature": 0.5}),
]
WRONG: list[tuple[str, str, Any, int]] = [
    ("GET", f"{ENDPOINTS}/none", None, 404), ("GET", f"{ENDPOINTS}?order_by=age", None, 422),
    ("POST", ENDPOINTS, {}, 422), ("POST", ENDPOINTS, {"name": "A_"}, 422),
    ("PUT", ONE, {"min_workers": 251}, 422), ("DELETE", f"{ENDPOINTS}/none", None, 404),
    ("POST", "/v1/llm/completions-sync?model_endpoint_name=described", {"prompt": 3}, 422),
    ("POST", "/v1/llm/completions-stream?model_endpoint_name=none", ASK, 404),
    ("POST", "/v1/chat/completions", {"model": "none", "messages": []}, 404),
    ("POST", "/v1/llm/fine-tunes", {}, 501), ("GET", "/v1/llm/fine-tunes/ft-1", None, 404),
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Gateway]:  # noqa: F811
    made = Gateway(tmp_path_factory.mktemp("openapi"), cache)
    made.create("described")
    made.ready("described")
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def document(gateway: Gateway) -> dict[str, Any]:
    return httpx.get(gateway.url + "/openapi.json").json()  # Open to all.


def check(document: dict[str, Any], path: str, method: str, status: str, media: str,
          value: Any) -> None:
    path = path.partition("?")[0]
    for pattern, operations in document["paths"].items():
        if not re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(pattern)), path):
            continue
        if method.lower() not in operations:
            continue
        schema = operations[method.lower()]["responses"][status]["content"][media]["schema"]
        if media == "text/event-stream":
            schema = schema["properties"]["data"]["contentSchema"]
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}
                                        ).validate(value)
        return
    raise AssertionError(f"{path} is not described")


def test_it_is_json_schema_of_the_version_that_openapi_31_names(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0" and document["info"]["version"]
    count = 0
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for operations in document["paths"].values():
        for operation in operations.values():
            contents = [*operation["responses"].values(), operation.get("requestBody", {})]
            for media in (m for c in contents for m in c.get("content", {}).values()):
                jsonschema.Draft202012Validator.check_schema(media["schema"])
                count += 1
            for parameter in operation.get("parameters", []):
                jsonschema.Draft202012Validator.check_schema(parameter["schema"])
    assert count > 50


@pytest.mark.parametrize("method,path,body", ANSWERED)
def test_an_answer_is_as_described(gateway: Gateway, document: dict[str, Any], method: str, path: str,
                                   body: Any) -> None:
    reply = gateway.http.request(method, path, json=body)
    assert reply.status_code == 200, reply.text
    check(document, path, method, "200", "application/json", reply.json())


def test_events_are_as_described(gateway: Gateway, document: dict[str, Any]) -> None:
    path = "/v1/llm/completions-stream?model_endpoint_name=described"
    reply = gateway.http.post(path, json={**ASK, "return_token_log_probs": True})
    data = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    assert len(data) >= 3
    for value in data:
        check(document, path, "POST", "200", "text/event-stream", value)


@pytest.mark.parametrize("method,path,body,status", WRONG)
def test_an_error_is_as_described(gateway: Gateway, document: dict[str, Any], method: str, path: str,
                                  body: Any, status: int) -> None:
    reply = gateway.http.request(method, path, json=body)
    assert reply.status_code == status, reply.text
    check(document, path, method, "default", "application/json", reply.json())
    unknown = httpx.request(method, gateway.url + path, json=body)
    assert unknown.status_code == 401
    check(document, path, method, "default", "application/json", unknown.json())


def test_a_field_without_effect_is_a_warning_in_the_record(gateway: Gateway) -> None:
    gateway.create("wishes", min_workers=0, high_priority=True, billing_tags={"a": "b"}, cpus=2,
                   inference_framework="lightllm", dtype="float16")
    warned = [w.partition(":")[0] for w in gateway.record("wishes")["warnings"]]
    assert {"high_priority", "billing_tags", "cpus", "inference_framework", "dtype"} <= set(warned)
    assert gateway.record("described")["warnings"] == []
    gateway.http.delete(f"{ENDPOINTS}/wishes")


def test_the_page_for_people_names_routes_and_fields(gateway: Gateway) -> None:
    page = httpx.get(gateway.url + "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/v1/llm/model-endpoints/{name}/events" in page.text and "max_model_len" in page.text
    assert "<script" not in page.text


def test_schemathesis_finds_no_5xx(tmp_path: Path) -> None:
    """Generated requests, valid and not. No model of theirs exists here, and there is no network, so
    that what they create fails; calls that would wait for it are left out."""
    port = free_port()
    process = subprocess.Popen(
        [str(TESSERA), "gateway", "--port", str(port), "--state-dir", str(tmp_path / "state"),
         "--offline", "--hold-timeout", "1"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and "gateway at" in process.stderr.readline()
    url = f"http://127.0.0.1:{port}"
    try:
        narrowed = httpx.get(url + "/openapi.json").json()
        for path in [p for p in narrowed["paths"] if "completions" in p or "embeddings" in p]:
            del narrowed["paths"][path]
        # 501 is what is documented there; methods that are not in the document are tried, too.
        del narrowed["paths"]["/v1/llm/fine-tunes"]
        create = narrowed["paths"][ENDPOINTS]["post"]["requestBody"]["content"]["application/json"]
        create["schema"]["properties"]["model_name"] = {"enum": ["none", "../none"]}
        schema = tmp_path / "openapi.json"
        schema.write_text(json.dumps(narrowed))
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", str(schema), "--url", url,
             "--auth", "me:x", "--checks", "not_a_server_error,response_schema_conformance",
             "--max-examples", "10", "--phases", "examples,coverage,fuzzing", "--seed", "1",
             "--generation-database", "none", "--request-timeout", "30", "--no-color"],
            cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert httpx.get(url + "/healthz").status_code == 200
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
