"""Log-probabilities from outside: against stored reference values, and for lm-evaluation-harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED, Served, read_jsonl

HERE = Path(__file__).parent


def score(served: Served, prompts: Any, **fields: Any) -> list[dict[str, Any]]:
    answer = served.post("/v1/completions", {"model": "smollm2", "prompt": prompts, "echo": True,
                                             "logprobs": 1, "max_tokens": 0, **fields})
    assert answer.status_code == 200, answer.text
    return [choice["logprobs"] for choice in answer.json()["choices"]]


def test_prompt_logprobs_are_those_of_the_reference(served: Served) -> None:
    """8-bit activations move single values; for the mean the fixtures allow 0.02."""
    rows = [r for r in read_jsonl(SHARED / "fixtures/model_smollm2/logits.jsonl")
            if r.get("prompt_logprobs")]
    ours, reference = [], []
    for row in rows:
        (info,) = score(served, row["ids"])
        assert info["token_logprobs"][0] is None
        assert len(info["token_logprobs"]) == len(row["ids"])
        ours += info["token_logprobs"][1:]
        reference += row["prompt_logprobs"]
    assert len(ours) == len(reference) > 100
    mean = sum(ours) / len(ours)
    assert mean == pytest.approx(sum(reference) / len(reference), abs=0.02)


def test_scores_do_not_depend_on_cache_company_or_length(served: Served) -> None:
    ids = read_jsonl(SHARED / "fixtures/model_smollm2/logits.jsonl")[-1]["ids"][:300]
    (alone,) = score(served, ids, cache_prompt=False)
    for lengths in ([300], [120, 300, 33], [17, 300]):
        for length, info in zip(lengths, score(served, [ids[:n] for n in lengths])):
            assert info["token_logprobs"] == alone["token_logprobs"][:length]
            assert info["text_offset"] == alone["text_offset"][:length]
    # The answer's own logprobs are those that a longer prompt gets.
    answer = served.post("/v1/completions", {"model": "smollm2", "prompt": ids[:100], "logprobs": 1,
                                             "temperature": 0, "max_tokens": 8, "echo": True,
                                             "ignore_eos": True})
    info = answer.json()["choices"][0]["logprobs"]
    made = served.post("/v1/completions", {"model": "smollm2", "prompt": ids[:100], "max_tokens": 8,
                                           "temperature": 0, "ignore_eos": True, "logprobs": 1})
    assert info["token_logprobs"][100:] == made.json()["choices"][0]["logprobs"]["token_logprobs"]


def harness(served: Served, task: str, out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--tasks", task,
               "--model_args", f"base_url={served.url}/v1/completions,model=smollm2,num_concurrent=2",
               "--include_path", str(HERE / "lm_eval_task"), "--output_path", str(out), "--log_samples"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(out / "home")}
    done = subprocess.run(command, cwd=HERE, capture_output=True, timeout=300, check=False,
                          env={**os.environ, **offline})
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    (results,) = out.rglob("results_*.json")
    (samples,) = out.rglob("samples_*.jsonl")
    return json.loads(results.read_text())["results"][task], read_jsonl(samples)


def test_lm_evaluation_harness_scores_choices(served: Served, tmp_path: Path) -> None:
    results, samples = harness(served, "tessera_choice", tmp_path)
    assert results["acc,none"] >= 0.75, "sensible continuations beat absurd ones"
    assert len(samples) == 8
    for sample in samples:
        doc = sample["doc"]
        context = served.post("/tokenize", {"prompt": doc["question"]}).json()["tokens"]
        for choice, response in zip(doc["choices"], sample["filtered_resps"], strict=True):
            (info,) = score(served, f"{doc['question']} {choice}")
            ours = info["token_logprobs"][len(context):]
            assert float(response[0]) == pytest.approx(sum(ours), abs=1e-4)


def test_lm_evaluation_harness_generates(served: Served, tmp_path: Path) -> None:
    results, samples = harness(served, "tessera_answer", tmp_path)
    assert "exact_match,none" in results and len(samples) == 2
    for sample in samples:
        answer = served.post("/v1/completions",
                             {"model": "smollm2", "prompt": sample["doc"]["question"],
                              "temperature": 0, "max_tokens": 8, "stop": ["\n", "."]})
        assert sample["resps"][0][0] == answer.json()["choices"][0]["text"]
