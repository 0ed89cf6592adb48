"""From a name to a model: the program against a hub on this machine, with everything that goes wrong."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import numpy
import pytest

from conftest import TESSERA, TINY, on_terminal, tessera
from fake_hub import FakeHub, Proxy, bytes_content, file_content, sparse_content

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
                    "NO_PROXY": "*", "no_proxy": "*"}

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


SHARD = "model.safetensors"
INNER = 16384  # Of the widened model's feed-forward layers.


@functools.cache
def big_files() -> dict[str, bytes]:
    """The tiny model with wide feed-forward layers, in two shards: several ranges for several
    connections."""
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    tiny = files.pop(SHARD)
    length = int.from_bytes(tiny[:8], "little")
    rng = numpy.random.default_rng(7)
    names = ["model-00001-of-00002.safetensors", LAST]
    shards: list[dict[str, Any]] = [{}, {}]
    bodies = [b"", b""]
    for tensor, entry in json.loads(tiny[8:8 + length]).items():
        if tensor == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data, wide = tiny[8 + length + begin:8 + length + end], ".mlp." in tensor
        if wide:
            entry["shape"] = [INNER if size == 192 else size for size in entry["shape"]]
            values = rng.normal(0, 0.02, entry["shape"]).astype(numpy.float32)
            data = (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()  # BF16
        entry["data_offsets"] = [len(bodies[wide]), len(bodies[wide]) + len(data)]
        shards[wide][tensor] = entry
        bodies[wide] += data
    for name, shard, body in zip(names, shards, bodies):
        text = json.dumps(shard).encode()
        files[name] = len(text).to_bytes(8, "little") + text + body
    files["model.safetensors.index.json"] = json.dumps(
        {"metadata": {}, "weight_map": {tensor: name for name, shard in zip(names, shards)
                                        for tensor in shard}}).encode()
    config = json.loads(files["config.json"]) | {"intermediate_size": INNER}
    files["config.json"] = json.dumps(config).encode()
    files["pytorch_model.bin"] = b"a program"
    return files


def big_repository(hub: FakeHub, name: str = "org/big") -> dict[str, bytes]:
    hub.add_repository(name, dict(big_files()))
    return big_files()


LAST = "model-00002-of-00002.safetensors"


def check_whole(pulled: dict[str, Any], files: dict[str, bytes]) -> None:
    folder = Path(pulled["path"])
    for name, data in files.items():
        if not name.endswith(".bin"):
            assert (folder / name).read_bytes() == data, name
    left = [path.name for path in folder.parent.parent.rglob("*.tessera.*")]
    assert left == []


@pytest.mark.parametrize("place,kind,options", [
    ("store", "truncate", {"after": 1_000_000, "times": 3}),
    ("store", "stall", {"after": 700_000, "times": 2}),
    ("store", "drop", {"times": 3}),
    ("store", "no_range", {"times": 2}),
    ("store", "corrupt", {"after": 12_345}),
    ("store", "etag", {"value": '"other"', "times": 2}),
    ("store", "status", {"code": 416, "times": 2}),
    ("store", "status", {"code": 403, "times": 2}),
    ("store", "status", {"code": 503, "times": 3}),
    ("store", "status", {"code": 429, "headers": {"Retry-After": "1"}, "times": 2}),
    ("resolve", "status", {"code": 429, "headers": {"RateLimit": '"resolvers";r=0;t=1'}, "times": 2}),
    ("resolve", "status", {"code": 500, "times": 3}),
], ids=lambda value: str(value)[:40])
def test_what_passes_is_outlasted(hub: FakeHub, client: Client, place: str, kind: str,
                                  options: dict[str, Any]) -> None:
    files = big_repository(hub)
    hub.fault(place, LAST, kind, **options)
    check_whole(client.pull("org/big"), files)
    extra = 2 * len(files[LAST]) if kind in ("corrupt", "no_range") else 5 << 20
    assert hub.sent_bytes() < sum(map(len, files.values())) + extra
    assert hub.leaks == []


@pytest.mark.parametrize("place,name,kind,options,says", [
    ("store", LAST, "corrupt", {"after": 5, "times": -1}, "was fetched twice and has hash"),
    ("store", LAST, "total", {"value": "99999999", "times": -1}, "has 99999999 bytes, but "),
    ("store", LAST, "status", {"code": 416, "times": -1}, "answers 416"),
    ("store", LAST, "loop", {"times": -1}, "redirects more than 8 times"),
    ("resolve", LAST, "loop", {"times": -1}, "redirects more than 8 times"),
    ("resolve", LAST, "status", {"code": 404, "times": -1}, "answers 404"),
    ("resolve", LAST, "downgrade", {"value": "ftp://elsewhere/x", "times": -1}, "is not http"),
    ("api", "org/big", "corrupt", {"after": 40}, "api/models/org/big/revision/main: offset"),
    ("api", "org/big", "status", {"code": 404}, "has no repository org/big"),
    ("api", "org/big", "loop", {"times": -1}, "redirects more than 8 times"),
], ids=lambda value: str(value)[:40])
def test_what_stays_wrong_is_one_sentence(hub: FakeHub, client: Client, place: str, name: str,
                                          kind: str, options: dict[str, Any], says: str) -> None:
    files = big_repository(hub)
    hub.fault(place, name, kind, **options)
    assert says in client.refused("pull", "org/big")
    assert not list(client.cache.glob("models--org--big/snapshots/*/*")), "nothing is visible"
    hub.faults.clear()
    check_whole(client.pull("org/big"), files)


@pytest.mark.parametrize("change,says", [
    ({"config.json": None}, "org/odd has no config.json, so it cannot be run"),
    ({"tokenizer.json": None}, "org/odd has no tokenizer.json, so it cannot be run"),
    ({SHARD: None}, "org/odd has no model: neither safetensors nor GGUF files"),
    ({SHARD: None, "pytorch_model.bin": b"x"}, "pickles only (pytorch_model.bin), which are programs"),
    ({SHARD: None, "model.safetensors.index.json":
      b'{"weight_map": {"a": "model-00001-of-00001.safetensors"}}'},
     'names the shard "model-00001-of-00001.safetensors", which org/odd does not have'),
    ({SHARD: None, "model.safetensors.index.json": b'{"weight_map": {"a": "../../../etc/passwd"}}'},
     'names the shard "../../../etc/passwd", which org/odd does not have'),
    ({SHARD: None, "a-Q4_0.gguf": b"x", "a-Q8_0.gguf": b"x"},
     "org/odd has 2 GGUF files: choose one with org/odd:NAME, NAME one of Q4_0, Q8_0"),
])
def test_repositories_that_cannot_be_run(hub: FakeHub, client: Client,
                                         change: dict[str, bytes | None], says: str) -> None:
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()} | change
    hub.add_repository("org/odd", {name: data for name, data in files.items() if data is not None})
    assert says in client.refused("pull", "org/odd")


def test_unknown_architecture(hub: FakeHub, client: Client) -> None:
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    config = json.loads(files["config.json"]) | {"model_type": "marvin",
                                                 "architectures": ["MarvinForCausalLM"]}
    hub.add_repository("org/odd", files | {"config.json": json.dumps(config).encode()})
    assert "marvin" in client.refused("run", "org/odd", "-p", "x", "-n", "1").lower()


def test_who_may_see_what(hub: FakeHub, client: Client, tmp_path: Path) -> None:
    hub.add_repository("org/gated", TINY / "hf", gated=True)
    hub.add_repository("org/private", TINY / "hf", private=True)
    assert f"accept its licence at {hub.url}/org/gated and set HF_TOKEN" in client.refused("pull", "org/gated")
    assert "set HF_TOKEN if it is private" in client.refused("pull", "org/private")
    assert "set HF_TOKEN if it is private" in client.refused("pull", "org/absent")
    bad = client.refused("pull", NAME, HF_TOKEN="hf_bad")
    assert "refuses the token" in bad and "hf_bad" not in bad
    assert "characters that no token has" in client.refused("pull", NAME, HF_TOKEN="a\nb: c")
    client.pull("org/gated", HF_TOKEN="hf_good")
    (client.hf / "token").write_text("hf_good\n")
    client.pull("org/private")
    assert hub.leaks == [], "the store never sees the token"
    assert 'has no revision "v9"' in client.refused("pull", NAME + "@v9")


def test_revisions_and_renames(hub: FakeHub, client: Client) -> None:
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    other = hub.add_repository(NAME, files | {"generation_config.json": b"{}"}, revision="v2")
    assert client.pull()["revision"] == hub.commit
    hub.forget()
    tagged = client.pull(NAME, "--revision", "v2")
    assert tagged["revision"] == other
    assert [row.name for row in hub.served] == ["generation_config.json"], "the rest is there"
    assert client.pull(f"{hub.url}/{NAME}/tree/{other}")["path"] == tagged["path"]
    # A branch that moved: the new commit is taken, and the old one can still be named.
    moved = hub.add_repository(NAME, files | {"generation_config.json": b'{"top_k": 1}'})
    assert client.pull()["revision"] == moved
    hub.forget()
    assert client.pull(f"{NAME}@{hub.commit}")["revision"] == hub.commit
    assert hub.requests == [], "what a commit holds never changes"
    hub.renamed["old/name"] = NAME
    assert client.pull("old/name")["repository"] == NAME


def test_gguf_is_chosen_by_its_quantisation(hub: FakeHub, client: Client) -> None:
    model = TINY / "tiny-f16.gguf"
    hub.add_repository("org/quants", {"tiny-F16.gguf": model, "tiny-Q4_K_M.gguf": b"x",
                                      "tiny-Q4_K_S.gguf": b"x", "mmproj-F16.gguf": b"x"})
    pulled = client.pull("org/quants:f16")
    assert Path(pulled["path"]).name == "tiny-F16.gguf"
    assert {row.name for row in hub.served} == {"tiny-F16.gguf"}
    assert client.run("run", "org/quants:F16", "--raw", "-p", "a", "-n", "2").returncode == 0
    assert '"Q4_K"' in client.refused("pull", "org/quants:Q4_K")
    assert "F16, Q4_K_M, Q4_K_S" in client.refused("pull", "org/quants")


def test_headers_are_enough_to_plan(hub: FakeHub, client: Client) -> None:
    """The plan of a huge model from kilobytes: weights are announced, never fetched."""
    header = {"model.embed_tokens.weight": {"dtype": "BF16", "shape": [128256, 16384],
                                            "data_offsets": [0, 128256 * 16384 * 2]}}
    text = json.dumps(header).encode()
    size = 8 + len(text) + 128256 * 16384 * 2
    files: dict[str, Any] = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    files[SHARD] = sparse_content(len(text).to_bytes(8, "little") + text, size)
    hub.add_repository("org/huge", files)
    done = client.run("inspect", "org/huge")
    assert done.returncode == 0, done.stderr.decode()
    assert b"128256" in done.stdout
    assert hub.sent_bytes(SHARD) <= 64 << 10
    hub.forget()
    assert client.run("inspect", "org/huge").returncode == 0
    assert hub.sent_bytes() == 0, "kept for the commit"
    done = client.run("plan", NAME, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["parameters"] > 0
    assert not list(client.cache.glob("models--*/snapshots/*/*")), "no snapshot comes of it"
    # The real thing is fetched when it is needed.
    assert client.run("run", NAME, "--raw", "-p", "a", "-n", "1").returncode == 0


def ranges_of_journals(cache: Path) -> dict[str, list[tuple[int, int]]]:
    """What each download that was interrupted holds for certain, by blob."""
    held: dict[str, list[tuple[int, int]]] = {}
    for journal in cache.glob("models--*/blobs/*.tessera.journal"):
        lines = journal.read_text().split("\n")[:-1]  # The last one may be cut.
        held[journal.name.removesuffix(".tessera.journal")] = [
            (int(begin), int(end)) for line in lines if line.startswith("range ")
            for begin, end in [line.split()[1:]]]
    return held


def kill_loop(hub: FakeHub, client: Client, kills: int) -> None:
    """kill -9 at any moment of download and compile: what was on disk is never fetched again, what
    is visible is whole, and the run after the last kill completes."""
    files = big_repository(hub)
    sha_of = {content.sha256: name for content_files in hub.repositories["org/big"].commits.values()
              for name, content in content_files.items()}
    hub.rate = 6 << 20  # Of each connection: a download of about a second.
    rng = random.Random(7)
    finished = 0
    for number in range(kills):
        held = {sha_of[blob]: ranges for blob, ranges in ranges_of_journals(client.cache).items()
                if blob in sha_of}
        done = {path.name for path in client.cache.glob("models--org--big/blobs/*")
                if ".tessera." not in path.name}
        hub.forget()
        process = client.start("compile", "org/big")
        time.sleep(rng.uniform(0.0, 0.35))
        process.kill()
        process.communicate()
        finished += process.returncode == 0
        time.sleep(0.01)
        with hub.lock:
            for row in hub.served:
                for begin, end in held.get(row.name, []):
                    assert row.begin + row.wanted <= begin or end <= row.begin, (number, row, begin, end)
                assert not {content.sha256 for files_ in hub.repositories["org/big"].commits.values()
                            for name, content in files_.items() if name == row.name} & done, row
        for link in client.cache.glob("models--org--big/snapshots/*/*"):
            assert link.read_bytes() == files[link.name], link
        for manifest in (client.home / "tessera/bundles").glob("*/*/manifest.json"):
            assert client.run("inspect", manifest.parent, "--verify").returncode == 0
        if (client.home / "tessera/bundles").exists() and list(
                (client.home / "tessera/bundles").glob("*/*/manifest.json")):
            # It is made: begin anew, so that every kill meets work.
            shutil.rmtree(client.home / "tessera")
            if number % 2:
                shutil.rmtree(client.cache)
    hub.rate = 0
    done_at_last = client.run("compile", "org/big")
    assert done_at_last.returncode == 0, done_at_last.stderr.decode()
    check_whole(client.pull("org/big"), files)


def test_killed_at_any_moment(hub: FakeHub, client: Client) -> None:
    kill_loop(hub, client, 40)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_a_thousand_times(hub: FakeHub, client: Client) -> None:
    kill_loop(hub, client, 1000)


def test_two_processes_share_one_download(hub: FakeHub, client: Client) -> None:
    files = big_repository(hub)
    hub.rate = 8 << 20
    first, second = (client.start("pull", "org/big", "--json") for _ in range(2))
    answers = [process.communicate(timeout=60) for process in (first, second)]
    assert first.returncode == second.returncode == 0, answers
    for out, _ in answers:
        check_whole(json.loads(out), files)
    whole = sum(len(data) for name, data in files.items() if not name.endswith(".bin"))
    assert hub.sent_bytes() == whole, "every byte was sent once"
    assert any(b"by another process; waiting" in err for _, err in answers)


def test_offline_means_no_request(hub: FakeHub, client: Client) -> None:
    says = client.refused("pull", NAME, "--offline")
    assert f"{NAME}@main is not complete in the cache" in says
    client.pull()
    hub.forget()
    assert client.pull(NAME, HF_HUB_OFFLINE="1")["revision"] == hub.commit
    assert hub.requests == []
    link = client.cache / f"models--org--tiny/snapshots/{hub.commit}/tokenizer_config.json"
    link.resolve().unlink()
    assert "(tokenizer_config.json is missing)" in client.refused("pull", NAME, "--offline")


def test_without_network_the_cache_answers(hub: FakeHub, client: Client) -> None:
    client.pull()
    hub.fault("api", NAME, "drop", times=-1)
    done = client.run("pull", NAME)
    assert done.returncode == 0, done.stderr.decode()
    assert b"using what the cache has of org/tiny" in done.stderr
    assert "the hub does not answer" in client.refused("pull", "org/tiny", HF_HUB_CACHE=str(client.home / "no"))


NAMESPACES = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"],
                            capture_output=True, check=False).returncode == 0
needs_namespaces = pytest.mark.skipif(
    not NAMESPACES, reason="this machine lets nobody mount in a namespace of his own (unshare -rm)")


@needs_namespaces
def test_a_cache_that_cannot_be_written(hub: FakeHub, client: Client) -> None:
    """Fine with everything in it, else one sentence."""
    pulled = client.pull()
    wrap = ("unshare", "-rm", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"',
            str(client.hf), str(TESSERA))
    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*wrap, *args], env={**os.environ, **client.env}, capture_output=True,
                              timeout=60, check=False)
    done = run("pull", NAME, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["path"] == pulled["path"]
    hub.add_repository("org/other", TINY / "hf_sharded")
    done = run("pull", "org/other")
    assert done.returncode == 1
    assert b"is not in the cache, and the cache cannot be written" in done.stderr


@needs_namespaces
def test_a_disk_that_fills_up(hub: FakeHub, client: Client) -> None:
    """Asked before the first byte; filled on the way it is one sentence, and the next call goes on."""
    files = big_repository(hub)
    script = ('mount -t tmpfs -o size={size} none "$0" && "$@"; code=$?; {after} exit $code')

    def run(size: str, after: str = "") -> subprocess.CompletedProcess[bytes]:
        folder = client.home / "disk"
        folder.mkdir(exist_ok=True)
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", script.format(size=size, after=after), str(folder),
             str(TESSERA), "pull", "org/big", "--hf-cache-dir", str(folder)],
            env={**os.environ, **client.env}, capture_output=True, timeout=60, check=False)
    done = run("16m")
    assert done.returncode == 1 and b"are free in" in done.stderr, done.stderr.decode()
    assert hub.sent_bytes(LAST) == 0
    # Others take the room while it runs.
    hub.rate = 2 << 20
    fill = 'rm "$0/filler"; "$@"; code=$?;'
    folder = client.home / "disk"
    folder.mkdir(exist_ok=True)
    full = subprocess.run(
        ["unshare", "-rm", "sh", "-c",
         'mount -t tmpfs -o size=34m none "$0"; "$@" & '
         'while ! find "$0" -name "*.tessera.incomplete" -size +100k | grep -q .; do sleep 0.02; done; head -c 40m /dev/zero > "$0/filler" 2>/dev/null; '
         'wait $!; echo "first $?"; ' + fill + ' echo "second $code"',
         str(folder), str(TESSERA), "pull", "org/big", "--hf-cache-dir", str(folder)],
        env={**os.environ, **client.env}, capture_output=True, timeout=60, check=False)
    assert b"first 1" in full.stdout and b"second 0" in full.stdout, (full.stdout, full.stderr)
    assert b"No space left on device; free some space and try again" in full.stderr
    whole = sum(len(data) for name, data in files.items() if not name.endswith(".bin"))
    assert hub.sent_bytes() < whole + (20 << 20)


def test_links_in_a_circle(hub: FakeHub, client: Client) -> None:
    pulled = Path(client.pull()["path"])
    blob = (pulled / SHARD).resolve()
    blob.unlink()
    blob.symlink_to(blob.name)
    done = client.run("pull", NAME)
    assert done.returncode == 0 and (pulled / SHARD).read_bytes() == (TINY / "hf" / SHARD).read_bytes()


def test_names_that_reach_outside_are_never_made(hub: FakeHub, client: Client) -> None:
    files: dict[str, Any] = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    evil = {"../../../../escaped.json": b"x", "/tmp/absolute.json": b"x", "a\\b": b"x",
            "additional_chat_templates/../../x.jinja": b"x"}
    hub.add_repository("org/evil", files | evil)
    client.pull("org/evil")
    assert not list(client.home.rglob("escaped.json")) and not list(client.home.rglob("x.jinja"))


def hub_script(client: Client, code: str, **env: str) -> str:
    """The real client of the hub, in a process of its own: it reads its variables once."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **{name: value for name, value in client.env.items() if value},
                               "HF_HUB_DISABLE_XET": "1",
                               "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                               **env}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_the_real_client_believes_this_hub(hub: FakeHub, client: Client) -> None:
    """huggingface_hub downloads from the stand-in, so what passes here is the hub's protocol."""
    files = big_repository(hub)
    where = hub_script(client, "from huggingface_hub import snapshot_download\n"
                       "print(snapshot_download('org/big', ignore_patterns=['*.bin']))")
    for name, data in files.items():
        if not name.endswith(".bin"):
            assert (Path(where) / name).read_bytes() == data
    errors = hub_script(client, "import huggingface_hub as h\nfrom huggingface_hub import errors as e\n"
                        "def of(*a, **k):\n"
                        "  try: h.hf_hub_download(*a, **k)\n"
                        "  except Exception as x: return type(x).__name__\n"
                        "print(of('org/absent', 'x'), of('org/big', 'x'), of('org/big', 'config.json', revision='v9'))")
    assert errors == "RepositoryNotFoundError RemoteEntryNotFoundError RevisionNotFoundError"
    # We read what it wrote, without network and without a byte.
    hub.forget()
    pulled = client.pull("org/big", "--offline")
    assert pulled["path"] == where and hub.requests == []
    hub.forget()
    assert client.pull("org/big")["fetched_bytes"] == 0 and hub.served == []


def test_the_real_client_reads_our_cache(hub: FakeHub, client: Client) -> None:
    pulled = client.pull()
    hub.forget()
    where = hub_script(client, "from huggingface_hub import hf_hub_download\n"
                       f"print(hf_hub_download('{NAME}', '{SHARD}', local_files_only=True))")
    assert Path(where) == Path(pulled["path"]) / SHARD
    where = hub_script(client, "from huggingface_hub import snapshot_download\n"
                       f"print(snapshot_download('{NAME}', local_files_only=True))")
    assert where == pulled["path"] and hub.requests == []
    counted = hub_script(client, "from huggingface_hub import scan_cache_dir\n"
                         "info = scan_cache_dir()\nprint(len(info.repos), len(info.warnings))")
    assert counted == "1 0"
    # Online it finds all blobs there and fetches nothing.
    hub_script(client, f"from huggingface_hub import snapshot_download\nprint(snapshot_download('{NAME}'))")
    assert hub.sent_bytes() == 0


def test_progress_has_the_same_numbers(hub: FakeHub, client: Client) -> None:
    files = big_repository(hub)
    hub.rate = 8 << 20
    done = client.run("pull", "org/big", "--progress", "json")
    assert done.returncode == 0, done.stderr.decode()
    lines = [json.loads(line) for line in done.stderr.decode().splitlines()]
    rows = [line for line in lines if line["event"] == "download" and len(line["files"]) > 1]
    assert len(rows) > 2
    for row in rows:
        assert row["done"] == sum(file["done"] for file in row["files"]) <= row["total"]
        assert row["total"] == sum(file["total"] for file in row["files"])
    dones = [row["done"] for row in rows]
    assert dones == sorted(dones) and rows[-1]["done"] == rows[-1]["total"]
    assert rows[-1]["seconds_left"] in (0, None)
    assert sum(len(files[file["name"]]) for file in rows[-1]["files"]) == rows[-1]["total"]


def test_a_file_at_an_address(hub: FakeHub, client: Client) -> None:
    hub.files["tiny.gguf"] = file_content(TINY / "tiny-f16.gguf")
    url = f"{hub.url}/files/tiny.gguf"
    first = client.run("run", url, "--raw", "-p", "a", "-n", "3", "--temperature", "0")
    assert first.returncode == 0, first.stderr.decode()
    hub.forget()
    again = client.run("run", url, "--raw", "-p", "a", "-n", "3", "--temperature", "0")
    assert again.stdout == first.stdout and hub.sent_bytes() <= 1
    hub.forget()
    assert client.run("pull", url, "--offline").returncode == 0 and hub.requests == []
    # Other bytes there: known by the ETag.
    hub.files["tiny.gguf"] = bytes_content(b"GGUF, but another")
    assert Path(client.pull(url)["path"]).read_bytes() == b"GGUF, but another"
    assert "answers 404" in client.refused("pull", f"{hub.url}/files/absent.gguf")
    assert "neither a repository of the hub nor the address of a .gguf" in client.refused(
        "pull", f"{hub.store_url}/files/x.bin")


def test_an_address_that_changes_under_our_hands(hub: FakeHub, client: Client) -> None:
    data = big_files()[LAST]
    hub.files["big.gguf"] = bytes_content(data)
    url = f"{hub.url}/files/big.gguf"
    hub.fault("file", "big.gguf", "etag", skip=2, value='"newer"')
    done = client.run("pull", url, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert b"changed while it was downloaded; beginning anew" in done.stderr
    assert Path(json.loads(done.stdout)["path"]).read_bytes() == data


def test_killed_at_an_address(hub: FakeHub, client: Client) -> None:
    data = big_files()[LAST]
    hub.files["big.gguf"] = bytes_content(data)
    hub.rate = 3 << 20
    url = f"{hub.url}/files/big.gguf"
    process = client.start("pull", url)
    time.sleep(0.6)
    process.kill()
    process.communicate()
    hub.rate = 0
    first = hub.sent_bytes()
    assert 0 < first < len(data)
    hub.forget()
    assert Path(client.pull(url)["path"]).read_bytes() == data
    assert hub.sent_bytes() < len(data), "goes on where it was"


def test_a_bucket(hub: FakeHub, client: Client) -> None:
    hub.buckets["models"] = {f"team/tiny/{path.name}": file_content(path) for path in (TINY / "hf").iterdir()}
    hub.buckets["models"] |= {"team/tinyhead": bytes_content(b"x"), "q/t-Q4_0.gguf": bytes_content(b"x"),
                              "q/t-F16.gguf": file_content(TINY / "tiny-f16.gguf")}
    hub.s3_keys = {"AKID": "s3cret"}
    hub.s3_page = 2
    aws = {"AWS_ENDPOINT_URL": hub.url, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s3cret",
           "AWS_REGION": "eu-north-1"}
    client.env |= aws
    done = client.run("run", "s3://models/team/tiny", "--raw", "-p", "a", "-n", "4", "--temperature", "0")
    assert done.returncode == 0, done.stderr.decode()
    by_path = client.run("run", TINY / "hf", "--raw", "-p", "a", "-n", "4", "--temperature", "0")
    assert done.stdout == by_path.stdout
    hub.forget()
    client.pull("s3://models/team/tiny/")
    assert hub.sent_bytes() == 0
    assert client.pull("s3://models/team/tiny", "--offline")["repository"] == "s3://models/team/tiny"
    assert Path(client.pull("s3://models/q:F16")["path"]).name == "t-F16.gguf"
    assert Path(client.pull("s3://models/q/t-F16.gguf")["path"]).name == "t-F16.gguf"
    wrong = client.refused("pull", "s3://models/team/tiny", AWS_SECRET_ACCESS_KEY="wrong")
    assert "answers 403: set AWS_ACCESS_KEY_ID" in wrong and "wrong" not in wrong
    assert "has no objects" in client.refused("pull", "s3://models/absent")
    hub.s3_keys = {}
    client.pull("s3://models/team/tiny", AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")


def test_the_cache_is_listed_verified_and_removed(hub: FakeHub, client: Client) -> None:
    client.pull()
    assert client.run("compile", NAME).returncode == 0
    rows = json.loads(client.run("cache", "ls", "--json").stdout)["entries"]
    assert [(row["kind"], row["name"].split("/")[0]) for row in rows] == [("download", "org"), ("bundle", "tiny")]
    assert rows[0]["snapshots"][0]["commit"] == hub.commit and rows[0]["snapshots"][0]["refs"] == ["main"]
    used = json.loads(client.run("cache", "du", "--json").stdout)
    assert used["downloads"]["bytes"] == sum(path.stat().st_size for path in (TINY / "hf").iterdir())
    assert client.run("cache", "verify").returncode == 0
    blob = (client.cache / f"models--org--tiny/snapshots/{hub.commit}/{SHARD}").resolve()
    with blob.open("r+b") as file:
        file.seek(100)
        file.write(b"\0\1\2")
    assert blob.name in client.refused("cache", "verify")
    assert "is neither a download nor a bundle" in client.refused("cache", "rm", "org/absent")
    assert client.run("cache", "rm", NAME, rows[1]["name"]).returncode == 0
    assert json.loads(client.run("cache", "ls", "--json").stdout)["entries"] == []
    assert client.run("cache", "ls").returncode == 0


def test_a_pack_carries_models_to_a_machine_without_network(hub: FakeHub, client: Client,
                                                            tmp_path: Path) -> None:
    run = ("run", NAME, "--raw", "-p", "a", "-n", "4", "--temperature", "0", "--offline")
    client.pull()
    assert client.run("compile", NAME).returncode == 0
    bundle = json.loads(client.run("cache", "ls", "--json").stdout)["entries"][1]["name"]
    pack = tmp_path / "tiny.pack"
    done = client.run("cache", "export", NAME, bundle, "-o", pack)
    assert done.returncode == 0, done.stderr.decode()
    assert f"{pack} exists" in client.refused("cache", "export", NAME, "-o", pack)
    far = Client(hub, tmp_path / "far")
    far.home.mkdir()
    assert "not complete in the cache" in far.refused(*run)
    done = far.run("cache", "import", pack)
    assert done.returncode == 0 and done.stdout.decode().split() == [bundle, f"{NAME}@{hub.commit}"]
    hub.forget()
    there = far.run(*run)
    assert there.returncode == 0 and there.stdout == client.run(*run).stdout
    assert b"packing" not in there.stderr and hub.requests == []
    again = far.run("cache", "import", pack)
    assert again.returncode == 0 and b"is there already and stays" in again.stderr
    assert far.run("cache", "verify").returncode == 0


@pytest.mark.parametrize("path", ["../escaped", "/tmp/escaped", "bundles/a/../../escaped", "bundles/.x/b/c",
                                  "bundles/a/b", "bundles/a/b/c/d", "other/x"])
def test_hostile_packs_are_refused(client: Client, tmp_path: Path, path: str) -> None:
    import hashlib
    data = b"boo"
    text = json.dumps({"entries": [{"path": path, "bytes": len(data),
                                    "sha256": hashlib.sha256(data).hexdigest()}]}).encode()
    pack = tmp_path / "evil.pack"
    pack.write_bytes(b"tessera-pack 1 %d %s\n" % (len(text), hashlib.sha256(text).hexdigest().encode())
                     + text + data)
    client.refused("cache", "import", pack)
    assert not list(tmp_path.rglob("escaped")) and not list(tmp_path.rglob("c"))


def test_files_of_the_same_bytes_are_fetched_once(hub: FakeHub, client: Client) -> None:
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    files |= {"added_tokens.json": b"{}", "special_tokens_map.json": b"{}", "quantize_config.json": b"{}"}
    hub.add_repository("org/same", files)
    pulled = Path(client.pull("org/same")["path"])
    assert [(pulled / name).read_bytes() for name in ("added_tokens.json", "quantize_config.json")] == [b"{}"] * 2
    assert sum(row.name in ("added_tokens.json", "special_tokens_map.json", "quantize_config.json")
               for row in hub.served) == 1


def test_a_branch_that_moves_meanwhile(hub: FakeHub, client: Client) -> None:
    """Its old files vanish: what it has now is wanted."""
    files = {path.name: path.read_bytes() for path in (TINY / "hf").iterdir()}
    moved: list[str] = []

    def move() -> None:
        moved.append(hub.add_repository(NAME, files | {"chat_template.jinja": b"new"}))
        del hub.repositories[NAME].commits[hub.commit]

    hub.before_resolve = move
    done = client.run("pull", NAME, "--json")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["revision"] == moved[0] and b"beginning anew" in done.stderr


def test_files_that_are_listed_and_not_there(hub: FakeHub, client: Client) -> None:
    hub.fault("resolve", "*", "status", code=404, headers={"X-Error-Code": "EntryNotFound"}, times=-1)
    done = client.run("pull", NAME)
    assert done.returncode == 1 and b"does not have a file that the hub lists" in done.stderr
    assert done.stderr.count(b"beginning anew") == 1, "asked once more, not for ever"


def test_what_huggingface_hub_left_is_gone_on_with(hub: FakeHub, client: Client) -> None:
    """The real client is killed in the middle of a large file; its bytes are not fetched again."""
    files = big_repository(hub)
    hub.rate = 1 << 20
    env = {name: value for name, value in client.env.items() if value}
    real = subprocess.Popen(
        [sys.executable, "-c", f"from huggingface_hub import hf_hub_download as d; d('org/big', '{LAST}')"],
        env={**os.environ, **env, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    left: list[Path] = []
    while time.monotonic() < deadline:
        left = [path for path in client.cache.glob("models--*/blobs/*.incomplete") if path.stat().st_size > 1 << 20]
        if left:
            break
        time.sleep(0.05)
    real.kill()
    real.wait()
    assert left, "the real client keeps what it fetched beside the blob"
    held = left[0].stat().st_size
    hub.rate = 0
    hub.forget()
    done = client.run("pull", "org/big", "--json")
    assert done.returncode == 0, done.stderr.decode()
    check_whole(json.loads(done.stdout), files)
    assert b"going on with the" in done.stderr and not left[0].exists()
    assert hub.sent_bytes(LAST) == len(files[LAST]) - held


def test_a_wrong_name_gets_the_near_one(hub: FakeHub, client: Client) -> None:
    client.pull()
    for wrong in ("org/tinny", "other/tiny", "ORG/Tiny"):
        says = client.refused("pull", wrong)
        assert f"has no repository {wrong}" in says and f"or is {NAME} meant, which the cache has?" in says
        says = client.refused("pull", wrong, "--offline")
        assert "is not complete in the cache" in says and f"or is {NAME} meant" in says
    assert f"or is {NAME} meant" in client.refused("run", "tiny", "-p", "x")
    assert "meant" not in client.refused("pull", "meta-llama/Llama-3.1-8B")


@pytest.mark.parametrize("name,says", [
    ("org/../etc", "is not there"), ("hf://org/..", "is no repository name"), ("org/repo@../../x", "is no revision"),
    ("org/repo@", "a revision has 1 to"), ("org/repo:", "has no quantisation"), ("hf://a--b/c", "is no repository name"),
    ("https://huggingface.co/org/repo/settings", "is no page of a repository"),
    ("https://user:secret@host/x.gguf", "an address with a password in it"), ("s3://x", "names no bucket"),
    ("s3://bucket/../x", "reaches outside"), ("file:", "names no file"), ("file:/absent.gguf", "is not there"),
    ("org/" + "r" * 97, "is not there")])
def test_wrong_names_are_one_sentence(client: Client, name: str, says: str) -> None:
    refused = client.refused("pull", name)
    assert says in refused and "secret" not in refused


@pytest.mark.parametrize("variable,value,says", [
    ("HF_ENDPOINT", "hf-mirror.example", "expected an address that begins with https:// or http://"),
    ("HF_ENDPOINT", "http://", "expected an address"), ("HF_ENDPOINT", "https://u:pw0@host", "has a password in it"),
    ("AWS_ENDPOINT_URL", "host:9000", "expected an address"), ("HF_HUB_DOWNLOAD_TIMEOUT", "0", "from 1 to 86400")])
def test_wrong_variables_are_one_sentence(client: Client, variable: str, value: str, says: str) -> None:
    refused = client.refused("pull", NAME, **{variable: value})
    assert variable in refused and says in refused and "pw0" not in refused


def test_a_file_by_scheme(client: Client) -> None:
    run = ("--raw", "-p", "a", "-n", "3", "--temperature", "0")
    by_scheme = client.run("run", f"file://{TINY}/tiny-f16.gguf", *run)
    assert by_scheme.returncode == 0 and by_scheme.stdout == client.run("run", TINY / "tiny-f16.gguf", *run).stdout


def test_a_proxy_is_used(hub: FakeHub, client: Client) -> None:
    """Names that only the proxy knows; it wants a login, which no message shows."""
    port = int(hub.url.rsplit(":", 1)[1])
    with Proxy({"hub.test": port}, login="me:pr0xysecret") as proxy:
        env = {"HF_ENDPOINT": "http://hub.test", "NO_PROXY": "", "no_proxy": "", "http_proxy": proxy.url,
               "HF_TOKEN": hub.token}
        client.pull(**env)
        assert any("http://hub.test/api/models" in asked for asked in proxy.asked)
        assert hub.leaks == []
        shutil.rmtree(client.cache)
        refused = client.refused("pull", NAME, **{**env, "http_proxy": proxy.url.replace("pr0xy", "wrong")})
        assert "407" in refused and "secret" not in refused
        asked = len(proxy.asked)
        assert client.run("pull", NAME, **{**env, "HF_ENDPOINT": hub.url, "no_proxy": "127.0.0.1"}).returncode == 0
        assert len(proxy.asked) == asked, "no_proxy is heeded"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key in one file, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=hub.test",
                    "-addext", "subjectAltName=DNS:hub.test,IP:127.0.0.1"], check=True, capture_output=True)
    (folder / "both.pem").write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return folder


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_certificates(certificate: Path, tmp_path: Path, variable: str) -> None:
    """https with a CA of the company's own, also through a proxy's CONNECT, which sees no token."""
    with FakeHub(tls=certificate / "both.pem") as hub:
        hub.add_repository(NAME, TINY / "hf", private=True)
        client = Client(hub, tmp_path)
        client.env |= {"HF_TOKEN": hub.token, "SSL_CERT_FILE": "", "CURL_CA_BUNDLE": "", "REQUESTS_CA_BUNDLE": ""}
        refused = client.refused("pull", NAME)
        assert "certificate" in refused and "$SSL_CERT_FILE names the certificates to trust" in refused
        client.pull(**{variable: str(certificate / "cert.pem")})
        shutil.rmtree(client.cache)
        with Proxy({"hub.test": int(hub.url.rsplit(":", 1)[1])}) as proxy:
            client.pull(**{variable: str(certificate / "cert.pem"), "NO_PROXY": "", "no_proxy": "",
                           "https_proxy": proxy.url, "HF_ENDPOINT": "https://hub.test"})
            assert any(asked == "CONNECT hub.test:443" for asked in proxy.asked) and proxy.tokens == []
        assert hub.leaks == []
        shutil.rmtree(client.cache)
        assert "error setting certificate" in client.refused(
            "pull", NAME, **{variable: str(tmp_path / "absent.pem")}).lower()


def test_a_bucket_says_what_is_wrong(hub: FakeHub, client: Client) -> None:
    hub.buckets["models"] = {f"tiny a+b/{path.name}": file_content(path) for path in (TINY / "hf").iterdir()}
    hub.s3_keys = {"AKID": "s3cret"}
    client.env |= {"AWS_ENDPOINT_URL": hub.url, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s3cret",
                   "AWS_SESSION_TOKEN": "session"}
    client.pull("s3://models/tiny a+b")
    shutil.rmtree(client.home / "tessera")
    hub.clock_ahead = 3600.0
    assert "this machine's clock is wrong" in client.refused("pull", "s3://models/tiny a+b")
    hub.clock_ahead, hub.s3_region = 0.0, "eu-north-1"
    begin = time.monotonic()
    assert "the bucket is in another region: set AWS_REGION=eu-north-1" in client.refused("pull", "s3://models/tiny a+b")
    assert time.monotonic() - begin < 5, "what stays wrong is not asked again"
    client.pull("s3://models/tiny a+b", AWS_REGION="eu-north-1")


def test_an_address_without_version_is_refused(hub: FakeHub, client: Client) -> None:
    hub.files["x.gguf"] = file_content(TINY / "tiny-f16.gguf")
    hub.fault("file", "x.gguf", "etag", value="", times=-1)
    assert "neither ETag nor Last-Modified" in client.refused("pull", f"{hub.url}/files/x.gguf")


def test_headers_of_removed_blobs_are_fetched_again(hub: FakeHub, client: Client) -> None:
    first = Path(client.pull(NAME, "--headers")["path"])
    (first / "config.json").resolve().unlink()
    assert (Path(client.pull(NAME, "--headers")["path"]) / "config.json").read_bytes() == (TINY / "hf/config.json").read_bytes()


def test_a_pack_of_an_address_goes_where_addresses_are(hub: FakeHub, client: Client, tmp_path: Path) -> None:
    hub.files["tiny.gguf"] = file_content(TINY / "tiny-f16.gguf")
    url = f"{hub.url}/files/tiny.gguf"
    client.pull(url)
    name = json.loads(client.run("cache", "ls", "--json").stdout)["entries"][0]["name"]
    pack = tmp_path / "one.pack"
    assert client.run("cache", "export", name, "-o", pack).returncode == 0
    far = Client(hub, tmp_path / "far")
    far.home.mkdir()
    done = far.run("cache", "import", pack)
    assert done.returncode == 0, done.stderr.decode()
    hub.forget()
    assert Path(far.pull(url, "--offline")["path"]).read_bytes() == (TINY / "tiny-f16.gguf").read_bytes()
    assert hub.requests == [] and not list(far.cache.glob("models--*"))


def write_pack(path: Path, entries: list[dict[str, Any]], data: bytes, **more: Any) -> Path:
    import hashlib
    text = json.dumps({"entries": entries, **more}).encode()
    path.write_bytes(b"tessera-pack 1 %d %s\n" % (len(text), hashlib.sha256(text).hexdigest().encode()) + text + data)
    return path


def test_packs_that_promise_too_much_are_refused(hub: FakeHub, client: Client, tmp_path: Path) -> None:
    """Bombs, ends that are missing, lies about hashes, links in the way: nothing visible, nothing outside."""
    import hashlib
    pack, data = tmp_path / "evil.pack", b"boo"
    sha = hashlib.sha256(data).hexdigest()
    row = {"path": f"repositories/org/x/blobs/{sha}", "bytes": 3, "sha256": sha}
    listing = {"id": "org/x", "sha": "c" * 40, "refs": ["main"],
               "siblings": [{"rfilename": "config.json", "lfs": {"sha256": sha, "size": 3}}]}
    huge = row | {"bytes": 1 << 43}
    write_pack(pack, [huge], data, repositories=[listing])
    assert "it was not copied whole" in client.refused("cache", "import", pack)
    # As large as it says, but of holes: asked for room, and nothing is written.
    listed = listing | {"siblings": [{"rfilename": "config.json", "lfs": {"sha256": sha, "size": 1 << 43}}]}
    write_pack(pack, [huge], b"", repositories=[listed])
    os.truncate(pack, pack.stat().st_size + (1 << 43))
    assert "are free in" in client.refused("cache", "import", pack)
    pack.unlink()
    write_pack(pack, [row], data[:2], repositories=[listing])
    assert "it was not copied whole" in client.refused("cache", "import", pack)
    write_pack(pack, [row], b"bad", repositories=[listing])
    assert "is damaged: copy the pack again" in client.refused("cache", "import", pack)
    write_pack(pack, [row, row], data * 2, repositories=[listing])
    assert "twice" in client.refused("cache", "import", pack)
    write_pack(pack, [], b"", repositories=[listing])
    assert "the pack lacks config.json of org/x" in client.refused("cache", "import", pack)
    for refs in (["../../../../escaped"], ["a b"], [3], "main"):
        write_pack(pack, [row], data, repositories=[listing | {"refs": refs}])
        client.refused("cache", "import", pack)
    for evil in ("../../escaped", "/tmp/escaped", "a\\b"):
        write_pack(pack, [row], data, repositories=[listing | {"siblings": [
            {"rfilename": evil, "lfs": {"sha256": sha, "size": 3}}]}])
        client.run("cache", "import", pack)
    for junk in (b"", b"\0" * 4096, b"tessera-pack 1 99999999999999999999 x\n", b"tessera-pack 1 10 " + b"a" * 64 + b"\n"):
        pack.write_bytes(junk)
        client.refused("cache", "import", pack)
    assert not list(client.home.rglob("escaped")) and not list(client.cache.glob("models--*/snapshots/*/*"))
    # A link where the blob goes is replaced, not followed.
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    blob = client.cache / "models--org--x/blobs" / sha
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.unlink(missing_ok=True)
    blob.symlink_to(victim)
    write_pack(pack, [row], data, repositories=[listing])
    done = client.run("cache", "import", pack)
    assert done.returncode == 0, done.stderr.decode()
    assert victim.read_bytes() == b"precious" and blob.read_bytes() == data and not blob.is_symlink()


def seen_on_terminal(client: Client, *args: str) -> str:
    code, seen = on_terminal(100, *args, env=client.env)
    assert code == 0, seen
    return seen


def test_a_terminal_shows_every_file_and_all(hub: FakeHub, client: Client) -> None:
    big_repository(hub)
    hub.rate = 8 << 20
    seen = seen_on_terminal(client, "pull", "org/big")
    assert re.search(r"\n?  model-00002-of-00002\.safetensors \[#*\.*\] [0-9.]+ [kM]?B of [0-9.]+ MB\r?\n", seen), seen
    assert re.search(r"downloading \S+ and \d+ more \[#*\.*\] [0-9.]+ [kM]?B of [0-9.]+ MB, [0-9.]+ [kM]?B/s, "
                     r"([0-9.]+ m?s|\?) left", seen), seen
    assert re.search(r"downloading \S+ and \d+ more: [0-9.]+ MB in ", seen)
    drawn, screen = seen.count("\n"), seen.count("\033[A")
    assert screen >= 1 and drawn > screen, "lines are drawn in place"


def test_metrics_show_a_download_while_it_runs(hub: FakeHub, client: Client) -> None:
    """A server that downloads its model has the numbers on its page at once, and keeps them."""
    files = big_repository(hub)
    hub.rate = 3 << 20
    whole = sum(len(data) for name, data in files.items() if not name.endswith(".bin"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = client.start("serve", "org/big", "--port", str(port))

    def page() -> dict[str, float]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except (OSError, urllib.error.URLError):
            return {}
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                if line.startswith("tessera_download_")}

    def value(samples: dict[str, float], name: str, *labels: str) -> float:
        found = [number for key, number in samples.items()
                 if key.partition("{")[0] == name and all(label in key for label in labels)]
        assert len(found) == 1, (name, samples)
        return found[0]

    try:
        deadline, rows = time.monotonic() + 60, []
        while time.monotonic() < deadline and server.poll() is None:
            if (now := page()) and (not rows or now != rows[-1]):
                rows.append(now)
            if rows and 'model_name="big"' in next(iter(rows[-1])):
                break
            time.sleep(0.05)
        early = [row for row in rows if 'model_name=""' in next(iter(row))]
        assert len(early) > 2, (rows, server.poll())
        for row in rows:
            done, total = (value(row, "tessera_download_bytes", f'state="{state}"') for state in ("done", "total"))
            assert done == sum(number for key, number in row.items()
                               if key.startswith("tessera_download_file_bytes") and 'state="done"' in key) <= total
        last = rows[-1]
        assert value(last, "tessera_download_bytes", 'state="done"') == value(last, "tessera_download_bytes", 'state="total"')
        assert 0 < value(last, "tessera_download_fetched_bytes_total") <= whole
        assert value(last, "tessera_download_bytes_per_second") > 0
    finally:
        server.terminate()
        _, err = server.communicate(timeout=60)
    assert server.returncode == 0, err.decode()
