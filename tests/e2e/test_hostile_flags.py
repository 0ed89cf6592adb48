"""Flags and files that nobody means: one sentence, nothing made, nothing left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import TINY, tessera

MODEL = TINY / "tiny-f16.gguf"


def refused(*args: str | Path, code: int = 1, env: dict[str, str] | None = None) -> str:
    done = tessera(*args, env=env, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    (line,) = [text for text in done.stderr.decode().splitlines() if text.startswith("tessera:")]
    return line


@pytest.mark.parametrize("flag", ["--output-artifacts-dir", "--output-dev-artifacts-dir",
                                  "--emit-dataset", "--cache-dir", "--imatrix", "--revision"])
def test_an_unset_variable_is_no_value(flag: str) -> None:
    assert f"{flag}: is empty" in refused("compile", MODEL, flag, "", code=2)


def test_an_empty_prompt_is_one(cache: Path) -> None:
    done = tessera("run", MODEL, "-p", "", "-n", "1", "--cache-dir", cache)
    assert done.returncode == 0, done.stderr.decode()


def test_an_empty_flagfile_name_and_a_binary_flagfile(tmp_path: Path) -> None:
    assert "--flagfile needs a file name" in refused("compile", MODEL, "--flagfile=", code=2)
    (tmp_path / "flags").write_bytes(b"--max-seq-len=1\0002\n")
    assert "flags:1: holds a zero byte" in refused(
        "compile", MODEL, f"--flagfile={tmp_path / 'flags'}", code=2)


def test_what_steers_a_terminal_is_escaped_in_errors(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(TINY / "hf", folder)
    weights = folder / "model.safetensors"
    weights.chmod(0o644)
    data = weights.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header["\x1b[2J\0\n" + "z" * 5000] = header.pop("model.norm.weight")
    text = json.dumps(header).encode()
    weights.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length:])
    line = refused("compile", folder, "--cache-dir", tmp_path / "cache")
    assert len(line) < 2100 and line.isprintable()
    assert "\\x1b[2J" in refused("compile", MODEL, "--tp", "\x1b[2J", code=2)


@pytest.mark.parametrize("flags,says", [
    (["--output-artifacts-dir", "there", "--output-dev-artifacts-dir", "new"],
     "--output-artifacts-dir: {0}/there is there and is no bundle"),
    (["--output-artifacts-dir", "new", "--output-dev-artifacts-dir", "there"],
     "--output-dev-artifacts-dir: {0}/there holds something else"),
    (["--output-artifacts-dir", "new", "--output-dev-artifacts-dir", "new/dev"], "lie in one another"),
    (["--output-artifacts-dir", "new/art", "--output-dev-artifacts-dir", "new"], "lie in one another"),
    (["--output-artifacts-dir", "new", "--emit-dataset", "absent/x.irpa"],
     "--emit-dataset: the folder {0}/absent is not there"),
    (["--output-artifacts-dir", "new", "--emit-dataset", "there/file"],
     "--emit-dataset: {0}/there/file is no folder"),
    (["--output-artifacts-dir", "new", "--emit-dataset", "folder.irpa"],
     "--emit-dataset: {0}/folder.irpa is a folder"),
])
def test_places_are_looked_at_before_the_work(flags: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("mine")
    (tmp_path / "folder.irpa").mkdir()
    before = sorted(tmp_path.rglob("*"))
    args = [flag if flag.startswith("--") else str(tmp_path / flag) for flag in flags]
    line = refused("compile", MODEL, *args, "--cache-dir", tmp_path / "cache")
    assert says.format(tmp_path) in line
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("flags,says", [
    (["--benchmark_filter=nothing"], "matches none of BM_decode_bs1"),
    (["--benchmark_filter=["], "matches none of BM_decode_bs1"),
    (["--benchmark_out=/nowhere/x"], "--benchmark_out: creating /nowhere/x: No such file"),
])
def test_benchmarks_that_cannot_run_are_no_success(flags: list[str], says: str,
                                                   tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert tessera("compile", MODEL, "--output-artifacts-dir", bundle,
                   "--cache-dir", tmp_path / "cache").returncode == 0
    line = refused("benchmark-module", "--module", bundle, "--function=decode_bs1", *flags)
    assert says in line
    assert "/nowhere is not there" in refused("benchmark-module", "--module", "/nowhere")


def test_files_of_a_repository_that_are_missing_are_named(tmp_path: Path) -> None:
    cache = ("--cache-dir", tmp_path / "cache")
    folder = tmp_path / "model"
    shutil.copytree(TINY / "hf_sharded", folder)
    (folder / "tokenizer.json").unlink()
    assert "there is no tokenizer.json" in refused("compile", folder, *cache)
    shard = next(folder.glob("model-00002-*"))
    shard.unlink()
    assert f"names the shard {shard.name}, which is not there" in refused("compile", folder, *cache)
    index = folder / "model.safetensors.index.json"
    index.chmod(0o644)
    index.write_text('{"weight_map": {}}')
    assert "weight_map is empty" in refused("compile", folder, *cache)
    assert "weight_map is empty" in refused("plan", folder, "--no-probe")
