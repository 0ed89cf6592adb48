"""Starts as no shell makes them: closed streams, no home, no threads, no memory, no reader."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import TESSERA, TINY, free_port, start_server, tessera

MODEL = TINY / "tiny-f16.gguf"
RUN: tuple[str | Path, ...] = ("run", MODEL, "--raw", "-p", "a", "-n", "4")


def close_streams() -> None:
    for fd in (0, 1, 2):
        os.close(fd)


def start(*args: str | Path, before: Callable[[], None],
          cache: Path) -> subprocess.Popen[bytes]:
    """A verb after `before` ran in its process; what it leaves open of its streams is a pipe."""
    return subprocess.Popen([str(TESSERA), *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before,
                            env={**os.environ, "TESSERA_CACHE": str(cache)})


def test_closed_streams_end_no_work(tmp_path: Path) -> None:
    compiling = start("compile", MODEL, before=close_streams, cache=tmp_path)
    assert compiling.wait(60) == 1  # Its answer, the path, is lost.
    (manifest,) = tmp_path.glob("bundles/*/*/manifest.json")
    assert json.loads(manifest.read_text())["model"] == "tiny-f16"
    for file in manifest.parent.iterdir():
        assert b"stage compile" not in file.read_bytes()  # No note went into a file.
    assert start(*RUN, before=close_streams, cache=tmp_path).wait(60) == 1
    assert start("doctor", "--offline", before=close_streams, cache=tmp_path).wait(60) == 1
    assert start("tokenize", "--model", MODEL, before=close_streams, cache=tmp_path).wait(60) == 1


def test_a_server_without_streams_serves(tmp_path: Path) -> None:
    import httpx

    port = free_port()
    process = start("serve", MODEL, "--port", str(port), before=close_streams, cache=tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                break
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/completions",
                        json={"model": "tiny-f16", "prompt": "a", "max_tokens": 2}, timeout=30)
    assert answer.status_code == 200, answer.text
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_stderr_without_room_ends_no_work(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(TESSERA), *map(str, RUN), "--cache-dir", str(tmp_path)],
                              stdout=subprocess.PIPE, stderr=full, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout


def no_stack_for_threads() -> None:
    # glibc gives a thread the stack limit as its stack: more than there are addresses.
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 50, most))


@pytest.mark.parametrize("args", [
    RUN + ("--threads", "2"), RUN + ("--threads", "1"),
    ("serve", MODEL, "--port", "0"), ("bench", MODEL, "-p", "4", "-n", "0", "--threads", "2"),
    ("plan", MODEL, "--threads", "2"),
], ids=lambda args: "-".join(map(str, args[:1] + args[-1:])))
def test_a_refused_thread_is_one_sentence(args: tuple[str | Path, ...], tmp_path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY:
        pytest.fail("this test needs an unlimited hard limit of the stack")
    process = start(*args, before=no_stack_for_threads, cache=tmp_path)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1, stderr
    (line,) = [text for text in stderr.decode().splitlines() if text.startswith("tessera:")]
    assert "the system gives no thread for" in line


def test_without_home_the_cache_is_the_users(tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items()
           if key not in ("HOME", "XDG_CACHE_HOME", "TESSERA_CACHE")}
    done = subprocess.run([str(TESSERA), "doctor", "--json", "--offline"], env=env,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    home = subprocess.run(["sh", "-c", "getent passwd $(id -u) | cut -d: -f6"], check=True,
                          capture_output=True, text=True).stdout.strip()
    assert json.loads(done.stdout)["cache"]["folder"] == f"{home}/.cache/tessera"


NOBODY = 987654  # A user that no database knows.
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")


@pytest.fixture
def stranger() -> Iterator[Path]:
    """A folder that NOBODY owns, with the program and a model."""
    with tempfile.TemporaryDirectory(prefix="tessera-") as name:
        folder = Path(name)
        shutil.copy(TESSERA, folder / "tessera")
        shutil.copy(MODEL, folder / "model.gguf")
        (folder / "model.gguf").chmod(0o644)
        os.chown(folder, NOBODY, NOBODY)
        yield folder


def run_as_nobody(folder: Path, *args: str, before: Callable[[], None] | None = None,
                  ) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(folder / "tessera"), *args], user=NOBODY, group=NOBODY,
                          extra_groups=[], env={"PATH": "/usr/bin:/bin"}, cwd=folder, timeout=60,
                          preexec_fn=before, capture_output=True, check=False)


@as_root
def test_a_user_without_home_must_name_a_cache(stranger: Path) -> None:
    done = run_as_nobody(stranger, "compile", "model.gguf")
    assert done.returncode == 1 and not done.stdout, done.stderr
    assert b"--cache-dir or $TESSERA_CACHE" in done.stderr
    assert run_as_nobody(stranger, "compile", "model.gguf", "--cache-dir", "c").returncode == 0


@as_root
def test_any_thread_may_be_refused(stranger: Path) -> None:
    """One process more at a time, until a server has all its threads."""
    assert run_as_nobody(stranger, "compile", "model.gguf", "--cache-dir", "c").returncode == 0
    refused: set[str] = set()
    for most in range(1, 64):
        args = [str(stranger / "tessera"), "serve", "model.gguf", "--cache-dir", "c", "--port", "0",
                "--threads", "2"]
        process = subprocess.Popen(
            args, user=NOBODY, group=NOBODY, extra_groups=[], env={}, cwd=stranger,
            stderr=subprocess.PIPE,
            preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_NPROC, (most, most)))
        assert process.stderr is not None
        log = ""
        while (line := process.stderr.readline().decode()) and "serving " not in line:
            log += line
        if "serving " in line:
            process.terminate()
            assert process.wait(30) == 0
            break
        assert process.wait(30) == 1, log
        (said,) = [text for text in log.splitlines() if text.startswith("tessera:")]
        refused.add(re.sub(r" \d.*", "", said.partition("no thread for ")[2].partition(":")[0]))
    assert refused == {"signals", "making answers", "HTTP worker", "an HTTP loop", "worker",
                       "the engine", "the watchdog"}


def read_some_of(args: tuple[str | Path, ...], stdin: int | None, cache: Path) -> tuple[int, str]:
    """Exit code and stderr of a verb whose reader takes 5 bytes and goes."""
    process = subprocess.Popen([str(TESSERA), *map(str, args)], stdin=stdin,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "TESSERA_CACHE": str(cache)})
    assert process.stdout is not None and process.stderr is not None
    assert len(process.stdout.read(5)) == 5
    process.stdout.close()
    try:
        code = process.wait(20)
    finally:
        process.kill()
    return code, process.stderr.read().decode()


def test_an_answer_without_reader_stops(cache: Path) -> None:
    # As long as the context: far from done when the reader goes.
    code, text = read_some_of(("run", MODEL, "--raw", "-p", "a", "--temperature", "1", "--seed", "1"),
                              None, cache)
    assert code == 1
    assert "could not be written to stdout: Broken pipe" in text
    assert "tok/s" not in text  # No statistics of an answer that was not finished.


@pytest.mark.parametrize("verb", ["tokenize", "detokenize", "render"])
def test_json_lines_without_reader_stop(verb: str, cache: Path) -> None:
    yes = subprocess.Popen(["yes", "text"], stdout=subprocess.PIPE)  # Never ends by itself.
    try:
        code, text = read_some_of((verb, "--model", TINY / "hf"), yes.stdout.fileno(), cache)
    finally:
        yes.kill()
        yes.wait()
    assert code == 1
    assert text.strip() == "tessera: the output could not be written to stdout: Broken pipe"


@pytest.mark.parametrize("verb", ["run", "serve"])
def test_kv_memory_must_fit(verb: str, tmp_path: Path) -> None:
    more = ("-p", "a", "--raw", "-n", "1") if verb == "run" else ("--port", "0")
    done = tessera(verb, MODEL, "--cache-dir", tmp_path, "--kv-memory", "2T", *more, timeout=30)
    assert done.returncode == 1, done.stderr
    text = done.stderr.decode()
    assert "needs 2.0 TB of memory" in text and "are available; what helps: --kv-memory " in text
    smaller = text.split("what helps: --kv-memory ")[1].split()[0].rstrip(",")
    assert smaller.endswith("Mi") and 0 < int(smaller[:-2]) < 2 << 20


def test_chat_lines_have_a_limit(cache: Path) -> None:
    most = 4 << 20
    for size in (most - 1, most, most + 1):
        line = b"a " * (size // 2) + b"a" * (size % 2)
        done = tessera("run", MODEL, "-n", "1", stdin=line + b"\n", env={"TESSERA_CACHE": str(cache)})
        assert done.returncode == 1
        (said,) = [text for text in done.stderr.decode().splitlines() if text.startswith("tessera:")]
        assert (f"the line has {size} bytes, at most {most}" in said) == (size > most), said


def test_a_piped_chat_says_an_error_once(cache: Path) -> None:
    done = tessera("run", MODEL, "-n", "1", stdin=b"a " * 5000 + b"\nmore\n",
                   env={"TESSERA_CACHE": str(cache)})
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.decode().count("tessera:") == 1


def test_a_bracketed_ipv6_host_is_taken(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen([str(TESSERA), "serve", str(MODEL), "--host", "[::1]", "--port", "0",
                                "--cache-dir", str(tmp_path)], stderr=log.open("wb"))
    deadline = time.monotonic() + 60
    while "serving " not in log.read_text() and time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    process.terminate()
    assert process.wait(30) == 0
    assert "http://[::1]:" in log.read_text()


def test_generation_config_may_ask_for_greedy(tmp_path: Path) -> None:
    for file in (TINY / "hf").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"do_sample": False, "temperature": 0.6, "eos_token_id": 2}))
    server = start_server(tmp_path / "log", tmp_path, "--cache-dir", tmp_path / "cache")
    server.process.terminate()
    assert server.process.wait(30) == 0
    assert "otherwise: temperature 0," in server.log.read_text()
