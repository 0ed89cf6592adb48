#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of a model with 1, 2, 4 and 8 ranks in one process, as a Markdown table.

usage: bench/tensor_parallel.py MODEL [--ranks 1,2,4,8] [--prompt 128] [--generate 16]
                                [--cache-dir DIR] [--tessera PATH] [BENCH OPTIONS]

Every bundle is compiled first and kept in the cache; needs the disk for one copy of the packed model
a number of ranks. Further options go to `tessera bench`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def rows(arguments: list[str]) -> list[dict[str, object]]:
    done = subprocess.run(arguments, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(arguments)}")
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("model")
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--prompt", default="128")
    parser.add_argument("--generate", default="16")
    parser.add_argument("--cache-dir")
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"))
    options, more = parser.parse_known_args()
    cache = ["--cache-dir", options.cache_dir] if options.cache_dir else []
    print("| ranks | test | tok/s |\n|---:|---|---:|")
    for ranks in options.ranks.split(","):
        command = [options.tessera, "bench", options.model, *cache, "--tp", ranks, "-p",
                   options.prompt, "-n", options.generate, "--json", *more]
        for row in rows(command):
            if row["row"] == "case":
                speed = float(str(row["tokens_per_second_median"]))
                print(f"| {ranks} | {row['test']} | {speed:.1f} |", flush=True)


if __name__ == "__main__":
    main()
