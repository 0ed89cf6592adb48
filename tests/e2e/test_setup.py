"""quickstart.sh and the model fetcher, against a local stand-in for the hub and with wrong input."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator

import pytest

from conftest import ROOT, TESTDATA, TINY, free_port, tessera

REPOSITORY = "/HuggingFaceTB/SmolLM2-135M-Instruct/resolve/main/"


class Hub(BaseHTTPRequestHandler):
    """Serves the tiny model under SmolLM2's name; large files redirect to a store, as the hub does."""

    wrong_hash = False

    def do_GET(self) -> None:  # noqa: N802 (the base class names it)
        name = self.path.rsplit("/", 1)[1]
        path = TINY / "hf" / name
        if not self.path.startswith((REPOSITORY, "/store/")) or not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        if name == "model.safetensors" and self.path.startswith(REPOSITORY):
            digest = "0" * 64 if self.wrong_hash else hashlib.sha256(data).hexdigest()
            self.send_response(302)
            self.send_header("X-Linked-Etag", f'"{digest}"')
            self.send_header("Location", "/store/" + name)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(params=[False, True], ids=["right-hash", "wrong-hash"])
def hub(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    handler = type("Hub", (Hub,), {"wrong_hash": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", request.param
    server.shutdown()
    thread.join()


def fetch(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "tools/fetch_smollm2.sh"), str(folder)], text=True,
                          capture_output=True, env={**os.environ, **env}, check=False)


def test_fetch_from_a_hub(hub: tuple[str, bool], tmp_path: Path) -> None:
    """HF_ENDPOINT is honoured; a file whose sha256 is wrong is never used."""
    url, wrong = hub
    if wrong:  # The fallback has the file already, so that no network is needed.
        (tmp_path / "fallback").mkdir()
        done = fetch(tmp_path, HF_ENDPOINT=url)
        assert "damaged" in done.stderr
        assert not (tmp_path / "hub/model.safetensors").exists()
        return
    done = fetch(tmp_path, HF_ENDPOINT=url)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        assert (folder / name).read_bytes() == (TINY / "hf" / name).read_bytes()
    assert tessera("inspect", folder).returncode == 0
    again = fetch(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")  # A second run asks nobody.
    assert again.stdout == done.stdout


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
