"""compile --quantize of a float model: how near the program stays, and what the certificate says of it."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import GGUF, SHARED, TINY, tessera, weights_of

NLL = json.loads((SHARED / "fixtures/model_smollm2/nll.json").read_text())

# How far the mean NLL of the reference's text may move, and KL of the certificate's text at most. SmolLM2's rows of
# 576 are no super-blocks: q4_k and q6_k fall back to Q5_0 and Q8_0 where they read the hidden state.
BOUNDS = {"q8_0": (0.02, 0.01), "q6_k": (0.02, 0.01), "q4_k": (0.08, 0.06), "q4_0": (0.35, 0.4)}

COARSEST = "q4_0"


def compile_json(model: Path, cache: Path, *args: str) -> dict[str, Any]:
    done = tessera("compile", model, "--cache-dir", cache, "--json", *args)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def nll_of(bundle: str, ids: Path) -> float:
    done = tessera("perplexity", bundle, ids, "--ids", "--window", "1536", "--json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["mean_nll"]


def test_every_quantisation_stays_near_the_reference(smollm2_f16: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps(NLL["ids"]))
    sizes = {}
    for name, (nll_bound, kl_bound) in BOUNDS.items():
        report = compile_json(smollm2_f16, tmp_path, "--quantize", name)
        sizes[name] = report["parameter_bytes"]
        if name == COARSEST:  # For the finer ones the certificate's figures (test_certificate.py) must do.
            assert abs(nll_of(report["bundle"], ids) - NLL["mean_nll"]) < nll_bound, name
        parity = report["parity"]
        assert parity["kind"] == "measured" and parity["tokens"] == 511
        comparison = parity["comparison"]
        assert 0 < comparison["mean_kl"] < kl_bound, name
        assert abs(parity["program_nll"] - comparison["original_nll"]) < nll_bound, name
        assert 0.6 < comparison["same_top1"] < 1
        assert 0 <= comparison["worst_layer"] < 30 and 0 < comparison["worst_layer_error"] < 0.5
        assert any(note.startswith(f"{name}: matrices quantised: ") for note in report["notes"])
        assert not list(tmp_path.glob("bundles/*/*/original*"))
    assert sizes["q8_0"] > sizes["q4_k"] > sizes["q4_0"]


def test_the_certificate_can_be_left_out_and_says_so(smollm2_f16: Path, tmp_path: Path) -> None:
    report = compile_json(smollm2_f16, tmp_path, "--quantize", "q8_0", "--no-certificate")
    assert report["parity"]["kind"] == "absent" and report["parity"]["reason"] == "--no-certificate"
    assert "no parity: --no-certificate" in report["notes"]


def test_weights_that_are_kept_are_exact(tmp_path: Path) -> None:
    report = compile_json(GGUF, tmp_path)
    parity = report["parity"]
    assert parity["kind"] == "exact" and "comparison" not in parity
    files = json.loads((Path(report["bundle"]) / "manifest.json").read_text())["files"]
    hashes = {file["name"]: file["sha256"] for file in files}
    assert parity["tokenizer_sha256"] == hashes["tokenizer.json"]
    assert parity["chat_template_sha256"] == hashes["chat_template.jinja"]


def test_a_changed_program_keeps_the_figures_of_its_parameters(tmp_path: Path) -> None:
    first = compile_json(TINY / "hf", tmp_path, "--quantize", "q8_0")
    second = compile_json(TINY / "hf", tmp_path, "--quantize", "q8_0", "--bs-decode", "2")
    assert first["bundle"] != second["bundle"] and not second["reused"]
    assert first["parity"]["kind"] == "measured"
    assert second["parity"] == first["parity"]


def test_a_weight_that_is_no_number_is_named(tmp_path: Path) -> None:
    model = tmp_path / "hf"
    shutil.copytree(TINY / "hf", model)
    name = "model.layers.1.mlp.down_proj.weight"
    with (model / "model.safetensors").open("r+b") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[name]
        assert entry["dtype"] == "BF16"
        file.seek(8 + length + entry["data_offsets"][0] + 2 * (3 * entry["shape"][1] + 5))
        file.write(struct.pack("<H", 0x7F80))  # Infinity.
    done = tessera("compile", model, "--quantize", "q4_0", "--cache-dir", tmp_path / "cache")
    assert done.returncode == 1
    error = done.stderr.decode().strip().splitlines()[-1]
    assert f"row 3 of {name}" in error and "element 5 is inf" in error
    assert not list((tmp_path / "cache").glob("bundles/*/[!.]*"))


def write_old_imatrix(path: Path, matrices: dict[str, list[float]]) -> None:
    data = struct.pack("<i", len(matrices))
    for name, sums in matrices.items():
        data += struct.pack("<i", len(name)) + name.encode()
        data += struct.pack(f"<ii{len(sums)}f", 1, len(sums), *sums)
    path.write_bytes(data)


def test_an_importance_matrix_changes_the_weights_and_the_key(tmp_path: Path) -> None:
    imatrix = tmp_path / "imatrix.dat"
    write_old_imatrix(imatrix, {"blk.0.attn_q.weight": [1000.0] * 8 + [0.01] * 56})
    plain = compile_json(TINY / "hf", tmp_path, "--quantize", "q4_0", "--no-certificate")
    guided = compile_json(TINY / "hf", tmp_path, "--quantize", "q4_0", "--no-certificate",
                          "--imatrix", str(imatrix))
    assert plain["bundle"] != guided["bundle"]
    data = [weights_of(Path(report["bundle"])) for report in (plain, guided)]
    assert data[0] != data[1]
    assert any("has nothing for" in note for note in guided["notes"])
    again = compile_json(TINY / "hf", tmp_path, "--quantize", "q4_0", "--imatrix", str(imatrix))
    assert again["reused"] and again["bundle"] == guided["bundle"]


@pytest.mark.parametrize("matrices,says", [
    ({"blk.0.attn_q.weight": [1.0] * 63}, "has 63 inputs for model.layers.0.self_attn.q_proj.weight, the model has 64"),
    ({"other": [1.0]}, "made of another model"),
    ({"blk.0.attn_q.weight": [-1.0] * 64}, "input 0 is -1"),
])
def test_an_importance_matrix_of_another_model_is_refused(
        tmp_path: Path, matrices: dict[str, list[float]], says: str) -> None:
    imatrix = tmp_path / "imatrix.dat"
    write_old_imatrix(imatrix, matrices)
    done = tessera("compile", TINY / "hf", "--quantize", "q8_0", "--imatrix", imatrix, "--cache-dir", tmp_path)
    assert done.returncode == 1 and says in done.stderr.decode()
    assert str(imatrix) in done.stderr.decode()


def test_auto_takes_what_fits_and_says_why(tmp_path: Path) -> None:
    done = tessera("compile", TINY / "hf", "--quantize", "auto", "--cache-dir", tmp_path)
    assert done.returncode == 0
    assert "quantize auto: none, because" in done.stderr.decode()
    bundle = Path(done.stdout.decode().strip())
    assert json.loads((bundle / "manifest.json").read_text())["quantization"] == "source"
