"""The Responses API with the real model, by the unmodified openai client."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest

from conftest import Served

HELLO = "Name three colours."


@pytest.fixture(scope="module")
def client(served: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)


def create(client: openai.OpenAI, **fields: Any) -> Any:
    return client.responses.create(**{"model": "smollm2", "input": HELLO, "temperature": 0,
                                      "max_output_tokens": 24, **fields})


def test_the_answer_is_that_of_chat(client: openai.OpenAI) -> None:
    response = create(client, instructions="Be brief.")
    want = client.chat.completions.create(
        model="smollm2", max_tokens=24, temperature=0,
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": HELLO}])
    assert response.output_text == want.choices[0].message.content
    assert response.usage.input_tokens == want.usage.prompt_tokens
    assert response.usage.output_tokens == want.usage.completion_tokens
    assert (response.status == "incomplete") == (want.choices[0].finish_reason == "length")


def test_a_stream_is_the_same_answer_in_numbered_events(client: openai.OpenAI) -> None:
    whole = create(client)
    events = list(create(client, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:4]] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added"]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    assert events[-1].type == "response." + whole.status


def test_the_clients_own_reader_puts_a_stream_together(client: openai.OpenAI) -> None:
    whole = create(client, max_output_tokens=400)
    assert whole.status == "completed"
    with client.responses.stream(model="smollm2", input=HELLO, temperature=0,
                                 max_output_tokens=400) as stream:
        assert stream.get_final_response().output_text == whole.output_text


def test_an_answer_goes_back_as_it_came(client: openai.OpenAI) -> None:
    first = create(client)
    items = [{"role": "user", "content": HELLO}, *[item.model_dump() for item in first.output],
             {"role": "user", "content": "Which is the darkest?"}]
    second = create(client, input=items)
    want = client.chat.completions.create(
        model="smollm2", max_tokens=24, temperature=0,
        messages=[{"role": "user", "content": HELLO},
                  {"role": "assistant", "content": first.output_text},
                  {"role": "user", "content": "Which is the darkest?"}])
    assert second.output_text == want.choices[0].message.content


@pytest.mark.parametrize("field", [{"store": True}, {"previous_response_id": "resp_1"},
                                   {"background": True}])
def test_what_needs_a_store_is_refused(client: openai.OpenAI, field: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        create(client, **field)
    assert refused.value.param == next(iter(field))


def test_text_format_is_kept(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}},
              "required": ["colour"], "additionalProperties": False}
    response = create(client, max_output_tokens=60, text={
        "format": {"type": "json_schema", "name": "colour", "schema": schema, "strict": True}})
    assert json.loads(response.output_text)["colour"] in {"red", "green"}
    assert response.text.format.type == "json_schema"
    with pytest.raises(openai.BadRequestError) as refused:
        create(client, text={"format": {"type": "json_schema", "name": "x", "schema": {"type": 3}}})
    assert refused.value.param == "text.format"


TOOLS: list[Any] = [
    {"type": "function", "name": "get_weather", "description": "The weather of a city.",
     "strict": True,
     "parameters": {"type": "object", "additionalProperties": False, "required": ["city", "unit"],
                    "properties": {"city": {"type": "string", "maxLength": 16},
                                   "unit": {"enum": ["C", "F"]}}}},
    {"type": "function", "name": "add", "strict": False,
     "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


def call(client: openai.OpenAI, **fields: Any) -> Any:
    return create(client, **{"max_output_tokens": 200, "tools": TOOLS,
                             "parallel_tool_calls": False, **fields})


def plain(response: Any) -> list[Any]:
    return [item.model_dump(exclude={"id", "call_id"}) for item in response.output]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}])
def test_a_call_is_made_and_its_output_answered(client: openai.OpenAI, choice: Any) -> None:
    response = call(client, tool_choice=choice)
    [item] = response.output
    assert item.type == "function_call" and response.status == "completed"
    tool = next(tool for tool in TOOLS if tool["name"] == item.name)
    jsonschema.validate(json.loads(item.arguments), tool["parameters"])
    assert [t.name for t in response.tools] == ["get_weather", "add"]
    with client.responses.stream(model="smollm2", input=HELLO, tools=TOOLS, tool_choice=choice,
                                 parallel_tool_calls=False, temperature=0,
                                 max_output_tokens=200) as stream:
        assert stream.get_final_response().output[0].arguments == item.arguments
    answer = call(client, tool_choice="none", max_output_tokens=24, input=[
        {"role": "user", "content": HELLO}, item.model_dump(),
        {"type": "function_call_output", "call_id": item.call_id, "output": "21 degrees"},
        {"role": "user", "content": "So?"}])
    assert answer.output_text
    want = client.chat.completions.create(
        model="smollm2", max_tokens=24, temperature=0, messages=[
            {"role": "user", "content": HELLO},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "a", "type": "function",
                 "function": {"name": item.name, "arguments": item.arguments}}]},
            {"role": "tool", "tool_call_id": "a", "content": "21 degrees"},
            {"role": "user", "content": "So?"}])
    assert answer.output_text == want.choices[0].message.content


@pytest.mark.parametrize("choice", ["required", "auto", "none"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_of_calls_is_the_same_response(client: openai.OpenAI, choice: str,
                                                seed: int) -> None:
    fields: dict[str, Any] = {"tool_choice": choice, "temperature": 1.0, "max_output_tokens": 300,
                              "extra_body": {"seed": seed}}
    whole = call(client, **fields)
    events = list(call(client, stream=True, **fields))
    final = events[-1].response
    assert plain(final) == plain(whole) and final.status == whole.status
    pieces = "".join(event.delta for event in events
                     if event.type == "response.function_call_arguments.delta")
    assert pieces == "".join(item.arguments for item in whole.output
                             if item.type == "function_call")


@pytest.mark.parametrize("items,words", [
    ([{"type": "function_call_output", "call_id": "x", "output": "1"}], "input[1].call_id"),
    ([{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"}], '"x"'),
    ([{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
      {"role": "user", "content": "?"},
      {"type": "function_call_output", "call_id": "x", "output": "1"}], "input[2]")])
def test_hostile_items_name_their_place(client: openai.OpenAI, items: list[Any],
                                        words: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        call(client, input=[{"role": "user", "content": HELLO}, *items])
    assert refused.value.param == "input" and words in str(refused.value)
