"""From a name to a model: the program against a hub on this machine, with everything that goes wrong."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest

from conftest import ROOT, TESSERA, TINY, tessera
from fake_hub import FakeHub

NAME = "org/tiny"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as fake:
        fake.commit = fake.add_repository(NAME, TINY / "hf")
        yield fake


class Client:
    """The program with a cache, a home and an environment of its own."""

    def __init__(self, hub: FakeHub, home: Path) -> None:
        self.home, self.hf = home, home / "hf"
        self.env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(self.hf), "HOME": str(home),
                    "TESSERA_CACHE": str(home / "tessera"), "HF_TOKEN": "", "HF_HUB_CACHE": "",
                    "HF_HUB_OFFLINE": "", "HF_HUB_DOWNLOAD_TIMEOUT": "1", "XDG_CACHE_HOME": "",
                    "NO_PROXY": "*"}

    @property
    def cache(self) -> Path:
        return self.hf / "hub"

    def run(self, *args: str | Path, **env: str) -> subprocess.CompletedProcess[bytes]:
        return tessera(*args, env={**self.env, **env}, timeout=120)

    def pull(self, model: str = NAME, *args: str, **env: str) -> dict[str, Any]:
        done = self.run("pull", model, "--json", *args, **env)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def refused(self, *args: str | Path, **env: str) -> str:
        done = self.run(*args, **env)
        assert done.returncode == 1, (done.stdout, done.stderr)
        last = done.stderr.decode().strip().splitlines()[-1]
        assert last.startswith("tessera: "), done.stderr.decode()
        return last

    def start(self, *args: str | Path) -> subprocess.Popen[bytes]:
        import os
        return subprocess.Popen([str(TESSERA), *map(str, args)], env={**os.environ, **self.env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def client(hub: FakeHub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path)


def test_a_name_answers(hub: FakeHub, client: Client) -> None:
    """Downloaded, verified, compiled and run; the second time without network and at once."""
    run = ("run", NAME, "--raw", "-p", "a", "-n", "4", "--temperature", "0")
    first = client.run(*run)
    assert first.returncode == 0, first.stderr.decode()
    by_path = client.run("run", TINY / "hf", *run[2:])
    assert first.stdout == by_path.stdout and first.stdout
    hub.forget()
    second = client.run(*run, "--offline")
    assert second.returncode == 0, second.stderr.decode()
    assert second.stdout == first.stdout and hub.requests == []
    assert b"packing" not in second.stderr


def test_the_bundle_says_where_it_is_from(hub: FakeHub, client: Client) -> None:
    done = client.run("compile", NAME)
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads((Path(done.stdout.decode().strip()) / "manifest.json").read_text())
    assert manifest["source"]["repository"] == NAME
    assert manifest["source"]["revision"] == hub.commit
    assert manifest["source"]["licence"] == "apache-2.0"
    assert b"hashing sources" not in done.stderr, "verified files are not read again"


def test_the_cache_has_the_layout_of_the_hub(hub: FakeHub, client: Client) -> None:
    pulled = client.pull()
    folder = client.cache / "models--org--tiny"
    assert (folder / "refs/main").read_text() == hub.commit
    assert pulled["path"] == str(folder / "snapshots" / hub.commit)
    for file in (TINY / "hf").iterdir():
        link = folder / "snapshots" / hub.commit / file.name
        assert link.is_symlink() and not link.readlink().is_absolute()
        assert link.read_bytes() == file.read_bytes()
    assert hub.leaks == []
