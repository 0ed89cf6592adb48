#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tessera gateway` costs and how soon it does things.

    bench/gateway.py start MODEL [--rounds 20]      creation to READY, and no worker to first token
    bench/gateway.py overhead MODEL [--rounds 300]  what it adds to the time to the first token, and
                                                    its processor time a streamed token
    bench/gateway.py rate [--rounds 5]              short calls a second to a stub worker, beside
                                                    nginx proxying to one (needs nginx and wrk)
    bench/gateway.py store [--endpoints 10000]      list page and restart with so many endpoints
    bench/gateway.py kills MODEL [--seconds 60]     a worker killed every 5 s under load
    bench/gateway.py updates MODEL [--rounds 200]   rolling updates under load

MODEL is a GGUF or bundle of this disk. Each starts a gateway with an empty state folder on a free
port and prints one line of JSON a result. The stub worker is nginx with a constant answer, on the
socket that the gateway hands its workers.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
ME = "Basic " + base64.b64encode(b"me:").decode()
LISTING = "/v1/llm/model-endpoints"
ANSWER = ('{"id":"x","object":"text_completion","created":1,"model":"a","choices":[{"index":0,'
          '"text":" Paris","finish_reason":"length"}],"usage":{"prompt_tokens":5,'
          '"completion_tokens":1,"total_tokens":6}}')
STUB = """#!/bin/sh
# In place of `tessera serve`: nginx on the socket that it is given.
while [ "$1" != --listen-fd ]; do shift; done
port=$(python3 -c "import socket, sys
print(socket.socket(fileno=int(sys.argv[1])).getsockname()[1])" "$2")
sed "s/@PORT@/$port/" FOLDER/stub.conf > FOLDER/stub.$port.conf
NGINX="$2;" exec nginx -p FOLDER -c FOLDER/stub.$port.conf
"""
COMMON = """daemon off; worker_processes WORKERS; error_log stderr crit; pid FOLDER/NAME.pid;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path FOLDER/NAME.body; proxy_temp_path FOLDER/NAME.proxy;
  fastcgi_temp_path FOLDER/NAME.f; uwsgi_temp_path FOLDER/NAME.u; scgi_temp_path FOLDER/NAME.s;
  keepalive_requests 100000000;
  CONTENT
}
"""
STUB_SERVER = ("server { listen 127.0.0.1:@PORT@; default_type application/json; "
               "location / { return 200 '" + ANSWER + "'; } }")
PROXY = """upstream stub { server 127.0.0.1:STUB; keepalive 64; }
  server { listen 127.0.0.1:PORT; location / {
    proxy_pass http://stub; proxy_http_version 1.1; proxy_set_header Connection ""; } }"""


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def ms(values: list[float]) -> dict[str, float]:
    return {name: round(1e3 * value, 2) for name, value in
            (("p50", statistics.median(values)), ("p99", quantile(values, 0.99)),
             ("most", max(values)))}


def wait_for(what: Callable[[], Any], seconds: float = 120, pause: float = 0.002) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := what():
                return found
        except OSError:
            pass
        time.sleep(pause)
    raise SystemExit("waited in vain")


def cpu_seconds(pid: int) -> float:
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


STARTED: list[subprocess.Popen[bytes]] = []


class Server:
    """A process that answers HTTP on `port`."""

    def __init__(self, command: list[str], port: int, log: Path, probe: str = "/healthz") -> None:
        self.port, self.command, self.log, self.probe = port, command, log, probe
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        STARTED.append(self.process)
        wait_for(lambda: self.call("GET", self.probe)[0] == 200, pause=0.001)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if self.process.poll() is not None:
            raise SystemExit(f"it ended: {self.log.read_text()[-2000:]}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body if body is None else json.dumps(body),
                               {"Authorization": ME, "Content-Type": "application/json"})
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        is_json = reply.headers.get("Content-Type", "").startswith("application/json")
        return reply.status, json.loads(data) if data and is_json else data

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(sent)
        self.process.wait()


class Gateway(Server):
    def __init__(self, args: argparse.Namespace, folder: Path, tessera: Path, *flags: str) -> None:
        port = free_port()
        self.folder = folder
        (folder / "models.toml").write_text(f'[models]\nm = "{args.model}"\n')
        super().__init__([str(tessera), "gateway", "--port", str(port), "--state-dir",
                          str(folder / "state"), "--models", str(folder / "models.toml"),
                          "--cache-dir", str(folder / "cache"), "--drain-seconds", "10", *flags],
                         port, folder / "gateway.log")

    def create(self, name: str, **fields: Any) -> None:
        body = {"name": name, "model_name": "m", "min_workers": 1, "max_workers": 1,
                "per_worker": 64, **fields}
        status, answer = self.call("POST", LISTING, body)
        if status != 200:
            raise SystemExit(f"creation: {status} {answer}")

    def is_ready(self, name: str, workers: int = 1) -> bool:
        _, record = self.call("GET", f"{LISTING}/{name}")
        state = record["spec"]["deployment_state"]
        return record["status"] == "READY" and state["available_workers"] == workers

    def is_gone(self, name: str) -> bool:
        return self.call("GET", f"{LISTING}/{name}")[0] == 404

    def workers(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"{LISTING}/{name}/workers")[1]["workers"]
        return found


class Stream:
    """A call that streams, read as it comes; one connection for many."""

    def __init__(self, port: int, path: str, model: str) -> None:
        self.path, self.model = path, model
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self, tokens: int) -> tuple[float, int, bytes]:
        """Seconds to the first event, events, the whole."""
        body = json.dumps({"model": self.model, "max_tokens": tokens, "temperature": 0,
                           "stream": True, "ignore_eos": True,
                           "messages": [{"role": "user", "content": "Tell me of the sea."}]})
        begin = time.monotonic()
        self.connection.request("POST", self.path, body, {
            "Authorization": ME, "Content-Type": "application/json"})
        reply = self.connection.getresponse()
        first = reply.read1(1 << 16)
        took = time.monotonic() - begin
        text = first + reply.read()
        if reply.status != 200:
            raise SystemExit(f"{reply.status} {text[:300]!r}")
        return took, text.count(b"data: "), text


def with_bundle(args: argparse.Namespace, folder: Path) -> Path:
    subprocess.run([str(args.tessera), "compile", args.model, "--cache-dir",
                    str(folder / "cache")], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return Path(args.tessera)


def measure_start(args: argparse.Namespace, folder: Path) -> None:
    gateway = Gateway(args, folder, with_bundle(args, folder), "--idle-timeout", "1",
                      "--scale-down-after", "1")
    ready, first = [], []
    for i in range(args.rounds):
        begin = time.monotonic()
        gateway.create(f"e{i}")
        wait_for(lambda: gateway.is_ready(f"e{i}"))
        ready.append(time.monotonic() - begin)
        gateway.call("DELETE", f"{LISTING}/e{i}")
        wait_for(lambda: gateway.is_gone(f"e{i}"))
    say(what="creation to READY", rounds=args.rounds, milliseconds=ms(ready))
    gateway.create("z", min_workers=0)
    for _ in range(args.rounds):
        wait_for(lambda: gateway.is_ready("z", workers=0))
        first.append(Stream(gateway.port, "/v2/chat/completions", "z").run(1)[0])
    say(what="no worker to first token", rounds=args.rounds, milliseconds=ms(first))
    gateway.stop()


def measure_overhead(args: argparse.Namespace, folder: Path) -> None:
    gateway = Gateway(args, folder, with_bundle(args, folder))
    gateway.create("a")
    wait_for(lambda: gateway.is_ready("a"))
    port = free_port()
    server = Server([str(args.tessera), "serve", args.model, "--port", str(port), "--cache-dir",
                     str(folder / "cache")], port, folder / "serve.log", "/readyz")
    ways = {"direct": Stream(port, "/v1/chat/completions", server.call(
                "GET", "/v1/models")[1]["data"][0]["id"]),
            "gateway": Stream(gateway.port, "/v2/chat/completions", "a")}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(args.rounds + 20):
        for name, way in ways.items():
            took = way.run(2)[0]
            if number >= 20:
                times[name].append(took)
    for name, values in times.items():
        say(what=f"time to first token, {name}", rounds=args.rounds, milliseconds=ms(values))
    server.stop()
    streams, tokens = 16, 200
    calls = [Stream(gateway.port, "/v2/chat/completions", "a") for _ in range(streams)]
    events: list[int] = []
    before = cpu_seconds(gateway.process.pid)
    threads = [threading.Thread(target=lambda call=call: events.append(call.run(tokens)[1]))
               for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = cpu_seconds(gateway.process.pid) - before
    say(what="processor time of the gateway", streams=streams, events=sum(events),
        microseconds_an_event=round(1e6 * used / sum(events), 1))
    gateway.stop()


def nginx(folder: Path, name: str, content: str, workers: int) -> Path:
    path = folder / f"{name}.conf"
    text = COMMON.replace("CONTENT", content).replace("NAME", name)
    text = text.replace("WORKERS", str(workers))
    path.write_text(text.replace("FOLDER", str(folder)))
    return path


def calls_a_second(port: int, path: str, script: Path, seconds: int) -> float:
    done = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", str(script),
                           f"http://127.0.0.1:{port}{path}"], check=True, capture_output=True,
                          text=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise SystemExit(done.stdout)
    return float(done.stdout.split("Requests/sec:")[1].split()[0])


def measure_rate(args: argparse.Namespace, folder: Path) -> None:
    # The gateway starts its own program as a worker: a copy of it, whose name the stub then takes.
    program = folder / "tessera"
    shutil.copy(args.tessera, program)
    (folder / "stub").write_text(STUB.replace("FOLDER", str(folder)))
    (folder / "stub").chmod(0o755)
    nginx(folder, "stub", STUB_SERVER, 1)
    args.model = str(folder / "stub.conf")
    gateway = Gateway(args, folder, program)
    (folder / "stub").rename(program)
    gateway.create("a", per_worker=64)
    wait_for(lambda: gateway.is_ready("a"))
    stub = int(next(folder.glob("stub.[0-9]*.conf")).name.split(".")[1])
    port = free_port()
    proxy = Server(["nginx", "-p", str(folder), "-c", str(nginx(
        folder, "proxy", PROXY.replace("STUB", str(stub)).replace("PORT", str(port)),
        os.cpu_count() or 1))], port, folder / "proxy.log")
    script = folder / "call.lua"
    script.write_text("wrk.method = 'POST'\n"
                      "wrk.body = '{\"model\":\"a\",\"prompt\":\"The capital is\","
                      "\"max_tokens\":1}'\n"
                      "wrk.headers['Content-Type'] = 'application/json'\n"
                      f"wrk.headers['Authorization'] = '{ME}'\n")
    rates: dict[str, list[float]] = {"nginx": [], "gateway": []}
    for _ in range(args.rounds):
        rates["nginx"].append(calls_a_second(port, "/v1/completions", script, 3))
        rates["gateway"].append(calls_a_second(gateway.port, "/v2/completions", script, 3))
    for name, values in rates.items():
        say(what=f"short calls through {name}", a_second=round(statistics.median(values)),
            least=round(min(values)), most=round(max(values)))
    ratios = [b / a for a, b in zip(rates["nginx"], rates["gateway"])]
    say(what="gateway / nginx", median=round(statistics.median(ratios), 2),
        least=round(min(ratios), 2), most=round(max(ratios), 2))
    proxy.stop()
    gateway.stop()


def measure_store(args: argparse.Namespace, folder: Path) -> None:
    gateway = Gateway(args, folder, args.tessera)
    begin = time.monotonic()
    for i in range(args.endpoints):
        gateway.create(f"e{i}", min_workers=0, max_workers=0)
    say(what="endpoints created", count=args.endpoints,
        milliseconds_each=round(1e3 * (time.monotonic() - begin) / args.endpoints, 2))
    for path in (f"{LISTING}?limit=100", LISTING):
        took = []
        for _ in range(20):
            begin = time.monotonic()
            _, body = gateway.call("GET", path)
            took.append(time.monotonic() - begin)
        say(what=f"GET {path}", endpoints=len(body["model_endpoints"]), milliseconds=ms(took))
    took = []
    for _ in range(10):
        gateway.stop(signal.SIGKILL)
        begin = time.monotonic()
        gateway.start()
        took.append(time.monotonic() - begin)
    say(what="killed to answering again", milliseconds=ms(took))
    gateway.stop()


class Load:
    """Callers that never pause: two of whole answers, two of streams."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.is_over = gateway, False
        self.whole: list[int] = []
        self.ended = {"done": 0, "error event": 0, "cut": 0, "refused": 0}
        jobs = (self.call, self.call, self.stream, self.stream)
        self.threads = [threading.Thread(target=job) for job in jobs]
        for thread in self.threads:
            thread.start()

    def body(self, stream: bool) -> dict[str, Any]:
        return {"model": "a", "prompt": "Once upon a time", "max_tokens": 60 if stream else 8,
                "stream": stream, "temperature": 0}

    def call(self) -> None:
        while not self.is_over:
            self.whole.append(self.gateway.call("POST", "/v2/completions", self.body(False))[0])

    def stream(self) -> None:
        while not self.is_over:
            status, text = 0, b""
            try:
                status, text = self.gateway.call("POST", "/v2/completions", self.body(True))
            except (http.client.HTTPException, OSError):
                pass
            kind = ("refused" if status not in (0, 200) else
                    "done" if status and b"[DONE]" in text else
                    "error event" if status and b'"error"' in text else "cut")
            self.ended[kind] += 1

    def end(self) -> dict[str, Any]:
        self.is_over = True
        for thread in self.threads:
            thread.join()
        codes = {str(code): self.whole.count(code) for code in sorted(set(self.whole))}
        return {"whole_calls": codes, "streams": self.ended}


def measure_kills(args: argparse.Namespace, folder: Path) -> None:
    gateway = Gateway(args, folder, with_bundle(args, folder))
    gateway.create("a")
    wait_for(lambda: gateway.is_ready("a"))
    load = Load(gateway)
    kills, end = 0, time.monotonic() + args.seconds
    while time.monotonic() < end:
        time.sleep(5)
        for worker in gateway.workers("a"):
            if worker.get("pid"):
                os.kill(worker["pid"], signal.SIGKILL)
                kills += 1
    say(what="workers killed under load", kills=kills, **load.end())
    gateway.stop()


def measure_updates(args: argparse.Namespace, folder: Path) -> None:
    gateway = Gateway(args, folder, with_bundle(args, folder))
    gateway.create("a")
    wait_for(lambda: gateway.is_ready("a"))
    load = Load(gateway)
    for number in range(args.rounds):
        before = {worker["id"] for worker in gateway.workers("a")}
        gateway.call("PUT", f"{LISTING}/a", {"max_num_seqs": 16 + number % 2})
        wait_for(lambda: {worker["id"] for worker in gateway.workers("a")} - before
                 and len(gateway.workers("a")) == 1 and gateway.is_ready("a"), pause=0.01)
    say(what="rolling updates under load", updates=args.rounds, **load.end())
    gateway.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, default=ROOT / "build/release/tessera")
    verbs = parser.add_subparsers(required=True)
    for name, run, rounds in (("start", measure_start, 20), ("overhead", measure_overhead, 300),
                              ("kills", measure_kills, 0), ("updates", measure_updates, 200),
                              ("rate", measure_rate, 5), ("store", measure_store, 0)):
        verb = verbs.add_parser(name)
        if name not in ("rate", "store"):
            verb.add_argument("model")
        verb.add_argument("--rounds", type=int, default=rounds)
        verb.add_argument("--seconds", type=int, default=60)
        verb.add_argument("--endpoints", type=int, default=10000)
        verb.set_defaults(run=run, model=str(ROOT / "README.md"))
    args = parser.parse_args()
    if hasattr(args, "model"):
        args.model = str(Path(args.model).resolve())
    with tempfile.TemporaryDirectory() as folder:
        try:
            args.run(args, Path(folder))
        finally:
            for process in STARTED:
                if process.poll() is None:
                    process.terminate()
                    process.wait()


if __name__ == "__main__":
    sys.exit(main())
