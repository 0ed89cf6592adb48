#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures and appends one JSON line to bench/results: machine, commit, command, figures.

    bench/record.py kernels [FILTER]           kernel_bench, benchmarks that match the expression
    bench/record.py model MODEL [BENCH FLAGS]  tessera bench with these flags
    bench/record.py compile MODEL [RUNS]       seconds and GB/s of each stage of tessera compile (medians of the
                                               runs, 5 if not given), and the most memory; MODEL is read before

Needs a release build: cmake --build --preset release --target tessera kernel_bench
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
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


def watched(command: list[str]) -> tuple[str, int]:
    """Stdout, and the most private memory (RssAnon: mapped files and the page cache are not in it) of a command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        most = 0
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            if found := re.search(r"RssAnon:\s+(\d+) kB", status):  # Not of one that has just ended.
                most = max(most, int(found[1]) * 1024)
            time.sleep(0.005)
        out = process.stdout.read()
    if process.returncode != 0:
        sys.exit(f"{shown(command)} failed: run it by hand")
    return out, most


def compile_model(arguments: list[str]) -> tuple[str, dict]:
    with open(arguments[0], "rb") as file:
        while file.read(1 << 24):
            pass
    runs: dict[str, list[dict]] = {}
    most = 0
    for _ in range(int(arguments[1]) if len(arguments) > 1 else 5):
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as cache:
            command = [str(BUILD / "tessera"), "compile", arguments[0], "--json", "--cache-dir", cache]
            out, memory = watched(command)
        most = max(most, memory)
        for stage in json.loads(out)["stages"]:
            runs.setdefault(stage["name"], []).append(stage)
    stages = {}
    for name, times in runs.items():
        seconds = statistics.median(stage["seconds"] for stage in times)
        stages[name] = {"seconds": round(seconds, 3), "bytes": times[0]["bytes"],
                        "GB/s": round(times[0]["bytes"] / seconds / 1e9, 2)}
    return shown(command[:3]), {"runs": len(times), "stages": stages, "private_bytes_most": most}


def main() -> int:
    modes = {"kernels": kernels, "model": model, "compile": compile_model}
    if len(sys.argv) < 2 or sys.argv[1] not in modes or (sys.argv[1] != "kernels" and len(sys.argv) < 3):
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
