"""The dev artifacts folder: a bug report that is two commands, here and on another machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
from conftest import TESSERA, TINY, tessera

HF = TINY / "hf"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(bundle, dev folder), as printed in the docs."""
    root = tmp_path_factory.mktemp("dev")
    done = tessera("compile", f"--hf-model={HF}", f"--cache-dir={root}/cache",
                   "--compile-target=cpu", "--sharding-mode=tp1", "--bs-prefill=1,2",
                   "--bs-decode=1,3", f"--output-artifacts-dir={root}/artifacts",
                   f"--output-dev-artifacts-dir={root}/dev artifacts")
    assert done.returncode == 0, done.stderr.decode()
    return root / "artifacts", root / "dev artifacts"


def rows(*args: str | Path) -> list[dict[str, object]]:
    done = tessera("benchmark-module", *args, "--benchmark_format=json",
                   "--benchmark_min_time=0.001")
    assert done.returncode == 0, done.stderr.decode()
    return list(json.loads(done.stdout)["benchmarks"])


def test_the_folder_has_what_a_report_needs(made: tuple[Path, Path]) -> None:
    bundle, dev = made
    functions = ["prefill_bs1", "prefill_bs2", "decode_bs1", "decode_bs3"]
    names = {path.relative_to(dev).as_posix() for path in dev.rglob("*") if path.is_file()}
    assert {"benchmark-flags.txt", "report.md", "versions.txt", "reproduce.sh"} <= names
    for function in functions:
        assert f"benchmark-flags.{function}.txt" in names
        assert {f"inputs/{function}.{i}.npy" for i in range(4)} <= names
    passes = sorted(name for name in names if name.startswith("graph/"))
    assert passes[0] == "graph/01-verify-graph.txt"
    assert passes[-1] == f"graph/{len(passes):02}-plan-memory.txt"
    assert "rms_norm" in (dev / passes[0]).read_text()
    report = (dev / "report.md").read_text()
    for said in ("stage export: no bundle of hf yet", "| match-layers |", "| F32 |",
                 "segments: attention output"):
        assert said in report, report
    decided = dict(re.findall(r"^\| ([a-z-]+) \| [^|]+ \| ([^|]*) \| [\d.]+ \|$", report, re.M))
    assert list(decided) == [name[9:-4] for name in passes], report
    assert all(decided.values()), decided
    for name, reason in (("choose-formats", "BF16 -> F32: rows this short gain little"),
                         ("match-layers", "8 heads over 4 KV heads of 8; the head has a matrix"),
                         ("unify-rope-style", "half-split already"),
                         ("assign-segments", "attention output 2 (4 KV heads)"),
                         ("choose-kernels", "the best that this machine runs (")):
        assert reason in decided[name], decided[name]
    assert (dev / "versions.txt").read_text().startswith("tessera ")
    flags = (dev / "benchmark-flags.txt").read_text().splitlines()
    assert flags[1:6] == [f"--module={bundle}/program.json",
                          f"--parameters=model={bundle}/model.irpa", "--device=local-task",
                          "--function=prefill_bs1", f"--input=@{dev}/inputs/prefill_bs1.0.npy"]
    assert not any(flag.startswith("--benchmark") for flag in flags)


def test_inputs_are_those_of_the_calling_convention(made: tuple[Path, Path]) -> None:
    inputs = made[1] / "inputs"
    tokens, lengths, starts, blocks = (numpy.load(inputs / f"decode_bs3.{i}.npy")
                                       for i in range(4))
    assert tokens.shape == (3, 1) and tokens.dtype == numpy.int64
    assert lengths.tolist() == [129] * 3 and starts.tolist() == [128] * 3
    assert blocks.tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]]
    starts, lengths = (numpy.load(inputs / f"prefill_bs2.{i}.npy") for i in (1, 2))
    assert starts.tolist() == [0, 0] and lengths.tolist() == [128, 128]


def test_flagfiles_run_as_they_are(made: tuple[Path, Path]) -> None:
    for function in ("prefill_bs1", "decode_bs3"):
        out = rows(f"--flagfile={made[1]}/benchmark-flags.{function}.txt")
        assert [row["name"] for row in out] == [f"BM_{function}/process_time/real_time"]
        assert float(str(out[0]["real_time"])) > 0 and out[0]["time_unit"] == "ms"
    done = tessera("benchmark-module", f"--flagfile={made[1]}/benchmark-flags.txt",
                   "--benchmark_repetitions=3", "--benchmark_min_time=0.001")
    assert done.returncode == 0, done.stderr.decode()
    named = [line.split()[0] for line in done.stdout.decode().splitlines() if "BM_" in line]
    name = "BM_prefill_bs1/process_time/real_time"
    assert named == [name] * 3 + [f"{name}_{kind}" for kind in ("mean", "median", "stddev", "cv")]


def test_every_function_of_a_bundle_is_timed_without_flags(made: tuple[Path, Path]) -> None:
    named = [row["name"] for row in rows("--module", made[0], "--time_unit=us", "--batch_size=2")]
    assert named == [f"BM_{function}/process_time/real_time" for function in
                     ("prefill_bs1", "prefill_bs2", "decode_bs1", "decode_bs3")]


def test_reproduce_runs_from_the_folder_and_a_bundle_alone(made: tuple[Path, Path],
                                                           tmp_path: Path) -> None:
    bundle, dev = (Path(shutil.copytree(path, tmp_path / f"it's {path.name}")) for path in made)
    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([dev / "reproduce.sh", *args], capture_output=True, text=True,
                              env={"TESSERA": str(TESSERA), "PATH": "/usr/bin:/bin"},
                              check=False, timeout=120)
    done = run(bundle, "--benchmark_min_time=0.001")
    assert done.returncode == 0, done.stderr
    assert "BM_decode_bs3/process_time/real_time" in done.stdout
    assert run().returncode == 0  # The bundle where it was made.
    program = bundle / "program.json"
    program.write_text(program.read_text().replace("F32", "F16", 1))
    assert "program.json" in run(bundle).stderr
    (bundle / "manifest.json").write_text("{}")
    assert "is not the bundle of this folder" in run(bundle).stderr
    assert run(tmp_path).stderr.strip().endswith(f"{tmp_path} is no bundle: name it, "
                                                 f"{dev}/reproduce.sh BUNDLE")
    nowhere = subprocess.run([dev / "reproduce.sh", bundle], capture_output=True, text=True,
                             env={"PATH": "/usr/bin:/bin"}, check=False, timeout=60)
    assert nowhere.returncode == 1 and len(nowhere.stderr.splitlines()) == 1, nowhere.stderr
    assert "there is no program tessera: name it, TESSERA=/path/to/tessera" in nowhere.stderr


def test_a_folder_of_somebody_else_is_left_alone(made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/thesis.md").write_text("mine")
    done = tessera("compile", HF, "--cache-dir", made[0].parent / "cache", "--bs-prefill=1,2",
                   "--bs-decode=1,3", "--output-dev-artifacts-dir", tmp_path / "dev")
    assert done.returncode == 1
    assert "holds something else than dev artifacts" in done.stderr.decode()
    assert [path.name for path in (tmp_path / "dev").iterdir()] == ["thesis.md"]


@pytest.mark.parametrize("flags,says", [
    (["--function=prefill_bs7"], "it has prefill_bs1, prefill_bs2, decode_bs1, decode_bs3"),
    (["--function=decode_bs1", "--input=1xi64"], "decode_bs1 takes 5 inputs"),
    (["--function=decode_bs1", "--input=2x1xi64", "--input=1xi64=1", "--input=1xi64",
      "--input=1x1xi64", "--input=2x512xf16"], "input 0 (tokens) is 2x1xi64, expected 1x1xi64"),
    (["--function=decode_bs1", "--input=1x1xi64", "--input=1xi64=1", "--input=1xi64",
      "--input=1x1xi64", "--input=2x3xf16"], "input 4 (cache) is 2x3xf16, expected PAGESx"),
    (["--input=1xi64"], "--input goes with --function"),
    (["--device=hip://0"], "programs of the cpu target run on cpu"),
    (["--parameters=other=x.irpa"], 'the scope is "other"'),
    (["--parameters=model=/nowhere.irpa"], "/nowhere.irpa"),
])
def test_what_does_not_fit_is_said(made: tuple[Path, Path], flags: list[str], says: str) -> None:
    done = tessera("benchmark-module", "--module", made[0] / "program.json", *flags)
    assert done.returncode == 1 and says in done.stderr.decode(), done.stderr.decode()
