"""Streams of the real model: progress of the prompt, going on after a broken connection."""

from __future__ import annotations

import json
import random
from typing import Any, Iterator

import httpx

from conftest import Served
from test_serve import complete

ASKED = {"model": "smollm2", "prompt": "Once upon a time", "max_tokens": 200, "temperature": 0,
         "ignore_eos": True, "stream": True, "stream_options": {"resumable": True}}


def events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(id, data) of each event."""
    name = ""
    for line in lines:
        if line.startswith("id: "):
            name = line.removeprefix("id: ")
        if line.startswith("data: "):
            yield name, line.removeprefix("data: ")


def text_of(seen: list[tuple[str, str]]) -> str:
    return "".join(json.loads(data)["choices"][0]["text"] for _, data in seen if data != "[DONE]")


def test_a_broken_stream_goes_on_where_it_broke(served: Served) -> None:
    seen: list[tuple[str, str]] = []
    breaks = random.Random(1)
    request: dict[str, Any] = {"method": "POST", "url": served.url + "/v1/completions",
                               "json": ASKED}
    while not seen or seen[-1][1] != "[DONE]":
        upto = len(seen) + breaks.randrange(1, 40)
        with httpx.stream(**request, timeout=60) as reply:
            assert reply.status_code == 200, reply.read()
            for event in events(reply.iter_lines()):
                seen.append(event)
                if len(seen) >= upto:
                    break  # The connection is closed.
        answer = seen[-1][0].partition(":")[0]
        request = {"method": "GET", "url": f"{served.url}/v1/requests/{answer}/events",
                   "headers": {"Last-Event-ID": seen[-1][0]}}
    numbers = [int(name.partition(":")[2]) for name, _ in seen]
    assert numbers == list(range(1, len(seen) + 1)), "without loss or repetition"
    whole = complete(served, prompt=ASKED["prompt"], max_tokens=200, ignore_eos=True)
    assert text_of(seen) == whole["choices"][0]["text"]


def test_a_repeated_request_with_last_event_id_goes_on(served: Served) -> None:
    whole = list(events(served.post("/v1/completions", ASKED).text.splitlines().__iter__()))
    again = served.post("/v1/completions", ASKED, headers={"Last-Event-ID": whole[9][0]})
    assert list(events(iter(again.text.splitlines()))) == whole[10:]


def test_progress_of_a_long_prompt(served: Served) -> None:
    body = {"model": "smollm2", "prompt": [(i * 7919) % 40000 + 100 for i in range(3000)],
            "max_tokens": 2, "stream": True, "cache_prompt": False,
            "stream_options": {"include_progress": True}}
    reply = served.post("/v1/completions", body)
    chunks = [json.loads(data) for _, data in events(iter(reply.text.splitlines()))
              if data != "[DONE]"]
    progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    processed = [step["processed"] for step in progress]
    assert len(processed) > 2 and processed == sorted(set(processed))
    assert processed[-1] == 3000 and {step["total"] for step in progress} == {3000}
    assert all("prompt_progress" not in chunk for chunk in chunks[len(progress):])
