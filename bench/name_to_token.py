#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a name to the first token, beside what that costs at the least.

    bench/name_to_token.py REPOSITORY [--rounds 7] [--binary build/release/tessera]

Each round, with empty caches and in turn: `tessera pull` of the repository from a hub on this
machine (download and verify); a copy of the bytes that packing writes, synced (pack at the speed of
input and output); `tessera run` of the same name to its first byte on stdout, and to its end, when
the bundle is published. Then the same name again, which finds everything. Prints the medians and the
ratio of the third to the first two, with its range.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "org/model"


def seconds(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """To the first byte on stdout, and to the end."""
    begin = time.monotonic()
    with (tempfile.TemporaryFile() as log,
          subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log) as process):
        assert process.stdout is not None
        process.stdout.read(1)
        first = time.monotonic() - begin
        process.stdout.read()
        process.wait()
        took = time.monotonic() - begin
        if process.returncode != 0:
            log.seek(0)
            raise SystemExit(f"{' '.join(command)}: {log.read().decode()}")
    return first, took


def copy_seconds(source: Path, target: Path) -> float:
    begin = time.monotonic()
    with source.open("rb") as data, target.open("wb") as out:
        shutil.copyfileobj(data, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
    took = time.monotonic() - begin
    target.unlink()
    return took


def start_hub(repository: Path) -> tuple[subprocess.Popen[str], str]:
    hub = subprocess.Popen(
        [sys.executable, "-u", "-m", "fake_hub", "--repository", f"{NAME}={repository}"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/support")}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True)
    assert hub.stdout is not None
    for line in hub.stdout:
        if "http://" in line:
            return hub, "http://" + line.split("http://")[1].split()[0]
    raise SystemExit("the hub did not start")


def measure(args: argparse.Namespace, url: str, folder: Path) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"pull": [], "copy": [], "first token": [], "bundle": [],
                                     "again": []}
    for number in range(args.rounds):
        def env(home: str) -> dict[str, str]:
            return os.environ | {"HF_ENDPOINT": url, "HF_HOME": str(folder / home / "hf"),
                                 "TESSERA_CACHE": str(folder / home / "tessera"), "NO_PROXY": "*"}
        run = [str(args.binary), "run", NAME, "--raw", "-p", "a", "-n", "1"]
        times["pull"].append(seconds([str(args.binary), "pull", NAME], env("pulled"))[1])
        first, whole = seconds(run, env("run"))
        times["first token"].append(first)
        times["bundle"].append(whole)
        times["again"].append(seconds(run, env("run"))[0])
        packed = next((folder / "run").rglob("model.irpa"))
        times["copy"].append(copy_seconds(packed, folder / "copy"))
        for home in ("pulled", "run"):
            shutil.rmtree(folder / home)
        print(f"round {number + 1}: " + ", ".join(f"{key} {values[-1]:.3f} s"
                                                  for key, values in times.items()))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/tessera")
    args = parser.parse_args()
    hub, url = start_hub(args.repository)
    try:
        with tempfile.TemporaryDirectory() as folder:
            times = measure(args, url, Path(folder))
    finally:
        hub.terminate()
        hub.wait()
    ratios = [token / (pull + copy) for pull, copy, token
              in zip(times["pull"], times["copy"], times["first token"])]
    print(", ".join(f"{key} {statistics.median(values):.3f} s" for key, values in times.items()))
    print(f"first token / (pull + copy): {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
