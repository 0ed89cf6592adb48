#!/usr/bin/env python3
"""tessera bench and llama-bench side by side: same file, same threads, interleaved (A B B A ...).

llama-bench comes from ../shared/peers/setup.sh (llama.cpp) or any build. Prints medians and the
median of the pairwise ratios with their spread; --append adds one JSON line with machine and commit
to bench/results/llama.jsonl. Quote a ratio only from a quiet machine: the load is printed.

usage: bench/compare_llama.py MODEL.gguf --llama-bench PATH [-p 512] [-n 128] [-d 0] [--pairs 7]
       [--threads N] [--append]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from provenance import ROOT, provenance

RESULTS = ROOT / "bench/results/llama.jsonl"


def run_json(command: list[str]) -> list[dict]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    if done.stdout.startswith("["):  # llama-bench: one array. tessera: a line a row.
        return json.loads(done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


def tessera_rates(args: argparse.Namespace) -> dict[str, float]:
    rows = run_json([args.tessera, "bench", args.model, "-p", str(args.p), "-n", str(args.n), "-d",
                     str(args.d), "-r", "1", "--threads", str(args.threads), "--json"])
    return {row["kind"]: row["tokens_per_second_median"] for row in rows if row["row"] == "case"}


def llama_rates(args: argparse.Namespace) -> dict[str, float]:
    rows = run_json([args.llama_bench, "-m", args.model, "-p", str(args.p), "-n", str(args.n), "-d",
                     str(args.d), "-r", "1", "-t", str(args.threads), "-o", "json"])
    return {"pp" if row["n_gen"] == 0 else "tg": row["avg_ts"] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"))
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-d", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--append", action="store_true")
    args = parser.parse_args()

    origin = provenance()
    sides = {"tessera": tessera_rates, "llama.cpp": llama_rates}
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for pair in range(args.pairs + 1):
        order = list(sides) if pair % 2 == 0 else list(reversed(sides))
        for name in order:
            rates = sides[name](args)
            if pair > 0:  # The first pair warms caches and is thrown away.
                samples[name].append(rates)
    record: dict = {**origin, "threads": args.threads, "model": Path(args.model).name,
                    "depth": args.d, "pairs": args.pairs, "tests": {}}
    for kind, tokens in (("pp", args.p), ("tg", args.n)):
        if tokens == 0:
            continue
        ours = [s[kind] for s in samples["tessera"]]
        theirs = [s[kind] for s in samples["llama.cpp"]]
        ratios = [a / b for a, b in zip(ours, theirs)]
        record["tests"][f"{kind}{tokens}"] = {
            "tessera": round(statistics.median(ours), 2),
            "llama.cpp": round(statistics.median(theirs), 2),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_min": round(min(ratios), 3), "ratio_max": round(max(ratios), 3)}
    for test, row in record["tests"].items():
        print(f"{record['model']} {test}: tessera {row['tessera']} tok/s, llama.cpp "
              f"{row['llama.cpp']} tok/s, ratio {row['ratio']} ({row['ratio_min']} to "
              f"{row['ratio_max']}, {args.pairs} pairs, load {record['load']:.1f})")
    if args.append:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        with RESULTS.open("a") as out:
            out.write(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
