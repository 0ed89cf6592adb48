# SPDX-License-Identifier: Apache-2.0
"""`serve --rank-processes`: ranks as processes that are started again when one dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

import httpx
import pytest

from conftest import GGUF, TESSERA, Served, start_server, tessera
from test_gateway import Gateway
from test_tensor_parallel import may_name_itself

QUESTION = {"model": GGUF.stem, "prompt": "The capital of France is", "max_tokens": 16,
            "temperature": 0, "logprobs": 2}
GROUP = (GGUF, "--tp", "3", "--rank-processes")


def answer(server: Served) -> Any:
    reply = server.post("/v1/completions", QUESTION)
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    return choice["text"], choice["logprobs"]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid: int) -> list[int]:
    """mpirun, then the ranks."""
    below = children(pid)
    for child in list(below):
        below += descendants(child)
    return below


def ranks_of(pid: int) -> list[int]:
    [mpirun] = children(pid)
    ranks = {}
    for child in children(mpirun):
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        [number] = [v for v in environment if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        ranks[int(number.split(b"=")[1])] = child
    return [ranks[number] for number in range(len(ranks))]


def until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_ready(server: Served) -> bool:
    try:
        return httpx.get(server.url + "/readyz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def end(server: Served) -> None:
    if server.process.poll() is None:
        server.process.kill()
        server.process.wait(30)


def test_a_killed_rank_starts_the_group_again(cache: Path, tmp_path: Path) -> None:
    """Under load: whoever calls again is answered, with the bytes of one process."""
    alone = start_server(tmp_path / "alone", GGUF, "--cache-dir", cache)
    want = answer(alone)
    alone.process.terminate()
    assert alone.process.wait(30) == 0

    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache)
    refused: list[str] = []
    answers: list[Any] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            try:
                answers.append(answer(server))
            except httpx.ConnectError as error:
                refused.append(str(error))
            except (httpx.TransportError, AssertionError):
                pass  # Cut with the group, or told that the model loads.

    callers = [threading.Thread(target=call) for _ in range(3)]
    try:
        assert answer(server) == want
        first = ranks_of(server.process.pid)
        for caller in callers:
            caller.start()
        for victim in (2, 0):
            before = ranks_of(server.process.pid)
            os.kill(before[victim], signal.SIGKILL)
            # Not ready from the moment on in which it is seen, and ready again by itself.
            assert until(lambda: not any(alive(pid) for pid in before)), server.log.read_text()
            assert until(lambda: is_ready(server), 60), server.log.read_text()
            assert answer(server) == want
            assert f"rank {victim} (process {before[victim]}) was ended by signal 9; it is " \
                "started again" in server.log.read_text()
        assert not set(ranks_of(server.process.pid)) & set(first)
        stop.set()
        for caller in callers:
            caller.join()
        assert refused == [], "calls wait in the socket meanwhile"
        assert answers and all(one == want for one in answers)
        below = descendants(server.process.pid)
        server.process.terminate()
        assert server.process.wait(30) == 0, server.log.read_text()
        assert not any(alive(pid) for pid in below)
    finally:
        stop.set()
        end(server)


def test_nothing_outlives_a_killed_supervisor(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache)
    below = descendants(server.process.pid)
    assert len(below) >= 4, "mpirun and three ranks"
    server.process.kill()
    server.process.wait(30)
    assert until(lambda: not any(alive(pid) for pid in below), 15), below
    with socket.socket() as other:  # The port is free again.
        other.bind(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))


def test_a_killed_mpirun_leaves_no_rank_and_is_started_again(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache)
    try:
        below = descendants(server.process.pid)
        [mpirun] = children(server.process.pid)
        os.kill(mpirun, signal.SIGKILL)
        assert until(lambda: not any(alive(pid) for pid in below)), server.log.read_text()
        assert until(lambda: is_ready(server), 60), server.log.read_text()
        assert "mpirun was ended by signal 9; it is started again" in server.log.read_text()
    finally:
        end(server)


def test_a_drain_finishes_what_runs(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache)
    try:
        with httpx.stream("POST", server.url + "/v1/completions", timeout=60, json={
                **QUESTION, "max_tokens": 64, "stream": True, "ignore_eos": True}) as reply:
            lines = reply.iter_lines()
            next(lines)
            server.process.terminate()
            assert "data: [DONE]" in list(lines)
        assert server.process.wait(30) == 0, server.log.read_text()
    finally:
        end(server)


def test_it_gives_up_after_so_many_deaths(cache: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache, "--rank-restarts", "0")
    try:
        os.kill(ranks_of(server.process.pid)[1], signal.SIGKILL)
        assert server.process.wait(30) == 1
        last = server.log.read_text().splitlines()[-1]
        assert last.startswith("tessera: the rank group ended: rank 1 (process ")
        assert last.endswith("was ended by signal 9; it is not started again (--rank-restarts 0)")
    finally:
        end(server)


def test_what_cannot_start_ends_with_the_ranks_own_words(cache: Path) -> None:
    done = tessera("serve", GGUF, "--cache-dir", cache, "--port", "0", "--tp", "2",
                   "--rank-processes", timeout=60)
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert "9 heads over 3 KV heads; use tp1 or tp3" in last
    assert last.endswith("it could not start at all")


def test_a_signal_before_it_is_ready_ends_it(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen([str(TESSERA), "serve", *map(str, GROUP), "--cache-dir", str(cache),
                                "--port", "0"], stdout=log.open("wb"), stderr=subprocess.STDOUT)
    assert until(lambda: len(descendants(process.pid)) >= 1)
    below = descendants(process.pid)
    process.terminate()
    assert process.wait(30) == 143, log.read_text()
    assert until(lambda: not any(alive(pid) for pid in below), 15)


@pytest.mark.parametrize("flags,says", [
    (("--rank-processes",), b"--rank-processes needs --tp 2 or more"),
    (("--tp", "3", "--rank-restarts", "1"), b"requires --rank-processes"),
    (("--tp", "3", "--hostfile", "/dev/null"), b"requires --rank-processes"),
    (("--tp", "3", "--rank-processes", "--hostfile", "/no/such"), b"does not exist"),
    (("--tp", "3", "--rank-processes", "--rank-restarts", "-1"), b"expected a whole number"),
    (("--tp", "3", "--rank-processes", "--mpirun-options", "-n 4"), b"-n is given by --tp"),
    (("--tp", "3", "--rank-processes", "--mpirun-options", "ls"), b"\"ls\" is no option of mpirun"),
    (("--tp", "3", "--rank-processes", "--host", "0.0.0.0"), b"anybody could use the server"),
])
def test_flags_that_make_no_sense(flags: tuple[str, ...], says: bytes) -> None:
    done = tessera("serve", GGUF, "--port", "0", *flags, timeout=60)
    assert done.returncode in (1, 2)
    assert says in done.stderr, done.stderr


def test_no_mpirun_is_one_sentence(tmp_path: Path) -> None:
    done = tessera("serve", GGUF, "--port", "0", "--tp", "3", "--rank-processes", timeout=60,
                   env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert b"there is no mpirun in PATH" in done.stderr


def test_a_port_that_is_taken_is_an_error_before_any_rank(cache: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = tessera("serve", *GROUP, "--cache-dir", cache, "--port",
                       str(other.getsockname()[1]), timeout=60)
    assert done.returncode == 1
    assert b"the port is taken" in done.stderr


@pytest.mark.skipif(not may_name_itself(), reason="this machine lets nobody have a host name of "
                    "his own")
def test_ranks_of_another_host_are_started_again_and_outlive_nothing(
        cache: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nhost=$1; shift\n'
                     'exec unshare -u sh -c "hostname $host; exec sh -c \\"\\$0\\"" "$*"\n')
    agent.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=1\nhostb slots=2\n")
    server = start_server(tmp_path / "log", *GROUP, "--cache-dir", cache, "--hostfile", hosts,
                          "--mpirun-options", f"--mca plm_rsh_agent {agent} --mca btl tcp,self")

    def far() -> list[int]:
        programs = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                    for pid in descendants(server.process.pid)}
        [daemon] = [pid for pid, program in programs.items() if program.endswith(b"orted")]
        return children(daemon)

    try:
        text = answer(server)[0]
        before = descendants(server.process.pid)
        assert len(far()) == 2
        os.kill(far()[0], signal.SIGKILL)
        assert until(lambda: not any(alive(pid) for pid in before)), server.log.read_text()
        assert until(lambda: is_ready(server), 60), server.log.read_text()
        assert answer(server)[0] == text
        below = descendants(server.process.pid)
        server.process.kill()
        server.process.wait(30)
        assert until(lambda: not any(alive(pid) for pid in below)), below
    finally:
        end(server)


def test_a_gateway_replaces_a_worker_that_lost_a_rank(cache: Path, tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, cache)
    try:
        made = gateway.create("a", tensor_parallel_size=3, distributed_executor_backend="mp")
        assert made.status_code == 200, made.text
        gateway.ready("a")
        want = gateway.complete("a").json()["output"]["text"]
        pid = gateway.workers("a")[0]["pid"]
        below = descendants(pid)
        os.kill(ranks_of(pid)[1], signal.SIGKILL)
        assert until(lambda: not alive(pid))
        reply = gateway.complete("a")
        assert reply.status_code == 200, reply.text
        assert reply.json()["output"]["text"] == want
        gateway.ready("a")
        assert gateway.workers("a")[0]["pid"] != pid
        assert not any(alive(rank) for rank in below)
        last = descendants(gateway.workers("a")[0]["pid"])
        assert len(last) == 4, "mpirun and three ranks again"
        assert gateway.stop() == 0
        assert until(lambda: not any(alive(one) for one in last))
    finally:
        if gateway.process.poll() is None:
            gateway.process.kill()


def test_ranks_as_processes_need_ranks(cache: Path, tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, cache)
    try:
        gateway.create("a", distributed_executor_backend="mp", min_workers=0, prewarm=False)
        assert any("distributed_executor_backend: mp needs tensor_parallel_size or num_shards" in
                   warning for warning in gateway.record("a")["warnings"])
        wrong = gateway.create("b", distributed_executor_backend="ray")
        assert wrong.status_code in (400, 422)
        assert "distributed_executor_backend" in wrong.text
    finally:
        assert gateway.stop() == 0
