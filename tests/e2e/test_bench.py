"""`tessera bench`: the structure of what it prints. Speed itself is no property to test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, TINY, tessera

GGUF = TINY / "tiny-f16.gguf"


def rows(*args: str) -> list[dict]:
    done = tessera("bench", GGUF, *args, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_grid_is_every_combination() -> None:
    machine, *cases = rows("-p", "8,16", "-n", "2-4+2", "-d", "0,32", "-b", "1-2", "-r", "2",
                           "--threads", "2")
    assert machine["row"] == "machine" and machine["threads"] == 2
    assert [case["test"] for case in cases[:4]] == ["pp8", "pp16", "tg2", "tg4"]
    assert len(cases) == 16 and cases[-1]["test"] == "tg4 @ d32 x 2"


def test_case_has_spread_counts_and_shares() -> None:
    one, two, *cases = rows("-p", "64", "-n", "4", "-d", "64", "-r", "3", "--threads", "2",
                            "--roofline")
    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["barrier_seconds"] == 0 and two["barrier_seconds"] > 0
    assert set(one["probe_ops_per_second"]) == set(two["probe_ops_per_second"])
    for machine in (one, two):
        assert machine["read_bytes_per_second"] > 0 and machine["float_ops_per_second"] > 0
    for case in cases:
        assert len(case["samples"]) == 3
        low, middle, high = (case[f"tokens_per_second_{name}"] for name in ("min", "median", "max"))
        assert 0 < low <= middle <= high and low <= case["tokens_per_second_mean"] <= high
        assert case["barriers_per_step"] >= case["barriers_per_layer"] > 0
        assert case["share_of_bound"] == pytest.approx(middle / case["bound_tokens_per_second"])
        assert case["share_of_read"] == pytest.approx(
            case["read_bytes_per_second"] / case["probe_read_bytes_per_second"])
        assert case["probe_read_bytes_per_second"] >= two["read_bytes_per_second"]
        seconds = case["tokens"] / middle
        assert case["weight_bytes_per_second"] == pytest.approx(
            case["weight_bytes_per_step"] * case["steps"] / seconds)
        assert case["ops_per_second"] == pytest.approx(
            2 * case["macs_per_step"] * case["steps"] / seconds)
    prompt, generation = cases
    assert (prompt["steps"], generation["steps"]) == (1, 4)
    # Four steps from depth 64: each reads the weights once; KV grows by a position a step.
    assert generation["weight_bytes_per_step"] <= Path(GGUF).stat().st_size


def test_more_positions_than_the_model_has_are_refused() -> None:
    done = tessera("bench", GGUF, "-p", "1000000", "-n", "0")
    assert done.returncode == 1 and b"positions, the model has" in done.stderr


def test_the_comparison_with_peers_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, ROOT / "bench/peers.py"], capture_output=True, text=True)
    assert done.returncode == 2 and "usage: bench/peers.py --root DIR" in done.stderr
