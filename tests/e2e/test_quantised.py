"""Repositories that GPTQ, AWQ, compressed-tensors and FP8 writers packed: every weight stands for
what the packer meant, and the model computes what the float model of these weights computes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import quantised_repository as packer
from conftest import TINY, tessera

SOURCE = TINY / "hf"
EXACT = {"gptq4": "Q4_0", "gptq4_zeros": "Q5_0", "gptq4_v2": "Q5_0", "gptq8": "Q8_0",
         "gptq4_channel": "Q4_0", "awq": "Q5_0", "compressed4": "Q4_0", "compressed4_zeros": "Q5_0",
         "gptq4_file": "Q4_0", "awq_file": "Q5_0", "compressed4_unset": "Q4_0", "compressed8": "Q8_0"}


@pytest.fixture(scope="module", params=packer.METHODS)
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
           ) -> tuple[str, Path, dict[str, np.ndarray]]:
    folder = tmp_path_factory.mktemp("packed") / request.param
    return request.param, folder, packer.make(SOURCE, folder, request.param)


def weight(repository: Path, name: str, shape: tuple[int, ...]) -> np.ndarray:
    done = tessera("inspect", repository, "--dump", name)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, "<f4").reshape(shape)


def test_weights_are_what_the_packer_meant(packed, tmp_path: Path) -> None:
    method, repository, expected = packed
    names = {name: name for name in list(expected)[:7]}  # A layer: one of each kind.
    if method.startswith("fp8"):  # The file has tensors of these names: read what came out.
        done = tessera("compile", repository, "--cache-dir", tmp_path / "cache", "--emit-dataset",
                       tmp_path / "fp8.irpa")
        assert done.returncode == 0, done.stderr
        repository = tmp_path / "fp8.irpa"
        names = {f"model.layers.0.{ours}.weight": f"blk.0.{theirs}.weight" for ours, theirs in (
            ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"),
            ("mlp.gate_proj", "ffn_gate"), ("mlp.down_proj", "ffn_down"))}
    for name, stored in names.items():
        got = weight(repository, stored, expected[name].shape)
        if method in EXACT:
            np.testing.assert_array_equal(got, expected[name].astype(np.float32), err_msg=name)
        else:  # Rounded to F16 once.
            np.testing.assert_allclose(got, expected[name], rtol=2.0 ** -10, atol=1e-7,
                                       err_msg=name)


def test_logits_are_those_of_the_float_model(packed, tmp_path: Path) -> None:
    method, repository, expected = packed
    floats = tmp_path / "floats"
    floats.mkdir()
    for path in SOURCE.iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, floats / path.name)
    tensors = packer.read_floats(SOURCE)
    tensors.update({name: values.astype(np.float32) for name, values in expected.items()})
    save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()},
              floats / "model.safetensors")
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps([(i * 37 + 11) % 500 for i in range(96)]))
    cache = tmp_path / "cache"
    stored = tmp_path / "logits.bin"
    done = tessera("perplexity", floats, ids, "--ids", "--cache-dir", cache, "--save", stored)
    assert done.returncode == 0, done.stderr
    done = tessera("perplexity", repository, ids, "--ids", "--cache-dir", cache, "--against",
                   stored, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    # Block formats multiply with rows of int8; wrong weights give a KL above 0.1 here.
    assert figures["mean_kl"] < 5e-3, figures
    said = done.stderr.decode()
    assert "quantised by" in said
    if method in EXACT:
        assert EXACT[method] in said and "no bit lost" in said


def broken(tmp_path: Path, change) -> str:
    repository = tmp_path / "broken"
    packer.make(SOURCE, repository, "gptq4")
    tensors = load(repository / "model.safetensors")
    config = json.loads((repository / "config.json").read_text())
    change(tensors, config)
    save_file(tensors, repository / "model.safetensors")
    (repository / "config.json").write_text(json.dumps(config))
    done = tessera("compile", repository, "--cache-dir", tmp_path / "cache")
    assert done.returncode != 0
    assert done.stderr.decode().count("\n") <= 6
    return done.stderr.decode()


def load(path: Path) -> dict[str, np.ndarray]:
    with packer.safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


FIRST = "model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(("change", "message"), [
    (lambda t, c: t.pop(f"{FIRST}.scales"), f"{FIRST}.scales is missing"),
    (lambda t, c: t.pop(f"{FIRST}.qweight"), f"{FIRST}.qweight is missing"),
    (lambda t, c: t.update({f"{FIRST}.scales": t[f"{FIRST}.scales"][:1]}), "has shape"),
    (lambda t, c: t.update({f"{FIRST}.qzeros": t[f"{FIRST}.qzeros"][:, :-1].copy()}), "has shape"),
    (lambda t, c: t[f"{FIRST}.g_idx"].__setitem__(3, 99), "has group 99 at column 3"),
    (lambda t, c: t[f"{FIRST}.g_idx"].__setitem__(3, -1), "has group -1 at column 3"),
    (lambda t, c: c["quantization_config"].update(group_size=0), "group_size' is 0"),
    (lambda t, c: c["quantization_config"].update(group_size=40), "no whole groups of 40"),
    (lambda t, c: c["quantization_config"].update(bits=3), "bits' is '3'"),
    (lambda t, c: c["quantization_config"].update(checkpoint_format="marlin"), "'marlin'"),
    (lambda t, c: c["quantization_config"].update(quant_method="hqq"), "'hqq'"),
    (lambda t, c: c["quantization_config"].update(checkpoint_format="gptq_v2"), "zero point"),
    (lambda t, c: t[f"{FIRST}.scales"].__setitem__((0, 0), np.float16("inf")), "is inf"),
])
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, change, message: str) -> None:
    assert message in broken(tmp_path, change)
