"""Flags and arguments as people type them: what is taken, refused, explained."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import TESSERA, TINY, start_server, tessera

HF = TINY / "hf"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as an exported bundle with a context of 64."""
    folder = tmp_path_factory.mktemp("export")
    done = tessera("compile", HF, "--max-seq-len", "64", "--cache-dir", folder / "cache",
                   "--output-artifacts-dir", folder / "bundle")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == str(folder / "bundle")
    assert done.stderr.index(b"stage export: no bundle of hf yet") < done.stderr.index(b"packing")
    return folder / "bundle"


def refused(code: int, *args: str | Path) -> str:
    done = tessera(*args)
    assert done.returncode == code, done.stderr
    assert not done.stdout
    return done.stderr.decode()


@pytest.mark.parametrize("verb", ["run", "serve", "bench", "plan", "compile", "inspect"])
def test_every_verb_says_the_same_of_an_absent_model(verb: str) -> None:
    port = ("--port", "0") if verb == "serve" else ()
    assert "no/such/model is not there: expected a folder" in refused(1, verb, "no/such/model", *port)


@pytest.mark.parametrize("verb", ["tokenize", "detokenize", "render"])
def test_text_verbs_say_it_too(verb: str) -> None:
    assert "no/such/model is not there: expected a folder" in refused(1, verb, "--model", "no/such/model")


@pytest.mark.parametrize("args,says", [
    (("serve", HF, "-tp", "2"), "-tp: name it --tp N"),
    (("serve", HF, "--tensor-parallel-size", "16"), '"16": expected tp1 to tp8'),
    (("serve", HF, "--gpu-memory-utilization=0.9"), "--kv-memory"),
    (("run", HF, "-ngl", "99"), "-ngl: all layers run on the CPU"),
    (("run", HF, "-c", "4096"), "-c: name it --max-seq-len"),
    (("bench", "--model-path", HF), "--model-path: name the model as the argument MODEL"),
    (("serve", HF, "--model-path", HF), "MODEL excludes --model-path"),
    (("serve", HF, "--device", "hip"), "runs IREE programs"),
    (("serve", HF, "--program", "p"), "stand beside MODEL"),
    (("serve", "--program", "p", "--tokenizer_json", "t"), "missing: --model_config, --parameters"),
    (("compile", HF, "--bs-decode", "0"), '"0": expected whole numbers from 1 to 1048576'),
    (("run", HF, "--cache-type-k", "q8_0"), "--cache-type-k: name it --kv-dtype"),
    (("run", HF, "--kv-memory", "much"), '"much" is no size'),
    (("run", HF, "-p", "a", "-n", "1e20"), '"1e20": expected a whole number of at least 0'),
    (("run", HF, "-p", "a", "-n", "1" + "0" * 300), "expected a whole number of at least 0"),
    (("run", HF, "-p", "a", "--temperature", "nan"), '"nan": expected a number from 0 to 100'),
    (("run", HF, "-p", "a", "--threads", "1", "--threads", "2"), "--threads may be given once"),
    (("run", HF, "--raw"), "--raw completes a prompt: give one with -p"),
    (("run", HF, "--raw", "-p", "a", "--system", "b"), "--system would have no effect"),
    (("bench", HF, "-n", "-1"), '"-1": expected whole numbers from 0 to 16777216'),
    (("bench", HF, "-p", "1", "-p", "2"), "--n-prompt may be given once"),
    (("bench", HF, "-b", "65537"), '"65537": expected whole numbers from 1 to 65536'),
    (("compile", HF, "--bs-prefill", "1", "--bs-prefill", "4"), "--bs-prefill may be given once"),
    (("compile", HF, "--bs-decode", "1,1048577"), '"1048577": expected whole numbers'),
    (("compile", HF, "--device-block-count", "1073741825"), "from 0 to 1073741824"),
    (("compile", HF, "--block-seq-stride", "4097"), "from 16 to 4096"),
    (("plan", HF, "--max-seq-len", "16777217"), "from 0 to 16777216"),
    (("serve", HF, "--port", "65536"), '"65536": expected a whole number from 0 to 65535'),
    (("serve", HF, "--served-model-name", "a\nb"), "control character"),
    (("serve", HF, "--host", ""), "is empty; leave the flag out"),
    (("serve", HF, "--api-key", ""), "is empty; leave the flag out"),
    (("serve",), "MODEL (or --model-path, --bundle, or the parts"),
    (("run", HF, "--bundle", HF), "excludes"),
    (("compile",), "MODEL (or --hf-model) is required"),
])
def test_wrong_usage_gets_one_precise_answer(args: tuple[str, ...], says: str) -> None:
    text = refused(2, *args)
    assert says in text and text.startswith("tessera: ")
    assert text.count("\n") == 1 and len(text) < 300


@pytest.mark.parametrize("verb", ["run", "serve", "bench", "plan", "compile", "perplexity"])
def test_the_longest_sequence_is_the_models(verb: str, tmp_path: Path) -> None:
    more = {"run": ("-p", "a"), "serve": ("--port", "0"), "perplexity": (__file__,)}.get(verb, ())
    text = refused(1, verb, HF, *more, "--max-seq-len", "1025")
    assert "--max-seq-len 1025 is more than the model's 1024" in text


def test_batch_sizes_are_ascending(tmp_path: Path) -> None:
    for sizes in ("4,4", "4,1"):
        assert "expected ascending numbers" in refused(
            1, "compile", HF, "--bs-prefill", sizes, "--cache-dir", tmp_path)
    done = tessera("compile", HF, "--bs-prefill", "1,2", "--cache-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    for blocks in ("1073741823", "1073741824"):
        done = tessera("compile", HF, "--device-block-count", blocks, "--cache-dir", tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_foreign_manifest_makes_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "My App", "icons": []}')
    assert "its manifest.json is not one of Tessera's" in refused(
        1, "run", "--bundle", tmp_path, "-p", "x")
    assert "holds no *.safetensors" in refused(1, "run", tmp_path, "-p", "x")
    for file in HF.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    done = tessera("run", tmp_path, "--raw", "-p", "a", "-n", "1", "--cache-dir", tmp_path / "cache")
    assert done.returncode == 0, done.stderr


def test_a_path_that_is_no_utf8_gives_a_bundle_that_opens(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    model = folder + b"/m\xff.gguf"
    with open(model, "wb") as file:
        file.write((TINY / "tiny-f16.gguf").read_bytes())
    for _ in range(2):  # Made, then reused.
        done = subprocess.run(
            [os.fsencode(TESSERA), b"compile", model, b"--json", b"--cache-dir",
             os.fsencode(tmp_path / "cache")], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["reused"]
    manifest = json.loads((Path(report["bundle"]) / "manifest.json").read_text())
    assert manifest["model"] == "m\\xFF"
    assert manifest["source"]["repository"].endswith("caf\\xE9/m\\xFF.gguf")
    run = tessera("run", report["bundle"], "--raw", "-p", "a", "-n", "1")
    assert run.returncode == 0, run.stderr


def test_a_bundle_keeps_the_options_it_was_made_with(bundle: Path, tmp_path: Path) -> None:
    text = refused(1, "run", bundle, "--max-seq-len", "16", "-p", "x")
    assert "--max-seq-len 16 cannot change a bundle that is made with 64" in text
    assert "--quantize q8_0 cannot change" in refused(1, "compile", bundle, "--quantize", "q8_0")
    same = tessera("run", bundle, "--max-model-len", "64", "--raw", "-p", "a", "-n", "1")
    assert same.returncode == 0, same.stderr
    named = tessera("run", "--bundle", bundle, "--raw", "-p", "a", "-n", "1")
    assert named.returncode == 0, named.stderr
    assert "is no bundle" in refused(1, "run", "--bundle", HF, "-p", "x")
    again = tessera("compile", bundle)
    assert again.returncode == 0 and b"is a bundle already" in again.stderr
    copied = tessera("compile", bundle, "--output-artifacts-dir", tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "copy/model.irpa").read_bytes() == (bundle / "model.irpa").read_bytes()
    assert "is the bundle" in refused(1, "compile", bundle, "--output-artifacts-dir", bundle)
    assert (bundle / "manifest.json").exists()


def test_plan_reads_a_bundle(bundle: Path) -> None:
    done = tessera("plan", bundle, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    source = json.loads(tessera("plan", HF, "--max-seq-len", "64", "--json").stdout)
    assert plan["context"] == 64 and plan["parameters"] == source["parameters"]
    for key in ("kv_bytes", "kv_bytes_per_token"):
        assert plan["memory"][key] == source["memory"][key]
    assert "--max-seq-len 65 is more than the model's 64" in refused(
        1, "plan", bundle, "--max-seq-len", "65")


def test_a_sharding_that_does_not_divide_names_those_that_do() -> None:
    assert "tp3 does not divide this model's 8 heads over 4 KV heads; use tp1 or tp2" in refused(
        1, "compile", HF, "--sharding-mode", "tp3")


def test_a_window_never_shrinks_in_silence(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the quick brown fox " * 30)
    done = tessera("perplexity", bundle, tmp_path / "text", "--json")
    assert done.returncode == 0, done.stderr
    warnings = json.loads(done.stdout)["warnings"]
    assert warnings == ["window 64 instead of 512: the model's context has 64 tokens"]
    assert warnings[0].encode() in done.stderr
    assert "--window 65 is more than the 64 tokens" in refused(
        1, "perplexity", bundle, tmp_path / "text", "--window", "65")


def test_kv_dtype_is_f16_or_int8(bundle: Path) -> None:
    text = refused(1, "run", bundle, "--kv-dtype", "q4", "--raw", "-p", "a")
    assert '--kv-dtype "q4": expected f16 or int8' in text
    done = tessera("run", bundle, "--kv-dtype", "int8", "--raw", "-p", "a", "-n", "2")
    assert done.returncode == 0, done.stderr


def test_kv_memory_is_bytes(bundle: Path, tmp_path: Path) -> None:
    text = refused(1, "run", bundle, "--kv-memory", "10", "--raw", "-p", "a")
    assert "10 bytes of KV memory are too few: one page of 32 tokens needs" in text
    server = start_server(tmp_path / "log", bundle, "--max-num-seqs", "2")
    server.process.terminate()
    assert server.process.wait(30) == 0
    assert "KV memory for 128 tokens" in server.log.read_text()  # Two sequences of 64.
    assert "up to 2 requests at a time" in server.log.read_text()


def test_a_line_that_is_too_long_harms_no_other() -> None:
    lines = b'{"text": "a"}\n' + b'{"text": "' + b"b" * (160 << 20) + b'"}\n{"text": "c"}\n'
    done = tessera("tokenize", "--model", HF, stdin=lines)
    assert done.returncode == 0, done.stderr
    first, second, third = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["ids"] and third["ids"]
    assert "the line has" in second["error"]


@pytest.mark.parametrize("verb,rest", [
    ("serve", {"--help", "--model-path", "--bundle"}),
    ("bench", {"--help", "--n-prompt", "--n-gen", "--n-depth", "--batch", "--repetitions",
               "--roofline", "--json"})])
def test_long_helps_have_headings(verb: str, rest: set[str]) -> None:
    """A new flag needs a place in cli/option_groups.cc."""
    text = tessera(verb, "--help").stdout.decode()
    assert "\n\n\n" not in text
    sections = text.split("\n\n")
    plain = next(text for text in sections if text.startswith("Options:"))
    flags = {re.split(r"[ ,]", line.strip().split("--", 1)[1])[0]
             for line in plain.splitlines()[1:] if re.match(r"  -", line)}
    assert {f"--{flag}" for flag in flags} == rest
    for heading in ("Bundle:", "Downloads:", "Machine:"):
        assert any(text.startswith(heading) for text in sections), sections
