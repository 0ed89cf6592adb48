#!/usr/bin/env python3
"""Deterministic gates of speed: counts that no neighbour on the machine can move.

Instructions per 256 multiply-accumulates of every weight format's matmul (x86-64-v3 kernels, one
thread, N=512 K=2048, quantisation of activations included) and per decode step of SmolLM2-135M, by
callgrind; barriers and bytes of a step, by the runtime's counters; memory of a server after load.
Compared with counts.json beside this file: a rise over 2% fails. UPDATE=1 rewrites it.

usage: tests/gates/gates.py [--build build/release] [--model FILE.gguf]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COUNTS = Path(__file__).resolve().parent / "counts.json"
MAC_UNIT = 256
OUTPUTS, INPUTS = 512, 2048  # As gate_driver.cc.
TOLERANCE = 1.02
# Memory beside the parameters' file: pages of the program, tokenizer, scratch.
RSS_MARGIN_BYTES = 60_000_000
# ggml's counts of the same work (its repacked Q4_0, its Q8_0), and what our prototypes reached.
MARKS = {"Q4_0": ((107, 87, 74), (58, 38, 35)), "Q8_0": ((145, 87, 87), (63, 54, 48))}


class Gates:
    def __init__(self, stored: dict) -> None:
        self.stored = stored
        self.counts: dict[str, dict[str, float]] = {}
        self.failures: list[str] = []
        self.checks = 0

    def check(self, ok: bool, message: str) -> None:
        self.checks += 1
        if not ok:
            self.failures.append(message)

    def compare(self, group: str, name: str, value: float, tolerance: float = TOLERANCE) -> None:
        """Not above the stored value by more than the tolerance; a missing one is a failure."""
        self.counts.setdefault(group, {})[name] = value
        old = self.stored.get(group, {}).get(name)
        if old is None:
            self.check(False, f"{group}, {name}: {value} is not in counts.json; UPDATE=1 adds it")
            return
        self.check(value <= old * tolerance,
                   f"{group}, {name}: {value} is {100 * (value / old - 1):.1f}% above {old}")
        if value < old / TOLERANCE:
            print(f"note: {group}, {name}: {value} is below {old}; UPDATE=1 keeps the gain")


def callgrind(driver: Path, *args: str) -> dict[str, int]:
    """Instructions between the driver's marks, by the mark's name."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no",
                               f"--callgrind-out-file={folder}/out", str(driver), *args],
                              check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:  # Silent else: hwloc has much to say about valgrind.
            sys.exit(f"gates: gate_driver {' '.join(args)} under valgrind:\n{done.stderr}")
        found = {}
        for dump in sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:])):
            text = dump.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
            total = re.search(r"^totals: (\d+)", text, re.M)
            if name and total:
                found[name.group(1)] = int(total.group(1))
        return found


def gate_kernels(gates: Gates, driver: Path) -> None:
    table: dict[str, dict[int, float]] = {}
    for name, instructions in callgrind(driver, "kernels").items():
        dtype, rows = name.split()
        units = int(rows) * OUTPUTS * INPUTS / MAC_UNIT
        table.setdefault(dtype, {})[int(rows)] = round(instructions / units, 2)
    print(f"instructions per {MAC_UNIT} MACs\n"
          "| format | M=1 | M=8 | M=32 | ggml | prototype |\n|---|---:|---:|---:|---|---|")
    for dtype, by_rows in table.items():
        marks = [" / ".join(map(str, mark)) for mark in MARKS.get(dtype, ((), ()))]
        print(f"| {dtype} | " + " | ".join(f"{by_rows[rows]:.1f}" for rows in sorted(by_rows)) +
              f" | {marks[0]} | {marks[1]} |")
        for rows, value in sorted(by_rows.items()):
            gates.compare("instructions_per_256_macs", f"{dtype} M={rows}", value)
    gates.check(len(table) == 11, f"callgrind counted {len(table)} formats instead of 11")


def gate_steps(gates: Gates, driver: Path, bundle: str) -> None:
    for name, instructions in sorted(callgrind(driver, "step", bundle).items()):
        streams = int(name.split()[1])
        print(f"decode step of {streams}: {instructions / 1e6:.1f} M instructions")
        gates.compare("instructions_per_decode_step", f"{streams} streams", instructions)


def gate_work(gates: Gates, driver: Path, bundle: str) -> None:
    done = subprocess.run([str(driver), "work", bundle], check=True, capture_output=True, text=True)
    for row in json.loads(done.stdout):
        excess = row["bytes"] / row["formula_bytes"]
        print(f"{row['name']}: {row['barriers']} barriers, {row['barriers'] / row['layers']:.2f} a "
              f"layer; {row['bytes'] / 1e6:.1f} MB read, {excess:.3f} of the formula")
        gates.compare("barriers_per_step", row["name"], row["barriers"], tolerance=1)
        # Within 2% of the formula, or an excess that is known and stored.
        gates.compare("bytes_over_formula", row["name"], max(round(excess, 4), 1.0))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gate_memory(gates: Gates, tessera: Path, bundle: str) -> None:
    """RSS of a server that is ready, and again after an answer."""
    port = free_port()
    server = subprocess.Popen([str(tessera), "serve", bundle, "--port", str(port),
                               "--served-model-name", "gates"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{url}/readyz", timeout=5)
                break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline or server.poll() is not None:
                    gates.check(False, "the server did not become ready")
                    return
                time.sleep(0.02)
        limit = (Path(bundle) / "model.irpa").stat().st_size + RSS_MARGIN_BYTES
        body = json.dumps({"model": "gates", "prompt": "The rain in Spain " * 16, "max_tokens": 16}).encode()
        for moment in ("after load", "after an answer"):
            status = Path(f"/proc/{server.pid}/status").read_text()
            rss = int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) * 1024
            print(f"server {moment}: RSS {rss / 1e6:.1f} MB, at most {limit / 1e6:.1f} MB")
            gates.check(rss <= limit, f"RSS {moment}: {rss} bytes, more than {limit}")
            urllib.request.urlopen(urllib.request.Request(
                f"{url}/v1/completions", body, {"Content-Type": "application/json"}), timeout=60)
    finally:
        server.terminate()
        server.wait()


def compiler(build: Path) -> str:
    cache = (build / "CMakeCache.txt").read_text()
    path = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M).group(1)
    first = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
    return first.splitlines()[0]


def main() -> int:
    data = Path(os.environ.get("TESSERA_TESTDATA", ROOT / ".cache/testdata"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--model", type=Path, default=data / "SmolLM2-135M-Instruct.Q4_1.gguf")
    args = parser.parse_args()
    driver, tessera = args.build / "tests/gates/gate_driver", args.build / "tessera"
    stored = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    gates = Gates(stored)
    made_by = compiler(args.build)
    if stored.get("compiler") not in (None, made_by):
        print(f"note: counts.json was made by {stored['compiler']}, this build by {made_by}")

    with tempfile.TemporaryDirectory() as cache:
        bundle = subprocess.run([str(tessera), "compile", str(args.model), "--cache-dir", cache],
                                check=True, capture_output=True, text=True).stdout.strip()
        gate_kernels(gates, driver)
        gate_steps(gates, driver, bundle)
        gate_work(gates, driver, bundle)
        gate_memory(gates, tessera, bundle)

    if os.environ.get("UPDATE") == "1":
        COUNTS.write_text(json.dumps({"compiler": made_by, **gates.counts}, indent=2) + "\n")
        print(f"wrote {COUNTS.relative_to(ROOT)}")
        gates.failures = [f for f in gates.failures if f.startswith(("RSS", "the server", "callgrind"))]
    for failure in gates.failures:
        print(f"FAILED {failure}")
    print(f"checks: {gates.checks - len(gates.failures)} passed, {len(gates.failures)} failed")
    return 1 if gates.failures else 0


if __name__ == "__main__":
    sys.exit(main())
