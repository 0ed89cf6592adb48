"""The commands that started it, as they are printed: a name, a target, a sharding, a folder."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any, Iterator

import numpy
import pytest

from conftest import TESSERA, TINY, start_server, tessera
from fake_hub import FakeHub

LAYERS, HIDDEN, FFN, HEADS, HEAD_DIM, VOCAB = 2, 256, 512, 8, 32, 512


def random_llama(folder: Path) -> Path:
    """A repository of the llama architecture whose 8 KV heads let tp8 be tried."""
    folder.mkdir()
    config = json.loads((TINY / "hf/config.json").read_text())
    config.update(num_hidden_layers=LAYERS, hidden_size=HIDDEN, intermediate_size=FFN,
                  num_attention_heads=HEADS, num_key_value_heads=HEADS, head_dim=HEAD_DIM,
                  vocab_size=VOCAB, torch_dtype="float32", tie_word_embeddings=False)
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if (TINY / "hf" / name).exists():
            (folder / name).write_bytes((TINY / "hf" / name).read_bytes())
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, HIDDEN),
                                          "model.norm.weight": (HIDDEN,),
                                          "lm_head.weight": (VOCAB, HIDDEN)}
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}.{norm}.weight"] = (HIDDEN,)
        for part in "qkvo":
            shapes[f"{at}.self_attn.{part}_proj.weight"] = (HIDDEN, HIDDEN)
        shapes[f"{at}.mlp.gate_proj.weight"] = (FFN, HIDDEN)
        shapes[f"{at}.mlp.up_proj.weight"] = (FFN, HIDDEN)
        shapes[f"{at}.mlp.down_proj.weight"] = (HIDDEN, FFN)
    numbers = numpy.random.default_rng(8)
    header: dict[str, Any] = {}
    data = b""
    for name, shape in shapes.items():
        values = numbers.normal(0, 0.08, shape).astype("<f4") + ("norm" in name)
        begin, data = len(data), data + values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeHub]:
    with FakeHub() as fake:
        repository = random_llama(tmp_path_factory.mktemp("llama") / "repository")
        for name in ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-405B-Instruct"):
            fake.add_repository(name, repository)
        yield fake


@pytest.fixture(scope="module")
def env(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "HOME": str(home),
            "TESSERA_CACHE": "", "XDG_CACHE_HOME": "", "HF_TOKEN": "", "HF_HUB_CACHE": "",
            "HF_HUB_OFFLINE": ""}


def greedy(*model: str | Path, env: dict[str, str]) -> bytes:
    done = tessera("run", *model, "-p", "The", "--raw", "-n", "12", "--temperature", "0", env=env)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def compiled(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """D1, D2 and D3 of `shark-compile`, run under that name."""
    root = tmp_path_factory.mktemp("shark")
    (root / "shark-compile").symlink_to(TESSERA)
    done = subprocess.run(
        [root / "shark-compile", "--hf-model=meta-llama/Llama-3.1-8B", f"--hf-cache-dir={root}/D1",
         "--compile-target=cpu", "--sharding-mode=tp8", f"--output-artifacts-dir={root}/D2",
         f"--output-dev-artifacts-dir={root}/D3"], env={**os.environ, **env}, capture_output=True,
        timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return root


def test_the_compile_command_makes_a_sharded_bundle(compiled: Path, env: dict[str, str]) -> None:
    names = {path.name for path in (compiled / "D2").iterdir()}
    assert {f"model.rank{i}.irpa" for i in range(8)} | {"model.irpa", "config.json"} <= names
    manifest = json.loads((compiled / "D2/manifest.json").read_text())
    assert manifest["source"]["repository"] == "meta-llama/Llama-3.1-8B"
    assert manifest["tensor_parallel"] == 8
    assert list((compiled / "D1").glob("models--meta-llama--Llama-3.1-8B/snapshots/*/config.json"))


def test_the_benchmark_command_runs_its_flagfile(compiled: Path) -> None:
    done = tessera("benchmark-module", f"--flagfile={compiled}/D3/benchmark-flags.txt",
                   "--benchmark_min_time=0.001")
    assert done.returncode == 0, done.stderr.decode()
    assert b"BM_prefill_bs1/process_time/real_time" in done.stdout


def test_the_serve_command_takes_a_web_address(env: dict[str, str], tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    flags = ["--model-path", "https://huggingface.co/meta-llama/Llama-3.1-405B-Instruct",
             "--device", "cpu", "--tp", "8", "--compile-target", "cpu", "--cache-dir",
             tmp_path / "cache"]
    for log, more, says in (("first", [], "stage export: no bundle of Llama-3.1-405B-Instruct yet"),
                            ("second", [], "reusing bundle"),
                            ("third", ["--ensure-compile"], "stage compile: asked for"),
                            ("fourth", ["--ensure-export"], "stage export: asked for")):
        server = start_server(tmp_path / log, *flags, *more)
        answer = server.post("/v1/completions", {"model": "Llama-3.1-405B-Instruct",
                                                 "prompt": "The", "max_tokens": 4})
        assert answer.status_code == 200, answer.text
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert says in server.log.read_text(), server.log.read_text()
    assert list((tmp_path / "cache/bundles/Llama-3.1-405B-Instruct").glob("cpu-tp8-*"))


def test_the_serve_command_takes_parts_with_their_ranks(compiled: Path, env: dict[str, str],
                                                        tmp_path: Path) -> None:
    made = compiled / "D2"
    ranks = [made / f"model.rank{i}.irpa" for i in range(8)]
    flags = ["--tokenizer_json", made / "tokenizer.json", "--model_config", made / "config.json",
             "--program", made / "program.json", "--parameters", made / "model.irpa", *ranks,
             "--device", "cpu"]
    server = start_server(tmp_path / "log", *flags)
    text = server.post("/v1/completions", {"model": "D2", "prompt": "The", "max_tokens": 12,
                                           "temperature": 0}).json()["choices"][0]["text"]
    server.process.terminate()
    assert server.process.wait(30) == 0
    one = greedy("meta-llama/Llama-3.1-8B", env=env)
    assert text.encode() == one.removesuffix(b"\n") and one == greedy(made, env=env)
    done = tessera("serve", *[flag for flag in flags if flag != ranks[5]], "--port", "0")
    assert done.returncode == 1 and b"model.rank5.irpa" in done.stderr, done.stderr
    twice = [ranks[4] if flag == ranks[5] else flag for flag in flags]
    done = tessera("serve", *twice, "--port", "0")
    assert done.returncode == 1 and b"model.rank4.irpa is named twice" in done.stderr, done.stderr


@pytest.mark.parametrize("flags", [
    ("--model-path", "meta-llama/Llama-3.1-8B", "--tp", "8"), ("meta-llama/Llama-3.1-8B",),
    ("--allow-uneven",), ("--ensure-export",), ("--cache-dir", "x"), ("--compile-target", "cpu"),
    ("--offline",), ("--verify",), ("--tensor-parallel-size", "2")])
def test_the_two_ways_exclude_each_other(compiled: Path, flags: tuple[str, ...]) -> None:
    done = tessera("serve", *flags, "--program", compiled / "D2/program.json")
    said = done.stderr.decode()
    assert done.returncode == 2 and len(said.strip().splitlines()) == 1
    assert "--ensure-export" in said and "--tokenizer_json" in said and "--tp" in said
