# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism from outside: any number of ranks gives the answers of one."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import GGUF, TESSERA, Served, free_port, start_server, tessera

PROMPT = "The capital of France is"


def answer(server: Served) -> Any:
    reply = server.post("/v1/completions", {
        "model": GGUF.stem, "prompt": PROMPT, "max_tokens": 24, "temperature": 0, "logprobs": 3})
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    return choice["text"], choice["logprobs"]


@pytest.fixture(scope="module")
def alone(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = start_server(tmp_path_factory.mktemp("tp1") / "log", GGUF, "--cache-dir", cache)
    try:
        return answer(server)
    finally:
        server.process.terminate()
        server.process.wait(30)


@pytest.mark.parametrize("flags", [("--tp", "3"), ("--tp", "2", "--allow-uneven")])
def test_ranks_of_one_process_answer_as_one(
        alone: Any, cache: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, *flags)
    try:
        assert answer(server) == alone
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0


def test_a_number_of_ranks_that_does_not_divide_names_those_that_do(cache: Path) -> None:
    done = tessera("serve", GGUF, "--cache-dir", cache, "--tp", "2", "--port", str(free_port()))
    assert done.returncode == 1
    assert b"9 heads over 3 KV heads; use tp1 or tp3" in done.stderr


@pytest.mark.parametrize("flags,says", [
    (("--device_ids", "0", "999"), b"device id 999 is not there"),
    (("--tp", "9"), b"expected tp1 to tp8"),
])
def test_ranks_that_cannot_be(cache: Path, flags: tuple[str, ...], says: bytes) -> None:
    done = tessera("run", GGUF, "--cache-dir", cache, "-p", "a", "-n", "1", "--raw", *flags)
    assert done.returncode in (1, 2)
    assert says in done.stderr


def mpirun(processes: int, *args: str | Path, options: tuple[str, ...] = (),
           **kw: Any) -> subprocess.Popen[bytes]:
    program = shutil.which("mpirun")
    assert program, "no mpirun: run tools/setup.sh test"
    env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                        "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return subprocess.Popen([program, *options, "-n", str(processes), str(TESSERA), *map(str, args)],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def wait_until_ready(server: Served) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            if server.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the group is not ready within 60 s")


def run_greedy(cache: Path) -> list[str | Path]:
    return ["run", GGUF, "--cache-dir", cache, "-p", PROMPT, "-n", "24", "--raw",
            "--temperature", "0"]


def test_processes_answer_as_one(cache: Path) -> None:
    one = tessera(*run_greedy(cache))
    assert one.returncode == 0, one.stderr
    group = mpirun(3, *run_greedy(cache), "--tp", "3")
    out, err = group.communicate(timeout=100)
    assert group.returncode == 0, err
    assert out == one.stdout


def may_name_itself() -> bool:
    return subprocess.run(["unshare", "-u", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_name_itself(), reason="this machine lets nobody have a host name of "
                    "his own")
def test_hosts_answer_as_one(cache: Path, tmp_path: Path) -> None:
    """Two hosts by name, with nothing but TCP between them: rank 0 on the one, two on the other."""
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nhost=$1; shift; echo $host >> {tmp_path}/hosts\n'
                     'exec unshare -u sh -c "hostname $host; exec sh -c \\"\\$0\\"" "$*"\n')
    agent.chmod(0o755)
    one = tessera(*run_greedy(cache))
    group = mpirun(3, *run_greedy(cache), "--tp", "3", options=(
        "--mca", "plm_rsh_agent", str(agent), "--host", "hosta:1,hostb:2",
        "--mca", "btl", "tcp,self"))
    out, err = group.communicate(timeout=100)
    assert group.returncode == 0, err
    assert out == one.stdout
    assert sorted((tmp_path / "hosts").read_text().split()) == ["hosta", "hostb"]


def test_another_number_of_processes_is_one_sentence(cache: Path) -> None:
    group = mpirun(2, *run_greedy(cache), "--tp", "3")
    _, err = group.communicate(timeout=60)
    assert group.returncode != 0
    assert b"--tp 3, and 2 processes were started" in err


def test_a_dead_rank_ends_the_group(cache: Path) -> None:
    port = free_port()
    group = mpirun(3, "serve", GGUF, "--cache-dir", cache, "--tp", "3", "--port", port)
    try:
        server = Served(f"http://127.0.0.1:{port}", group, Path(os.devnull))
        wait_until_ready(server)
        server.post("/v1/completions", {"model": GGUF.stem, "prompt": PROMPT, "max_tokens": 4})
        children = Path(f"/proc/{group.pid}/task/{group.pid}/children").read_text().split()
        os.kill(int(children[-1]), 9)
        begin = time.monotonic()
        _, err = group.communicate(timeout=30)
        assert time.monotonic() - begin < 20
        assert group.returncode != 0
        assert b"signal 9" in err
    finally:
        if group.poll() is None:
            group.kill()
