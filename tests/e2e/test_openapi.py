"""/openapi.json: real answers validate against it, and what it allows never gives a 5xx."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import httpx
import jsonschema
import pytest

from conftest import GGUF, Served, start_server

MESSAGES = [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Name a colour."}]}]
COMPLETION = {"model": "smollm2", "prompt": ["Rivers are", [1, 2, 3]], "max_tokens": 4, "n": 2}
CHAT = {"model": "smollm2", "messages": MESSAGES, "max_tokens": 4}
MESSAGE = {"model": "smollm2", "max_tokens": 4, "system": "Be brief.",
           "messages": [{"role": "user", "content": "Name a colour."}]}
MESSAGE_TOOLS = {**MESSAGE, "max_tokens": 60, "tool_choice": {"type": "any"}, "tools": [
    {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"enum": [1, 2]}},
                                   "required": ["a"], "additionalProperties": False}}]}
RESPONSE = {"model": "smollm2", "input": "Name a colour.", "max_output_tokens": 4}
RESPONSE_TOOLS = {**RESPONSE, "max_output_tokens": 60, "tool_choice": "required", "tools": [
    {"type": "function", "name": "f", "parameters": MESSAGE_TOOLS["tools"][0]["input_schema"]}]}
EVERY = {"logprobs": True, "top_logprobs": 2, "prompt_logprobs": 1, "n": 2}
STREAM_OPTIONS = {"include_usage": True, "include_progress": True, "resumable": True}

# Requests with answers of every kind: method, path, body.
ANSWERED = [
    ("GET", "/version", None), ("GET", "/openapi.json", None), ("GET", "/v1/models", None),
    ("GET", "/v1/models/smollm2", None), ("GET", "/tokenizer_info", None),
    ("GET", "/admin/stats", None), ("POST", "/admin/reload", None),
    ("POST", "/v1/completions", COMPLETION),
    ("POST", "/v1/completions", {**COMPLETION, "logprobs": 3, "echo": True, "frobnicate": 1}),
    ("POST", "/v1/completions", {**COMPLETION, "prompt_logprobs": 1, "best_of": 3}),
    ("POST", "/v1/chat/completions", CHAT),
    ("POST", "/v1/chat/completions", {**CHAT, **EVERY, "frobnicate": 1}),
    ("POST", "/v1/messages", MESSAGE),
    ("POST", "/v1/messages", {**MESSAGE, "stop_sequences": ["a", "e", "o"], "frobnicate": 1}),
    ("POST", "/v1/messages", MESSAGE_TOOLS),
    ("POST", "/v1/messages/count_tokens", {"model": "smollm2", "messages": MESSAGE["messages"]}),
    ("POST", "/v1/embeddings", {"model": "smollm2", "input": "Hello"}),
    ("POST", "/v1/embeddings", {"model": "smollm2", "input": [[1, 2], "x"], "frobnicate": 1,
                                "encoding_format": "base64", "pooling": "last"}),
    ("POST", "/v1/responses", RESPONSE),
    ("POST", "/v1/responses", {**RESPONSE, "instructions": "Be brief.", "user": "u",
                               "metadata": {"a": "b"}, "frobnicate": 1}),
    ("POST", "/v1/responses", RESPONSE_TOOLS),
    ("POST", "/tokenize", {"prompt": "Hello"}), ("POST", "/detokenize", {"tokens": [1, 2]}),
    ("POST", "/tokenize", {"messages": MESSAGES, "frobnicate": 1}),
    ("POST", "/apply-template", {"messages": MESSAGES}),
    ("POST", "/generate", {"text": ["a", "b"], "sampling_params": {"max_completion_tokens": 2}}),
    ("PUT", "/generate", {"text": "a", "return_input_ids": True}),
]
STREAMED = [
    ("/v1/completions", {**COMPLETION, "stream": True, "stream_options": STREAM_OPTIONS}),
    ("/v1/completions", {**COMPLETION, "stream": True, "logprobs": 1, "echo": True}),
    ("/v1/chat/completions", {**CHAT, "stream": True, "stream_options": STREAM_OPTIONS}),
    ("/v1/chat/completions", {**CHAT, "stream": True, "logprobs": True, "top_logprobs": 2}),
    ("/v1/messages", {**MESSAGE, "stream": True, "frobnicate": 1}),
    ("/v1/messages", {**MESSAGE_TOOLS, "stream": True}),
    ("/v1/responses", {**RESPONSE, "stream": True, "frobnicate": 1}),
    ("/v1/responses", {**RESPONSE_TOOLS, "stream": True}),
    ("/generate", {"text": "a", "stream": True}),
]
WRONG = [
    ("GET", "/v1/models/no-such-model", None), ("DELETE", "/v1/requests/none", None),
    ("GET", "/v1/requests/none/events", None), ("POST", "/admin/drain", {"confirm": "other"}),
    *[("POST", path, {"model": "smollm2"}) for path in (
        "/v1/completions", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens",
        "/v1/responses", "/v1/embeddings", "/tokenize", "/detokenize", "/apply-template", "/generate")],
    *[("POST", path, {"model": "nope", "prompt": "x", "messages": [], "input": "x"}) for path in (
        "/v1/completions", "/v1/chat/completions", "/v1/messages", "/v1/responses")],
]


@pytest.fixture(scope="module")
def document(served: Served) -> dict[str, Any]:
    return served.get("/openapi.json").json()


def check(document: dict[str, Any], path: str, method: str, status: str, media: str,
          value: Any) -> None:
    for pattern, operations in document["paths"].items():
        stem, brace, tail = pattern.partition("{id}")
        if path == pattern or (brace and path.startswith(stem) and path.endswith(tail)
                               and (tail or not path.endswith("/events"))):
            response = operations[method.lower()]["responses"][status]
            schema = response["content"][media]["schema"]
            if media == "text/event-stream":
                schema = schema["properties"]["data"]["contentSchema"]
            schema = {**schema, "components": document["components"]}
            jsonschema.Draft202012Validator(schema).validate(value)
            return
    raise AssertionError(f"{path} is not described")


@pytest.mark.parametrize("method,path,body", ANSWERED)
def test_an_answer_is_as_described(served: Served, document: dict[str, Any], method: str, path: str,
                                   body: Any) -> None:
    reply = httpx.request(method, served.url + path, json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    check(document, path, method, "200", "application/json", reply.json())
    if body is not None and "frobnicate" in body:
        assert "frobnicate" in str(reply.json()["warnings"])


@pytest.mark.parametrize("path,body", STREAMED)
def test_events_are_as_described(served: Served, document: dict[str, Any], path: str,
                                 body: Any) -> None:
    reply = served.post(path, body)
    assert reply.status_code == 200, reply.text
    data = [line.removeprefix("data: ") for line in reply.text.splitlines()
            if line.startswith("data: ")]
    assert len(data) > 2
    for text in data:
        value = text if text == "[DONE]" else json.loads(text)
        check(document, path, "POST", "200", "text/event-stream", value)
    if body.get("stream_options") == STREAM_OPTIONS:
        assert any("prompt_progress" in text for text in data)


@pytest.mark.parametrize("method,path,body", WRONG)
def test_an_error_is_as_described(served: Served, document: dict[str, Any], method: str, path: str,
                                  body: Any) -> None:
    reply = httpx.request(method, served.url + path, json=body, timeout=60)
    assert 400 <= reply.status_code < 500, reply.text
    check(document, path, method, "default", "application/json", reply.json())


def test_it_describes_what_answers(served: Served, document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        allow = httpx.options(served.url + path.replace("{id}", "x"), timeout=30).headers["allow"]
        assert {method.upper() for method in operations} <= set(allow.split(", ")), path


@pytest.fixture(scope="module")
def small(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A short context, so that whatever is asked for ends soon."""
    server = start_server(tmp_path_factory.mktemp("small") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2", "--max-seq-len", "96")
    yield server
    server.process.terminate()
    assert server.process.wait(30) == 0, server.log.read_text()


def test_schemathesis_finds_no_5xx(small: Served, document: dict[str, Any], tmp_path: Path) -> None:
    """Generated requests, valid and not, by the description; the model's name and the length of
    answers are narrowed so that they reach the model and end."""
    narrowed = copy.deepcopy(document)
    for operations in narrowed["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {})
            for media in content.values():
                properties = media["schema"]["properties"]
                # A deadline of the client's own is answered 504 when it passes, as documented.
                properties.pop("timeout", None)
                if "model" in properties:
                    properties["model"] = {"const": "smollm2"}
                for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "n"):
                    if name in properties:
                        properties[name]["maximum"] = 4
    schema = tmp_path / "openapi.json"
    schema.write_text(json.dumps(narrowed))
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", str(schema), "--url", small.url,
         "--checks", "not_a_server_error,response_schema_conformance", "--max-examples", "25",
         "--phases", "examples,coverage,fuzzing", "--seed", "1", "--generation-database", "none",
         "--request-timeout", "30", "--no-color"],
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert small.get("/readyz").status_code == 200
