// SPDX-License-Identifier: Apache-2.0
//
// Functions in chats: what a request may say of them, and how calls come back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/limits.h"
#include "server/openai/chat_request.h"
#include "server/openai/tool_fields.h"
#include "support/fake_service.h"

namespace tessera::server::openai {
namespace {

using chat::ToolFields;
using Server = testing::FakeService;
using ::testing::HasSubstr;

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"get_weather","description":"Weather.",)"
    R"("parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},)"
    R"({"type":"function","function":{"name":"add"}}])";

ApiResult<ToolFields> Read(std::string_view members, std::vector<Warning>* warnings) {
  const std::string body = fmt::format("{{{}}}", members);
  return ReadToolFields(json::Parse(body, {}, "body").value().as_object(), warnings);
}
ApiResult<ToolFields> Read(std::string_view members) {
  std::vector<Warning> warnings;
  return Read(members, &warnings);
}
std::string WithTools(std::string_view more) {
  return fmt::format("{}{}{}", kTools, more.empty() ? "" : ",", more);
}
std::vector<std::string> Allowed(const ToolFields& fields) {
  std::vector<std::string> names;
  const auto specs = fields.Specs();
  for (const text::ToolSpec& spec : *specs) names.push_back(spec.name);
  return names;
}

TEST(ToolFields, TheChoiceIsAutoWithToolsAndNoneWithout) {
  const auto fields = Read(kTools);
  ASSERT_TRUE(fields.has_value()) << fields.error().message;
  EXPECT_EQ(fields->choice, ToolFields::Choice::kAuto);
  EXPECT_TRUE(fields->several);
  EXPECT_FALSE(fields->is_older);
  EXPECT_EQ(Allowed(*fields), (std::vector<std::string>{"get_weather", "add"}));
  EXPECT_TRUE(fields->Specs()->front().text_parameters.contains("city"));
  EXPECT_EQ(fields->tools.size(), 2u);
  for (const char* empty : {"", "\"tools\":[]", "\"tools\":null", "\"tool_choice\":\"auto\"",
                            "\"tools\":[],\"tool_choice\":\"none\""})
    EXPECT_EQ(Read(empty)->choice, ToolFields::Choice::kNone) << empty;
}

TEST(ToolFields, EveryChoiceIsRead) {
  using Choice = ToolFields::Choice;
  EXPECT_EQ(Read(WithTools(R"("tool_choice":"none")"))->choice, Choice::kNone);
  EXPECT_EQ(Read(WithTools(R"("tool_choice":"required")"))->choice, Choice::kRequired);
  EXPECT_FALSE(Read(WithTools(R"("parallel_tool_calls":false)"))->several);
  const auto named =
      Read(WithTools(R"("tool_choice":{"type":"function","function":{"name":"add"}})"));
  EXPECT_EQ(named->choice, Choice::kRequired);
  EXPECT_FALSE(named->several);
  EXPECT_EQ(Allowed(*named), std::vector<std::string>{"add"});
  EXPECT_EQ(named->tools.size(), 2u) << "the model is told of all";
  const auto some = Read(WithTools(
      R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[)"
      R"({"type":"function","function":{"name":"add"}}]}})"));
  ASSERT_TRUE(some.has_value()) << some.error().message;
  EXPECT_EQ(some->choice, Choice::kRequired);
  EXPECT_TRUE(some->several);
  EXPECT_EQ(Allowed(*some), std::vector<std::string>{"add"});
}

TEST(ToolFields, TheOlderNamesMeanTheSame) {
  const auto fields =
      Read(R"("functions":[{"name":"f","parameters":{}}],"function_call":{"name":"f"})");
  ASSERT_TRUE(fields.has_value()) << fields.error().message;
  EXPECT_TRUE(fields->is_older);
  EXPECT_FALSE(fields->several);
  EXPECT_EQ(fields->choice, ToolFields::Choice::kRequired);
  EXPECT_EQ(json::Serialize(fields->tools),
            R"([{"type":"function","function":{"name":"f","parameters":{}}}])");
  EXPECT_EQ(Read(R"("functions":[{"name":"f"}],"tools":[])").error().param, "functions");
  EXPECT_EQ(Read(R"("functions":[{"name":"f"}],"function_call":"required")").error().param,
            "function_call");
}

TEST(ToolFields, WhatIsWrongIsNamed) {
  const auto tool = [](std::string_view function) {
    return fmt::format(R"("tools":[{{"type":"function","function":{}}}])", function);
  };
  const std::pair<std::string, const char*> cases[] = {
      {R"("tools":[5])", "tools[0].type"},
      {R"("tools":[{"function":{"name":"f"}}])", "tools[0].type"},
      {R"("tools":[{"type":"web_search"}])", "web_search"},
      {R"("tools":[{"type":"function"}])", "tools[0].function is missing"},
      {tool("5"), "tools[0].function is of type integer"},
      {tool("{}"), "name is missing"},
      {tool(R"({"name":5})"), "name is 5"},
      {tool(R"({"name":""})"), "name is"},
      {tool(R"({"name":"not a name!"})"), "not a name!"},
      {tool(fmt::format(R"({{"name":"{}"}})", std::string(65, 'a'))), "1 to 64"},
      {tool(R"({"name":"f","description":5})"), "description"},
      {tool(R"({"name":"f","strict":"yes"})"), "strict"},
      {tool(R"({"name":"f","parameters":[]})"), "parameters is of type array"},
      {tool(R"({"name":"f","parameters":{"type":"objekt"}})"), "objekt"},
      {tool(R"({"name":"f"}},{"type":"function","function":{"name":"f"})"), "another function"},
  };
  for (const auto& [members, words] : cases) {
    const auto fields = Read(members);
    ASSERT_FALSE(fields.has_value()) << members;
    EXPECT_EQ(fields.error().http_status, 400);
    EXPECT_EQ(fields.error().param, "tools");
    EXPECT_THAT(fields.error().message, HasSubstr(words));
  }
  for (const char* choice :
       {R"("sometimes")", R"({"type":"function","function":{"name":"absent"}})",
        R"({"type":"function"})", R"({"type":"function","function":{"name":5}})", "{}",
        R"({"type":"allowed_tools"})",
        R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
        R"({"type":"custom","custom":{"name":"add"}})"})
    EXPECT_EQ(Read(WithTools(fmt::format("\"tool_choice\":{}", choice))).error().param,
              "tool_choice")
        << choice;
  EXPECT_EQ(Read(R"("tools":[],"tool_choice":"required")").error().param, "tool_choice");
  EXPECT_EQ(Read(R"("tool_choice":"required")").error().param, "tool_choice");
  EXPECT_TRUE(Read(tool(fmt::format(R"({{"name":"{}"}})", std::string(64, 'a')))).has_value());
}

TEST(ToolFields, TheirNumberIsBounded) {
  const auto tools = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i)
      list += fmt::format(R"({}{{"type":"function","function":{{"name":"f{}"}}}})",
                          i == 0 ? "" : ",", i);
    return fmt::format("\"tools\":[{}]", list);
  };
  EXPECT_TRUE(Read(tools(kToolsMax - 1)).has_value());
  EXPECT_TRUE(Read(tools(kToolsMax)).has_value());
  EXPECT_EQ(Read(tools(kToolsMax + 1)).error().param, "tools");
}

TEST(ToolFields, UnknownMembersAreWarnings) {
  std::vector<Warning> warnings;
  ASSERT_TRUE(
      Read(R"("tools":[{"type":"function","x":1,"function":{"name":"f","y":2}}])", &warnings)
          .has_value());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].param, "tools[0].x");
  EXPECT_EQ(warnings[1].param, "tools[0].function.y");
}

// The whole way, with a fake model that says what a test tells it.

std::string Chat(std::string_view members) {
  return fmt::format(
      R"({{"model":"org/fake","messages":[{{"role":"user","content":"hi"}}],"temperature":0,{}}})",
      members);
}

constexpr std::string_view kSays =
    "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
    "\"Zürich\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n"
    "</tool_call>";

/// Deltas of a stream joined: reasoning_content, content; and its last chunk.
struct Streamed {
  std::string reasoning, content;
  json::Object last;
};
Streamed JoinStream(Server& server, const std::string& body) {
  Streamed joined;
  for (const std::string& event : server.Stream("/v1/chat/completions", body)) {
    if (event == "[DONE]") continue;
    joined.last = json::Parse(event, {}, "event").value().as_object();
    if (joined.last.at("choices").as_array().empty()) continue;
    const json::Object& delta = joined.last.at("choices").at(0).at("delta").as_object();
    if (const auto* text = delta.if_contains("content")) joined.content += text->as_string();
    if (const auto* text = delta.if_contains("reasoning_content"))
      joined.reasoning += text->as_string();
  }
  return joined;
}

TEST(ToolCalls, TheMessageHoldsThem) {
  Server server(Server::Answers(std::string(kSays)));
  const json::Object body = server.Post("/v1/chat/completions", Chat(kTools));
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  const json::Object& message = choice.at("message").as_object();
  EXPECT_EQ(message.at("content"), "Let me see.");
  const json::Array& calls = message.at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("type"), "function");
  EXPECT_TRUE(calls[0].at("id").as_string().starts_with("call_"));
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
  EXPECT_EQ(json::Serialize(calls[0].at("function")),
            R"({"name":"get_weather","arguments":"{\"city\": \"Zürich\"}"})");
  EXPECT_EQ(calls[1].at("function").at("name"), "add");
  EXPECT_EQ(calls[1].at("function").at("arguments"), "{}");
}

TEST(ToolCalls, AStreamIsTheMessageInPieces) {
  Server server(Server::Answers(std::string(kSays)));
  std::string content, reason;
  std::vector<std::array<std::string, 3>> calls;  // id, name, arguments.
  for (const std::string& event :
       server.Stream("/v1/chat/completions", Chat(WithTools("\"stream\":true")))) {
    if (event == "[DONE]") continue;
    const json::Value chunk = json::Parse(event, {}, "event").value();
    const json::Object& choice = chunk.at("choices").at(0).as_object();
    if (choice.at("finish_reason").is_string())
      reason = std::string(choice.at("finish_reason").as_string());
    const json::Object& delta = choice.at("delta").as_object();
    if (const auto* text = delta.if_contains("content")) content += std::string(text->as_string());
    const auto* list = delta.if_contains("tool_calls");
    if (list == nullptr) continue;
    for (const json::Value& part : list->as_array()) {
      const auto index = static_cast<size_t>(part.at("index").as_int64());
      if (index == calls.size()) {
        EXPECT_EQ(part.at("type"), "function");
        calls.push_back({std::string(part.at("id").as_string()),
                         std::string(part.at("function").at("name").as_string()), ""});
      }
      calls.at(index)[2] += std::string(part.at("function").at("arguments").as_string());
    }
  }
  EXPECT_EQ(content, "Let me see.");
  EXPECT_EQ(reason, "tool_calls");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0][1], "get_weather");
  EXPECT_EQ(calls[0][2], "{\"city\": \"Zürich\"}");
  EXPECT_EQ(calls[1][1], "add");
  EXPECT_TRUE(calls[0][0].starts_with("call_"));
}

TEST(ToolCalls, WithoutTextTheContentIsNull) {
  Server server(
      Server::Answers("<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>"));
  const json::Object body = server.Post("/v1/chat/completions", Chat(kTools));
  EXPECT_TRUE(body.at("choices").at(0).at("message").at("content").is_null());
}

TEST(ToolCalls, OneIsEnoughWhenTheClientWantsOne) {
  Server server(Server::Answers(std::string(kSays)));
  const json::Object body =
      server.Post("/v1/chat/completions", Chat(WithTools("\"parallel_tool_calls\":false")));
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("message").at("tool_calls").as_array().size(), 1u);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  // Nothing was generated behind it.
  EXPECT_LT(body.at("usage").at("completion_tokens").as_int64(),
            static_cast<int64_t>(std::string_view(kSays).size()) - 40);
}

/// Where the form is not enforced: a syntax without a mark in a free choice.
TEST(ToolCalls, WhatIsNoCallStaysTextWithAWarning) {
  const std::string says = "{\"name\": \"absent\", \"parameters\": {}}";
  for (const bool stream : {false, true}) {
    ServedModel model = testing::FakeServedModel();
    model.chat_format.tool_syntax =
        std::make_shared<const text::ToolSyntax>(*text::FindToolSyntax("llama3_json"));
    Server server(Server::Answers(says), {}, {}, std::move(model));
    std::string content;
    json::Object last;
    if (stream) {
      Streamed streamed = JoinStream(server, Chat(WithTools("\"stream\":true")));
      content = streamed.content;
      last = std::move(streamed.last);
    } else {
      last = server.Post("/v1/chat/completions", Chat(kTools));
      const json::Object& message = last.at("choices").at(0).at("message").as_object();
      content = std::string(message.at("content").as_string());
      EXPECT_FALSE(message.contains("tool_calls"));
    }
    EXPECT_EQ(last.at("choices").at(0).at("finish_reason"), "stop");
    EXPECT_EQ(content, says);
    bool is_told = false;
    for (const json::Value& warning : last.at("warnings").as_array())
      is_told |= warning.at("code") == "tool_parse_error";
    EXPECT_TRUE(is_told) << json::Serialize(last);
    EXPECT_EQ(server.Scrape()["tessera_request_warnings_total"], 2);
    EXPECT_THAT(server.Call("GET", "/metrics").body,
                HasSubstr(R"(tessera_tool_calls_total{model_name="org/fake",result="broken"} 1)"));
  }
}

TEST(ToolCalls, ACallWithoutAMarkIsGivenOutWhole) {
  ServedModel model = testing::FakeServedModel();
  model.chat_format.tool_syntax =
      std::make_shared<const text::ToolSyntax>(*text::FindToolSyntax("llama3_json"));
  Server server(Server::Answers("{\"name\": \"add\", \"parameters\": {\"a\": 1}}"), {}, {},
                std::move(model));
  const json::Object body = server.Post("/v1/chat/completions", Chat(kTools));
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "tool_calls");
  EXPECT_EQ(
      body.at("choices").at(0).at("message").at("tool_calls").at(0).at("function").at("arguments"),
      "{\"a\": 1}");
  EXPECT_THAT(server.Call("GET", "/metrics").body,
              HasSubstr(R"(tessera_tool_calls_total{model_name="org/fake",result="parsed"} 1)"));
}

TEST(ToolCalls, WithoutToolsTextIsText) {
  for (const char* members : {"\"n\":1", "\"tools\":[]"}) {
    Server server(Server::Answers(std::string(kSays)));
    const json::Object body = server.Post("/v1/chat/completions", Chat(members));
    EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), json::Value(kSays));
    EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
    EXPECT_FALSE(body.contains("warnings"));
  }
}

TEST(ToolCalls, ChoiceNoneKeepsToolsFromTheModel) {
  Server server(Server::Answers("text"));
  const auto prompt_tokens = [&](std::string_view members) {
    return server.Post("/v1/chat/completions", Chat(members))
        .at("usage")
        .at("prompt_tokens")
        .as_int64();
  };
  EXPECT_EQ(prompt_tokens(WithTools("\"tool_choice\":\"none\"")), prompt_tokens("\"n\":1"));
  EXPECT_GT(prompt_tokens(kTools), prompt_tokens("\"n\":1"));
}

TEST(ToolCalls, ATemplateWithoutToolsIsToldOf) {
  Server server(Server::Answers("text"));
  const json::Object body = server.Post("/v1/chat/completions", Chat(kTools));
  const json::Object& warning = body.at("warnings").at(0).as_object();
  EXPECT_EQ(warning.at("param"), "tools");
  EXPECT_THAT(std::string(warning.at("message").as_string()), HasSubstr("\"hermes\""));
}

TEST(ToolCalls, AResultTurnIsAnswered) {
  Server server(Server::Answers("sunny"));
  const json::Object body = server.Post(
      "/v1/chat/completions",
      R"({"model":"org/fake","temperature":0,"messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",)"
      R"("function":{"name":"add","arguments":"{\"a\":1}"}}]},)"
      R"({"role":"tool","tool_call_id":"call_1","content":"2"}]})");
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "sunny");
}

TEST(ToolCalls, TheOlderFormIsAnsweredInKind) {
  for (const bool stream : {false, true}) {
    Server server(
        Server::Answers("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
    const std::string body =
        Chat(fmt::format(R"("functions":[{{"name":"f"}}],"stream":{})", stream));
    std::string name, arguments, reason;
    if (stream) {
      for (const std::string& event : server.Stream("/v1/chat/completions", body)) {
        if (event == "[DONE]") continue;
        const json::Value chunk = json::Parse(event, {}, "event").value();
        const json::Object& choice = chunk.at("choices").at(0).as_object();
        if (choice.at("finish_reason").is_string())
          reason = std::string(choice.at("finish_reason").as_string());
        const auto* call = choice.at("delta").as_object().if_contains("function_call");
        if (call == nullptr) continue;
        if (const auto* part = call->as_object().if_contains("name"))
          name += std::string(part->as_string());
        arguments += std::string(call->at("arguments").as_string());
      }
    } else {
      const json::Object answer = server.Post("/v1/chat/completions", body);
      const json::Object& choice = answer.at("choices").at(0).as_object();
      reason = std::string(choice.at("finish_reason").as_string());
      name = std::string(choice.at("message").at("function_call").at("name").as_string());
      arguments = std::string(choice.at("message").at("function_call").at("arguments").as_string());
    }
    EXPECT_EQ(name, "f");
    EXPECT_EQ(arguments, "{\"a\": 1}");
    EXPECT_EQ(reason, "function_call");
  }
}

TEST(ToolCalls, TokenizeCountsThem) {
  Server server(Server::Answers("x"));
  const auto count = [&](std::string_view members) {
    return server
        .Post("/tokenize", fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}]{}{}}})",
                                       members.empty() ? "" : ",", members))
        .at("count")
        .as_int64();
  };
  EXPECT_GT(count(kTools), count("") + 50);
}

constexpr std::string_view kStrictTools =
    R"("tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",)"
    R"("properties":{"city":{"type":"string","maxLength":6},"unit":{"enum":["C","F"]}},)"
    R"("required":["city","unit"],"additionalProperties":false}}},)"
    R"({"type":"function","function":{"name":"add","parameters":{"type":"object",)"
    R"("properties":{"a":{"type":"integer","minimum":0,"maximum":9}},"required":["a"],)"
    R"("additionalProperties":false}}}],"max_tokens":400)";

std::string WithStrictTools(std::string_view more) {
  return Chat(fmt::format("{},{}", kStrictTools, more));
}

TEST(ToolCalls, ARequiredCallIsMadeWhateverTheModelWants) {
  Server server(Server::Answers("I would rather not."));
  for (const int seed : {1, 2, 3}) {
    const json::Object body = server.Post(
        "/v1/chat/completions",
        WithStrictTools(fmt::format(R"("tool_choice":"required","parallel_tool_calls":false,)"
                                    R"("n":2,"seed":{})",
                                    seed)));
    for (const json::Value& choice : body.at("choices").as_array()) {
      EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
      EXPECT_TRUE(choice.at("message").at("content").is_null());
      const json::Array& calls = choice.at("message").at("tool_calls").as_array();
      ASSERT_EQ(calls.size(), 1u);
      const json::Object& function = calls[0].at("function").as_object();
      const json::Value arguments =
          json::Parse(function.at("arguments").as_string(), {}, "arguments").value();
      if (function.at("name") == "add") {
        EXPECT_TRUE(arguments.at("a").is_int64());
      } else {
        EXPECT_EQ(function.at("name"), "get_weather");
        EXPECT_TRUE(arguments.at("unit") == "C" || arguments.at("unit") == "F");
      }
    }
  }
}

TEST(ToolCalls, ANamedFunctionIsCalledOnce) {
  Server server(Server::Answers("<tool_call>{\"name\": \"get_weather\"}</tool_call>"));
  const json::Object body = server.Post(
      "/v1/chat/completions",
      WithStrictTools(R"("tool_choice":{"type":"function","function":{"name":"add"}})"));
  const json::Array& calls = body.at("choices").at(0).at("message").at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].at("function").at("name"), "add");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "tool_calls");
}

TEST(ToolCalls, AFreeChoiceKeepsToTheSchemaOnceACallBegins) {
  Server server(
      Server::Answers("Hm.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"zzz\": 1}}"));
  const json::Object body = server.Post("/v1/chat/completions", WithStrictTools(R"("seed":1)"));
  const json::Object& message = body.at("choices").at(0).at("message").as_object();
  EXPECT_EQ(message.at("content"), "Hm.");
  for (const json::Value& call : message.at("tool_calls").as_array())
    if (call.at("function").at("name") == "add") {
      EXPECT_TRUE(json::Parse(call.at("function").at("arguments").as_string(), {}, "a")
                      .value()
                      .as_object()
                      .contains("a"));
    }
}

TEST(ToolCalls, ASchemaIsEnforcedOrSaidNotToBe) {
  const auto tool = [](std::string_view parameters, std::string_view more) {
    return Chat(fmt::format(
        R"("max_tokens":4,"tools":[{{"type":"function","function":{{"name":"f","parameters":{}{}}}}}])",
        parameters, more));
  };
  Server server(Server::Answers("ok"));
  const std::string_view wrong = R"({"type":"object","properties":{"a":{"type":"objekt"}}})";
  const json::Object refused = server.Post("/v1/chat/completions", tool(wrong, ""), 400);
  EXPECT_EQ(refused.at("error").at("param"), "tools");
  EXPECT_THAT(std::string(refused.at("error").at("message").as_string()),
              HasSubstr("tools[0].function.parameters: #/properties/a/type"));
  const std::string_view unsupported =
      R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})";
  const json::Object answer = server.Post("/v1/chat/completions", tool(unsupported, ""));
  bool is_told = false;
  for (const json::Value& warning : answer.at("warnings").as_array())
    is_told |= warning.at("code") == "unenforced_schema";
  EXPECT_TRUE(is_told) << json::Serialize(answer.at("warnings"));
  EXPECT_EQ(server.Post("/v1/chat/completions", tool(unsupported, ",\"strict\":true"), 400)
                .at("error")
                .at("code"),
            "unsupported_schema");
  std::string required = tool(unsupported, "");
  required.insert(required.size() - 1, ",\"tool_choice\":\"required\"");
  EXPECT_EQ(server.Post("/v1/chat/completions", required, 400).at("error").at("code"),
            "unsupported_schema");
}

TEST(ToolCalls, TextBesideThemMayHaveAFormOfItsOwn) {
  constexpr std::string_view kForm =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)"
      R"({"type":"object","properties":{"x":{"enum":[1]}},"required":["x"],)"
      R"("additionalProperties":false}}})";
  Server text(Server::Answers("whatever"));
  const json::Object body = text.Post("/v1/chat/completions", WithStrictTools(std::string(kForm)));
  const json::Object& message = body.at("choices").at(0).at("message").as_object();
  if (!message.contains("tool_calls")) {
    EXPECT_EQ(message.at("content"), "{\"x\": 1}");
  }
  Server calls(Server::Answers("<tool_call>\n{\"name\": \"add\""));
  EXPECT_TRUE(calls.Post("/v1/chat/completions", WithStrictTools(std::string(kForm)))
                  .at("choices")
                  .at(0)
                  .at("message")
                  .as_object()
                  .contains("tool_calls"));
  const json::Object refused =
      text.Post("/v1/chat/completions", WithStrictTools(R"("guided_regex":"a+")"), 400);
  EXPECT_EQ(refused.at("error").at("param"), "guided_regex");
}

TEST(Reasoning, IsSeparatedOnRequest) {
  const std::string says = "<think> Hm <tool_call>. </think>  Yes.";
  Server server(Server::Answers(says), {}, {}, testing::ThinkingModel());
  const auto message = [&](std::string_view members) {
    return server.Post("/v1/chat/completions", Chat(members))
        .at("choices")
        .at(0)
        .at("message")
        .as_object();
  };
  EXPECT_EQ(message("\"n\":1").at("content"), json::Value(says));
  EXPECT_FALSE(message("\"n\":1").contains("reasoning_content"));
  EXPECT_EQ(message(kTools).at("content"), json::Value(says)) << "thoughts hold no calls";
  const json::Object apart = message("\"separate_reasoning\":true");
  EXPECT_EQ(apart.at("content"), "Yes.");
  EXPECT_EQ(apart.at("reasoning_content"), "Hm <tool_call>.");
  const json::Object without = message("\"include_reasoning\":false");
  EXPECT_EQ(without.at("content"), "Yes.");
  EXPECT_FALSE(without.contains("reasoning_content"));
  const Streamed streamed = JoinStream(
      server,
      Chat(R"("separate_reasoning":true,"stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(streamed.content, "Yes.");
  EXPECT_EQ(streamed.reasoning, "Hm <tool_call>.");
  // All but the bytes before the begin mark is whole.
  EXPECT_EQ(streamed.last.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 26);
}

TEST(Reasoning, ItsTokensMayBeBounded) {
  Server server(Server::Answers("<think>Let me think about it for a long time"), {}, {},
                testing::ThinkingModel());
  const json::Object body =
      server.Post("/v1/chat/completions",
                  Chat(R"("separate_reasoning":true,"thinking_token_budget":6,"max_tokens":40)"));
  const json::Object& message = body.at("choices").at(0).at("message").as_object();
  EXPECT_EQ(message.at("reasoning_content"), "Let me");
  EXPECT_NE(message.at("content"), "");
}

TEST(Reasoning, LeavesRoomForACallThatHasToBeMade) {
  std::string thoughts = "<think>";
  while (thoughts.size() < 2000) thoughts += "and so on ";
  Server server(Server::Answers(thoughts), {}, {}, testing::ThinkingModel());
  const json::Object body =
      server.Post("/v1/chat/completions",
                  WithStrictTools(R"("separate_reasoning":true,"tool_choice":"required",)"
                                  R"("parallel_tool_calls":false)"));
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_GT(choice.at("message").at("reasoning_content").as_string().size(), 150u);
}

TEST(Reasoning, WhatIsAskedMustBePossible) {
  const auto param = [](std::string_view members, bool has_marks) {
    const ServedModel model = has_marks ? testing::ThinkingModel() : testing::FakeServedModel();
    const auto request =
        ReadChatRequest(Chat(members), model, text::SpecialTokens(*model.tokenizer), 0);
    return request.has_value() ? "" : request.error().param;
  };
  EXPECT_EQ(param("\"separate_reasoning\":true", false), "separate_reasoning");
  EXPECT_EQ(param("\"include_reasoning\":false", false), "include_reasoning");
  EXPECT_EQ(param("\"thinking_token_budget\":5", false), "thinking_token_budget");
  EXPECT_EQ(param("\"thinking_token_budget\":-1", true), "thinking_token_budget");
  EXPECT_EQ(param("\"separate_reasoning\":false,\"include_reasoning\":false", true),
            "include_reasoning");
  EXPECT_EQ(param("\"separate_reasoning\":false", false), "");
}

TEST(Continue, TheAnswerGoesOnWithinTheLastMessage) {
  Server server(Server::Answers("x"));
  const auto prompt = [&](std::string_view members) {
    return std::string(server
                           .Post("/apply-template",
                                 fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}},)"
                                             R"({{"role":"assistant","content":"It is "}}]{}}})",
                                             members))
                           .at("prompt")
                           .as_string());
  };
  EXPECT_TRUE(
      prompt(R"(,"continue_final_message":true)").ends_with("<|im_start|>assistant\nIt is "));
  EXPECT_TRUE(prompt("").ends_with("It is <|im_end|>\n<|im_start|>assistant\n"));
  const json::Object error =
      server.Post("/apply-template",
                  R"({"messages":[{"role":"user","content":"hi"}],"continue_final_message":true,)"
                  R"("add_generation_prompt":true})",
                  400);
  EXPECT_EQ(error.at("error").at("param"), "continue_final_message");
}

}  // namespace
}  // namespace tessera::server::openai
