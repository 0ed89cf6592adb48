// SPDX-License-Identifier: Apache-2.0
//
// The outside view of the unmodified openai package for Node. test_node.py runs it: TESSERA_URL is
// where the server is, NODE_PATH where the package was installed.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const OpenAI = require("openai");

const client = new OpenAI({
  baseURL: process.env.TESSERA_URL + "/v1",
  apiKey: "none",
  maxRetries: 0,
});
const model = "smollm2";
const messages = [{ role: "user", content: "Name three colours." }];
const weather = {
  type: "object",
  properties: { city: { type: "string", maxLength: 16 }, unit: { enum: ["C", "F"] } },
  required: ["city", "unit"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "get_weather", parameters: weather } }];

function ask(fields) {
  const defaults = { model, messages, max_tokens: 24, temperature: 0 };
  return client.chat.completions.create({ ...defaults, ...fields });
}

function checkWeather(text) {
  const value = JSON.parse(text);
  assert.deepEqual(Object.keys(value).sort(), ["city", "unit"]);
  assert.ok(["C", "F"].includes(value.unit));
  assert.equal(typeof value.city, "string");
}

test("models are listed and known one by one", async () => {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.ok(ids.includes(model));
  assert.equal((await client.models.retrieve(model)).id, model);
});

test("a stream is the whole answer in pieces", async () => {
  const whole = await ask({});
  assert.ok(whole.choices[0].message.content.length > 0);
  const stream = await ask({ stream: true, stream_options: { include_usage: true } });
  let text = "", usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test("the client's own reader puts calls together", async () => {
  const fields = { tools, tool_choice: "required", parallel_tool_calls: false, max_tokens: 200 };
  const whole = (await ask(fields)).choices[0];
  assert.equal(whole.finish_reason, "tool_calls");
  const [call] = whole.message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  checkWeather(call.function.arguments);
  const streamed = client.chat.completions.stream({ model, messages, temperature: 0, ...fields });
  const final = (await streamed.finalChatCompletion()).choices[0];
  assert.equal(final.finish_reason, "tool_calls");
  assert.deepEqual(final.message.tool_calls[0].function.arguments, call.function.arguments);
  const answer = await ask({
    messages: [...messages, whole.message, { role: "tool", tool_call_id: call.id, content: "21" }],
    tools,
    tool_choice: "none",
  });
  assert.ok(answer.choices[0].message.content.length > 0);
});

test("an answer keeps to its schema", async () => {
  const completion = await ask({
    max_tokens: 100,
    response_format: {
      type: "json_schema",
      json_schema: { name: "weather", schema: weather, strict: true },
    },
  });
  checkWeather(completion.choices[0].message.content);
});

test("responses stream their items", async () => {
  const fields = {
    model,
    input: "Weather in Rome?",
    temperature: 0,
    max_output_tokens: 200,
    tools: [{ type: "function", name: "get_weather", parameters: weather, strict: true }],
    tool_choice: "required",
    parallel_tool_calls: false,
  };
  const whole = await client.responses.create(fields);
  assert.equal(whole.output[0].type, "function_call");
  checkWeather(whole.output[0].arguments);
  const final = await client.responses.stream(fields).finalResponse();
  assert.equal(final.output[0].arguments, whole.output[0].arguments);
  const text = await client.responses.create({ model, input: "Hi", max_output_tokens: 8 });
  assert.ok(text.output_text.length > 0);
});

test("errors are of the classes that the client knows", async () => {
  await assert.rejects(ask({ model: "absent" }), OpenAI.NotFoundError);
  await assert.rejects(ask({ temperature: 3 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
    return true;
  });
  await assert.rejects(ask({ tools, tool_choice: { type: "function", function: { name: "f" } } }),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "tool_choice");
});
