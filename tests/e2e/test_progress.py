"""The progress of a long stage, on a terminal and in a log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import GGUF, on_terminal, tessera

ERASE = "\r\033[K"
STAGES = ("hashing sources", "making the tokenizer", "packing parameters", "syncing parameters")


def seen_on_terminal(columns: int, *args: str | Path) -> str:
    code, seen = on_terminal(columns, *args)
    assert code == 0, seen
    return seen


def bars(seen: str) -> list[str]:
    """What stood on the line between two erasures."""
    return [bar for bar in re.findall(re.escape(ERASE) + r"([^\r\n]*)(?=\r\x1b)", seen) if bar]


def test_a_terminal_shows_bytes_rate_and_time_left_and_then_one_line_a_stage(tmp_path: Path) -> None:
    seen = seen_on_terminal(100, "compile", GGUF, "--cache-dir", tmp_path)
    for stage in ("hashing sources", "packing parameters"):
        shown = [bar for bar in bars(seen) if bar.startswith(stage)]
        assert shown, seen
        for bar in shown:
            assert re.fullmatch(stage + r" \[#*\.*\] [0-9.]+ k?M?B of \d+(\.\d)? MB, [0-9.]+ k?M?G?B/s, "
                                r"(\?|[0-9.]+ m?s) left", bar), bar
            assert len(re.search(r"\[(.*)\]", bar)[1]) == 24
    for stage in STAGES:  # The last word on each stands alone on its line.
        assert re.search(r"(\n|^|\r\x1b\[K)" + stage + r": [^\r\n]*\d m?s[^\r\n]*\r\n", seen), (stage, seen)


@pytest.mark.parametrize("columns", [60, 40, 20, 5])
def test_a_bar_never_breaks_the_line(tmp_path: Path, columns: int) -> None:
    seen = seen_on_terminal(columns, "compile", GGUF, "--cache-dir", tmp_path)
    shown = bars(seen)
    assert shown
    assert max(map(len, shown)) < columns


def test_a_log_has_no_bar_but_a_line_a_stage(tmp_path: Path) -> None:
    done = tessera("compile", GGUF, "--cache-dir", tmp_path)
    text = done.stderr.decode()
    assert "\r" not in text and "\033" not in text
    at = [text.index(stage + ": ") for stage in STAGES]
    assert at == sorted(at)
    assert re.search(r"packing parameters: [0-9.]+ MB in [0-9.]+ m?s \([0-9.]+ [MG]B/s\)\n", text)
