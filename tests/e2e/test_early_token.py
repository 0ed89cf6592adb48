"""run answers before its new bundle is published; what is published is what compile makes, or nothing is."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from conftest import GGUF, TESSERA, tessera
from test_compile_crash import check_whole, leftovers, visible

ONE_TOKEN = ("-p", "Once upon", "--raw", "-n", "1", "--temperature", "0")


def default_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(cache: Path, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([str(TESSERA), "run", str(GGUF), "--cache-dir", str(cache), *args],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=default_signals)


def first_byte(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(1)


def draft(cache: Path) -> Path:
    return next(path for path in leftovers(cache) if ".draft." in path.name)


def contents(bundle: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bundle.iterdir()}


def test_the_bundle_of_run_is_that_of_compile(tmp_path: Path) -> None:
    done = tessera("run", GGUF, "--cache-dir", tmp_path / "run", *ONE_TOKEN)
    assert done.returncode == 0, done.stderr.decode()
    made = tessera("compile", GGUF, "--cache-dir", tmp_path / "compile")
    assert made.returncode == 0, made.stderr.decode()
    (mine,), (theirs,) = visible(tmp_path / "run"), visible(tmp_path / "compile")
    check_whole(mine)
    assert mine.name == theirs.name
    assert contents(mine) == contents(theirs)
    again = tessera("run", GGUF, "--cache-dir", tmp_path / "run", *ONE_TOKEN)
    assert again.returncode == 0 and b"reusing bundle" in again.stderr
    assert again.stdout == done.stdout, "from tokenizer.table as from tokenizer.json"


def test_the_first_token_comes_before_the_bundle_is_there(tmp_path: Path) -> None:
    with start(tmp_path, *ONE_TOKEN) as process:
        assert first_byte(process)
        assert visible(tmp_path) == [] and draft(tmp_path)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr.decode()
    assert len(visible(tmp_path)) == 1 and b"loaded " + bytes(visible(tmp_path)[0]) in stderr


def test_killed_at_any_moment(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert tessera("run", GGUF, "--cache-dir", tmp_path / "whole", *ONE_TOKEN).returncode == 0
    whole = time.monotonic() - begin
    choose = random.Random(9)
    for i in range(12):
        with start(tmp_path / "killed", *ONE_TOKEN) as process:
            if i % 2 == 0:
                first_byte(process)
                choice = choose.random() * whole / 2
            else:
                choice = choose.random() * whole
            try:
                process.wait(timeout=choice)
            except subprocess.TimeoutExpired:
                process.kill()
        for bundle in visible(tmp_path / "killed"):
            check_whole(bundle)
            shutil.rmtree(bundle)
    done = tessera("run", GGUF, "--cache-dir", tmp_path / "killed", *ONE_TOKEN)
    assert done.returncode == 0, done.stderr.decode()
    check_whole(visible(tmp_path / "killed")[0])
    assert leftovers(tmp_path / "killed") == []


def test_ctrl_c_after_the_answer_leaves_a_bundle_or_nothing(tmp_path: Path) -> None:
    with start(tmp_path, *ONE_TOKEN) as process:
        assert process.stdout is not None
        process.stdout.readline()  # The answer and its end: nothing but the bundle is left to do.
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert leftovers(tmp_path) == []
    for bundle in visible(tmp_path):
        check_whole(bundle)


def test_a_bundle_that_cannot_be_published_is_an_error_after_the_answer(tmp_path: Path) -> None:
    with start(tmp_path, *ONE_TOKEN) as process:
        first = first_byte(process)
        shutil.rmtree(draft(tmp_path))
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1 and first
    errors = [line for line in stderr.decode().splitlines() if line.startswith("tessera: ")]
    assert len(errors) == 1 and "No such file" in errors[0], stderr.decode()
    assert visible(tmp_path) == []


def test_a_chat_ends_when_its_bundle_cannot_be_published(tmp_path: Path) -> None:
    with start(tmp_path, "-n", "1") as process:
        assert process.stdin is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        first_byte(process)
        shutil.rmtree(draft(tmp_path))
        deadline = time.monotonic() + 60
        try:
            while process.poll() is None and time.monotonic() < deadline:
                process.stdin.write(b"And?\n")
                process.stdin.flush()
                assert process.stdout is not None
                if not process.stdout.readline():
                    break
        except BrokenPipeError:
            pass
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No such file" in stderr.decode()

