"""The prefix cache from outside: visible in usage and metrics, invisible in the text."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from conftest import GGUF, Served, start_server, tessera

SYSTEM = "You answer questions about rivers, lakes and the sea in one short sentence. " * 8


def ask(server: Served, question: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """The answer's text and usage.prompt_tokens_details."""
    body = {"model": "smollm2", "temperature": 0, "max_tokens": 12, "prompt": SYSTEM + question, **fields}
    reply = server.post("/v1/completions", body)
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    return answer["choices"][0]["text"], answer["usage"]["prompt_tokens_details"]


def metric(server: Served, name: str) -> float:
    found = re.search(rf"^tessera_{name}{{[^}}]*}} (\S+)$", server.get("/metrics").text, re.M)
    assert found, name
    return float(found.group(1))


def test_users_with_one_prefix_share_it_and_keep_their_answers(cache: Path, tmp_path: Path) -> None:
    """Together on a cold cache, alone without it, again on a warm one: the same texts."""
    server = start_server(tmp_path / "log", GGUF, "--cache-dir", cache, "--served-model-name", "smollm2")
    try:
        questions = [f"Question {i}: how deep is lake number {i}?" for i in range(6)]
        together: dict[int, tuple[str, dict[str, Any]]] = {}

        def run(i: int) -> None:
            together[i] = ask(server, questions[i])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(questions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found["cached_tokens"] > 64 for _, found in together.values()) == [False] + [True] * 5
        for i, question in enumerate(questions):
            plain, nothing = ask(server, question, cache_prompt=False)
            warm, found = ask(server, question)
            assert together[i][0] == plain == warm
            assert nothing == {"cached_tokens": 0, "cache_miss": {"reason": "off"}}
            assert "cache_miss" not in found
        _, differs = ask(server, "Something else")
        assert differs["cache_miss"]["reason"] == "differs"
        assert differs["cache_miss"]["position"] == differs["cached_tokens"] > 64
        assert metric(server, "prefix_cache_pages") > 0
        assert 0 < metric(server, "prefix_cache_hits_total") < metric(server, "prefix_cache_queries_total")
        assert metric(server, "kv_cache_usage_perc") == 0
    finally:
        server.process.terminate()
        server.process.wait(30)


def test_the_cache_can_be_bounded_and_switched_off(cache: Path, tmp_path: Path) -> None:
    for value, pages in (("off", 0), ("2M", 2)):
        server = start_server(tmp_path / value, GGUF, "--cache-dir", cache, "--served-model-name",
                              "smollm2", "--prefix-cache", value)
        try:
            first, _ = ask(server, "Why?")
            second, found = ask(server, "Why?")
            assert first == second
            assert metric(server, "prefix_cache_pages") == pages
            assert (found["cached_tokens"] > 0) == (pages > 0)
        finally:
            server.process.terminate()
            server.process.wait(30)
    done = tessera("serve", GGUF, "--cache-dir", cache, "--port", "0", "--prefix-cache", "9000")
    assert done.returncode == 1 and b"--prefix-cache: 9000 bytes are less than one page" in done.stderr
