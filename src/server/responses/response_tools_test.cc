// SPDX-License-Identifier: Apache-2.0
//
// Functions and thoughts in the Responses API: what a request may say, what its items may hold, and
// how calls and thoughts come back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/limits.h"
#include "server/responses/response_options.h"
#include "support/fake_service.h"

namespace tessera::server::responses {
namespace {

using Server = testing::FakeService;
using ::testing::HasSubstr;
using testing::Parsed;

constexpr const char* kPath = "/v1/responses";
constexpr std::string_view kTools =
    R"("tools":[{"type":"function","name":"get_weather","description":"Weather.","parameters":)"
    R"({"type":"object","properties":{"city":{"type":"string"}}},"strict":false},)"
    R"({"type":"function","name":"add","parameters":{"type":"object"}}])";
constexpr std::string_view kSays =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
    "\"Zürich\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n"
    "</tool_call>";

std::string Body(std::string_view input, std::string_view members) {
  return fmt::format(R"({{"model":"org/fake","temperature":0,"max_output_tokens":400,)"
                     R"("input":{},{}}})",
                     input, members);
}
std::string WithTools(std::string_view more) {
  return fmt::format("{},{}", kTools, more);
}
json::Object ErrorOf(Server& server, std::string body) {
  return server.Post(kPath, std::move(body), 400).at("error").as_object();
}
/// Without ids, which are drawn; they are checked to be of their kind.
json::Array Plain(json::Array output) {
  for (json::Value& value : output) {
    json::Object& item = value.as_object();
    const std::string_view prefix = item.at("type") == "message"     ? "msg_"
                                    : item.at("type") == "reasoning" ? "rs_"
                                                                     : "fc_";
    EXPECT_TRUE(item.at("id").as_string().starts_with(prefix));
    json::Object rest;  // Erasing would change the order.
    for (const auto& [key, member] : item)
      if (key != "id" && key != "call_id") rest[key] = member;
    if (const json::Value* id = item.if_contains("call_id")) {
      EXPECT_TRUE(id->as_string().starts_with("call_"));
    }
    item = std::move(rest);
  }
  return output;
}
/// The response at the end of a stream, after checking that its pieces make its items.
json::Object JoinEvents(const std::vector<net::SseEvent>& events) {
  json::Array items;
  std::string pieces;
  int64_t number = 0;
  for (const net::SseEvent& event : events) {
    const json::Object data = Parsed(event.data);
    EXPECT_EQ(data.at("type").as_string(), event.event);
    EXPECT_EQ(data.at("sequence_number").as_int64(), number++);
    if (data.contains("output_index")) {
      const bool begins = event.event == "response.output_item.added";
      EXPECT_EQ(data.at("output_index").as_int64() + (begins ? 0 : 1),
                static_cast<int64_t>(items.size()));
      if (begins) {
        EXPECT_EQ(data.at("item").at("status"), "in_progress");
        items.push_back(data.at("item"));
        pieces.clear();
      } else if (data.contains("item_id")) {
        EXPECT_EQ(data.at("item_id"), items.back().at("id"));
      }
    }
    if (data.contains("delta")) pieces += std::string_view(data.at("delta").as_string());
    for (const char* key : {"text", "arguments"}) {
      if (data.contains(key)) {
        EXPECT_EQ(data.at(key), json::Value(pieces));
      }
    }
    if (event.event == "response.output_item.done") items.back() = data.at("item");
  }
  json::Object response = Parsed(events.back().data).at("response").as_object();
  EXPECT_EQ(json::Serialize(response.at("output")), json::Serialize(items));
  return response;
}
json::Object Answer(Server& server, std::string_view input, std::string_view members,
                    bool streams) {
  const std::string body = Body(input, fmt::format("{},\"stream\":{}", members, streams));
  return streams ? JoinEvents(server.Events(kPath, body)) : server.Post(kPath, body);
}

TEST(ResponseTools, CallsAreItemsAndAStreamIsTheSameResponse) {
  for (const bool streams : {false, true}) {
    Server server(Server::Answers(std::string(kSays)));
    const json::Object response = Answer(server, "\"hi\"", kTools, streams);
    EXPECT_EQ(response.at("status"), "completed");
    EXPECT_EQ(json::Serialize(Plain(response.at("output").as_array())),
              R"([{"type":"message","status":"completed","role":"assistant","content":[)"
              R"({"type":"output_text","annotations":[],"logprobs":[],"text":"Let me see."}]},)"
              R"({"type":"function_call","status":"completed","name":"get_weather",)"
              R"("arguments":"{\"city\": \"Zürich\"}"},)"
              R"({"type":"function_call","status":"completed","name":"add","arguments":"{}"}])");
  }
}

TEST(ResponseTools, TheRequestIsRepeated) {
  Server server(Server::Answers("x"));
  const json::Object response =
      server.Post(kPath, Body("\"hi\"", WithTools(R"("tool_choice":{"type":"function","name":)"
                                                  R"("add"},"parallel_tool_calls":false)")));
  EXPECT_EQ(json::Serialize(response.at("tools")),
            R"([{"type":"function","name":"get_weather","description":"Weather.","parameters":)"
            R"({"type":"object","properties":{"city":{"type":"string"}}},"strict":false},)"
            R"({"type":"function","name":"add","description":null,"parameters":)"
            R"({"type":"object"},"strict":false}])");
  EXPECT_EQ(json::Serialize(response.at("tool_choice")), R"({"type":"function","name":"add"})");
  EXPECT_EQ(response.at("parallel_tool_calls"), false);
}

TEST(ResponseTools, TheChoiceIsKeptTo) {
  Server server(Server::Answers("I would rather not."));
  const auto calls = [&](std::string_view choice) {
    const json::Object response = server.Post(
        kPath, Body("\"hi\"", WithTools(fmt::format(
                                  R"("parallel_tool_calls":false,"tool_choice":{})", choice))));
    std::vector<std::string> names;
    for (const json::Value& item : response.at("output").as_array())
      if (item.at("type") == "function_call") names.emplace_back(item.at("name").as_string());
    return names;
  };
  EXPECT_TRUE(calls("\"auto\"").empty());
  EXPECT_TRUE(calls("\"none\"").empty());
  EXPECT_EQ(calls("\"required\"").size(), 1u);
  EXPECT_EQ(calls(R"({"type":"function","name":"add"})"), std::vector<std::string>{"add"});
  EXPECT_EQ(calls(R"({"type":"allowed_tools","mode":"required","tools":[)"
                  R"({"type":"function","name":"add"}]})"),
            std::vector<std::string>{"add"});
}

TEST(ResponseTools, ItemsMakeThePromptThatChatMakes) {
  Server server(Server::Answers("x"));
  const auto chat = [&](std::string_view messages) {
    return server
        .Post("/tokenize",
              fmt::format(R"({{"messages":{},"tools":[{{"type":"function","function":{{"name":"f",)"
                          R"("parameters":{{"type":"object"}}}}}}]}})",
                          messages))
        .at("count")
        .as_int64();
  };
  const json::Object response = server.Post(
      kPath,
      Body(R"([{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],)"
           R"("content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","role":)"
           R"("assistant","content":[{"type":"output_text","text":"Well.","annotations":[]}]},)"
           R"({"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":)"
           R"("{\"x\":1}","status":"completed"},{"type":"function_call","call_id":"b","name":)"
           R"("f","arguments":""},{"type":"function_call_output","call_id":"b","output":)"
           R"([{"type":"input_text","text":"3"}]},{"type":"function_call_output","call_id":"a",)"
           R"("output":"2"}])",
           R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}])"));
  EXPECT_EQ(response.at("usage").at("input_tokens").as_int64(),
            chat(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Well.",)"
                 R"("reasoning_content":"hm","tool_calls":[{"id":"a","type":"function",)"
                 R"("function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":)"
                 R"("function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool",)"
                 R"("tool_call_id":"b","content":"3"},{"role":"tool","tool_call_id":"a",)"
                 R"("content":"2"}])"));
}

TEST(ResponseTools, HostileItemsAreRefusedWithTheirPlace) {
  Server server(Server::Answers("x"));
  const std::string call = R"({"type":"function_call","call_id":"a","name":"f","arguments":"{}"})";
  const std::string output = R"({"type":"function_call_output","call_id":"a","output":"1"})";
  const std::string user = R"({"role":"user","content":"x"})";
  const std::pair<std::string, const char*> cases[] = {
      {output, "input[1].call_id is \"a\""},
      {call, "the call \"a\" has no result"},
      {call + "," + user + "," + output, "input[2] comes too early"},
      {call + "," + output + "," + output, "input[3].call_id is \"a\""},
      {call + "," + call, "input[2].call_id is \"a\""},
      {R"({"type":"function_call_output","output":"1"})", "input[1].call_id"},
      {call + R"(,{"type":"function_call_output","call_id":"a"})", "input[2].output is missing"},
      {call + R"(,{"type":"function_call_output","call_id":"a","output":[{"type":"input_image"}]})",
       "input[2].output[0] is of type \"input_image\""},
      {R"({"type":"function_call","name":"f","arguments":"{}"})", "input[1].call_id"},
      {R"({"type":"function_call","call_id":"a","arguments":"{}"})", "input[1].name"},
      {R"({"type":"function_call","call_id":"a","name":"f"})", "input[1].arguments"},
      {R"({"type":"function_call","call_id":"a","name":"f","arguments":{}})", "input[1].arguments"},
      {R"({"type":"reasoning","content":[{"type":"output_text","text":"x"}]})",
       "input[1].content[0]"},
      {R"({"type":"item_reference","id":"x"})", "item_reference"},
      {R"({"type":3})", "input[1] is of type 3"},
  };
  for (const auto& [items, words] : cases) {
    const json::Object error =
        ErrorOf(server, Body(fmt::format("[{},{}]", user, items), "\"strict\":false"));
    EXPECT_EQ(error.at("param"), "input") << items;
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr(words)) << items;
  }
}

TEST(ResponseTools, WhatIsWrongWithToolsIsNamed) {
  Server server(Server::Answers("x"));
  const std::pair<std::string, const char*> cases[] = {
      {R"("tools":[{"type":"web_search"}])", "web_search"},
      {R"("tools":[{"name":"f"}])", "tools[0].type is missing"},
      {R"("tools":[{"type":"function","name":"f","parameters":3}])", "tools[0].parameters"},
      {R"("tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":)"
       R"({"x":{"type":3}}}}])",
       "tools[0].parameters"},
      {R"("tool_choice":"required")", "there are no tools"},
      {WithTools(R"("tool_choice":"sometimes")"), "sometimes"},
      {WithTools(R"("tool_choice":{"type":"function","name":"absent"})"), "absent"},
      {WithTools(R"("tool_choice":{"type":"function","function":{"name":"add"}})"), "no function"},
      {WithTools(R"("tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]})"), "mode"},
      {WithTools(R"("tool_choice":{"type":"file_search"})"), "another type"},
  };
  for (const auto& [members, words] : cases)
    EXPECT_THAT(std::string(ErrorOf(server, Body("\"hi\"", members)).at("message").as_string()),
                HasSubstr(words))
        << members;
  const auto tools = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i)
      list += fmt::format(R"({}{{"type":"function","name":"f{}"}})", i == 0 ? "" : ",", i);
    std::vector<openai::Warning> warnings;
    return ReadResponseTools(Parsed(fmt::format("{{\"tools\":[{}]}}", list)), &warnings);
  };
  EXPECT_EQ(tools(kToolsMax)->functions.size(), kToolsMax);
  EXPECT_EQ(tools(kToolsMax + 1).error().param, "tools");
}

TEST(ResponseReasoning, ThoughtsAreAnItemWhenAskedFor) {
  for (const bool streams : {false, true}) {
    Server server(Server::Answers("<think>\nHm.\n</think>\n\nYes."), {}, {},
                  testing::ThinkingModel());
    const json::Object response = Answer(
        server, "\"hi\"",
        R"("reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"])", streams);
    EXPECT_EQ(json::Serialize(Plain(response.at("output").as_array())),
              R"([{"type":"reasoning","status":"completed","summary":[],"encrypted_content":null,)"
              R"("content":[{"type":"reasoning_text","text":"Hm."}]},)"
              R"({"type":"message","status":"completed","role":"assistant","content":[)"
              R"({"type":"output_text","annotations":[],"logprobs":[],"text":"Yes."}]}])");
    EXPECT_EQ(response.at("reasoning").at("effort"), "low");
    EXPECT_GT(response.at("usage").at("output_tokens_details").at("reasoning_tokens").as_int64(),
              5);
    EXPECT_FALSE(response.contains("warnings"));
    const json::Object plain = Answer(server, "\"hi\"", "\"seed\":1", streams);
    EXPECT_THAT(json::Serialize(plain.at("output")), HasSubstr("<think>"));
  }
}

TEST(ResponseReasoning, WhatThereIsNotIsNamed) {
  Server server(Server::Answers("x"));
  EXPECT_EQ(
      ErrorOf(server, Body("\"hi\"", R"("include":["file_search_call.results"])")).at("param"),
      "include");
  EXPECT_EQ(ErrorOf(server, Body("\"hi\"", R"("reasoning":{"effort":3})")).at("param"),
            "reasoning");
  const json::Object response =
      server.Post(kPath, Body("\"hi\"", R"("reasoning":{"effort":"none","summary":"auto"})"));
  EXPECT_THAT(json::Serialize(response.at("warnings")), HasSubstr("reasoning.summary"));
}

TEST(ResponseTools, AnAnswerThatIsCutEndsInAnIncompleteItem) {
  for (const bool streams : {false, true}) {
    Server server(Server::Answers(std::string(kSays)));
    const std::string body = fmt::format(
        R"({{"model":"org/fake","temperature":0,"max_output_tokens":75,"input":"hi","stream":{},)"
        R"({}}})",
        streams, kTools);
    const json::Object response =
        streams ? JoinEvents(server.Events(kPath, body)) : server.Post(kPath, body);
    EXPECT_EQ(response.at("status"), "incomplete");
    EXPECT_EQ(response.at("output").at(0).at("status"), "completed");
    EXPECT_EQ(response.at("output").at(1).at("type"), "function_call");
    EXPECT_EQ(response.at("output").at(1).at("status"), "incomplete");
  }
}

}  // namespace
}  // namespace tessera::server::responses
