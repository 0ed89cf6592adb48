"""Forms of output with a real model: schemas of daily use, beside others, hostile ones, counters."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from conftest import Served

ASK = [{"role": "user", "content": "Describe a meal as JSON."}]
MEAL: dict[str, Any] = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "kind": {"oneOf": [{"const": "soup", "title": "Soup"}, {"const": "salad"}]},
        "price": {"type": "number", "minimum": 1, "maximum": 20, "multipleOf": 0.5},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 3},
        "note": {"anyOf": [{"type": "string", "maxLength": 10}, {"type": "null"}]},
    },
    "required": ["name", "kind", "price", "parts"],
    "$defs": {"part": {"type": "object", "additionalProperties": False,
                       "properties": {"what": {"enum": ["egg", "leek", "oil"]},
                                      "grams": {"type": "integer", "exclusiveMinimum": 0,
                                                "maximum": 500}},
                       "required": ["what", "grams"]}},
}


def ask(served: Served, form: dict[str, Any], **extra: Any) -> dict[str, Any]:
    body = {"model": "smollm2", "messages": ASK, "max_tokens": 200, "temperature": 1, **form,
            **extra}
    reply = served.post("/v1/chat/completions", body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def schema(value: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema",
                                "json_schema": {"name": "s", "strict": True, "schema": value}}}


def content(answer: dict[str, Any], choice: int = 0) -> str:
    return answer["choices"][choice]["message"]["content"]


@pytest.mark.parametrize("seed", range(8))
def test_a_meal(served: Served, seed: int) -> None:
    answer = ask(served, schema(MEAL), seed=seed)
    assert answer["choices"][0]["finish_reason"] == "stop", content(answer)
    jsonschema.validate(json.loads(content(answer)), MEAL)


def test_constrained_and_free_answers_side_by_side(served: Served) -> None:
    """Each is what it is alone: bytes do not depend on who else is in the batch."""
    def one(i: int) -> str:
        form = schema(MEAL) if i % 2 else {}
        return content(ask(served, form, seed=i, max_tokens=80))

    alone = [one(i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone


def test_several_choices_and_logprobs(served: Served) -> None:
    answer = ask(served, schema(MEAL), n=3, seed=5, logprobs=True, top_logprobs=2)
    for choice in answer["choices"]:
        jsonschema.validate(json.loads(choice["message"]["content"]), MEAL)
        spelled = bytes(b for t in choice["logprobs"]["content"] for b in t["bytes"])
        assert spelled.decode() == choice["message"]["content"]
        assert all(t["logprob"] <= 0 for t in choice["logprobs"]["content"])


def test_lark_and_tags(served: Served) -> None:
    lark = 'start: "sum(" NUMBER ("," NUMBER)* ")"\nNUMBER: /[1-9][0-9]{0,2}/\n'
    text = content(ask(served, {"guided_grammar": lark}, seed=1, max_tokens=120))
    assert re.fullmatch(r"sum\([1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*\)?|sum\(.*", text), text
    tags = {"response_format": {"type": "structural_tag", "triggers": ["a"], "structures": [
        {"begin": "a", "schema": {"enum": [1, 2]}, "end": "!"}]}}
    text = content(ask(served, tags, seed=1, max_tokens=60))
    assert re.fullmatch(r"([^a]*a[12]!)*[^a]*(a[12]?)?", text, re.S), text


def test_hostile_forms_cost_little_and_hurt_nobody(served: Served) -> None:
    nested: Any = {}
    for _ in range(12):
        nested = {"anyOf": [nested, {"type": "array", "items": nested}]}
    forms: list[dict[str, Any]] = [
        {"guided_regex": "(((a{0,99}){0,99}){0,99}){0,99}"},
        {"guided_regex": "(" * 5000 + ")" * 5000},
        {"guided_regex": "[\\p{L}\\p{N}]{1000}" * 20},
        {"guided_json": {"type": "string", "minLength": 2**40}},
        {"guided_json": {"type": "array", "minItems": 2**31, "items": {}}},
        {"guided_json": {"enum": [str(i) * 10 for i in range(20000)]}},
        {"guided_json": {"properties": {f"p{i}": {"type": "integer"} for i in range(3000)}}},
        {"guided_json": nested},
        {"guided_choice": [f"choice {i}" for i in range(9999)]},
        {"guided_json": {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {
            **{f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(18000)}, "a18000": {}}}},
        {"guided_grammar": "start: a0\n" + "".join(f"a{i}: a{i + 1}\n" for i in range(50000))
                           + "a50000: \"x\"\n"},
        {"guided_grammar": "start: start start | \"a\""},
        {"guided_grammar": "start: a\na: b a | a b |\nb: \"x\"?"},
    ]
    for form in forms:
        begin = time.monotonic()
        reply = served.post("/v1/chat/completions", {
            "model": "smollm2", "messages": ASK, "max_tokens": 4, **form})
        assert reply.status_code in (200, 400), (reply.status_code, reply.text[:300])
        assert time.monotonic() - begin < 20, str(form)[:80]
    assert served.get("/health").status_code == 200


def test_no_answer_was_invalid(served: Served) -> None:
    ask(served, schema(MEAL), seed=1)
    page = served.get("/metrics").text
    counts = dict(re.findall(r'^tessera_structured_outputs_total\{.*result="(\w+)"\} (\d+)', page,
                             re.M))
    assert int(counts["valid"]) > 0 and int(counts["invalid"]) == 0, counts
