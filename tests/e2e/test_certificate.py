"""The parity certificate's figures, computed a second time: from stored logits, and with numpy from the weights."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from conftest import ROOT, TINY, tessera
from quantised_repository import read_floats

SOURCE = TINY / "hf"
CONFIG = json.loads((SOURCE / "config.json").read_text())
POSITIONS = 511


def run(*args: str | Path) -> str:
    done = tessera(*args)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def text_ids() -> list[int]:
    """Tokens of the built-in text that certificates score."""
    text = re.search(r'R"\((.*)\)"', (ROOT / "src/certify/text.cc").read_text(), re.DOTALL)
    assert text
    done = tessera("tokenize", "--model", SOURCE, stdin=(json.dumps({"text": text[1]}) + "\n").encode())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["ids"][:POSITIONS + 1]


def certified(model: Path, cache: Path, quantize: str) -> dict[str, Any]:
    return json.loads(run("compile", model, "--quantize", quantize, "--cache-dir", cache, "--json"))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@pytest.mark.parametrize("quantize", ["q8_0", "q4_0"])
def test_nll_kl_and_agreement_are_those_of_the_logits(tmp_path: Path, quantize: str) -> None:
    ids = text_ids()
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    report = certified(SOURCE, tmp_path / "cache", quantize)
    original = run("compile", SOURCE, "--cache-dir", tmp_path / "cache").strip()
    logs = []
    for name, bundle in (("program", report["bundle"]), ("original", original)):
        run("perplexity", bundle, tmp_path / "ids.json", "--ids", "--window", "1024", "--save", tmp_path / name)
        logits = np.fromfile(tmp_path / name, "<f4").reshape(POSITIONS, CONFIG["vocab_size"])
        logs.append(log_softmax(logits.astype(np.float64)))
    program, original = logs
    parity, comparison = report["parity"], report["parity"]["comparison"]
    assert parity["tokens"] == POSITIONS
    rows = np.arange(POSITIONS)
    assert parity["program_nll"] == pytest.approx(-program[rows, ids[1:]].mean(), rel=1e-9)
    assert comparison["original_nll"] == pytest.approx(-original[rows, ids[1:]].mean(), rel=1e-9)
    kl = (np.exp(original) * (original - program)).sum(-1).mean()
    assert kl > 0 and comparison["mean_kl"] == pytest.approx(kl, rel=1e-6)
    assert comparison["same_top1"] == pytest.approx((program.argmax(-1) == original.argmax(-1)).mean(), rel=1e-12)
    for key, file in (("tokenizer_sha256", "tokenizer.json"), ("chat_template_sha256", "chat_template.jinja")):
        assert parity[key] == hashlib.sha256((Path(report["bundle"]) / file).read_bytes()).hexdigest()


def on_grid(weight: np.ndarray, levels: int) -> np.ndarray:
    """The nearest matrix that blocks of 32 with codes -levels..levels - 1 hold exactly: scales are powers of two, and
    every block has its lowest code."""
    blocks = weight.reshape(-1, 32)
    scales = 2.0 ** np.ceil(np.log2(np.abs(blocks).max(-1, keepdims=True) / levels))
    codes = np.clip(np.round(blocks / scales), -levels, levels - 1)
    codes[:, 0] = -levels
    return (codes * scales).reshape(weight.shape).astype(np.float32)


def rounded_to_nearest(weight: np.ndarray) -> np.ndarray:
    """Q4_0 as its reference encoder makes it."""
    blocks = weight.reshape(-1, 32).astype(np.float64)
    extremes = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[:, None], -1)
    scales = (extremes / -8).astype(np.float16).astype(np.float64)
    return (np.clip(np.round(blocks / scales), -8, 7) * scales).reshape(weight.shape)


@pytest.mark.parametrize("damaged", range(CONFIG["num_hidden_layers"]))
def test_the_worst_layer_is_the_one_whose_weights_were_rounded(tmp_path: Path, damaged: int) -> None:
    """Attention and feed-forward add nothing to the stream, so every layer's keys and values are products of the
    normalised embeddings; all matrices but the values of one layer survive quantising to Q4_0."""
    tensors = read_floats(SOURCE)
    for name, values in tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensors[name] = np.zeros_like(values)
        elif name.endswith("_proj.weight") and name != f"model.layers.{damaged}.self_attn.v_proj.weight":
            tensors[name] = on_grid(values, 8)
    model = tmp_path / "model"
    shutil.copytree(SOURCE, model, ignore=shutil.ignore_patterns("*.safetensors*"))
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()}, model / "model.safetensors")

    comparison = certified(model, tmp_path / "cache", "q4_0")["parity"]["comparison"]
    assert comparison["worst_layer"] == damaged
    layer = f"model.layers.{damaged}."
    stream = tensors["model.embed_tokens.weight"][text_ids()[:POSITIONS]].astype(np.float64)
    normed = stream / np.sqrt((stream**2).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"])
    normed *= tensors[layer + "input_layernorm.weight"]
    keys = normed @ tensors[layer + "self_attn.k_proj.weight"].T  # Their length is what rope keeps.
    values = tensors[layer + "self_attn.v_proj.weight"]
    difference = normed @ (values - rounded_to_nearest(values)).T
    nearest = np.sqrt((difference**2).sum() / ((keys**2).sum() + ((normed @ values.T)**2).sum()))
    # The search for scales beats rounding to nearest, by some tenths.
    assert 0.5 * nearest < comparison["worst_layer_error"] < 1.02 * nearest
