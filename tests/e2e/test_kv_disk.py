"""KV pages on disk from outside: they outlive the server, and no answer shows where KV came from."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from conftest import GGUF, Served, start_server, tessera
from test_prefix_cache import SYSTEM, ask, metric

QUESTIONS = [f"Question {i}: how deep is lake number {i}?" for i in range(4)]


def start(log: Path, cache: Path, disk: Path | None, *more: str | Path) -> Served:
    args = ["--kv-disk", disk] if disk else []
    return start_server(log, GGUF, "--cache-dir", cache, "--served-model-name", "smollm2", *args, *more)


def stop(server: Served, how: signal.Signals = signal.SIGTERM) -> None:
    server.process.send_signal(how)
    code = server.process.wait(60)
    assert code == (0 if how == signal.SIGTERM else -how), server.log.read_text()


def page_files(disk: Path) -> list[Path]:
    return sorted((disk / "pages").glob("??/*.kv"))


def test_a_restarted_server_finds_its_pages_and_answers_the_same(cache: Path, tmp_path: Path) -> None:
    disk = tmp_path / "kv"
    server = start(tmp_path / "log0", cache, None)
    plain = [ask(server, question, logprobs=2)[0] for question in QUESTIONS]
    stop(server)
    server = start(tmp_path / "log1", cache, disk)
    assert [ask(server, question, logprobs=2)[0] for question in QUESTIONS] == plain
    assert metric(server, "kv_disk_hits_total") == 0
    stop(server)
    assert page_files(disk) and not list((disk / "tmp").iterdir())
    assert (disk.stat().st_mode & 0o77) == 0, "prompts can be read from it"
    server = start(tmp_path / "log2", cache, disk)
    try:
        assert metric(server, "kv_disk_pages") == len(page_files(disk))
        found: list[tuple[str, int]] = []

        def run(question: str) -> None:
            text, details = ask(server, question, logprobs=2)
            found.append((text, details["cached_tokens"]))

        threads = [threading.Thread(target=run, args=(question,)) for question in QUESTIONS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(text for text, _ in found) == sorted(plain)
        assert all(tokens >= 96 for _, tokens in found), found
        assert metric(server, "kv_disk_hits_total") >= 3
        assert metric(server, "kv_disk_read_seconds_total") > 0
        assert metric(server, "kv_disk_corrupt_total") == 0
    finally:
        stop(server)


def test_damaged_pages_are_misses_and_the_answer_stays(cache: Path, tmp_path: Path) -> None:
    disk = tmp_path / "kv"
    server = start(tmp_path / "log1", cache, disk)
    plain, _ = ask(server, QUESTIONS[0])
    stop(server)
    for i, path in enumerate(page_files(disk)):
        data = bytearray(path.read_bytes())
        if i % 2:
            data[len(data) // 2] ^= 1
        else:
            data = data[:-1]
        path.write_bytes(data)
    server = start(tmp_path / "log2", cache, disk)
    try:
        text, details = ask(server, QUESTIONS[0])
        assert text == plain
        assert details["cached_tokens"] == 0
        assert details["cache_miss"] == {"reason": "disk_lost", "position": 0}
        assert metric(server, "kv_disk_corrupt_total") >= 1
    finally:
        stop(server)


def test_killed_at_any_time_it_starts_again_and_answers_the_same(cache: Path, tmp_path: Path) -> None:
    """With little memory pages go to disk all the time; the process is killed while they do."""
    disk = tmp_path / "kv"
    small = ("--kv-memory", "24m", "--kv-disk-size", "40m", "--max-seq-len", "1024")
    texts: dict[int, str] = {}
    for round_ in range(4):
        server = start(tmp_path / f"log{round_}", cache, disk, *small)
        ends = threading.Timer(1.0, server.process.kill)
        if round_ < 3:
            ends.start()
        try:
            for i in range(12):
                text, _ = ask(server, f"Number {i % 6}. " + SYSTEM)
                assert texts.setdefault(i % 6, text) == text
        except Exception:
            assert round_ < 3 and server.process.wait(10) == -signal.SIGKILL
            continue
        ends.cancel()
        assert metric(server, "kv_disk_corrupt_total") == 0
        assert metric(server, "kv_disk_bytes") <= 40e6
        stop(server)
    assert sum(path.stat().st_size for path in page_files(disk)) <= 40e6
    assert not list((disk / "tmp").iterdir())


def test_a_folder_that_goes_away_fails_nobody(cache: Path, tmp_path: Path) -> None:
    disk = tmp_path / "kv"
    server = start(tmp_path / "log", cache, disk, "--kv-memory", "24m", "--max-seq-len", "1024")
    try:
        first, _ = ask(server, "First. " + SYSTEM)
        (disk / "tmp").rmdir()
        for i in range(6):
            ask(server, f"Filler {i}. " + SYSTEM)
        assert ask(server, "First. " + SYSTEM)[0] == first
        assert metric(server, "kv_disk_writable") == 0
        assert metric(server, "kv_disk_dropped_total") > 0
    finally:
        stop(server)
    assert server.log.read_text().count("no more KV pages are written") == 1


def test_an_unusable_folder_is_one_clear_error_at_the_start(cache: Path, tmp_path: Path) -> None:
    def refused(*args: str | Path) -> str:
        done = tessera("serve", GGUF, "--cache-dir", cache, "--port", "0", *args)
        assert done.returncode != 0
        return done.stderr.decode()

    (tmp_path / "file").write_text("x")
    assert "--kv-disk" in refused("--kv-disk", tmp_path / "file")
    assert "--kv-disk" in refused("--kv-disk", "/proc/nowhere")
    assert "holds no page, which needs" in refused("--kv-disk", tmp_path / "kv", "--kv-disk-size", "100k")
    assert "--prefix-cache off" in refused("--kv-disk", tmp_path / "kv", "--prefix-cache", "off")
    assert "--kv-disk" in refused("--kv-disk-size", "1g")
    server = start(tmp_path / "log", cache, tmp_path / "kv")
    try:
        assert "in use by another process" in refused("--kv-disk", tmp_path / "kv")
    finally:
        stop(server)
