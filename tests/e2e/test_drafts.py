"""What is half made leaves with its maker: signals remove it, and what kill -9 leaves the next one removes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GGUF, TESSERA, tessera

HANGUP, INTERRUPT, TERMINATE = signal.SIGHUP, signal.SIGINT, signal.SIGTERM


def default_signals() -> None:
    """Shells start what runs in the background with some of them ignored."""
    for sent in (HANGUP, INTERRUPT, TERMINATE):
        signal.signal(sent, signal.SIG_DFL)


class Work:
    """A verb that writes to the folder `out`."""

    def __init__(self, out: Path, cache: Path, *args: str | Path) -> None:
        self.out = out
        self.seconds_to_end = 0.0  # Of end_amid, from the signal on.
        self.args = [str(TESSERA), *map(str, args), "--cache-dir", str(cache)]

    def hidden(self) -> list[str]:
        """A lock file is nobody's leftover: it is there for the next one."""
        return [path.name for path in self.out.rglob(".*") if not path.name.endswith(".lock")]

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                preexec_fn=default_signals)

    def end_amid(self, sent: signal.Signals) -> tuple[int, bytes]:
        """Sends the signal as soon as a draft is there; the exit code and stderr."""
        with self.start() as process:
            while not self.hidden():
                assert process.poll() is None, "nothing was hidden before it ended"
            process.send_signal(sent)
            begin = time.monotonic()
            _, stderr = process.communicate(timeout=60)
            self.seconds_to_end = time.monotonic() - begin
            return process.returncode, stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the bundle that some verbs copy."""
    folder = tmp_path_factory.mktemp("cache")
    assert tessera("compile", GGUF, "--cache-dir", folder).returncode == 0
    return folder


def bundles_of(cache: Path) -> Path:
    """Beside it hashes of the model's files are kept, whatever becomes of the bundle."""
    folder = cache / "bundles"
    folder.mkdir()
    return folder


def compiling(out: Path, _: Path) -> Work:
    return Work(bundles_of(out), out, "compile", GGUF)


def exporting(out: Path, cache: Path) -> Work:
    return Work(out, cache, "compile", GGUF, "--output-artifacts-dir", out / "bundle")


def emitting(out: Path, cache: Path) -> Work:
    return Work(out, cache, "compile", GGUF, "--emit-dataset", out / "x.irpa")


def packing(out: Path, cache: Path) -> Work:
    bundle = next(cache.glob("bundles/*/[!.]*"))
    return Work(out, cache, "cache", "export", bundle.relative_to(cache / "bundles"), "-o", out / "pack")


WORKS = pytest.mark.parametrize("work", [compiling, exporting, emitting, packing])


@WORKS
def test_signals_leave_nothing(tmp_path: Path, cache: Path, work: Callable[[Path, Path], Work]) -> None:
    for sent in (HANGUP, INTERRUPT, TERMINATE):
        out = tmp_path / sent.name
        out.mkdir()
        it = work(out, cache)
        code, stderr = it.end_amid(sent)
        assert code == -sent, stderr.decode()
        assert it.seconds_to_end < 5
        assert it.hidden() == []
        assert b"tessera: " not in stderr, stderr.decode()
        assert not [path for path in it.out.rglob("*") if path.is_file() and path.suffix != ".lock"]


@WORKS
def test_what_a_kill_leaves_the_next_one_removes(tmp_path: Path, cache: Path,
                                                 work: Callable[[Path, Path], Work]) -> None:
    it = work(tmp_path, cache)
    code, _ = it.end_amid(signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert it.hidden() != []
    with it.start() as process:
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    assert it.hidden() == []


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path, cache: Path) -> None:
    it = exporting(tmp_path, cache)
    it.args[:0] = ["nohup"]
    code, stderr = it.end_amid(HANGUP)
    assert code == 0, stderr.decode()
    assert (tmp_path / "bundle/manifest.json").exists() and it.hidden() == []


@pytest.mark.parametrize("sent", [INTERRUPT, TERMINATE])
def test_serve_that_is_still_compiling_leaves_nothing(tmp_path: Path, sent: signal.Signals) -> None:
    it = Work(bundles_of(tmp_path), tmp_path, "serve", GGUF, "--port", "0")
    code, stderr = it.end_amid(sent)
    assert code == 128 + sent, stderr.decode()
    assert it.hidden() == []


def test_five_at_once_into_one_place_leave_one_bundle(tmp_path: Path, cache: Path) -> None:
    it = exporting(tmp_path, cache)
    for _ in range(2):  # Into nothing, then over what is there.
        processes = [it.start() for _ in range(5)]
        for process in processes:
            _, stderr = process.communicate(timeout=120)
            assert process.returncode == 0, stderr.decode()
        assert os.listdir(tmp_path) == ["bundle"]
    assert tessera("inspect", "--verify", tmp_path / "bundle").returncode == 0


def test_the_probe_of_plan_needs_no_temporary_folder() -> None:
    done = tessera("plan", GGUF, env={"TMPDIR": "/proc"})
    assert done.returncode == 0, done.stderr.decode()


def test_pull_of_a_path_that_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    for path in (Path("/dev/zero"), tmp_path):
        done = tessera("pull", path)
        assert done.returncode == 1 and done.stdout == b""
        assert done.stderr.startswith(f"tessera: {path} ".encode()) and done.stderr.count(b"\n") == 1
    assert tessera("pull", GGUF).stdout.decode().strip() == str(GGUF)
