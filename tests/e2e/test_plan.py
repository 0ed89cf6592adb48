"""plan: sizes that come true, models that no machine here holds, and refusals before work."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import GGUF, ROOT, TESSERA, TINY, start_server, tessera
from splat_repository import write_splats


def plan(*args: str | Path) -> dict[str, Any]:
    done = tessera("plan", *args, "--json")
    assert done.returncode == 0, done.stderr.decode()
    return dict(json.loads(done.stdout))


LLAMA = {"8B": (32, 4096, 14336, 32), "70B": (80, 8192, 28672, 64),
         "405B": (126, 16384, 53248, 128)}


def llama_folder(folder: Path, size: str) -> list[tuple[str, list[int]]]:
    """Configuration and tokenizer; gives the tensors that are still to be written."""
    layers, hidden, ffn, heads = LLAMA[size]
    vocab, kv = 128256, 8 * 128
    folder.mkdir()
    config = json.loads((TINY / "hf/config.json").read_text())
    config.update(num_hidden_layers=layers, hidden_size=hidden, intermediate_size=ffn,
                  num_attention_heads=heads, num_key_value_heads=8, head_dim=128, vocab_size=vocab,
                  max_position_embeddings=131072, torch_dtype="bfloat16",
                  tie_word_embeddings=False)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes((TINY / "hf/tokenizer.json").read_bytes())
    tensors: list[tuple[str, list[int]]] = [("model.embed_tokens.weight", [vocab, hidden])]
    for i in range(layers):
        at = f"model.layers.{i}"
        tensors += [(f"{at}.input_layernorm.weight", [hidden]),
                    (f"{at}.post_attention_layernorm.weight", [hidden]),
                    (f"{at}.self_attn.q_proj.weight", [hidden, hidden]),
                    (f"{at}.self_attn.k_proj.weight", [kv, hidden]),
                    (f"{at}.self_attn.v_proj.weight", [kv, hidden]),
                    (f"{at}.self_attn.o_proj.weight", [hidden, hidden]),
                    (f"{at}.mlp.gate_proj.weight", [ffn, hidden]),
                    (f"{at}.mlp.up_proj.weight", [ffn, hidden]),
                    (f"{at}.mlp.down_proj.weight", [hidden, ffn])]
    tensors += [("model.norm.weight", [hidden]), ("lm_head.weight", [vocab, hidden])]
    return tensors


def llama_repository(folder: Path, size: str) -> Path:
    """Configuration, tokenizer and the headers of bfloat16 weights: a few kilobytes of disk."""
    tensors = llama_folder(folder, size)
    header: dict[str, Any] = {}
    end = 0
    for name, shape in tensors:
        begin, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return folder


@pytest.mark.parametrize("size,billions", [("8B", 8.03), ("70B", 70.55), ("405B", 405.85)])
def test_large_models_are_planned_from_headers(tmp_path: Path, size: str,
                                               billions: float) -> None:
    model = llama_repository(tmp_path / size, size)
    layers, *_ = LLAMA[size]
    facts = plan(model, "--no-probe", "--max-seq-len", "8192", "--device-memory", "192Gi")
    assert facts["parameters"] / 1e9 == pytest.approx(billions, rel=1e-3)
    weights = facts["memory"]["weights_bytes"]
    assert weights == pytest.approx(2 * facts["parameters"], rel=0.001)
    assert facts["memory"]["kv_bytes_per_token"] == layers * 2 * 8 * 128 * 2
    assert [rank["tp"] for rank in facts["ranks"]] == [1, 2, 4, 8]
    assert facts["minimum_tp"] == {"8B": 1, "70B": 1, "405B": 8}[size]
    assert facts["ranks"][3]["weights_bytes"] < weights / 5  # The embedding table is whole.
    formats = {row["quantize"]: row for row in facts["formats"]}
    assert list(formats) == ["none", "q8_0", "q6_k", "q4_k", "q4_0"]
    assert formats["q8_0"]["weights_bytes"] == pytest.approx(weights * 34 / 64, rel=0.01)
    for row in formats.values():
        assert row["fits"] == (row["total_bytes"] <= facts["memory"]["available_bytes"])
    assert facts["disk"]["source_bytes"] == pytest.approx(weights, rel=0.001)


def test_a_405b_of_patterns_is_compiled_sharded_inspected_and_planned(tmp_path: Path) -> None:
    """Splats: the whole path of a model that no machine here holds, in megabytes."""
    repository = tmp_path / "405B"
    write_splats(repository / "model.irpa", llama_folder(repository, "405B"), b"\0\x3c")
    done = tessera("compile", repository, "--tp", "8", "--cache-dir", tmp_path / "cache",
                   "--output-artifacts-dir", tmp_path / "bundle")
    assert done.returncode == 0, done.stderr.decode()
    bundle = tmp_path / "bundle"
    files = {path.name: path.stat().st_size for path in bundle.iterdir()}
    assert sum(files.values()) < 8 << 20
    assert {f"model.rank{rank}.irpa" for rank in range(8)} < set(files)

    done = tessera("inspect", bundle, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert b"405B" in done.stdout
    done = tessera("inspect", bundle / "model.rank7.irpa", "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert b"shard.7" in done.stdout

    flags = ("--no-probe", "--max-seq-len", "8192", "--device-memory", "192Gi")
    of_bundle, of_source = plan(bundle, *flags), plan(repository, *flags)
    for facts in (of_bundle, of_source):
        assert facts["parameters"] / 1e9 == pytest.approx(405.85, rel=1e-3)
        assert facts["memory"]["weights_bytes"] == pytest.approx(2 * facts["parameters"], rel=1e-3)
        assert facts["minimum_tp"] == 8 and not facts["fits"]
        assert facts["disk"]["bundle_bytes"] < 8 << 20, "patterns take no disk"
    assert of_source["disk"]["source_bytes"] < 1 << 20
    weights = [rank["weights_bytes"] for rank in of_bundle["ranks"]]
    assert weights == [rank["weights_bytes"] for rank in of_source["ranks"]]
    assert weights == sorted(weights, reverse=True)
    done = tessera("run", bundle, "-p", "a", "-n", "1")
    assert done.returncode == 1 and b"are patterns (splats)" in done.stderr, done.stderr


def test_what_no_format_makes_small_enough_is_refused_before_work(tmp_path: Path) -> None:
    model = llama_repository(tmp_path / "405B", "405B")
    facts = plan(model, "--no-probe")
    assert not facts["fits"] and facts["fit"]["kv_positions"] == 0
    for verb in (("run", model, "-p", "a"), ("serve", model, "--port", "0")):
        begin = time.monotonic()
        done = tessera(*verb, "--cache-dir", tmp_path / "cache")
        assert done.returncode == 1
        said = done.stderr.decode()
        assert "405B needs 81" in said and "are available; what helps" in said, said
        assert "packing" not in said and time.monotonic() - begin < 30
    assert not list((tmp_path / "cache").glob("bundles/*/*"))


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.parametrize("by", ["repository", "bundle"])
def test_resident_memory_comes_true(cache: Path, tmp_path: Path, by: str) -> None:
    done = tessera("compile", GGUF, "--cache-dir", cache)
    model = GGUF if by == "repository" else Path(done.stdout.decode().strip())
    tokens = 512
    memory = plan(model, "--prompt", str(tokens), "--no-probe")["memory"]
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name", "m")
    try:
        time.sleep(1)  # Memory is found ahead while nobody waits.
        assert resident(server.process.pid) == pytest.approx(memory["resident_bytes_at_start"],
                                                             rel=0.03)
        prompt = [(i * 7919) % 30000 + 100 for i in range(tokens)]
        answer = server.post("/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": 1})
        assert answer.status_code == 200, answer.text
        time.sleep(1)
        assert resident(server.process.pid) == pytest.approx(memory["resident_bytes_after_prompt"],
                                                             rel=0.03)
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0


def test_resident_memory_of_a_wide_vocabulary_comes_true(tmp_path: Path) -> None:
    """A table that is only looked up: of 64 MB a prompt reads one, and no more stays."""
    spec = importlib.util.spec_from_file_location("random_llama", ROOT / "bench/random_llama.py")
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    vocabulary = 32000
    bench.SHAPES["wide"] = (2, 1024, 2048, 16, 4, 64, vocabulary)
    repository = tmp_path / "wide"
    repository.mkdir()
    bench.write_config(repository, "wide", 2, TINY / "hf")
    tokenizer = json.loads((repository / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    known = {*words.values(), *(token["id"] for token in tokenizer["added_tokens"])}
    words.update({f"word{i}": i for i in range(vocabulary) if i not in known})
    (repository / "tokenizer.json").write_text(json.dumps(tokenizer))
    bench.write_shard(repository / "model.safetensors", bench.tensors_of("wide", 2),
                      bench.pool_of_values())
    tokens = 512
    memory = plan(repository, "--prompt", str(tokens), "--no-probe")["memory"]
    server = start_server(tmp_path / "log", repository, "--cache-dir", tmp_path / "cache",
                          "--served-model-name", "m")
    try:
        time.sleep(1)
        before = resident(server.process.pid)
        prompt = [(i * 7919) % vocabulary for i in range(tokens)]
        answer = server.post("/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": 1,
                                                 "logit_bias": {"100": 100}, "temperature": 0})
        assert answer.status_code == 200, answer.text
        time.sleep(1)
        came = resident(server.process.pid) - before
        expected = memory["resident_bytes_after_prompt"] - memory["resident_bytes_at_start"]
        assert came < expected + (8 << 20), (came, expected)
        assert resident(server.process.pid) == pytest.approx(memory["resident_bytes_after_prompt"],
                                                             rel=0.03)
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0


def peak_of_compiling(log: Path, *args: str | Path) -> int:
    """VmHWM as it is last seen: it only grows, and the last stage but syncing is no peak of its own."""
    peak = 0
    with log.open("wb") as output:
        process = subprocess.Popen([str(TESSERA), "compile", *map(str, args)], stdout=output,
                                   stderr=output)
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if "tessera" in status.split("\n")[0] and "VmHWM:" in status:
                peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
            time.sleep(0.002)
    assert process.returncode == 0, log.read_text()
    return peak


def check_peak(peak: int, expected: dict[str, Any]) -> None:
    """A bound: how many pages of a file a fault maps is the page cache's to decide."""
    assert 0.98 * peak <= expected["peak_bytes"] <= 1.25 * peak + (16 << 20), (peak, expected)


@pytest.fixture(scope="module")
def random_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random") / "model"
    subprocess.run([sys.executable, str(ROOT / "bench/random_llama.py"), str(folder), "--shape",
                    "135M", "--layers", "8", "--tokenizer", str(TINY / "hf")], check=True)
    return folder


@pytest.mark.parametrize("flags", [(), ("--quantize", "q4_k", "--no-certificate"),
                                   ("--quantize", "q4_k")])
def test_memory_of_compiling_comes_true(random_repository: Path, tmp_path: Path,
                                        flags: tuple[str, ...]) -> None:
    expected = plan(random_repository, "--no-probe", *flags)["compiling"]
    peak = peak_of_compiling(tmp_path / "log", random_repository, "--cache-dir", tmp_path / "cache",
                             *flags)
    check_peak(peak, expected)
    if flags[-1:] == ("q4_k",):
        # A layer or the head of the original at a time, not both programs.
        source = sum(file.stat().st_size for file in random_repository.glob("*.safetensors"))
        assert 0 < expected["certificate"]["mapped_bytes"] < 0.8 * source


def test_memory_of_compiling_a_gguf_comes_true(tmp_path: Path) -> None:
    expected = plan(GGUF, "--no-probe")["compiling"]
    peak = peak_of_compiling(tmp_path / "log", GGUF, "--cache-dir", tmp_path / "cache")
    check_peak(peak, expected)


def test_speed_is_measured_on_layers_of_the_model() -> None:
    facts = plan(GGUF, "--prompt", "64")
    predicted = facts["predicted"]
    assert predicted["layers_run"] == 30 and predicted["prompt_tokens"] == 64
    assert predicted["prefill_tokens_per_second"] == pytest.approx(64 / predicted["ttft_seconds"])
    assert predicted["decode_tokens_per_second"] > 0
    assert "decode_tokens_per_second" not in plan(GGUF, "--no-probe")["predicted"]


@pytest.mark.parametrize("size,device,begins", [
    ("8B", "80G", "--tp 1: "), ("70B", "80G", "--tp 2: "), ("70B", "16G", "--quantize q8_0 --tp 8"),
    ("405B", "40G", "--quantize q4_k --tp 8: "), ("405B", "4G", "devices with more memory, ")])
def test_ranks_are_recommended_for_devices(tmp_path: Path, size: str, device: str,
                                           begins: str) -> None:
    model = llama_repository(tmp_path / size, size)
    facts = plan(model, "--no-probe", "--max-seq-len", "8192", "--device-memory", device)
    assert facts["recommendation"].startswith(begins), facts["recommendation"]
    if facts["minimum_tp"]:
        assert begins.startswith(f"--tp {facts['minimum_tp']}:")


def test_a_bundle_that_does_not_fit_is_planned(cache: Path) -> None:
    bundle = tessera("compile", GGUF, "--cache-dir", cache).stdout.decode().strip()
    facts = plan(bundle, "--no-probe", "--sequences", str(1 << 20))
    assert not facts["fits"] and 0 < facts["fit"]["sequences"] < 1 << 20
    assert facts["recommendation"].startswith("fewer sequences: KV for ")


def test_the_table_names_what_json_has() -> None:
    done = tessera("plan", GGUF, "--max-seq-len", "2048", "--sequences", "4", "--no-probe")
    said = done.stdout.decode()
    assert done.returncode == 0
    for part in ("134.5 M parameters, mostly Q4_1", "4 x 2048 positions", "per rank     tp1",
                 "recommended  the model fits as it is"):
        assert part in said, said


def test_formats_are_asked_for_by_name(tmp_path: Path) -> None:
    model = llama_repository(tmp_path / "8B", "8B")
    flags = (model, "--no-probe", "--max-seq-len", "4096")
    sizes = {row["quantize"]: row["weights_bytes"] for row in plan(*flags)["formats"]}
    assert plan(*flags, "--quantize", "q4_k")["memory"]["weights_bytes"] == sizes["q4_k"]
    assert plan(*flags, "--quantize", "auto")["memory"]["weights_bytes"] in sizes.values()
    done = tessera("plan", *flags, "--quantize", "q5_9")
    assert done.returncode == 1 and b'quantize "q5_9" is not known' in done.stderr, done.stderr
