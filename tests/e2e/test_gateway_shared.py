"""Several gateways with one database: one leads, the others pass calls on to it and take over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Iterator

import httpx
import openai
import pytest

from conftest import ROOT, tessera
from test_gateway import Gateway, cache  # noqa: F401


class Postgres:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.url = f"postgres://postgres@/postgres?host={folder}"
        self.home = ROOT / ".cache/postgres/lib/postgresql/15/bin"
        log = folder / "log"
        self.process = subprocess.Popen([str(ROOT / "tests/support/postgres_server.sh"), str(folder)],
                                        stdout=log.open("wb"), stderr=subprocess.STDOUT)
        for _ in range(600):
            assert self.process.poll() is None, log.read_text()
            if "ready to accept connections" in log.read_text():
                return
            time.sleep(0.05)
        raise AssertionError(log.read_text())


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    # Its socket's path must be short, and its own user must be able to reach it.
    folder = Path("/tmp") / f"tessera-pg-{os.getpid()}-{time.monotonic_ns() % 10**6}"
    made = Postgres(folder)
    yield made
    made.process.send_signal(signal.SIGQUIT)
    made.process.wait(30)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def two(tmp_path: Path, cache: Path, postgres: Postgres,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Gateway, Gateway]]:
    """The first leads. Both have one state folder, as a cluster has a shared volume."""
    monkeypatch.setenv("TESSERA_DATABASE", postgres.url)
    first, second = Gateway(tmp_path, cache), Gateway(tmp_path, cache)
    until(lambda: second.http.get("/readyz").status_code == 200)
    yield first, second
    for gateway in (second, first):
        if gateway.process.poll() is None:
            assert gateway.stop() == 0, (tmp_path / "gateway.log").read_text()


def test_the_next_one_takes_over_with_endpoints_and_workers(two: tuple[Gateway, Gateway]) -> None:
    leader, other = two
    assert other.create("a").status_code == 200
    record = other.ready("a")
    assert leader.record("a")["id"] == record["id"]
    assert "Paris" in other.complete("a").json()["output"]["text"]
    client = openai.OpenAI(base_url=other.url + "/v1", api_key="me", max_retries=0)
    stream = client.chat.completions.create(model="a", stream=True, max_tokens=4, temperature=0,
                                            messages=[{"role": "user", "content": "Say hi"}])
    assert len([chunk for chunk in stream if chunk.choices]) > 1
    assert other.http.get("/v1/llm/model-endpoints/absent").json() == {
        "detail": "Model Endpoint absent  was not found."}
    (worker,) = other.workers("a")

    leader.kill()
    until(lambda: other.http.get("/v1/llm/model-endpoints/a").status_code == 200)
    record = other.ready("a")
    (adopted,) = other.workers("a")
    assert adopted["pid"] == worker["pid"], "the worker goes on"
    assert "Paris" in other.complete("a").json()["output"]["text"]

    leader.start()  # It follows now.
    until(lambda: leader.http.get("/readyz").status_code == 200)
    until(lambda: leader.complete("a").status_code == 200)
    assert leader.http.delete("/v1/llm/model-endpoints/a").json() == {"deleted": True}
    until(lambda: other.http.get("/v1/llm/model-endpoints/a").status_code == 404)


def test_a_leader_without_its_database_ends_and_says_so(two: tuple[Gateway, Gateway],
                                                        postgres: Postgres) -> None:
    leader, other = two
    assert leader.create("a").status_code == 200
    leader.ready("a")
    # The connection with the lock is the leader's: its backend is ended from outside.
    backends = [int(p) for p in subprocess.run(
        ["pgrep", "-P", str(postgres.process.pid), "-f", "postgres: postgres postgres"],
        capture_output=True, text=True, check=True).stdout.split()]
    for backend in backends:
        os.kill(backend, signal.SIGTERM)
    ended: list[Gateway] = []

    def one_ended() -> bool:
        ended[:] = [g for g in (leader, other) if g.process.poll() is not None]
        return bool(ended)

    until(one_ended)
    assert ended == [leader]
    assert leader.process.returncode == 1
    assert "another gateway may lead by now" in (leader.dir / "gateway.log").read_text()
    until(lambda: other.http.get("/v1/llm/model-endpoints/a").status_code == 200)
    other.ready("a")
    assert other.complete("a").status_code == 200


def test_one_that_starts_after_all_were_killed_leads(two: tuple[Gateway, Gateway]) -> None:
    leader, other = two
    # What another gateway passed on is not passed on again: nobody plays ball with it.
    assert other.http.get("/v1/models", headers={"X-Tessera-Relayed": "1"}).status_code == 503
    assert leader.http.get("/v1/models", headers={"X-Tessera-Relayed": "1"}).status_code == 200
    leader.kill()
    other.kill()
    other.start()
    until(lambda: other.http.get("/v1/llm/model-endpoints").status_code == 200)


@pytest.mark.parametrize("flags,text", [
    (["--database", "mysql://a"], "expected postgres://"),
    (["--database", "postgres://me:hunter2@127.0.0.1:1/x"], "127.0.0.1"),
    (["--advertise", "10.0.0.5:5000"], "--database"),
    (["--database", "postgres://a/b", "--advertise", "nowhere"], "--advertise"),
    (["--database", "postgres://a/b", "--tls-cert", "c", "--tls-key", "k"], "--tls-cert"),
])
def test_refusals(tmp_path: Path, flags: list[str], text: str) -> None:
    done = tessera("gateway", "--port", "0", "--state-dir", tmp_path / "state", *flags)
    assert done.returncode != 0
    assert text in done.stderr.decode() and "hunter2" not in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1, done.stderr.decode()
