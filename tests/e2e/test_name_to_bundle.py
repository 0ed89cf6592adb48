"""A model by its path, by its parts, and stages that are done again when asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import TINY, start_server, tessera

HF = TINY / "hf"


def compile_tiny(cache: Path, *args: str | Path) -> tuple[Path, str]:
    done = tessera("compile", HF, "--cache-dir", cache, *args)
    assert done.returncode == 0, done.stderr.decode()
    return Path(done.stdout.decode().strip()), done.stderr.decode()


def part_flags(bundle: Path) -> list[str | Path]:
    return ["--tokenizer_json", bundle / "tokenizer.json", "--model_config",
            bundle / "config.json", "--program", bundle / "program.json", "--parameters",
            bundle / "model.irpa", "--device", "cpu"]


def greedy(*model: str | Path) -> bytes:
    done = tessera("run", *model, "-p", "The capital", "--raw", "-n", "8", "--temperature", "0")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_stages_run_again_only_where_something_changed(tmp_path: Path) -> None:
    first, said = compile_tiny(tmp_path)
    assert "stage export: no bundle of hf yet" in said
    _, said = compile_tiny(tmp_path)
    assert f"reusing bundle {first}" in said and "stage compile" not in said
    second, said = compile_tiny(tmp_path, "--bs-decode", "2")
    assert f"stage export: reusing the parameters of {first}" in said
    assert "stage compile: decode_batch_sizes changed 1,4,8 -> 2" in said
    assert (second / "model.irpa").samefile(first / "model.irpa")
    _, said = compile_tiny(tmp_path, "--ensure-compile")
    assert "reusing the parameters" in said and "stage compile: asked for" in said
    third, said = compile_tiny(tmp_path, "--ensure-export")
    assert "stage export: asked for" in said
    assert not (second / "model.irpa").samefile(third / "model.irpa")


def test_a_stage_names_what_it_depends_on_and_nothing_else(tmp_path: Path) -> None:
    compile_tiny(tmp_path)
    _, said = compile_tiny(tmp_path, "--quantize", "q8_0", "--max-seq-len", "64")
    assert "stage export: quantization changed source -> q8_0\n" in said, said


@pytest.mark.parametrize("args,says", [
    (["--tp", "7"], "tp7 does not divide this model's"),
    (["--use-hf"], "--use-hf: "), (["--imatrix", "x"], "--imatrix weighs the errors")])
def test_what_cannot_be_is_refused_before_a_weight_is_read(tmp_path: Path, args: list[str],
                                                           says: str) -> None:
    done = tessera("compile", HF, "--cache-dir", tmp_path / "cache", *args)
    said = done.stderr.decode()
    assert done.returncode == 1 and len(said.splitlines()) == 1 and says in said, said
    assert not (tmp_path / "cache").exists()


def test_a_server_finds_makes_and_reuses_its_bundle(tmp_path: Path) -> None:
    flags = ["--model-path", HF, "--device", "cpu", "--compile-target", "cpu", "--cache-dir",
             tmp_path / "cache"]
    for start, says in enumerate(["stage export: no bundle", "reusing bundle"]):
        server = start_server(tmp_path / f"log{start}", *flags)
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert says in server.log.read_text()
    server = start_server(tmp_path / "log", *flags, "--ensure-compile")
    server.process.terminate()
    assert server.process.wait(30) == 0
    assert "stage compile: asked for" in server.log.read_text()


def test_parts_of_a_model_serve_as_its_bundle_does(tmp_path: Path) -> None:
    bundle, _ = compile_tiny(tmp_path / "cache")
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "program.json",
                 "model.irpa"):
        shutil.copy(bundle / name, parts / name)
    assert greedy(*part_flags(parts)) == greedy(bundle)
    server = start_server(tmp_path / "log", *part_flags(parts))
    answer = server.post("/v1/completions", {"model": "parts", "prompt": "The capital",
                                             "max_tokens": 8, "temperature": 0})
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"] == greedy(bundle).decode().removesuffix("\n")
    server.process.terminate()
    assert server.process.wait(30) == 0


@pytest.mark.parametrize("field,value", [("max_seq_len", 77), ("transformer_block_count", 9),
                                         ("attn_head_dim", 12)])
def test_parts_of_different_models_are_named(tmp_path: Path, field: str, value: int) -> None:
    bundle, _ = compile_tiny(tmp_path / "cache")
    config = json.loads((bundle / "config.json").read_text())
    config[field] = value
    wrong = tmp_path / "config.json"
    wrong.write_text(json.dumps(config))
    flags = part_flags(bundle)
    flags[3] = wrong
    done = tessera("run", *flags, "-p", "a")
    assert done.returncode == 1
    said = done.stderr.decode()
    assert f"{field} is {value} in config.json" in said and str(wrong) in said, said


def test_a_bundle_is_not_made_again(tmp_path: Path) -> None:
    bundle, _ = compile_tiny(tmp_path)
    done = tessera("run", bundle, "--ensure-export", "-p", "a")
    assert done.returncode == 1
    assert f"is a bundle: name {HF} instead" in done.stderr.decode()


def test_differences_of_bundles_are_named(tmp_path: Path) -> None:
    first, _ = compile_tiny(tmp_path)
    second, _ = compile_tiny(tmp_path, "--max-seq-len", "64")
    third, _ = compile_tiny(tmp_path, "--quantize", "q8_0")

    def diff(a: Path, b: Path, *args: str) -> str:
        done = tessera("inspect", a, "--diff", b, *args)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    assert diff(first, first) == "no difference\n"
    said = diff(first, second)
    for line in ("manifest.options.max_seq_len: 1024 -> 64\n", "config.max_seq_len: 1024 -> 64\n",
                 "program.dims.max_seq_len: 1024 -> 64\n"):
        assert line in said, said
    assert "parameters." not in said
    # What follows from others comes last.
    assert said.index("program.dims.max_seq_len") < said.index("manifest.files[")
    report = json.loads(diff(first, third, "--json"))
    assert not report["same"]
    found = {row["where"]: (row["from"], row["to"]) for row in report["differences"]}
    assert found["manifest.quantization"] == ("source", "q8_0")
    assert any(where.startswith("parameters.") for where in found)
    done = tessera("inspect", first, "--diff", HF)
    assert done.returncode == 1 and b"compares two bundles or two parameter files" in done.stderr
    assert diff(HF, HF) == "no difference\n"


def test_conversions_are_one_note_with_its_reason(tmp_path: Path) -> None:
    _, said = compile_tiny(tmp_path)
    notes = [line for line in said.splitlines() if line.startswith("note:")]
    assert len(notes) == 1 and notes[0].startswith(
        "note: 13 weights, layer0.qkv the first: converted from BF16 to F32: rows this short"), said


def test_a_bundle_is_carried_without_its_source(tmp_path: Path) -> None:
    """By the name that `cache ls` gives it, on a machine that has nothing else of the model."""
    bundle, _ = compile_tiny(tmp_path / "here")
    name = f"{bundle.parent.name}/{bundle.name}"
    answer = greedy(bundle)

    def at(place: str, *args: str | Path, code: int = 0) -> str:
        done = tessera(*args, env={"TESSERA_CACHE": str(tmp_path / place), "HF_HUB_OFFLINE": "1",
                                   "HF_HOME": str(tmp_path / f"{place}-hf")})
        assert done.returncode == code, done.stderr.decode()
        return (done.stderr if code else done.stdout).decode()

    at("here", "cache", "export", name, "-o", tmp_path / "pack")
    assert at("far", "cache", "import", tmp_path / "pack") == name + "\n"
    assert name in at("far", "cache", "ls")
    said = at("far", "run", name, "-p", "The capital", "--raw", "-n", "8", "--temperature", "0")
    assert said.encode() == answer
    copy = tmp_path / "copy"
    at("far", "compile", name, "--output-artifacts-dir", copy)
    assert (copy / "manifest.json").read_bytes() == (bundle / "manifest.json").read_bytes()
    said = at("far", "compile", name, "--output-dev-artifacts-dir", tmp_path / "dev", code=1)
    assert "is a bundle; name its repository" in said
    said = at("far", "run", name, "--revision", "main", "-p", "a", code=1)
    assert "is a bundle of the cache" in said
    for odd in (f"../bundles/{name}", f"{name}/", f"x{name}"):
        assert at("far", "run", odd, "-p", "a", code=1).startswith("tessera: ")


def test_a_bundle_by_its_address_is_copied(tmp_path: Path) -> None:
    bundle, _ = compile_tiny(tmp_path / "cache")
    done = tessera("compile", f"file:{bundle}", "--output-artifacts-dir", tmp_path / "copy")
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "copy/model.irpa").read_bytes() == (bundle / "model.irpa").read_bytes()


def test_a_repository_that_cannot_be_had_names_its_bundles(tmp_path: Path) -> None:
    from fake_hub import FakeHub
    env = {"TESSERA_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "",
           "HF_HUB_CACHE": "", "HF_HUB_OFFLINE": ""}
    with FakeHub() as hub:
        hub.add_repository("org/tiny", HF)
        done = tessera("compile", "org/tiny", env={**env, "HF_ENDPOINT": hub.url})
        assert done.returncode == 0, done.stderr.decode()
    made = Path(done.stdout.decode().strip())
    shutil.rmtree(tmp_path / "hf")
    done = tessera("run", "org/tiny", "--offline", "-p", "a", env=env)
    assert done.returncode == 1 and done.stderr.decode().strip().endswith(
        f"; or name a bundle that was made of it: {made.parent.name}/{made.name}"), done.stderr
