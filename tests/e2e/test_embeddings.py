"""/v1/embeddings with the real model, by the unmodified openai client and against the model's own
log-probabilities: the last hidden state times the output matrix are the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import openai
import pytest

from conftest import GGUF, Served, tessera

TEXTS = ["Rivers are long.", "The cat sat on the mat.", "A kitten sat on a rug."]


@pytest.fixture(scope="module")
def client(served: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)


def embed(served: Served, value: Any, **fields: Any) -> np.ndarray:
    reply = served.post("/v1/embeddings", {"model": "smollm2", "input": value, **fields})
    assert reply.status_code == 200, reply.text
    return np.array([entry["embedding"] for entry in reply.json()["data"]])


def test_the_last_hidden_state_gives_the_logits(served: Served) -> None:
    dump = tessera("inspect", GGUF, "--dump", "token_embd.weight")
    assert dump.returncode == 0, dump.stderr.decode()
    hidden = embed(served, TEXTS[1], pooling="last", normalize=False)[0]
    matrix = np.frombuffer(dump.stdout, dtype="<f4").reshape(-1, hidden.size)
    logits = matrix.astype(np.float64) @ hidden
    logprobs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    answer = served.post("/v1/completions", {
        "model": "smollm2", "prompt": TEXTS[1], "max_tokens": 1, "temperature": 0,
        "prompt_logprobs": 0, "logprobs": 5}).json()
    tops = answer["choices"][0]["logprobs"]["top_logprobs"][0]
    wanted = sorted(tops.values(), reverse=True)
    # The server multiplies activations rounded to 8 bits.
    assert np.abs(np.sort(logprobs)[::-1][:5] - wanted).max() < 0.15


def test_the_mean_is_that_of_every_position(served: Served) -> None:
    tokens = served.post("/tokenize", {"prompt": TEXTS[1]}).json()["tokens"]
    each = [embed(served, tokens[:i + 1], pooling="last", normalize=False)[0]
            for i in range(len(tokens))]
    mean = embed(served, tokens, pooling="mean", normalize=False)[0]
    assert np.allclose(np.mean(each, axis=0), mean, rtol=1e-5, atol=1e-5)


def test_answers_do_not_depend_on_company_or_cache(served: Served) -> None:
    alone = [embed(served, text)[0] for text in TEXTS]
    together = embed(served, TEXTS)
    assert (np.array(alone) == together).all()
    for pooling in ("mean", "last"):
        fresh = embed(served, TEXTS[0] * 40, pooling=pooling, cache_prompt=False)
        for _ in range(2):
            assert (embed(served, TEXTS[0] * 40, pooling=pooling) == fresh).all()


def test_the_client_reads_base64_and_dimensions(served: Served, client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model="smollm2", input=TEXTS, dimensions=64)
    floats = embed(served, TEXTS, dimensions=64)
    got = np.array([entry.embedding for entry in answer.data])
    assert got.shape == (3, 64) and np.allclose(got, floats, atol=1e-7)
    assert np.allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)
    assert answer.usage.prompt_tokens == sum(
        served.post("/tokenize", {"prompt": text}).json()["count"] for text in TEXTS)
    cosine = got @ got.T
    assert cosine[1, 2] > cosine[0, 1]


@pytest.mark.parametrize("field,value", [("dimensions", 0), ("dimensions", 100_000), ("input", []),
                                         ("pooling", "max"), ("encoding_format", "hex"),
                                         ("input", [[]]), ("input", {"text": "x"})])
def test_bad_input_names_the_field(served: Served, field: str, value: Any) -> None:
    reply = served.post("/v1/embeddings", {"model": "smollm2", "input": "x", field: value})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == field
