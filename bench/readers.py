#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What readers of a busy server see: time between tokens, time to the first, and lost requests.

    bench/readers.py MODEL [--streams 32] [--seconds 12] [--gen 128] [--words 8] [--long] [--serve-flag F]...
    bench/readers.py MODEL --requests 10000 [--leave 0.2]

Starts `tessera serve MODEL`. The first form keeps `--streams` answers going, each followed by the
next, and prints quantiles of the gaps between the events of one stream, of the time to the first and
the tokens per second; with --long one prompt of about 4,000 tokens after the other is computed
meanwhile, and a short one beside each. Two seconds of warming up are left out. The second form sends
short requests, 32 at a time, of which a share closes its connection at a random moment, and checks
that all others are answered in full, that the server counts every one, and that all pages are back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import socket
import statistics
import subprocess
import time
import urllib.request

from provenance import ROOT

WORDS = "river stone light cloud tree seven north quiet amber field glass horse".split()


class Server:
    def __init__(self, args: argparse.Namespace) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = int(sock.getsockname()[1])
        self.process = subprocess.Popen(
            [args.binary, "serve", args.model, "--port", str(self.port), "--served-model-name", "m",
             "--max-batch", str(args.streams + 8), *args.serve_flag],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.get("/readyz")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("the server did not start") from None
                time.sleep(0.1)

    def get(self, path: str) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=30) as reply:
            return str(reply.read().decode())

    def metric(self, name: str) -> float:
        return sum(float(value) for value in
                   re.findall(rf"^tessera_{name}{{[^}}]*}} (\S+)$", self.get("/metrics"), re.M))

    async def stream(self, body: dict[str, object], seconds: float | None = None) -> list[float]:
        """Times of the events with text; leaves after `seconds`, if given. Ends the run when the
        answer is cut."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = json.dumps({"model": "m", "stream": True, "ignore_eos": True, "temperature": 0.9,
                           **body}).encode()
        times: list[float] = []
        is_whole = False
        try:
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data)
                         + data)
            async with asyncio.timeout(seconds):
                while line := await reader.readline():
                    is_whole = is_whole or b'"finish_reason":"length"' in line
                    if line.startswith(b"data: {") and b'"text":""' not in line:
                        times.append(time.perf_counter())
                    elif line.startswith(b"HTTP/1.1") and b" 200 " not in line:
                        raise SystemExit(line.decode())
        finally:
            writer.close()
        if not is_whole:
            raise SystemExit("an answer was cut")
        return times


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def read_streams(server: Server, args: argparse.Namespace) -> None:
    begin = time.perf_counter() + 2
    end = begin + args.seconds
    gaps: list[float] = []
    firsts: list[float] = []
    long_firsts: list[float] = []
    short_firsts: list[float] = []

    async def user(number: int) -> None:
        rng = random.Random(number)
        gen = rng.randrange(8, args.gen + 1)  # Spread, so that they do not end together.
        while time.perf_counter() < end:
            sent = time.perf_counter()
            times = await server.stream({"prompt": words(rng, args.words), "max_tokens": gen,
                                         "seed": rng.randrange(1 << 30)})
            gen = args.gen
            if sent >= begin:
                firsts.append(times[0] - sent)
            gaps.extend(b - a for a, b in zip(times, times[1:]) if a >= begin and b < end)

    async def writer() -> None:
        rng = random.Random(-1)
        while time.perf_counter() < end:
            sent = time.perf_counter()
            long = asyncio.create_task(server.stream({"prompt": words(rng, 3900), "max_tokens": 2}))
            await asyncio.sleep(0.3)
            short = time.perf_counter()
            short_firsts.append((await server.stream({"prompt": words(rng, 8), "max_tokens": 1}))[0]
                                - short)
            long_firsts.append((await long)[0] - sent)

    await asyncio.gather(*(user(i) for i in range(args.streams)), *([writer()] if args.long else []))
    print(f"{args.streams} streams: {len(gaps) / args.seconds:.0f} tok/s; ms between tokens: median "
          f"{quantile(gaps, .5):.1f}, p99 {quantile(gaps, .99):.1f} "
          f"({quantile(gaps, .99) / quantile(gaps, .5):.2f} medians), p99.9 {quantile(gaps, .999):.1f}; "
          f"first: median {quantile(firsts, .5):.0f}, p99 {quantile(firsts, .99):.0f}")
    if args.long:
        print(f"prompts of 3,900 words: {len(long_firsts)}, first token after "
              f"{statistics.median(long_firsts):.2f} s; short ones beside them: median "
              f"{quantile(short_firsts, .5):.0f} ms, most {1e3 * max(short_firsts):.0f} ms")


async def send_requests(server: Server, args: argparse.Namespace) -> None:
    rng = random.Random(1)
    left = answered = 0
    places = asyncio.Semaphore(args.streams)

    async def one(number: int, leaves: float | None) -> None:
        nonlocal left, answered
        async with places:
            prompt = words(random.Random(number), 4 + number % 30)
            try:
                await server.stream({"prompt": prompt, "max_tokens": 4, "seed": number}, leaves)
                answered += 1
            except TimeoutError:
                left += 1

    begin = time.perf_counter()
    await asyncio.gather(*(one(i, rng.random() * 0.1 if rng.random() < args.leave else None)
                           for i in range(args.requests)))
    took = time.perf_counter() - begin
    while server.metric("num_requests_running") + server.metric("num_requests_waiting") > 0:
        await asyncio.sleep(0.05)
    counted = int(server.metric("request_success_total"))
    pages = server.metric("kv_cache_usage_perc")
    print(f"{args.requests} requests in {took:.1f} s: {answered} answered in full, {left} left; the "
          f"server counted {counted}; share of pages in use afterwards {pages:g}")
    # Who leaves before the request has been read was never there.
    if answered + left != args.requests or not answered <= counted <= args.requests or pages != 0:
        raise SystemExit("requests or pages were lost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--binary", default=str(ROOT / "build/release/tessera"))
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--gen", type=int, default=128)
    parser.add_argument("--words", type=int, default=8)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--leave", type=float, default=0.2)
    parser.add_argument("--serve-flag", action="append", default=[])
    args = parser.parse_args()
    server = Server(args)
    try:
        asyncio.run(send_requests(server, args) if args.requests else read_streams(server, args))
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
