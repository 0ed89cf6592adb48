#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures and appends one JSON line to bench/results: machine, commit, command, figures.

    bench/record.py kernels [FILTER]           kernel_bench, benchmarks that match the expression
    bench/record.py model MODEL [BENCH FLAGS]  tessera bench with these flags

Needs a release build: cmake --build --preset release --target tessera kernel_bench
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from provenance import ROOT, provenance

BUILD = ROOT / "build/release"
RESULTS = ROOT / "bench/results"


def output_of(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def shown(command: list[str]) -> str:
    """Without the folders of this machine."""
    return " ".join([Path(command[0]).name, *(Path(a).name if a.startswith("/") else a
                                              for a in command[1:])])


def kernels(arguments: list[str]) -> tuple[str, dict]:
    command = [str(BUILD / "bench/kernel_bench"), "--benchmark_format=json"]
    if arguments:
        command.append(f"--benchmark_filter={arguments[0]}")
    rates = {}
    for bench in json.loads(output_of(command))["benchmarks"]:
        rates[bench["name"]] = {"ns": round(bench["real_time"], 1),
                                **{key: round(value, 2) for key, value in bench.items()
                                   if key.endswith("/s")}}
    return shown(command), {"benchmarks": rates}


def model(arguments: list[str]) -> tuple[str, dict]:
    command = [str(BUILD / "tessera"), "bench", *arguments, "--json"]
    rows = [json.loads(line) for line in output_of(command).splitlines()]
    return shown(command), {
        kind: [{key: value for key, value in row.items() if key != "row"}
               for row in rows if row["row"] == row_kind]
        for kind, row_kind in (("machines", "machine"), ("cases", "case"))}


def main() -> int:
    modes = {"kernels": kernels, "model": model}
    if len(sys.argv) < 2 or sys.argv[1] not in modes or (sys.argv[1] == "model" and len(sys.argv) < 3):
        print(__doc__, file=sys.stderr)
        return 2
    origin = provenance()
    command, figures = modes[sys.argv[1]](sys.argv[2:])
    file = RESULTS / f"{sys.argv[1]}.jsonl"
    RESULTS.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps({**origin, "command": command, **figures}) + "\n")
    print(f"appended to {file.relative_to(ROOT)}: {command}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
