"""quickstart.sh and the model fetcher, against a local stand-in for the hub and with wrong input."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator

import pytest

from conftest import ROOT, TESTDATA, TINY, free_port, tessera

REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
COMMIT = "12fd25f77366fa6b3b4b768ec3050bf629380bac"  # Any; the hub below says so.
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def git_blob_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The tiny model under SmolLM2's name, only at its commit; large files redirect to a store and
    are known by sha256, small ones by their git blob, as the hub does."""

    damaged = ""  # The file whose hash does not fit.

    def do_GET(self) -> None:  # noqa: N802 (the base class names it)
        if self.path == f"/api/models/{REPOSITORY}/revision/main":
            self.answer(json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": []}).encode())
            return
        name = self.path.rsplit("/", 1)[1]
        path = TINY / "hf" / name
        resolve = f"/{REPOSITORY}/resolve/{COMMIT}/"
        if not self.path.startswith((resolve, "/store/")) or not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        if name == "model.safetensors" and self.path.startswith(resolve):
            digest = "0" * 64 if name == self.damaged else hashlib.sha256(data).hexdigest()
            self.send_response(302)
            self.send_header("X-Linked-Etag", f'"{digest}"')
            self.send_header("Location", "/store/" + name)
            self.end_headers()
        elif self.path.startswith("/store/"):
            self.answer(data, '"the-store-names-no-hash-2"')
        else:
            self.answer(data, f'"{"0" * 40 if name == self.damaged else git_blob_sha1(data)}"')

    def answer(self, data: bytes, etag: str | None = None) -> None:
        self.send_response(200)
        if etag is not None:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def hub(damaged: str = "") -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (Hub,), {"damaged": damaged}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


NOBODY = "http://127.0.0.1:9"  # No hub listens there.


def fetch(folder: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    """With a package index that nobody serves, so that what is not there cannot be fetched."""
    return subprocess.run([str(ROOT / "tools/fetch_smollm2.sh"), str(folder)], text=True,
                          capture_output=True, check=False,
                          env={**os.environ, "HF_ENDPOINT": endpoint, "PIP_INDEX_URL": NOBODY,
                               "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull})


def test_fetch_from_a_hub(tmp_path: Path) -> None:
    """HF_ENDPOINT is honoured, every file is of the commit that `main` names and is checked."""
    with hub() as url:
        done = fetch(tmp_path, url)
    assert done.returncode == 0, done.stderr
    assert COMMIT in done.stderr and "warning" not in done.stderr
    folder = Path(done.stdout.strip())
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        assert (folder / name).read_bytes() == (TINY / "hf" / name).read_bytes()
    assert tessera("inspect", folder).returncode == 0
    again = fetch(tmp_path, NOBODY)  # A second run asks nobody.
    assert again.returncode == 0 and again.stdout == done.stdout and not again.stderr


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_never_used(name: str, tmp_path: Path) -> None:
    """Its hash is not the one that the hub names: the packaged model is used instead."""
    with hub(damaged=name) as url:
        done = fetch(tmp_path, url)
        assert done.returncode == 1 and f"{name} is damaged" in done.stderr
        assert not (tmp_path / "hub" / name).exists()
        # The fallback has its file already (no network); a broken earlier run sends it to the hub.
        os.link(TESTDATA / GGUF_NAME, tmp_path / GGUF_NAME)
        (tmp_path / "hub/.complete").touch()
        done = fetch(tmp_path, url)
    assert done.returncode == 0, done.stderr
    assert f"{name} is damaged" in done.stderr and not (tmp_path / "hub" / name).exists()
    assert done.stdout.strip() == str(tmp_path / GGUF_NAME)


def test_what_was_fetched_is_hashed_on_every_use(tmp_path: Path) -> None:
    with hub() as url:
        assert fetch(tmp_path, url).returncode == 0
        config = tmp_path / "hub/config.json"
        config.write_bytes(config.read_bytes() + b" ")
        done = fetch(tmp_path, url)
        assert done.returncode == 0 and "damaged" in done.stderr
        assert config.read_bytes() == (TINY / "hf/config.json").read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    (other / GGUF_NAME).write_bytes((TESTDATA / GGUF_NAME).read_bytes()[:-1])
    done = fetch(other, NOBODY)
    assert done.returncode == 1 and "does not have the pinned sha256" in done.stderr


def test_quickstart_answers(tmp_path: Path) -> None:
    """The whole script with what earlier stages built and fetched: a sensible answer and a speed."""
    models = ROOT / ".cache/models"
    models.mkdir(parents=True, exist_ok=True)
    gguf = models / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not gguf.exists() and not (models / "hub/.complete").exists():
        os.link(TESTDATA / gguf.name, gguf)
    done = subprocess.run([str(ROOT / "quickstart.sh"), "--port", str(free_port()), "--ask",
                           "What is the capital city of France? Answer in one sentence."], text=True, capture_output=True,
                          timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Paris" in done.stdout and "tokens/s" in done.stdout and "How to go on" in done.stdout


def test_quickstart_twice_with_keep_never_asks_an_old_server() -> None:
    """The kept server holds the port: the second run refuses at once, naming it; then both are gone."""
    port = str(free_port())
    command = [str(ROOT / "quickstart.sh"), "--port", port, "--keep", "--ask", "Say hi."]
    first = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=280, check=False)
    assert first.returncode == 0, first.stdout
    match = re.search(r"as process (\d+); stop it with: kill \1", first.stdout)
    assert match, first.stdout
    pid = int(match[1])
    try:
        begin = time.monotonic()
        second = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
        assert second.returncode == 1 and time.monotonic() - begin < 5
        assert f"port {port} is in use by process {pid}" in second.stderr
        assert f"kill {pid}" in second.stderr and "--port" in second.stderr
    finally:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z"):
            break  # Ended; whoever inherited it has not looked yet.
        time.sleep(0.05)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", int(port)))


@pytest.mark.parametrize("args", [["--port", "0"], ["--port", "x"], ["--frobnicate"]])
def test_quickstart_usage(args: list[str]) -> None:
    done = subprocess.run([str(ROOT / "quickstart.sh"), *args], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 2 and done.stderr
