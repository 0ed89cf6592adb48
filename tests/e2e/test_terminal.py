"""The terminal side of `run`, seen through a pty, and output that cannot be written, for all verbs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

from conftest import GGUF, TESSERA, TINY

STATISTICS = re.compile(r"(\d+) prompt tokens(?: \(\d+ cached\))? at .* tok/s")


class Terminal:
    """A child whose stdin, stdout and stderr are one terminal."""

    def __init__(self, *args: str | Path) -> None:
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(str(TESSERA), [str(TESSERA), *map(str, args)])

    def write(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def expect(self, pattern: str, timeout: float = 120) -> re.Match[str]:
        """Waits until `pattern` appears after what was matched before."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError as error:  # The child closed the terminal.
                    raise AssertionError(f"ended before {pattern!r}: {self.seen!r}") from error
        self.seen = self.seen[match.end():]
        return match

    def wait(self, timeout: float = 30) -> int:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    time.sleep(0.05)
        raise AssertionError(f"still running: {self.seen!r}")

    def close(self) -> None:
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # It ended by itself.


@pytest.fixture
def chat(cache: Path) -> Iterator[Terminal]:
    terminal = Terminal("run", GGUF, "--temperature", "0", "--cache-dir", cache)
    yield terminal
    terminal.close()


def test_chat_has_history_and_ends_with_ctrl_d(chat: Terminal) -> None:
    chat.expect("> $")
    chat.write("Say hi.\n")
    first = int(chat.expect(STATISTICS.pattern)[1])
    chat.expect("> $")
    chat.write("Say hi.\n")
    second = int(chat.expect(STATISTICS.pattern)[1])
    # The first question and its answer stand before the same words.
    assert second > first + 5
    chat.expect("> $")
    chat.write("\x04")
    assert chat.wait() == 0


def test_ctrl_c_stops_the_answer_not_the_chat(chat: Terminal) -> None:
    chat.expect("> $")
    chat.write("Write a very long story about a river, with a hundred chapters.\n")
    chat.expect("chapters[.]\r\n")  # The terminal's echo of the question,
    chat.expect(r"[A-Za-z]+ [a-z]+ [a-z]+")  # and the answer's beginning.
    chat.write("\x03")
    chat.expect(r"\(stopped\)", timeout=10)
    chat.expect("> $")
    chat.write("Say hi.\n")
    chat.expect(STATISTICS.pattern)  # The next answer is whole.
    chat.expect("> $")
    chat.write("\x03")  # At the prompt it only says how to leave.
    chat.expect("Ctrl-D ends")
    chat.write("/exit\n")
    assert chat.wait() == 0


def test_ctrl_c_in_one_shot_is_exit_130(cache: Path) -> None:
    terminal = Terminal("run", GGUF, "-p", "Write a very long story about a river.", "--temperature",
                        "0", "--cache-dir", cache)
    try:
        terminal.expect(r"seed \d+\r\n")
        terminal.expect(r"[A-Za-z]+ [a-z]+ [a-z]+")
        terminal.write("\x03")
        assert terminal.wait(10) == 130
        assert "tessera:" not in terminal.seen and "terminate" not in terminal.seen
    finally:
        terminal.close()


TINY_GGUF = TINY / "tiny-f16.gguf"
VERBS: dict[str, tuple[list[str | Path], bytes]] = {
    "help": (["--help"], b""),
    "version": (["--version"], b""),
    "run": (["run", TINY_GGUF, "--raw", "-p", "a", "-n", "4"], b""),
    "compile": (["compile", TINY_GGUF], b""),
    "plan": (["plan", TINY_GGUF], b""),
    "plan-json": (["plan", TINY_GGUF, "--json"], b""),
    "inspect": (["inspect", TINY_GGUF], b""),
    "inspect-json": (["inspect", TINY_GGUF, "--json"], b""),
    "tokenize": (["tokenize", "--model", GGUF], json.dumps({"text": "a"}).encode() + b"\n"),
    "detokenize": (["detokenize", "--model", GGUF], b'{"ids": [1]}\n'),
    "render": (["render", "--model", GGUF], b'{"messages": [{"role": "user", "content": "a"}]}\n'),
    "perplexity": (["perplexity", TINY_GGUF, __file__, "--window", "64"], b""),
    "dump": (["inspect", TINY_GGUF, "--dump", "output_norm.weight"], b""),
    "dump-raw": (["inspect", TINY_GGUF, "--dump", "output_norm.weight", "--raw"], b""),
    "bench": (["bench", TINY_GGUF, "-p", "8", "-n", "4", "-r", "1"], b""),
    "doctor": (["doctor"], b""),
    "doctor-json": (["doctor", "--json"], b""),
}


@pytest.mark.parametrize("verb", VERBS)
def test_lost_output_is_an_error(verb: str, cache: Path) -> None:
    """A full disk behind stdout: exit code 1 and one sentence, whatever the verb."""
    args, stdin = VERBS[verb]
    env = {**os.environ, "TESSERA_CACHE": str(cache)}
    whole = subprocess.run([str(TESSERA), *map(str, args)], input=stdin, capture_output=True, env=env,
                           timeout=120, check=False)
    assert whole.returncode == 0 and whole.stdout, whole.stderr
    with open("/dev/full", "wb") as full:
        done = subprocess.run([str(TESSERA), *map(str, args)], input=stdin, stdout=full,
                              stderr=subprocess.PIPE, env=env, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    (line,) = [text for text in done.stderr.decode().splitlines() if text.startswith("tessera:")]
    assert "stdout" in line
