# SPDX-License-Identifier: Apache-2.0
"""benchmark-module beside iree-benchmark-module: its flagfiles run, its reports have one shape."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import GGUF, SHARED, TINY, tessera

SAMPLES = SHARED / "samples/shark/bench"
PREFILL = "BM_prefill_bs1/process_time/real_time"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The models that the samples were measured with, by the first word of a sample's name."""
    root = tmp_path_factory.mktemp("benchmark")
    toy = root / "toy_llama"
    toy.mkdir()
    dataset = SHARED / "samples/shark/irpa_sharktank/toy_llama.irpa"
    (toy / "toy_llama.irpa").write_bytes(dataset.read_bytes())
    (toy / "tokenizer.json").write_bytes((TINY / "hf/tokenizer.json").read_bytes())
    made = {}
    for name, source, flags in (("toy", toy / "toy_llama.irpa", ["--block-seq-stride", "16"]),
                                ("smollm2_f16", GGUF, [])):
        done = tessera("compile", source, *flags, "--cache-dir", root / "cache",
                       "--output-artifacts-dir", root / name)
        assert done.returncode == 0, done.stderr.decode()
        made[name] = root / name
    return made


def run(*args: str | Path) -> tuple[str, str]:
    done = tessera("benchmark-module", *args)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def names(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines() if line.startswith("BM_")]


def shape(value: Any) -> Any:
    """Keys and kinds of values, without the values."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "number" if is_number else type(value)


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.glob("*flags*.txt")))
def test_flagfiles_of_the_existing_system_run(bundles: dict[str, Path], tmp_path: Path,
                                              sample: str) -> None:
    """Only the program and its parameters are ours: prefill has no start_positions in them."""
    lines = [line for line in (SAMPLES / sample).read_text().splitlines()
             if not line.startswith(("--module", "--parameters"))]
    (tmp_path / "flags").write_text("\n".join(lines))
    bundle = bundles[sample.split(".")[0]]
    out, _ = run(f"--module={bundle}/program.json", f"--parameters=model={bundle}/model.irpa",
                 f"--flagfile={tmp_path}/flags", "--benchmark_min_time=1x")
    function = next(line.removeprefix("--function=") for line in lines if "--function=" in line)
    assert names(out) == [f"BM_{function}/process_time/real_time"]


def test_repetitions_make_the_rows_of_the_existing_system(bundles: dict[str, Path]) -> None:
    theirs = (SAMPLES / "toy.prefill_bs1.repetitions3.stdout.txt").read_text()
    out, err = run("--module", bundles["toy"], "--function=prefill_bs1",
                   "--benchmark_repetitions=3", "--benchmark_min_time=1x")
    assert names(out) == names(theirs)
    header = re.compile(r"^Benchmark +Time +CPU +Iterations UserCounters\.\.\.$", re.M)
    assert header.search(out) and header.search(theirs)
    row = re.compile(rf"^{PREFILL} +[\d.]+ ms +[\d.]+ ms +1 items_per_second=[\d.k]+/s$", re.M)
    assert len(row.findall(theirs)) == len(row.findall(out)) == 3, out
    context = (SAMPLES / "toy.prefill_bs1.repetitions3.stderr.txt").read_text()
    words = [line.split()[0] for line in context.splitlines()[1:]]
    assert [line.split()[0] for line in err.splitlines()[1:]] == words, err


def test_json_has_the_members_of_the_existing_system(bundles: dict[str, Path]) -> None:
    theirs = json.loads((SAMPLES / "toy.decode_bs4.benchmark_format_json.stdout.json").read_text())
    ours = json.loads(run("--module", bundles["toy"], "--function=decode_bs4",
                          "--benchmark_format=json", "--benchmark_min_time=2x")[0])
    assert shape(ours) == shape(theirs)
    assert list(ours["benchmarks"][0]) == list(theirs["benchmarks"][0])
    for member in ("name", "run_name", "run_type", "time_unit", "threads", "repetitions"):
        assert ours["benchmarks"][0][member] == theirs["benchmarks"][0][member]
    assert ours["benchmarks"][0]["iterations"] == 2
    assert ours["context"]["library_build_type"] == theirs["context"]["library_build_type"]


def test_reports_go_to_a_file_too(bundles: dict[str, Path], tmp_path: Path) -> None:
    out, _ = run("--module", bundles["toy"], "--benchmark_filter=decode", "--benchmark_min_time=1x",
                 "--benchmark_repetitions=2", "--benchmark_display_aggregates_only",
                 "--benchmark_out", tmp_path / "rows.csv", "--benchmark_out_format=csv",
                 "--benchmark_time_unit=us")
    assert all(name.rsplit("_", 1)[1] in ("mean", "median", "stddev", "cv") for name in names(out))
    text = (tmp_path / "rows.csv").read_text()  # The library puts the context before the table.
    rows = list(csv.DictReader(text[text.index("name,"):].splitlines()))
    assert [row["name"] for row in rows[:2]] == ["BM_decode_bs1/process_time/real_time"] * 2
    assert {row["time_unit"] for row in rows if not row["name"].endswith("_cv")} == {"us"}


@pytest.mark.parametrize("text", ["--benchmark_list_tests", "--benchmark_list_tests=true"])
def test_functions_are_listed(bundles: dict[str, Path], text: str) -> None:
    out, _ = run("--module", bundles["toy"], text)
    assert names(out) == [f"BM_{function}/process_time/real_time" for function in (
        "prefill_bs1", "prefill_bs4", "decode_bs1", "decode_bs4", "decode_bs8")]


@pytest.mark.parametrize("flag,code,says", [
    ("--benchmark_min_time=0x", 2, "expected seconds (0.5 or 0.5s) or iterations (10x)"),
    ("--benchmark_min_time=-1", 2, "expected seconds (0.5 or 0.5s) or iterations (10x)"),
    ("--benchmark_repetitions=x", 2, "--benchmark_repetitions"),
    ("--benchmark_filter=nothing", 1, "matches none of BM_prefill_bs1, BM_prefill_bs4"),
    ("--task_topology_group_count=2", 2, "name it --threads N"),
    ("--parameter_mode=preload", 2, "leave it out"),
])
def test_what_it_does_not_take_is_said(bundles: dict[str, Path], flag: str, code: int,
                                       says: str) -> None:
    done = tessera("benchmark-module", "--module", bundles["toy"], flag)
    assert done.returncode == code and says in done.stderr.decode(), done.stderr.decode()
