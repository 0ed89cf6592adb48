"""compile killed at any moment, and without room to write: the old bundle or none is visible, and the next run completes."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import subprocess
import time
from pathlib import Path

import pytest
from conftest import GGUF, TESSERA, TINY, tessera
from gguf_f16 import write_f16_copy


def visible(cache: Path) -> list[Path]:
    return sorted(cache.glob("bundles/*/[!.]*"))


def leftovers(cache: Path) -> list[Path]:
    return [path for path in cache.glob("bundles/*/.*") if not path.name.endswith(".lock")]


def check_whole(bundle: Path) -> None:
    """Every file of the manifest is there with its hash, and nothing else is."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    for file in manifest["files"]:
        data = (bundle / file["name"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["sha256"], file["name"]
    names = {file["name"] for file in manifest["files"]} | {"manifest.json"}
    assert {path.name for path in bundle.iterdir()} == names
    assert manifest["parity"]["kind"] in ("measured", "exact")


def kill_after(seconds: float, *args: str | Path) -> bool:
    """Starts a compilation and kills it; whether it was still running."""
    with subprocess.Popen([str(TESSERA), "compile", *map(str, args)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return True
        return False


def kill_often(model: Path, cache: Path, times: int, *flags: str) -> None:
    """`flags` make a second bundle beside the one that is there, and a third in its place."""
    plain = [model, "--cache-dir", cache]
    begin = time.monotonic()
    assert tessera("compile", *plain).returncode == 0
    assert tessera("compile", *plain, *flags).returncode == 0
    whole = time.monotonic() - begin
    old = visible(cache)
    assert len(old) == 2
    choose = random.Random(6)
    killed = 0
    window = whole / 2  # Of the moments: as long as a run takes on a machine that others use, too.
    for i in range(times):
        again = ["--ensure-export"] if i % 2 == 0 else ["--bs-decode", str(i + 10)]
        in_time = kill_after(choose.random() * window, *plain, *flags, *again)
        killed += in_time
        window = min(window * 1.1, whole) if in_time else window * 0.8
        assert set(visible(cache)) >= set(old), "a replacement is one step"
        for bundle in visible(cache):
            check_whole(bundle)
    assert killed >= times // 4, "the moments were too late to say anything"
    done = tessera("compile", *plain, *flags, "--ensure-export")
    assert done.returncode == 0, done.stderr.decode()
    target = Path(done.stdout.decode().strip())
    check_whole(target)
    assert not [path for path in leftovers(cache) if path.name.startswith(f".{target.name}.")]


def test_killed_at_any_moment_of_a_small_model(tmp_path: Path) -> None:
    kill_often(TINY / "hf", tmp_path, 60, "--quantize", "q8_0")


def test_killed_while_hashing_packing_syncing_and_measuring(tmp_path: Path) -> None:
    # Of the real model the table and two layers: every stage takes a while, and none takes long.
    model = tmp_path / "two-layers.gguf"
    write_f16_copy(GGUF, model, layers=2)
    kill_often(model, tmp_path / "cache", 10, "--quantize", "q4_k")


@pytest.mark.parametrize("limit", [0, 64 << 10, 1 << 20, 40 << 20])
def test_no_room_is_one_sentence_and_leaves_nothing(tmp_path: Path, limit: int) -> None:
    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run([str(TESSERA), "compile", str(GGUF), "--cache-dir", str(tmp_path)],
                          capture_output=True, check=False, preexec_fn=restrict)
    assert done.returncode == 1
    errors = [line for line in done.stderr.decode().splitlines() if "File too large" in line]
    assert len(errors) == 1 and errors[0].startswith("tessera: "), done.stderr.decode()
    assert visible(tmp_path) == [] and leftovers(tmp_path) == []
    assert tessera("compile", GGUF, "--cache-dir", tmp_path).returncode == 0
