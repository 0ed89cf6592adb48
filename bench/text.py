#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput of the text verbs, outside view: MB/s of text for tokenize, detokenize and render.

    bench/text.py MODEL TEXT_FILE [--binary build/release/tessera] [--runs 3]

MODEL is anything that `--model` takes; TEXT_FILE is cut into lines of 4000 characters, repeated to
two million. The time of a run with one short line (start, vocabulary) is taken off. Best of RUNS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

LINE_CHARACTERS = 4000
ALL_CHARACTERS = 2_000_000


def run(command: list[str], rows: list[dict]) -> tuple[float, list[dict]]:
    """Seconds and answers."""
    stdin = "".join(json.dumps(row) + "\n" for row in rows).encode()
    begin = time.monotonic()
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True)
    seconds = time.monotonic() - begin
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = next((a["error"] for a in answers if "error" in a), None)
    if wrong is not None or len(answers) != len(rows):
        raise SystemExit(f"{' '.join(command)}: {wrong or 'too few answers'}")
    return seconds, answers


def measure(command: list[str], rows: list[dict], text_bytes: int, runs: int) -> list[dict]:
    start = min(run(command, rows[:1])[0] for _ in range(runs))
    timed = [run(command, rows) for _ in range(runs)]
    seconds = max(min(t for t, _ in timed) - start, 1e-9)
    print(f"{command[1]:<11} {text_bytes / 1e6 / seconds:8.2f} MB/s   (start {start:.2f} s)   "
          f"{' '.join(command)}")
    return timed[0][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--binary", default="build/release/tessera")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    text = args.text.read_text()
    text = (text * (1 + ALL_CHARACTERS // len(text)))[:ALL_CHARACTERS]
    lines = [text[i:i + LINE_CHARACTERS] for i in range(0, len(text), LINE_CHARACTERS)]
    size = len(text.encode())

    def command(verb: str, *flags: str) -> list[str]:
        return [args.binary, verb, "--model", args.model, *flags]

    ids = measure(command("tokenize", "--no-special"), [{"text": t} for t in lines], size, args.runs)
    measure(command("detokenize", "--keep-special"), ids, size, args.runs)
    chats = [{"messages": [{"role": "user", "content": t}]} for t in lines]
    measure(command("render"), chats, size, args.runs)


if __name__ == "__main__":
    main()
