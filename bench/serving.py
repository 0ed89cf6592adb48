#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What serving costs beside the model: processor time and memory of streams.

    bench/serving.py overhead MODEL [--streams 32] [--gen 256] [--rounds 5]
    bench/serving.py idle MODEL [--streams 1000]

Starts `tessera serve MODEL`. `overhead`: processor time a token of all threads but those that
compute (the engine and the workers), with that many streams of chat at once, and that of the whole
server. `idle`: what resident memory grows by with that many streams open that get nothing but pings,
because one request holds the only place, divided by their number; and what of it stays when their
clients have gone. Prints one JSON line a result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

from provenance import ROOT, provenance

TICK = os.sysconf("SC_CLK_TCK")
# Names of threads (base/thread.h) that run the model; the main thread waits.
COMPUTING = ("the engine", "worker ")
ANSWER = b"HTTP/1.1 200"
HELD_TOKENS = 6000


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def get(port: int, path: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
        return str(response.read().decode())


def metric(port: int, name: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in get(port, "/metrics").splitlines()
               if line.split("{")[0].split(" ")[0] == name)


async def start(args: argparse.Namespace, *flags: str) -> tuple[subprocess.Popen[bytes], int]:
    port = free_port()
    server = subprocess.Popen([args.tessera, "serve", args.model, "--port", str(port), *flags],
                              stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if server.poll() is not None:
            raise SystemExit("the server stopped")
        try:
            get(port, "/readyz")
            return server, port
        except OSError:
            await asyncio.sleep(0.1)
    raise SystemExit("the server is not ready")


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Of the threads that serve, and of all."""
    serving = total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, _, fields = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
        user, system = fields.split()[11:13]
        seconds = (int(user) + int(system)) / TICK
        total += seconds
        if not name.startswith(COMPUTING):
            serving += seconds
    return serving, total


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def send(port: int, body: dict[str, object]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
    await writer.drain()
    return reader, writer


async def stream(port: int, body: dict[str, object]) -> None:
    reader, writer = await send(port, body)
    head = await reader.readline()
    if not head.startswith(ANSWER):
        raise SystemExit(f"{head.decode().strip()}: {(await reader.read(2000)).decode()}")
    while True:
        data = await reader.read(65536)
        if not data or b"data: [DONE]" in data:
            break
    writer.close()


def chat(question: str, tokens: int) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": question}], "max_tokens": tokens,
            "temperature": 0, "ignore_eos": True, "stream": True}


async def overhead(args: argparse.Namespace) -> dict[str, object]:
    server, port = await start(args, "--served-model-name", "m", "--max-batch", str(args.streams))
    costs: list[float] = []
    totals: list[float] = []
    try:
        for round_ in range(args.rounds):
            tokens, (serving, total) = metric(port, "tessera_generation_tokens_total"), cpu_seconds(server.pid)
            await asyncio.gather(*(stream(port, chat(f"Tell me of {round_} and {i}.", args.gen))
                                   for i in range(args.streams)))
            tokens = metric(port, "tessera_generation_tokens_total") - tokens
            after = cpu_seconds(server.pid)
            costs.append(1e6 * (after[0] - serving) / tokens)
            totals.append(1e6 * (after[1] - total) / tokens)
    finally:
        server.terminate()
        server.wait()
    return {"streams": args.streams, "tokens_each": args.gen, "rounds": args.rounds,
            "serving_us_per_token": round(statistics.median(costs), 2),
            "serving_us_per_token_of_rounds": [round(cost, 2) for cost in costs],
            "server_us_per_token": round(statistics.median(totals), 2)}


async def idle(args: argparse.Namespace) -> dict[str, object]:
    # Without a cache the holder of the place gets the KV memory that was used, and found, before it.
    server, port = await start(args, "--served-model-name", "m", "--max-batch", "1", "--queue-length",
                               str(args.streams + 1), "--prefix-cache", "off")
    try:
        await stream(port, chat("Count for ever.", HELD_TOKENS))
        _, holder = await send(port, chat("Count for ever.", HELD_TOKENS))
        await asyncio.sleep(1)
        before = resident(server.pid)
        streams = []
        for i in range(args.streams):
            streams.append(await send(port, chat(f"Tell me of {i}.", 8)))
        heads = [await asyncio.wait_for(reader.readline(), 60) for reader, _ in streams]
        if any(not head.startswith(ANSWER) for head in heads):
            raise SystemExit(f"{sum(head.startswith(ANSWER) for head in heads)} streams were opened")
        waiting = metric(port, "tessera_num_requests_waiting")
        opened = resident(server.pid)
        for _, writer in streams:
            writer.close()
        for _ in range(100):
            await asyncio.sleep(0.1)
            if metric(port, "tessera_num_requests_waiting") == 0:
                break
        closed = resident(server.pid)
        holder.close()
    finally:
        server.terminate()
        server.wait()
    return {"streams": args.streams, "waiting": waiting, "grown_mb": round((opened - before) / 1e6, 2),
            "kb_per_stream": round((opened - before) / args.streams / 1e3, 2),
            "stays_mb": round((closed - before) / 1e6, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("overhead", "idle"))
    parser.add_argument("model")
    parser.add_argument("--tessera", default=str(ROOT / "build/release/tessera"))
    parser.add_argument("--streams", type=int)
    parser.add_argument("--gen", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.streams = args.streams or (32 if args.what == "overhead" else 1000)
    origin = provenance()
    result = asyncio.run(overhead(args) if args.what == "overhead" else idle(args))
    print(json.dumps({**origin, "measures": args.what, "model": Path(args.model).name, **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
