"""Numerics of the real model through the verbs, against the float64 reference."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import GGUF, SHARED, TINY, Served, read_jsonl, tessera

MODEL = SHARED / "fixtures/model_smollm2"


def test_mean_nll_of_the_reference_text(cache: Path, tmp_path: Path) -> None:
    """1,536 tokens; the tolerance for 8-bit activations is 0.02 (fixtures README)."""
    want = json.loads((MODEL / "nll.json").read_text())
    (tmp_path / "ids.json").write_text(json.dumps(want["ids"]))
    done = tessera("perplexity", GGUF, tmp_path / "ids.json", "--ids", "--window", "2048", "--json",
                   "--cache-dir", cache)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["tokens"] == len(want["ids"]) - 1
    assert abs(got["mean_nll"] - want["mean_nll"]) < 0.02
    assert abs(got["top1_accuracy"] - want["top1_accuracy"]) < 0.01


def test_greedy_continuation_follows_the_reference(served: Served) -> None:
    """Equal as long as the reference's margin exceeds 0.5."""
    compared = 0
    for row in read_jsonl(MODEL / "logits.jsonl"):
        steps = row["greedy"]
        body = {"model": "smollm2", "prompt": row["ids"], "max_tokens": len(steps), "temperature": 0,
                "ignore_eos": True, "logprobs": 1, "return_token_ids": True}
        reply = served.post("/v1/completions", body).json()
        text = reply["choices"][0]["text"]
        sure = []
        for step in steps:
            if step["margin"] < 0.5:
                break
            sure.append(step["id"])
        want = served.post("/detokenize", {"tokens": sure}).json()["prompt"]
        assert text.startswith(want), row["id"]
        compared += len(sure)
    assert compared > 20


def test_three_sources_give_the_same_answer(tmp_path: Path) -> None:
    """The tiny model as GGUF, as one safetensors and as two shards: the same numbers."""
    answers = []
    (tmp_path / "text").write_text("the quick brown fox jumps over the lazy dog " * 20)
    for source in ("tiny-f16.gguf", "hf", "hf_sharded"):
        done = tessera("perplexity", TINY / source, tmp_path / "text", "--json", "--cache-dir", tmp_path)
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert answers[1] == answers[2]
    assert abs(answers[0]["mean_nll"] - answers[1]["mean_nll"]) < 1e-3


def test_kl_against_itself_is_zero(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one two three " * 50)
    args = [TINY / "hf", tmp_path / "text", "--json", "--cache-dir", tmp_path]
    assert tessera("perplexity", *args, "--save", tmp_path / "ref").returncode == 0
    got = json.loads(tessera("perplexity", *args, "--against", tmp_path / "ref").stdout)
    assert got["mean_kl"] == 0 and got["same_top1"] == 1


def test_plan_from_headers(tmp_path: Path) -> None:
    done = tessera("plan", GGUF, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert 85e6 < plan["memory"]["weights_bytes"] < 110e6
    assert plan["parameters"] > 134e6
    assert tessera("plan", GGUF).returncode == 0
