"""Fixtures of the outside view: the built program, shared data, a running server."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TESSERA_SHARED", ROOT.parent / "shared"))
TESTDATA = Path(os.environ.get("TESSERA_TESTDATA", ROOT / ".cache/testdata"))
TESSERA = Path(os.environ.get("TESSERA_BINARY", ROOT / "build/release/tessera"))
GGUF = TESTDATA / "SmolLM2-135M-Instruct.Q4_1.gguf"
TINY = SHARED / "fixtures/tiny_llama"

sys.path.insert(0, str(ROOT / "tests/support"))  # fake_hub

for name in ("NO_PROXY", "no_proxy"):
    os.environ[name] = "*"


def tessera(*args: str | Path, stdin: bytes | None = None, timeout: float = 300,
            env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Runs one verb to its end; never raises for an exit code."""
    return subprocess.run([str(TESSERA), *map(str, args)], input=stdin, capture_output=True,
                          timeout=timeout, env={**os.environ, **(env or {})}, check=False)


def on_terminal(columns: int, *args: str | Path, env: dict[str, str] | None = None
                ) -> tuple[int, str]:
    """Exit code of a verb and all that it writes to a terminal of this width."""
    pid, fd = pty.fork()
    if pid == 0:
        for stream in (0, 1, 2):
            fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(str(TESSERA), [str(TESSERA), *map(str, args)],
                  {**os.environ, "TERM": "xterm", **(env or {})})
    seen = b""
    try:
        while piece := os.read(fd, 65536):
            seen += piece
    except OSError:
        pass  # The child closed the terminal.
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()


def weights_of(bundle: Path) -> bytes:
    """model.irpa without its line that says of which compilation it is."""
    key = bytes.fromhex(json.loads((bundle / "manifest.json").read_text())["export_key"])
    data = (bundle / "model.irpa").read_bytes()
    assert data.count(key) == 1
    return data.replace(key, b"")


def json_lines(verb: str, rows: list[dict[str, Any]], *args: str | Path) -> list[dict[str, Any]]:
    """One JSON line in, one out, in order."""
    stdin = "".join(json.dumps(row) + "\n" for row in rows).encode()
    done = tessera(verb, *args, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    out = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    assert len(out) == len(rows)
    return out


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for_gateway(process: subprocess.Popen[bytes], http: httpx.Client, log: Path) -> None:
    """Until it answers; its log when it ends instead."""
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        try:
            http.get("/healthz")
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the gateway did not start")


@dataclass
class Served:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30)

    def post(self, path: str, body: Any, **kw: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=120, **kw)


def start_server(log: Path, *args: str | Path) -> Served:
    """Starts `tessera serve` and waits until it is ready; fails with its log otherwise."""
    port = free_port()
    process = subprocess.Popen([str(TESSERA), "serve", *map(str, args), "--port", str(port)],
                               stdout=log.open("wb"), stderr=subprocess.STDOUT)
    server = Served(f"http://127.0.0.1:{port}", process, log)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if server.get("/readyz").status_code == 200:
                return server
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    process.kill()
    raise AssertionError("not ready within 120 s:\n" + log.read_text())


@pytest.fixture(scope="session")
def smollm2_f16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real model with float16 matrices: the weights of the Q4_1 file."""
    from gguf_f16 import write_f16_copy  # It imports this file.
    path = tmp_path_factory.mktemp("f16") / "smollm2-f16.gguf"
    write_f16_copy(GGUF, path)
    return path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the whole run: the real model is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def served(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The real model behind HTTP, shared by tests that leave it as they found it."""
    server = start_server(tmp_path_factory.mktemp("serve") / "log", GGUF, "--cache-dir", cache,
                          "--served-model-name", "smollm2")
    yield server
    server.process.terminate()
    assert server.process.wait(30) == 0, server.log.read_text()
