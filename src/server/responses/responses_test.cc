// SPDX-License-Identifier: Apache-2.0
//
// The Responses API over a loopback socket, with a fake language model under a real engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/limits.h"
#include "server/responses/fields.h"
#include "support/fake_service.h"
#include "support/field_table.h"

namespace tessera::server::responses {
namespace {

using testing::FakeSessionOptions;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using testing::Parsed;

constexpr const char* kPath = "/v1/responses";

std::string Body(std::string_view input, std::string_view members = {}) {
  return fmt::format(R"({{"model":"org/fake","temperature":0,"input":{}{}{}}})", input,
                     members.empty() ? "" : ",", members);
}
std::string TextOf(const json::Object& response) {
  return std::string(response.at("output").at(0).at("content").at(0).at("text").as_string());
}

TEST(Responses, AnAnswerHasTheShapeThatClientsKnow) {
  Server server(Server::Says("hello"));
  const json::Object body = server.Post(
      kPath, Body("\"hi\"", R"("instructions":"Be kind.","metadata":{"a":"b"},"store":false)"));
  EXPECT_TRUE(body.at("id").as_string().starts_with("resp_"));
  EXPECT_EQ(body.at("object").as_string(), "response");
  EXPECT_EQ(body.at("status").as_string(), "completed");
  EXPECT_TRUE(body.at("error").is_null());
  EXPECT_TRUE(body.at("incomplete_details").is_null());
  EXPECT_EQ(body.at("instructions").as_string(), "Be kind.");
  EXPECT_EQ(json::Serialize(body.at("metadata")), R"({"a":"b"})");
  EXPECT_EQ(json::Serialize(body.at("text")), R"({"format":{"type":"text"}})");
  EXPECT_EQ(json::Serialize(body.at("output").at(0).at("content")),
            R"([{"type":"output_text","annotations":[],"logprobs":[],"text":"hello"}])");
  EXPECT_EQ(body.at("output").at(0).at("role").as_string(), "assistant");
  EXPECT_EQ(body.at("output").at(0).at("status").as_string(), "completed");
  EXPECT_EQ(body.at("usage").at("output_tokens").as_int64(), 6);
  EXPECT_EQ(body.at("usage").at("total_tokens").as_int64(),
            body.at("usage").at("input_tokens").as_int64() + 6);
  EXPECT_FALSE(body.contains("warnings"));
}

TEST(Responses, TheEventsAreNumberedAndEndInTheWholeAnswer) {
  Server server(Server::Says("h\u00e9llo"));
  const auto events = server.Events(kPath, Body("\"hi\"", "\"stream\":true"));
  std::vector<std::string> types;
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    const json::Object data = Parsed(events[i].data);
    EXPECT_EQ(data.at("type").as_string(), events[i].event);
    EXPECT_EQ(data.at("sequence_number").as_int64(), static_cast<int64_t>(i));
    if (const json::Value* delta = data.if_contains("delta"))
      text += std::string_view(delta->as_string());
    if (types.empty() || types.back() != events[i].event) types.push_back(events[i].event);
  }
  EXPECT_EQ(types, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done",
                       "response.output_item.done", "response.completed"}));
  EXPECT_EQ(text, "h\u00e9llo");
  const json::Object last = Parsed(events.back().data).at("response").as_object();
  EXPECT_EQ(TextOf(last), text);
  json::Object whole = server.Post(kPath, Body("\"hi\""));
  EXPECT_EQ(whole.size(), last.size());
  EXPECT_EQ(TextOf(whole), text);
  const json::Object first = Parsed(events.front().data).at("response").as_object();
  EXPECT_EQ(first.at("id"), last.at("id"));
  EXPECT_EQ(first.at("status").as_string(), "in_progress");
}

TEST(Responses, ACutAnswerIsIncomplete) {
  Server server(Server::Says("hello"));
  const json::Object whole = server.Post(kPath, Body("\"hi\"", "\"max_output_tokens\":3"));
  EXPECT_EQ(whole.at("status").as_string(), "incomplete");
  EXPECT_EQ(json::Serialize(whole.at("incomplete_details")), R"({"reason":"max_output_tokens"})");
  EXPECT_EQ(TextOf(whole), "hel");
  EXPECT_EQ(
      server.Events(kPath, Body("\"hi\"", R"("max_output_tokens":3,"stream":true)")).back().event,
      "response.incomplete");
}

TEST(Responses, ItemsAndInstructionsMakeTheSamePromptAsMessages) {
  Server server(Server::Says("x"));
  const auto count = [&](std::string_view input, std::string_view members) {
    return server.Post(kPath, Body(input, members)).at("usage").at("input_tokens").as_int64();
  };
  const auto chat = [&](std::string_view messages) {
    return server.Post("/tokenize", fmt::format(R"({{"messages":{}}})", messages))
        .at("count")
        .as_int64();
  };
  EXPECT_EQ(count("\"hi\"", R"("instructions":"Be kind.")"),
            chat(R"([{"role":"system","content":"Be kind."},{"role":"user","content":"hi"}])"));
  EXPECT_EQ(count(R"([{"role":"user","content":"a"},{"type":"message","id":"msg_1","status":)"
                  R"("completed","role":"assistant","content":[{"type":"output_text","text":"b",)"
                  R"("annotations":[]}]},{"role":"user","content":[{"type":"input_text","text":)"
                  R"("c"}]}])",
                  "\"strict\":true"),
            chat(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
                 R"({"role":"user","content":"c"}])"));
}

TEST(Responses, WhatNeedsAStoreIsRefusedByName) {
  Server server(Server::Says("x"));
  for (const char* member :
       {R"("store":true)", R"("previous_response_id":"resp_1")", R"("conversation":"c")",
        R"("background":true)", R"("prompt":{"id":"p"})"}) {
    const json::Object answer = server.Post(kPath, Body("\"hi\"", member), 400);
    const std::string name = std::string(member).substr(1, std::string(member).find(':') - 2);
    EXPECT_EQ(answer.at("error").at("param").as_string(), name);
    EXPECT_EQ(answer.at("error").at("code").as_string(), "unsupported_parameter");
  }
}

TEST(Responses, BadInputNamesTheField) {
  Server server(Server::Says("x"));
  const auto param = [&](const std::string& body) {
    return std::string(server.Post(kPath, body, 400).at("error").at("param").as_string());
  };
  EXPECT_EQ(param(R"({"model":"org/fake"})"), "input");
  EXPECT_EQ(param(R"({"input":"x"})"), "model");
  for (const char* input : {"[]", "3", "[1]", R"([{"role":"tool","content":"x"}])",
                            R"([{"role":"user"}])", R"([{"role":"user","content":[]}])",
                            R"([{"role":"user","content":[{"type":"input_image"}]}])",
                            R"([{"role":"user","content":[{"type":"input_text"}]}])",
                            R"([{"type":"function_call_output","output":"x"}])"})
    EXPECT_EQ(param(Body(input)), "input") << input;
  for (const auto& [member, name] :
       {std::pair(R"("max_output_tokens":0)", "max_output_tokens"),
        {R"("top_p":1.5)", "top_p"},
        {R"("truncation":"auto")", "truncation"},
        {R"("tools":[{"type":"function"}])", "tools"},
        {R"("text":{"format":{"type":"yaml"}})", "text.format"},
        {R"("text":{"format":{"type":"json_schema","name":"x","schema":3}})", "text.format"},
        {R"("text":{"format":1})", "text.format"},
        {R"("stream":"yes")", "stream"}})
    EXPECT_EQ(param(Body("\"x\"", member)), name);
  EXPECT_THAT(server.Call("POST", kPath, Body("\"x\"", "\"max_output_tokens\":9999")).body,
              HasSubstr("max_output_tokens is 9999"));
  EXPECT_EQ(param(Body("\"x\"", R"("strict":true,"frobnicate":1)")), "frobnicate");
}

TEST(Responses, LimitsHoldAtTheirEdge) {
  // Not the length of the prompt but the number of parts is what must be refused.
  FakeSessionOptions options = Server::Says("x");
  options.shape.max_seq_len = 400'000;
  options.shape.page_count = 30'000;
  Server server(options);
  const auto status = [&](size_t items, size_t parts) {
    std::string content, all;
    for (size_t i = 0; i < parts; ++i)
      content += fmt::format(R"({}{{"type":"input_text","text":"x"}})", i == 0 ? "" : ",");
    for (size_t i = 0; i < items; ++i)
      all += fmt::format(R"({}{{"role":"user","content":[{}]}})", i == 0 ? "" : ",", content);
    return server.Call("POST", kPath, Body("[" + all + "]", "\"max_output_tokens\":1")).status;
  };
  EXPECT_EQ(status(kMessagesMax, 1), 200);
  EXPECT_EQ(status(kMessagesMax + 1, 1), 400);
  EXPECT_EQ(status(1, kContentPartsMax), 200);
  EXPECT_EQ(status(1, kContentPartsMax + 1), 400);
}

TEST(Responses, AFailureIsAnErrorOrAnEventOfTheStream) {
  FakeSessionOptions options;
  options.next = [](std::span<const int32_t>) { return 'x'; };
  options.on_step = [](int64_t step) { return step == 1 ? Internal("no luck") : Status(); };
  Server first(options);
  first.Post(kPath, Body("\"hi\"", "\"stream\":true"), 500);
  options.on_step = [](int64_t step) { return step == 3 ? Internal("no luck") : Status(); };
  Server later(options);
  const auto events = later.Events(kPath, Body("\"hi\"", "\"stream\":true"));
  EXPECT_EQ(events.back().event, "response.failed");
  const json::Object response = Parsed(events.back().data).at("response").as_object();
  EXPECT_EQ(response.at("status").as_string(), "failed");
  EXPECT_THAT(std::string(response.at("error").at("message").as_string()), HasSubstr("no luck"));
}

TEST(Responses, TheReferencePageListsEveryField) {
  testing::ExpectFieldTable(ResponseFields(), {{kResponses, "responses"}}, "responses-fields");
}

}  // namespace
}  // namespace tessera::server::responses
