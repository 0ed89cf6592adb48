"""The table of a bundle's tokenizer: used, equal to tokenizer.json, and what damage to it does."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from conftest import GGUF, TINY, json_lines, tessera

TABLE = "tokenizer.table"
TEXTS = [{"text": t} for t in ("", "Once upon a time", "<|im_start|>user\nh\u00e4\u4e2d \U0001f44d<|im_end|>", "  a\n\n b\u0000")]


def compiled(model: Path, cache: Path) -> Path:
    done = tessera("compile", model, "--cache-dir", cache, "--json")
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["bundle"])


@pytest.fixture()
def bundle(tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    made = compiled(TINY / "hf", tmp_path / "cache")
    return Path(shutil.copytree(made, tmp_path / "bundle"))


def answer(bundle: Path) -> tuple[int, bytes, str]:
    done = tessera("run", bundle, "-p", "Once upon", "-n", "8", "--temperature", "0", "--raw")
    return done.returncode, done.stdout, done.stderr.decode()


def change(path: Path, at: int, new: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at:at + len(new)] = new
    path.write_bytes(data)


@pytest.mark.parametrize("model", [GGUF, TINY / "hf", TINY / "tiny-f16.gguf"], ids=["smollm2", "hf", "gguf"])
def test_table_and_tokenizer_json_give_the_same_ids(model: Path, cache: Path) -> None:
    bundle = compiled(model, cache)
    assert (bundle / TABLE).is_file()
    got = json_lines("tokenize", TEXTS, "--model", bundle)
    assert got == json_lines("tokenize", TEXTS, "--tokenizer", bundle / "tokenizer.json")
    assert got == json_lines("tokenize", TEXTS, "--model", model)


def test_altered_table_is_replaced_by_tokenizer_json_with_a_warning(bundle: Path) -> None:
    code, text, log = answer(bundle)
    assert code == 0 and "warning" not in log
    data = (bundle / TABLE).read_bytes()
    change(bundle / TABLE, len(data) // 2, bytes([data[len(data) // 2] ^ 1]))
    got = answer(bundle)
    assert got[:2] == (0, text)
    assert "checksum" in got[2] and "reading tokenizer.json instead" in got[2] and TABLE in got[2]
    done = tessera("run", bundle, "-p", "x", "-n", "1", "--verify")
    assert done.returncode == 1 and f"{TABLE} has SHA-256" in done.stderr.decode()


def test_table_of_another_version_is_replaced_by_tokenizer_json_with_a_warning(bundle: Path) -> None:
    _, text, _ = answer(bundle)
    change(bundle / TABLE, 8, struct.pack("<I", 7))
    got = answer(bundle)
    assert got[:2] == (0, text)
    assert "version 7, this program reads version 1" in got[2]


def test_truncated_or_missing_table_is_a_damaged_bundle(bundle: Path) -> None:
    data = (bundle / TABLE).read_bytes()
    (bundle / TABLE).write_bytes(data[:-8])
    code, _, log = answer(bundle)
    assert code == 1 and f"{TABLE} has {len(data) - 8} bytes" in log
    (bundle / TABLE).unlink()
    code, _, log = answer(bundle)
    assert code == 1 and f"{TABLE} is missing" in log


def test_damaged_table_without_tokenizer_json_is_an_error(bundle: Path) -> None:
    change(bundle / TABLE, 8, struct.pack("<I", 7))
    (bundle / "tokenizer.json").unlink()
    done = tessera("tokenize", "--model", bundle, stdin=b"")
    assert done.returncode == 1
    assert "version 7" in done.stderr.decode()


def test_model_without_a_table_says_so(tmp_path: Path) -> None:
    """Unigram: the tiny model with another tokenizer."""
    shutil.copytree(TINY / "hf", tmp_path / "hf")
    vocab = [["<unk>", 0.0], ["</s>", 0.0], ["a", -1.0], ["\u2581", -2.0]]
    (tmp_path / "hf/tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [],
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab}}))
    for name in ("tokenizer_config.json", "generation_config.json"):
        (tmp_path / "hf" / name).unlink(missing_ok=True)
    done = tessera("compile", tmp_path / "hf", "--cache-dir", tmp_path / "cache", "--json")
    assert done.returncode == 0, done.stderr
    assert "its model is not BPE" in done.stderr.decode()
    assert not (Path(json.loads(done.stdout)["bundle"]) / TABLE).exists()
