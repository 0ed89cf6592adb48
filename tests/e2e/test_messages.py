"""The Messages API with the real model: the unmodified anthropic client, and raw calls."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import jsonschema
import pytest

from conftest import Served

HELLO = [{"role": "user", "content": "Name three colours."}]


@pytest.fixture(scope="module")
def client(served: Served) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=served.url, api_key="none", max_retries=0)


def create(client: anthropic.Anthropic, **fields: Any) -> anthropic.types.Message:
    """The client no longer names sampling fields, so they travel as extra ones."""
    return client.messages.create(**{"model": "smollm2", "max_tokens": 24, "messages": HELLO,
                                     "extra_body": {"temperature": 0}, **fields})


def chat(served: Served, messages: list[dict[str, str]], **fields: Any) -> dict[str, Any]:
    reply = served.post("/v1/chat/completions", {"model": "smollm2", "max_tokens": 24,
                                                 "temperature": 0, "messages": messages, **fields})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_the_answer_is_that_of_chat(served: Served, client: anthropic.Anthropic) -> None:
    message = create(client, system="Be brief.")
    want = chat(served, [{"role": "system", "content": "Be brief."}, *HELLO])
    assert message.content[0].text == want["choices"][0]["message"]["content"]
    assert message.role == "assistant" and message.type == "message"
    usage = message.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == want["usage"]["prompt_tokens"]
    assert usage.output_tokens == want["usage"]["completion_tokens"]
    words = {"stop": "end_turn", "length": "max_tokens"}
    assert message.stop_reason == words[want["choices"][0]["finish_reason"]]


def test_a_stream_gives_the_same_message(client: anthropic.Anthropic) -> None:
    whole = create(client)
    with client.messages.stream(model="smollm2", max_tokens=24, messages=HELLO,
                                extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_the_events_come_in_their_order(served: Served) -> None:
    body = {"model": "smollm2", "max_tokens": 8, "messages": HELLO, "stream": True}
    with httpx.stream("POST", served.url + "/v1/messages", json=body, timeout=60) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in reply.iter_lines() if line]
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    types = [json.loads(line.removeprefix("data: "))["type"] for line in lines
             if line.startswith("data: ")]
    assert names == types
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(names[3:-3]) == {"content_block_delta"}


def test_stop_sequence_is_named(client: anthropic.Anthropic) -> None:
    text = create(client).content[0].text
    stop = text[6:9]
    message = create(client, stop_sequences=["\x01never", stop])
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == stop
    assert message.content[0].text == text[:text.index(stop)]


def test_a_begun_answer_goes_on(client: anthropic.Anthropic) -> None:
    text = create(client).content[0].text
    begun = text[:text.index(" ", 4)]
    message = create(client, messages=[*HELLO, {"role": "assistant", "content": begun}])
    assert text.startswith(begun + message.content[0].text[:8])


def test_count_tokens_counts_what_the_answer_bills(served: Served,
                                                   client: anthropic.Anthropic) -> None:
    counted = client.messages.count_tokens(model="smollm2", messages=HELLO, system="Be brief.")
    rendered = served.post("/tokenize", {"messages": [
        {"role": "system", "content": "Be brief."}, *HELLO]}).json()
    assert counted.input_tokens == rendered["count"]


def test_errors_are_those_the_client_knows(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        create(client, model="claude-nope")
    assert missing.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.BadRequestError) as long:
        create(client, max_tokens=20_000)
    assert "20000" in str(long.value)
    with pytest.raises(anthropic.BadRequestError) as image:
        create(client, messages=[{"role": "user", "content": [
            {"type": "image", "source": {"type": "url", "url": "http://example.org/x.png"}}]}])
    assert "image" in str(image.value)


TOOLS: list[Any] = [
    {"name": "get_weather", "description": "The weather of a city.",
     "input_schema": {"type": "object", "additionalProperties": False, "required": ["city", "unit"],
                      "properties": {"city": {"type": "string", "maxLength": 16},
                                     "unit": {"enum": ["C", "F"]}}}},
    {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


def call(client: anthropic.Anthropic, **fields: Any) -> anthropic.types.Message:
    return create(client, **{"max_tokens": 200, "tools": TOOLS, **fields})


@pytest.mark.parametrize("choice", [{"type": "any", "disable_parallel_tool_use": True},
                                    {"type": "tool", "name": "get_weather"}])
def test_a_call_is_made_and_its_result_answered(client: anthropic.Anthropic,
                                                choice: dict[str, Any]) -> None:
    message = call(client, tool_choice=choice)
    assert message.stop_reason == "tool_use"
    [block] = message.content
    tool = next(tool for tool in TOOLS if tool["name"] == block.name)
    jsonschema.validate(block.input, tool["input_schema"])
    history = [*HELLO, {"role": "assistant", "content": [block.model_dump(exclude_none=True)]},
               {"role": "user", "content": [
                   {"type": "tool_result", "tool_use_id": block.id, "content": "21 degrees"},
                   {"type": "text", "text": "So?"}]}]
    answer = call(client, messages=history, tool_choice={"type": "none"}, max_tokens=24)
    assert answer.content[0].type == "text" and answer.content[0].text
    counted = client.messages.count_tokens(model="smollm2", messages=history, tools=TOOLS,
                                           tool_choice={"type": "none"})
    usage = answer.usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


@pytest.mark.parametrize("choice", ["any", "auto", "none"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_of_calls_is_the_same_message(client: anthropic.Anthropic, choice: str,
                                               seed: int) -> None:
    fields: dict[str, Any] = {"tool_choice": {"type": choice}, "max_tokens": 300,
                              "extra_body": {"temperature": 1.0, "seed": seed}}
    if choice != "none":
        fields["tool_choice"]["disable_parallel_tool_use"] = True
    whole = call(client, **fields)
    with client.messages.stream(model="smollm2", messages=HELLO, tools=TOOLS, **fields) as stream:
        final = stream.get_final_message()

    def parts(message: anthropic.types.Message) -> list[Any]:
        return [block.model_dump(exclude={"id"}) for block in message.content]

    assert parts(final) == parts(whole) and final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("turns,words", [
    ([{"type": "tool_result", "tool_use_id": "toolu_x", "content": "1"}], "toolu_x"),
    ([{"type": "tool_use", "id": "a", "name": "f", "input": {}}], "messages[1].content[0]"),
    ([{"type": "tool_result", "content": "1"}], "tool_use_id")])
def test_hostile_histories_name_their_place(client: anthropic.Anthropic, turns: list[Any],
                                            words: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        call(client, messages=[*HELLO, {"role": "user", "content": turns}])
    assert words in str(refused.value)


def test_a_form_is_kept(client: anthropic.Anthropic) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}},
              "required": ["colour"], "additionalProperties": False}
    message = create(client, max_tokens=60, extra_body={
        "temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": schema}}})
    assert json.loads(message.content[0].text)["colour"] in {"red", "green"}
