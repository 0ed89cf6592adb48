// SPDX-License-Identifier: Apache-2.0
//
// Tools, thinking and forms of output in the Messages API: what a request may say, what its turns
// may hold, and how calls and thoughts come back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/anthropic/message_options.h"
#include "server/limits.h"
#include "support/fake_service.h"

namespace tessera::server::anthropic {
namespace {

using chat::ToolFields;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using testing::Parsed;

constexpr const char* kPath = "/v1/messages";
constexpr const char* kCount = "/v1/messages/count_tokens";
constexpr std::string_view kTools =
    R"("tools":[{"name":"get_weather","description":"Weather.","input_schema":{"type":"object",)"
    R"("properties":{"city":{"type":"string"}}},"cache_control":{"type":"ephemeral"}},)"
    R"({"type":"custom","name":"add","input_schema":{"type":"object"}}])";
constexpr std::string_view kSays =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
    "\"Zürich\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n"
    "</tool_call>";

std::string Body(std::string_view messages, std::string_view members) {
  return fmt::format(R"({{"model":"org/fake","max_tokens":400,"temperature":0,"messages":{},{}}})",
                     messages, members);
}
std::string Hi(std::string_view members) {
  return Body(R"([{"role":"user","content":"hi"}])", members);
}
std::string WithTools(std::string_view more) {
  return fmt::format("{},{}", kTools, more);
}
std::string ErrorOf(Server& server, std::string body) {
  const json::Object answer = server.Post(kPath, std::move(body), 400);
  EXPECT_EQ(answer.at("error").at("type"), "invalid_request_error");
  return std::string(answer.at("error").at("message").as_string());
}
/// With ids of calls as their numbers.
json::Array Numbered(json::Array content) {
  int number = 0;
  for (json::Value& block : content) {
    if (!block.as_object().contains("id")) continue;
    EXPECT_TRUE(block.at("id").as_string().starts_with("toolu_"));
    block.as_object()["id"] = number++;
  }
  return content;
}
/// The message that a stream's events make, as clients put them together; checks their order.
json::Object JoinEvents(const std::vector<net::SseEvent>& events) {
  json::Object message = Parsed(events.at(0).data).at("message").as_object();
  json::Array content;
  std::string input;
  bool is_open = false;
  for (const net::SseEvent& event : events) {
    const json::Object data = Parsed(event.data);
    if (event.event == "content_block_start") {
      EXPECT_FALSE(std::exchange(is_open, true));
      EXPECT_EQ(data.at("index").as_int64(), static_cast<int64_t>(content.size()));
      content.push_back(data.at("content_block"));
      input.clear();
    } else if (event.event == "content_block_delta") {
      EXPECT_TRUE(is_open);
      EXPECT_EQ(data.at("index").as_int64(), static_cast<int64_t>(content.size()) - 1);
      const json::Object& delta = data.at("delta").as_object();
      json::Object& block = content.back().as_object();
      for (const char* key : {"text", "thinking", "signature"})
        if (const json::Value* piece = delta.if_contains(key)) {
          EXPECT_EQ(delta.at("type"), json::Value(std::string(key) + "_delta"));
          block[key] = std::string(block.at(key).as_string()) + std::string(piece->as_string());
        }
      if (const json::Value* piece = delta.if_contains("partial_json")) {
        EXPECT_EQ(delta.at("type"), "input_json_delta");
        input += std::string_view(piece->as_string());
      }
    } else if (event.event == "content_block_stop") {
      EXPECT_TRUE(std::exchange(is_open, false));
      if (content.back().at("type") == "tool_use")
        content.back().as_object()["input"] = Parsed(input);
    } else if (event.event == "message_delta") {
      for (const auto& [key, value] : data.at("delta").as_object()) message[key] = value;
      message["usage"] = data.at("usage");
      if (data.contains("warnings")) message["warnings"] = data.at("warnings");
    }
  }
  EXPECT_FALSE(is_open);
  EXPECT_EQ(events.back().event, "message_stop");
  message["content"] = std::move(content);
  return message;
}

TEST(MessageTools, CallsAreBlocksAndAStreamIsTheSameMessage) {
  for (const bool streams : {false, true}) {
    Server server(Server::Answers(std::string(kSays)));
    const std::string body = Hi(WithTools(fmt::format("\"stream\":{}", streams)));
    const json::Object message =
        streams ? JoinEvents(server.Events(kPath, body)) : server.Post(kPath, body);
    EXPECT_EQ(message.at("stop_reason"), "tool_use");
    EXPECT_EQ(json::Serialize(Numbered(message.at("content").as_array())),
              R"([{"type":"text","text":"Let me see."},)"
              R"({"type":"tool_use","id":0,"name":"get_weather","input":{"city":"Zürich"}},)"
              R"({"type":"tool_use","id":1,"name":"add","input":{}}])");
  }
}

TEST(MessageTools, TheInputOfACallComesAsItIsWritten) {
  Server server(Server::Answers(std::string(kSays)));
  size_t deltas = 0;
  for (const net::SseEvent& event : server.Events(kPath, Hi(WithTools("\"stream\":true"))))
    deltas += event.data.find("input_json_delta") != std::string::npos ? 1 : 0;
  EXPECT_GT(deltas, 10u);
}

TEST(MessageTools, TheChoiceIsKeptTo) {
  Server server(Server::Answers("I would rather not."));
  const auto calls = [&](std::string_view choice) {
    const json::Object message =
        server.Post(kPath, Hi(WithTools(fmt::format("\"tool_choice\":{}", choice))));
    std::vector<std::string> names;
    for (const json::Value& block : message.at("content").as_array())
      if (block.at("type") == "tool_use") names.emplace_back(block.at("name").as_string());
    return names;
  };
  EXPECT_TRUE(calls(R"({"type":"auto"})").empty());
  EXPECT_TRUE(calls(R"({"type":"none"})").empty());
  EXPECT_EQ(calls(R"({"type":"any","disable_parallel_tool_use":true})").size(), 1u);
  EXPECT_EQ(calls(R"({"type":"tool","name":"add"})"), std::vector<std::string>{"add"});
  Server eager(Server::Answers(std::string(kSays)));
  const json::Object one = eager.Post(
      kPath, Hi(WithTools(R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true})")));
  EXPECT_EQ(one.at("content").as_array().size(), 2u) << "text and one call";
}

TEST(MessageTools, ToolsMakeThePromptThatChatMakes) {
  Server server(Server::Answers("x"));
  const auto count = [&](std::string_view messages, std::string_view members) {
    return server
        .Post(kCount, fmt::format(R"({{"model":"org/fake","messages":{},{}}})", messages, members))
        .at("input_tokens")
        .as_int64();
  };
  const auto chat = [&](std::string_view messages) {
    return server
        .Post("/tokenize",
              fmt::format(R"({{"messages":{},"tools":[{{"type":"function","function":{{"name":"f",)"
                          R"("description":"D.","parameters":{{"type":"object"}}}}}}]}})",
                          messages))
        .at("count")
        .as_int64();
  };
  constexpr std::string_view kTool =
      R"("tools":[{"name":"f","description":"D.","input_schema":{"type":"object"}}])";
  EXPECT_EQ(count(R"([{"role":"user","content":"hi"}])", kTool),
            chat(R"([{"role":"user","content":"hi"}])"));
  EXPECT_EQ(count(R"([{"role":"user","content":"hi"},{"role":"assistant","content":[)"
                  R"({"type":"text","text":"Well."},{"type":"tool_use","id":"a","name":"f",)"
                  R"("input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result",)"
                  R"("tool_use_id":"a","content":[{"type":"text","text":"2"}]},)"
                  R"({"type":"text","text":"And?"}]}])",
                  kTool),
            chat(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Well.",)"
                 R"("tool_calls":[{"id":"a","type":"function","function":{"name":"f",)"
                 R"("arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"a","content":"2"},)"
                 R"({"role":"user","content":"And?"}])"));
}

TEST(MessageTools, AnErrorResultSaysSo) {
  Server server(Server::Answers("x"));
  const auto count = [&](std::string_view result) {
    return server
        .Post(kCount,
              fmt::format(R"({{"model":"org/fake","messages":[{{"role":"user","content":"hi"}},)"
                          R"({{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":)"
                          R"("f","input":{{}}}}]}},{{"role":"user","content":[{{"type":)"
                          R"("tool_result","tool_use_id":"a",{}}}]}}]}})",
                          result))
        .at("input_tokens")
        .as_int64();
  };
  EXPECT_EQ(count(R"("content":"no","is_error":true)"), count(R"("content":"Error: no")"));
  EXPECT_EQ(count(R"("is_error":false)"), count(R"("content":"")"));
}

TEST(MessageTools, HostileTurnsAreRefusedWithTheirPlace) {
  Server server(Server::Answers("x"));
  const auto message = [&](std::string_view turns) {
    return ErrorOf(server, Body(fmt::format(R"([{{"role":"user","content":"hi"}},{}])", turns),
                                "\"strict\":false"));
  };
  const auto assistant = [](std::string_view blocks) {
    return fmt::format(R"({{"role":"assistant","content":[{}]}})", blocks);
  };
  const auto user = [](std::string_view blocks) {
    return fmt::format(R"({{"role":"user","content":[{}]}})", blocks);
  };
  const std::string use = R"({"type":"tool_use","id":"a","name":"f","input":{}})";
  const std::string result = R"({"type":"tool_result","tool_use_id":"a","content":"1"})";
  const std::string text = R"({"type":"text","text":"x"})";
  const std::pair<std::string, const char*> cases[] = {
      {user(result), "messages[1].content[0].tool_use_id is \"a\""},
      {assistant(use), "the call \"a\" has no result"},
      {assistant(use) + "," + user(text), "messages[2].content[0] comes too early"},
      {assistant(use) + R"(,{"role":"user","content":"x"})", "messages[2] comes too early"},
      {assistant(use) + "," + user(text + "," + result), "messages[2].content[0] comes too early"},
      {assistant(use) + "," + user(result + "," + result), "messages[2].content[1].tool_use_id"},
      {assistant(use + "," + use), "messages[1].content[1].id is \"a\""},
      {assistant(use) + "," + user(R"({"type":"tool_result","tool_use_id":"b"})"), "\"b\""},
      {user(use), "stands in turns of the assistant only"},
      {assistant(result), "stands in turns of the user only"},
      {user(R"({"type":"thinking","thinking":"x"})"), "turns of the assistant only"},
      {assistant(R"({"type":"thinking"})"), "messages[1].content[0].thinking"},
      {assistant(R"({"type":"tool_use","name":"f","input":{}})"), "messages[1].content[0].id"},
      {assistant(R"({"type":"tool_use","id":"a","input":{}})"), "messages[1].content[0].name"},
      {assistant(R"({"type":"tool_use","id":"a","name":"f"})"), "messages[1].content[0].input"},
      {assistant(R"({"type":"tool_use","id":"a","name":"f","input":"{}"})"), "input"},
      {user(R"({"type":"tool_result"})"), "messages[1].content[0].tool_use_id is missing"},
      {assistant(use) + "," +
           user(R"({"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]})"),
       "messages[2].content[0].content[0] is of type \"image\""},
      {assistant(use) + "," + user(R"({"type":"tool_result","tool_use_id":"a","is_error":1})"),
       "is_error"},
      {assistant(R"({"type":"server_tool_use","id":"a"})"), "server_tool_use"},
  };
  for (const auto& [turns, words] : cases) EXPECT_THAT(message(turns), HasSubstr(words)) << turns;
}

TEST(MessageTools, WhatIsWrongWithToolsIsNamed) {
  Server server(Server::Answers("x"));
  const std::pair<std::string, const char*> cases[] = {
      {R"("tools":[{"type":"web_search_20250305","name":"web_search"}])", "web_search_20250305"},
      {R"("tools":[5])", "tools[0].type"},
      {R"("tools":[{"name":"not a name!"}])", "tools[0].name"},
      {R"("tools":[{"name":"f","input_schema":[]}])", "tools[0].input_schema is of type array"},
      {R"("tools":[{"name":"f","input_schema":{"type":"objekt"}}])", "tools[0].input_schema.type"},
      {R"("tools":[{"name":"f","input_schema":{"properties":{"x":{"type":3}}}}])",
       "tools[0].input_schema"},
      {R"("tools":[{"name":"f"},{"name":"f"}])", "another function"},
      {R"("tool_choice":{"type":"any"})", "there are no tools"},
      {WithTools(R"("tool_choice":{"type":"tool","name":"absent"})"), "absent"},
      {WithTools(R"("tool_choice":{"type":"tool"})"), "tool_choice names no function"},
      {WithTools(R"("tool_choice":{"type":"required"})"), "required"},
      {WithTools(R"("tool_choice":{})"), "tool_choice has no type"},
      {WithTools(R"("tool_choice":"auto")"), "tool_choice"},
      {WithTools(R"("tool_choice":{"type":"auto","disable_parallel_tool_use":1})"),
       "disable_parallel_tool_use"},
  };
  for (const auto& [members, words] : cases)
    EXPECT_THAT(ErrorOf(server, Hi(members)), HasSubstr(words)) << members;
  const auto tools = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i)
      list += fmt::format(R"({}{{"name":"f{}"}})", i == 0 ? "" : ",", i);
    std::vector<openai::Warning> warnings;
    return ReadMessageTools(Parsed(fmt::format("{{\"tools\":[{}]}}", list)), &warnings);
  };
  EXPECT_EQ(tools(kToolsMax)->functions.size(), kToolsMax);
  EXPECT_EQ(tools(kToolsMax + 1).error().param, "tools");
}

TEST(MessageTools, ACallThatIsCutIsToldOf) {
  for (const bool streams : {false, true}) {
    Server server(Server::Answers(std::string(kSays)));
    const std::string body = fmt::format(
        R"({{"model":"org/fake","max_tokens":75,"temperature":0,"stream":{},"messages":[)"
        R"({{"role":"user","content":"hi"}}],{}}})",
        streams, kTools);
    std::string reason;
    if (streams) {
      const auto events = server.Events(kPath, body);
      reason = Parsed(events[events.size() - 2].data).at("delta").at("stop_reason").as_string();
    } else {
      const json::Object message = server.Post(kPath, body);
      reason = message.at("stop_reason").as_string();
      EXPECT_EQ(json::Serialize(message.at("content").at(1).at("input")), "{}");
      EXPECT_THAT(json::Serialize(message.at("warnings")), HasSubstr("tool_parse_error"));
    }
    EXPECT_EQ(reason, "max_tokens");
  }
}

TEST(MessageThinking, ThoughtsAreABlockWhenAskedFor) {
  const auto content = [](std::string_view thinking, bool streams) {
    Server server(Server::Answers("<think>\nHm.\n</think>\n\nYes."), {}, {},
                  testing::ThinkingModel());
    const std::string body = Hi(fmt::format(R"("thinking":{},"stream":{})", thinking, streams));
    const json::Object message =
        streams ? JoinEvents(server.Events(kPath, body)) : server.Post(kPath, body);
    EXPECT_EQ(message.at("stop_reason"), "end_turn");
    return json::Serialize(message.at("content"));
  };
  for (const bool streams : {false, true}) {
    for (const char* asked :
         {R"({"type":"enabled","budget_tokens":300})", R"({"type":"adaptive"})"})
      EXPECT_EQ(content(asked, streams), R"([{"type":"thinking","thinking":"Hm.","signature":""},)"
                                         R"({"type":"text","text":"Yes."}])");
    EXPECT_EQ(content(R"({"type":"adaptive","display":"omitted"})", streams),
              R"([{"type":"thinking","thinking":"","signature":""},)"
              R"({"type":"text","text":"Yes."}])");
    EXPECT_EQ(content(R"({"type":"disabled"})", streams), R"([{"type":"text","text":"Yes."}])");
  }
}

TEST(MessageThinking, TheBudgetEndsThoughts) {
  Server server(Server::Answers("<think>" + std::string(200, 'x') + "</think>Yes."), {}, {},
                testing::ThinkingModel());
  const json::Object message =
      server.Post(kPath, Hi(R"("thinking":{"type":"enabled","budget_tokens":20})"));
  EXPECT_LT(message.at("content").at(0).at("thinking").as_string().size(), 30u);
}

TEST(MessageThinking, WhatIsWrongIsNamed) {
  Server server(Server::Answers("x"), {}, {}, testing::ThinkingModel());
  for (const auto& [thinking, words] :
       {std::pair(R"({"type":"enabled"})", "thinking.budget_tokens"),
        {R"({"type":"enabled","budget_tokens":0})", "thinking.budget_tokens"},
        {R"({"type":"enabled","budget_tokens":400})", "less than max_tokens (400)"},
        {R"({"type":"sometimes"})", "thinking.type"},
        {R"({})", "thinking.type"},
        {R"({"type":"adaptive","display":"loud"})", "thinking.display"}})
    EXPECT_THAT(ErrorOf(server, Hi(fmt::format("\"thinking\":{}", thinking))), HasSubstr(words));
  Server plain(Server::Answers("x"));
  EXPECT_THAT(ErrorOf(plain, Hi(R"("thinking":{"type":"enabled","budget_tokens":20})")),
              HasSubstr("thinking: nothing is known of how this model marks its thoughts"));
  plain.Post(kPath, Hi(R"("thinking":{"type":"adaptive"})"));
}

TEST(MessageOutput, AFormIsKept) {
  Server server(Server::Answers("whatever"));
  constexpr std::string_view kFormat =
      R"({"type":"json_schema","schema":{"type":"object","properties":{"a":{"enum":["x","y"]}},)"
      R"("required":["a"],"additionalProperties":false}})";
  for (const std::string& member : {fmt::format(R"("output_config":{{"format":{}}})", kFormat),
                                    fmt::format(R"("output_format":{})", kFormat)}) {
    const json::Object message = server.Post(kPath, Hi(member));
    const std::string text(message.at("content").at(0).at("text").as_string());
    EXPECT_TRUE(Parsed(text).contains("a")) << text;
  }
  for (const auto& [member, words] :
       {std::pair(R"("output_config":{"format":{"type":"yaml"}})", "output_config.format"),
        {R"("output_config":{"effort":3})", "output_config.effort"},
        {R"("output_config":{"format":{"type":"json_schema","schema":{"type":3}}})",
         "output_config"},
        {R"("output_format":3)", "output_format"}})
    EXPECT_THAT(ErrorOf(server, Hi(member)), HasSubstr(words)) << member;
}

}  // namespace
}  // namespace tessera::server::anthropic
