"""`serve --listen-fd`: sockets that are handed over, and what is none."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from conftest import GGUF, TESSERA, free_port


def serve(*args: str | Path, fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(TESSERA), "serve", str(GGUF), *map(str, args)], pass_fds=fds,
                            stderr=subprocess.PIPE)


def refused(*args: str | Path, fds: tuple[int, ...] = (), code: int = 1) -> str:
    process = serve(*args, fds=fds)
    _, text = process.communicate(timeout=60)
    assert process.returncode == code, text
    assert text.count(b"\n") == 1, text
    return text.decode()


def test_what_is_no_listening_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket() as unbound, (tmp_path / "file").open("wb") as file:
        for fd in (unbound.fileno(), file.fileno()):
            assert f"descriptor {fd}: it is no listening socket" in refused("--listen-fd", fd, fds=(fd,))
    assert "it is no listening socket" in refused("--listen-fd", 77)
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "local"))
        local.listen()
        assert "it is no TCP socket" in refused("--listen-fd", local.fileno(), fds=(local.fileno(),))


def test_a_socket_for_others_needs_keys() -> None:
    with socket.socket() as everywhere:
        everywhere.bind(("0.0.0.0", 0))
        everywhere.listen()
        assert "--api-keys" in refused("--listen-fd", everywhere.fileno(), fds=(everywhere.fileno(),))


@pytest.mark.parametrize("more", [("--port", "1"), ("--host", "127.0.0.1")])
def test_it_stands_instead_of_host_and_port(more: tuple[str, str]) -> None:
    assert "--listen-fd" in refused("--listen-fd", 3, *more, code=2)


@pytest.mark.parametrize("value", ["-1", "2", "x", "1048577"])
def test_it_is_a_number_of_a_descriptor(value: str) -> None:
    assert "--listen-fd" in refused(f"--listen-fd={value}", code=2)


def test_a_call_that_comes_before_it_listens_waits(cache: Path) -> None:
    port = free_port()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        process = serve("--listen-fd", listening.fileno(), "--cache-dir", cache,
                        fds=(listening.fileno(),))
    try:
        for _ in range(600):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=60).status_code == 200:
                break
            time.sleep(0.05)
        else:
            raise AssertionError("never ready")
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_a_lease_that_cannot_be_looked_at_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert "opening" in refused("--lease", tmp_path / "file" / "under", "--port", "0")
    assert os.path.exists(tmp_path / "file")
