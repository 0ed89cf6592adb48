"""The single-model server from outside: life cycle, hostile bodies, determinism."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import GGUF, TESSERA, TINY, Served, free_port, start_server, tessera

BOMBS = {
    "deep-array": b'{"model": "smollm2", "prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep-object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "huge-int": b'{"model": "smollm2", "prompt": "x", "max_tokens": ' + b"9" * 10_000 + b"}",
    "huge-exp": b'{"model": "smollm2", "prompt": "x", "temperature": 1e999999}',
    "nan": b'{"model": "smollm2", "prompt": "x", "unknown": NaN}',
    "bad-utf8": b'{"model": "smollm2", "prompt": "\xff\xfe\xc0\x80"}',
    "trailing": b'{"model": "smollm2", "prompt": "x"} {}',
    "control": b'{"model": "smollm2", "prompt": "a\x00b"}',
    "duplicate": b'{"model": "smollm2", "prompt": "x", "prompt": "y"}',
    "many-keys": b"{" + b",".join(b'"k%d": 1' % i for i in range(100_000)) + b"}",
}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/tokenize"])
@pytest.mark.parametrize("case", BOMBS)
def test_json_bombs(served: Served, path: str, case: str) -> None:
    begin = time.monotonic()
    reply = httpx.post(served.url + path, content=BOMBS[case], timeout=30,
                       headers={"content-type": "application/json"})
    assert 400 <= reply.status_code < 500
    assert reply.json()["error"]["message"] and time.monotonic() - begin < 2
    assert served.get("/health").status_code == 200


TRAVERSALS = [
    b"/../../../../etc/passwd", b"/v1/models/../../../../etc/passwd",
    b"/v1/models/..%2f..%2f..%2fetc%2fpasswd", b"/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    b"/v1/models/..%5c..%5cetc%5cpasswd", b"/v1/models/%2fetc%2fpasswd", b"/v1/models/m%00",
    b"/v1/models/%ff%fe", b"/v1/models/%c0%ae%c0%ae/etc/passwd",
    b"/v1/models/a%0d%0aX-Injected:%201", b"/%2e%2e/%2e%2e/etc/passwd",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_path_traversal(served: Served, path: bytes) -> None:
    """Over a raw socket: clients tidy such paths up before they send them."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.settimeout(5)
        connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: " + host.encode() +
                           b"\r\nConnection: close\r\n\r\n")
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    status = reply.split(b" ", 2)[1]
    assert status in {b"400", b"404"}, reply
    assert b"root:" not in reply and b"\nx-injected" not in reply.lower()
    assert served.get("/health").status_code == 200


def complete(server: Served, **fields: Any) -> dict[str, Any]:
    body = {"model": "smollm2", "prompt": "Rivers are", "max_tokens": 24, "temperature": 0, **fields}
    reply = server.post("/v1/completions", body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_unknown_field_is_a_warning(served: Served) -> None:
    answer = complete(served, frobnicate=1, max_tokens=1)
    assert any("frobnicate" in str(w) for w in answer["warnings"])
    assert "warnings" not in complete(served, max_tokens=1)


def test_do_sample_false_is_greedy(served: Served) -> None:
    greedy = complete(served, temperature=0)
    for seed in (1, 2):
        plain = complete(served, do_sample=False, temperature=None, seed=seed)
        assert plain["choices"][0]["text"] == greedy["choices"][0]["text"]
        assert "warnings" not in plain
    both = complete(served, do_sample=False, temperature=1.5, seed=3)
    assert both["choices"][0]["text"] == greedy["choices"][0]["text"]
    assert [(w["code"], w["param"]) for w in both["warnings"]] == [("normalized", "temperature")]


def test_concurrent_users_get_their_own_answers(served: Served) -> None:
    prompts = [f"Fact {i}:" for i in range(12)]
    alone = [complete(served, prompt=p)["choices"][0]["text"] for p in prompts]
    together: dict[int, str] = {}

    def ask(i: int) -> None:
        together[i] = complete(served, prompt=prompts[i])["choices"][0]["text"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [together[i] for i in range(len(prompts))] == alone


def test_thread_count_changes_no_byte(cache: Path, tmp_path: Path, served: Served) -> None:
    want = complete(served, max_tokens=40, logprobs=3)
    one = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--threads", "1",
                       "--served-model-name", "smollm2")
    try:
        got = complete(one, max_tokens=40, logprobs=3)
    finally:
        one.process.terminate()
        one.process.wait(30)
    assert got["choices"] == want["choices"]


def test_sigterm_drains(cache: Path, tmp_path: Path) -> None:
    """A running answer is finished, new connections are refused, the exit code is 0."""
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name", "smollm2")
    body = {"model": "smollm2", "prompt": "A long tale:", "max_tokens": 150, "temperature": 0,
            "ignore_eos": True, "stream": True}
    lines: list[str] = []
    with httpx.stream("POST", server.url + "/v1/completions", json=body, timeout=60) as reply:
        for line in reply.iter_lines():
            lines.append(line)
            if len(lines) == 3:
                server.process.send_signal(signal.SIGTERM)
    assert lines[-2] == "data: [DONE]" or lines[-1] == "data: [DONE]"
    assert server.process.wait(30) == 0, server.log.read_text()


def test_second_start_reuses_the_bundle(cache: Path, tmp_path: Path, served: Served) -> None:
    before = sorted(p for p in cache.rglob("*") if p.is_file())
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache)
    server.process.terminate()
    server.process.wait(30)
    assert "reus" in server.log.read_text()
    assert sorted(p for p in cache.rglob("*") if p.is_file()) == before


def test_port_in_use_is_one_sentence(served: Served, cache: Path) -> None:
    port = served.url.rsplit(":", 1)[1]
    done = tessera("serve", GGUF, "--port", port, "--cache-dir", cache)
    assert done.returncode == 1
    (line,) = [text for text in done.stderr.decode().splitlines() if text.startswith("tessera:")]
    assert port in line


def test_memory_after_load_is_the_file_and_60_mib(cache: Path, tmp_path: Path, served: Served) -> None:
    """Weights are mapped, not copied; what parsing used has been given back."""
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache)
    try:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    finally:
        server.process.terminate()
        server.process.wait(30)
    (resident,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    assert resident * 1024 <= GGUF.stat().st_size + 60 * 2**20, status


def test_port_in_use_is_found_before_any_work(served: Served, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = tessera("serve", GGUF, "--port", served.url.rsplit(":", 1)[1], "--cache-dir", tmp_path)
    assert done.returncode == 1 and time.monotonic() - begin < 2
    assert not any(tmp_path.iterdir())


def test_loopback_by_default(served: Served) -> None:
    """The kernel's table of sockets: local address as hexadecimal bytes in host order, then port."""
    port = int(served.url.rsplit(":", 1)[1])
    tables = [Path("/proc/net/tcp").read_text(), Path("/proc/net/tcp6").read_text()]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]


def test_kill_during_compile_leaves_no_half_bundle(tmp_path: Path) -> None:
    """kill -9 at several moments; the next start works and finds no broken bundle."""
    for delay in (0.02, 0.05, 0.1, 0.2):
        process = subprocess.Popen([str(TESSERA), "serve", str(GGUF), "--port", str(free_port()),
                                    "--cache-dir", str(tmp_path / "cache")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
    done = tessera("run", GGUF, "-p", "Hi", "-n", "4", "--temperature", "0", "--cache-dir", tmp_path / "cache")
    assert done.returncode == 0, done.stderr


def test_damaged_bundle_is_named_and_rebuilt_or_refused(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert tessera("run", TINY / "tiny-f16.gguf", "--raw", "-p", "a", "-n", "2", "--cache-dir", cache).returncode == 0
    (program,) = cache.rglob("program.json")
    program.write_text(program.read_text()[:-20])
    done = tessera("run", program.parent, "--raw", "-p", "a", "-n", "2", "--cache-dir", cache)
    assert done.returncode == 1 and b"program.json" in done.stderr


def test_wrong_model_arguments(tmp_path: Path) -> None:
    for argument, words in [(tmp_path / "nothing", b"nothing"), (tmp_path, b"")]:
        done = tessera("run", argument, "-p", "x")
        assert done.returncode == 1 and done.stderr.startswith(b"tessera: ") and words in done.stderr
    assert tessera("run").returncode == 2
    assert tessera("nonsense").returncode == 2
    assert tessera("serve", GGUF, "--port", "x").returncode == 2


def test_stdout_is_only_the_answer(cache: Path) -> None:
    done = tessera("run", GGUF, "-p", "Say hi.", "-n", "12", "--temperature", "0", "--cache-dir", cache)
    assert done.returncode == 0 and done.stdout.strip()
    assert b"tok" in done.stderr
    again = tessera("run", GGUF, "-p", "Say hi.", "-n", "12", "--temperature", "0", "--cache-dir", cache)
    assert again.stdout == done.stdout


def test_a_file_that_shrinks_fails_requests_and_not_the_process(tmp_path: Path) -> None:
    """SIGBUS from lost pages of the mapped parameters becomes an error of the request."""
    done = tessera("compile", GGUF, "--cache-dir", tmp_path / "cache")
    bundle = Path(done.stdout.decode().strip().splitlines()[-1])
    server = start_server(tmp_path / "log", bundle, "--served-model-name", "m")
    try:
        ask = {"model": "m", "prompt": "One two three", "max_tokens": 4, "temperature": 0}
        assert httpx.post(server.url + "/v1/completions", json=ask, timeout=60).status_code == 200
        with (bundle / "model.irpa").open("r+b") as parameters:
            parameters.truncate(1 << 20)
        for _ in range(2):  # It stays an error: the numbers are gone.
            reply = httpx.post(server.url + "/v1/completions", json=ask, timeout=60)
            assert reply.status_code == 500
            message = reply.json()["error"]["message"]
            assert "model.irpa shrank while it was in use" in message and "start again" in message
        streamed = httpx.post(server.url + "/v1/completions", json={**ask, "stream": True},
                              timeout=60)
        assert "shrank while it was in use" in streamed.text
        assert server.get("/health").status_code == 200 and server.process.poll() is None
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0
