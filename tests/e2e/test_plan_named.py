# SPDX-License-Identifier: Apache-2.0
"""Models that are named are planned before they are downloaded: what cannot be is refused first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import GGUF, TINY, tessera
from fake_hub import Content, FakeHub, sparse_content
from test_hub import Client
from test_plan import llama_repository

PIECE = 64 << 10  # Headers are asked for in pieces of this.


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as fake:
        yield fake


@pytest.fixture
def client(hub: FakeHub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path)


def add_llama(hub: FakeHub, tmp_path: Path, size: str) -> str:
    """A repository in the shape of a Llama: real headers, and weights that must not be asked for."""
    folder = llama_repository(tmp_path / size, size)
    files: dict[str, bytes | Path | Content] = {}
    for path in folder.iterdir():
        if path.suffix == ".safetensors":
            with path.open("rb") as file:
                head = file.read(8)
                head += file.read(int.from_bytes(head, "little"))
            files[path.name] = sparse_content(head, path.stat().st_size)
        else:
            files[path.name] = path
    name = f"org/Llama-{size}"
    hub.add_repository(name, files)
    return name


def weight_bytes(hub: FakeHub) -> int:
    """Sent of weight files beyond the pieces that hold their headers."""
    beyond = 0
    for row in hub.served:
        if row.name.endswith(".safetensors"):
            head = next(files[row.name].head for repository in hub.repositories.values()
                        for files in repository.commits.values())
            header_end = -(-len(head) // PIECE) * PIECE
            beyond += max(0, row.begin + row.sent - max(row.begin, header_end))
    return beyond


@pytest.mark.parametrize("size,verb", [("70B", "serve"), ("405B", "run"), ("405B", "compile")])
def test_what_does_not_fit_is_refused_before_a_weight_is_fetched(
        hub: FakeHub, client: Client, tmp_path: Path, size: str, verb: str) -> None:
    name = add_llama(hub, tmp_path, size)
    more = {"serve": ("--port", "0"), "run": ("-p", "a"), "compile": ()}[verb]
    said = client.refused(verb, name, *more)
    # What runs here is a matter of memory, what is only compiled of disk.
    what = "of disk" if verb == "compile" else "of memory"
    assert f"{name} needs " in said and what in said, said
    assert ("are free in" if verb == "compile" else "are available; what helps: ") in said, said
    assert hub.served and weight_bytes(hub) == 0
    assert not list(client.cache.glob("models--*/blobs/*.tessera.incomplete")), "nothing was begun"
    assert not list(client.cache.glob("models--*/snapshots/*/*")), "nothing is visible"
    hub.forget()
    assert client.refused(verb, name, *more).split(" needs ")[0] == said.split(" needs ")[0]
    assert not [row for row in hub.served if row.name.endswith(".safetensors")], "headers are kept"


@pytest.mark.parametrize("flags,says", [
    (("--tp", "7"), "use tp1 or tp2 or tp4 or tp8"),
    (("--quantize", "q5_9"), 'quantize "q5_9" is not known'),
    (("--compile-target", "tpu"), 'target "tpu" is not built in'),
    (("--max-seq-len", "200000"), "200000 is more than the model's 131072"),
])
def test_options_that_cannot_be_are_refused_before_a_weight_is_fetched(
        hub: FakeHub, client: Client, tmp_path: Path, flags: tuple[str, ...], says: str) -> None:
    name = add_llama(hub, tmp_path, "8B")
    said = client.refused("compile", name, *flags)
    assert says in said, said
    assert weight_bytes(hub) == 0


def test_a_tokenizer_that_is_missing_is_missed_first(hub: FakeHub, client: Client,
                                                     tmp_path: Path) -> None:
    name = add_llama(hub, tmp_path, "8B")
    repository = hub.repositories[name]
    del repository.commits[repository.refs["main"]]["tokenizer.json"]
    said = client.refused("compile", name)
    assert "no tokenizer" in said, said
    assert weight_bytes(hub) == 0


def test_headers_that_arrive_damaged_do_not_stop_a_model(hub: FakeHub, client: Client) -> None:
    """Nobody has verified them; the download does."""
    hub.add_repository("org/tiny", TINY / "hf")
    hub.fault("store", "*.safetensors", "corrupt", after=7)  # The length of the header.
    done = client.run("run", "org/tiny", "--raw", "-p", "a", "-n", "1")
    assert done.returncode == 0, done.stderr.decode()
    assert b"not planned before the download" in done.stderr


@pytest.mark.parametrize("verb", ["run", "serve", "compile", "plan"])
def test_auto_is_chosen_before_the_download(hub: FakeHub, client: Client, tmp_path: Path,
                                            verb: str) -> None:
    name = add_llama(hub, tmp_path, "405B")
    more = {"run": ("-p", "a"), "serve": ("--port", "0"), "compile": (), "plan": ("--no-probe",)}
    said = client.refused(verb, name, "--quantize", "auto", *more[verb])
    assert "no quantisation fits: " in said, said
    assert weight_bytes(hub) == 0


def test_auto_runs_what_fits(tmp_path: Path) -> None:
    done = tessera("run", TINY / "hf", "--quantize", "auto", "--cache-dir", tmp_path, "--raw",
                   "-p", "a", "-n", "1")
    assert done.returncode == 0, done.stderr.decode()
    assert b"quantize auto: none, because" in done.stderr
