// SPDX-License-Identifier: Apache-2.0
//
// A form of the answer and thoughts of their own: the thoughts come first, what is behind them has
// the form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/openai/chat_request.h"
#include "support/fake_service.h"

namespace tessera::server::openai {
namespace {

using testing::FakeService;
using ::testing::HasSubstr;

constexpr const char* kForm =
    R"("response_format":{"type":"json_schema","json_schema":{"name":"s","schema":
       {"type":"object","properties":{"n":{"type":"integer","minimum":10,"maximum":99}},
        "required":["n"],"additionalProperties":false}}})";

std::string Chat(const std::string& members) {
  return R"({"model":"org/fake","messages":[{"role":"user","content":"hi"}],"max_tokens":90,)"
         R"("temperature":0,)" +
         members + "}";
}

/// As `--reasoning-parser NAME` has it.
ServedModel Thinking(const char* name) {
  ServedModel model = testing::FakeServedModel();
  model.chat_format.reasoning = *text::FindReasoningSyntax(name);
  model.separates_reasoning = true;
  return model;
}

json::Object Message(FakeService& service, const std::string& members) {
  const json::Object body = service.Post("/v1/chat/completions", Chat(members));
  return body.at("choices").at(0).at("message").as_object();
}

TEST(ThoughtForm, ThoughtsComeFirstAndTheTextHasTheForm) {
  for (const char* name : {"think", "deepseek_r1"}) {
    const std::string begin = std::string(name) == "think" ? "<think>" : "";
    FakeService service(FakeService::Answers(begin + "It is 12.</think>\n{\"n\":12}"), {}, {},
                        Thinking(name));
    const json::Object message = Message(service, kForm);
    EXPECT_EQ(message.at("content"), "{\"n\":12}") << name;
    EXPECT_EQ(message.at("reasoning_content"), "It is 12.") << name;
    EXPECT_EQ(service.Scrape().at("tessera_structured_outputs_total"), 1) << name;
    const std::string page = service.Call("GET", "/metrics").body;
    EXPECT_THAT(page, HasSubstr("result=\"valid\"} 1")) << name;
  }
}

TEST(ThoughtForm, EveryKindOfFormStandsBehindThoughts) {
  struct Case {
    const char* members;
    const char* text;
  };
  for (const Case& form : {
           Case{R"("guided_regex":"[a-c]{2}/x")", "ab/x"},
           Case{R"x("guided_choice":["a|b","(c)"])x", "a|b"},
           Case{R"("guided_grammar":"start: a a\na: \"x\" // more")", "xx"},
           Case{R"("guided_json":{"const":[1,"a"]})", "[1,\"a\"]"},
           Case{R"("response_format":{"type":"structural_tag","triggers":["<f"],"structures":
                   [{"begin":"<f>","schema":{"const":1},"end":"</f>"}]})",
                "See <f>1</f>"},
       }) {
    FakeService service(FakeService::Answers(std::string("Hm.</think>") + form.text), {}, {},
                        Thinking("deepseek_r1"));
    const json::Object message = Message(service, form.members);
    EXPECT_EQ(message.at("reasoning_content"), "Hm.") << form.members;
    EXPECT_EQ(message.at("content"), form.text) << form.members;
  }
}

TEST(ThoughtForm, ABudgetEndsTheThoughtsAndTheFormFollows) {
  FakeService service(FakeService::Answers("Let me think about it for a long time, and so on"), {},
                      {}, Thinking("deepseek_r1"));
  const json::Object message =
      Message(service, std::string(kForm) + R"(,"thinking_token_budget":6)");
  EXPECT_EQ(message.at("reasoning_content"), "Let me");
  const auto value = json::Parse(std::string(message.at("content").as_string()), {}, "content");
  ASSERT_TRUE(value.has_value()) << json::Serialize(message);
  EXPECT_TRUE(value->as_object().at("n").is_int64());
}

TEST(ThoughtForm, ABudgetThatCannotMatterIsAWarning) {
  const ServedModel model = Thinking("think");
  const auto warnings = [&](const std::string& last) {
    const auto request = ReadChatRequest(
        R"({"model":"org/fake","messages":[{"role":"user","content":"hi"},
            {"role":"assistant","content":")" +
            last + R"("}],"continue_final_message":true,"thinking_token_budget":5})",
        model, text::SpecialTokens(*model.tokenizer), 0);
    EXPECT_TRUE(request.has_value()) << request.error().message;
    std::string params;
    for (const Warning& warning : request->fields.warnings) params += warning.param + " ";
    return params;
  };
  EXPECT_THAT(warnings("<think>x</think>"), HasSubstr("thinking_token_budget"));
  EXPECT_THAT(warnings("<think>x"), ::testing::Not(HasSubstr("thinking_token_budget")));
}

}  // namespace
}  // namespace tessera::server::openai
