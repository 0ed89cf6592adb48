#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to the first token of users whose prompts begin alike, against the same prompts uncached.

    bench/shared_prefix.py MODEL [--users 8] [--prefix 512] [--own 32] [--gen 16] [--rounds 7] [--append]

Starts `tessera serve MODEL`. Each round makes new prompts (token ids) for each of two ways: cold
(nobody sent the prefix before) and warm (one request sent it before). All users send theirs at once,
that way and uncached (`cache_prompt` false), which of the two first changes; the texts must be equal.
Prints the median over the rounds of the users' mean TTFT, and of its ratio to uncached. --append
adds a JSON line to bench/results/shared_prefix.jsonl.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from provenance import ROOT, provenance

RESULTS = ROOT / "bench/results/shared_prefix.jsonl"
WAYS = ("cold", "warm")
# Plain words in the vocabularies of SmolLM2 and Llama 3; ids below are single bytes and punctuation.
TOKEN_LOW, TOKEN_HIGH = 1000, 40000


@dataclass
class Reply:
    ttft: float = 0.0
    text: str = ""
    cached: int = 0


def complete(port: int, prompt: list[int], gen: int, cache: bool, reply: Reply) -> None:
    body = {"model": "m", "prompt": prompt, "max_tokens": gen, "temperature": 0, "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}, "cache_prompt": cache}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.connect()
    begin = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(response.read().decode())
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        if reply.ttft == 0.0:
            reply.ttft = time.monotonic() - begin
        chunk = json.loads(line[6:])
        if chunk["choices"]:
            reply.text += chunk["choices"][0]["text"]
        elif chunk["usage"]:
            reply.cached = chunk["usage"]["prompt_tokens_details"]["cached_tokens"]


def together(port: int, prompts: list[list[int]], gen: int, cache: bool) -> list[Reply]:
    replies = [Reply() for _ in prompts]
    threads = [threading.Thread(target=complete, args=(port, p, gen, cache, r))
               for p, r in zip(prompts, replies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def run_way(args: argparse.Namespace, port: int, way: str, seed: int) -> tuple[float, float]:
    """The users' mean TTFT this way and uncached."""
    draw = random.Random(f"{way} {seed}")

    def tokens(count: int) -> list[int]:
        return [draw.randrange(TOKEN_LOW, TOKEN_HIGH) for _ in range(count)]

    prefix = tokens(args.prefix)
    prompts = [prefix + tokens(args.own) for _ in range(args.users)]
    if way == "warm":
        together(port, [prefix + tokens(4)], 1, cache=True)
    replies: dict[bool, list[Reply]] = {}
    for cache in (True, False) if seed % 2 else (False, True):
        replies[cache] = together(port, prompts, args.gen, cache)
    # Of the cold ones somebody computes the prefix; the others find it.
    fewest = sorted(r.cached for r in replies[True])[0 if way == "warm" else 1]
    if fewest < args.prefix - 64 or any(r.cached for r in replies[False]):
        raise SystemExit(f"{way}: {fewest} tokens were cached")
    if [r.text for r in replies[True]] != [r.text for r in replies[False]]:
        raise SystemExit(f"{way}: the texts differ from those of uncached prompts")
    return (statistics.mean(r.ttft for r in replies[True]),
            statistics.mean(r.ttft for r in replies[False]))


def start(args: argparse.Namespace) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])
    server = subprocess.Popen([args.tessera, "serve", args.model, "--port", str(port), "--threads",
                               str(args.threads), "--max-batch", str(args.users),
                               "--served-model-name", "m"], stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if server.poll() is not None:
            raise SystemExit("the server stopped")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return server, port
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server is not ready")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"))
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--prefix", type=int, default=512)
    parser.add_argument("--own", type=int, default=32)
    parser.add_argument("--gen", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--append", action="store_true")
    args = parser.parse_args()

    origin = provenance()
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    server, port = start(args)
    try:
        for number in range(args.rounds + 1):
            for way in WAYS:
                pair = run_way(args, port, way, number)
                if number > 0:  # The first round warms the machine and is thrown away.
                    times[way].append(pair)
    finally:
        server.terminate()
        server.wait(60)
    record: dict = {**origin, "threads": args.threads, "model": Path(args.model).name,
                    "users": args.users, "prefix": args.prefix, "own": args.own}
    for way, pairs in times.items():
        ttft, uncached = (statistics.median(column) for column in zip(*pairs))
        ratios = [cached / plain for cached, plain in pairs]
        record[way] = {"ttft_s": round(ttft, 4), "uncached_s": round(uncached, 4),
                       "ratio": round(statistics.median(ratios), 4),
                       "ratio_min": round(min(ratios), 4), "ratio_max": round(max(ratios), 4)}
        print(f"{way:<5} mean TTFT {ttft * 1e3:8.1f} ms, uncached {uncached * 1e3:8.1f} ms: "
              f"{statistics.median(ratios):.3f}x ({min(ratios):.3f} to {max(ratios):.3f})")
    if args.append:
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as out:
            out.write(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
