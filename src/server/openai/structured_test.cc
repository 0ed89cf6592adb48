// SPDX-License-Identifier: Apache-2.0
//
// Forms of output over HTTP: a model that only wants to ramble has to keep to them, whole and
// streamed; wrong ones are refused by field and place; counters tell how answers ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using testing::FakeService;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Random logits: without a form its text is noise.
FakeService Noise() {
  return FakeService(testing::FakeSessionOptions{});
}

std::string Completion(const std::string& members) {
  return R"({"model":"org/fake","prompt":"p","max_tokens":60,"temperature":1,"seed":3,)" + members +
         "}";
}

std::string Chat(const std::string& members) {
  return R"({"model":"org/fake","messages":[{"role":"user","content":"hi"}],"max_tokens":60,)"
         R"("temperature":1,"seed":3,)" +
         members + "}";
}

constexpr const char* kForm =
    R"("response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":
       {"type":"object","properties":{"n":{"type":"integer","minimum":10,"maximum":99},
        "c":{"enum":["red","green"]}},"required":["n","c"],"additionalProperties":false}}})";

json::Object Choice(const json::Object& body) {
  return body.at("choices").as_array().at(0).as_object();
}

std::string Message(const json::Object& body) {
  return std::string(Choice(body).at("message").as_object().at("content").as_string());
}

void ExpectForm(const std::string& text) {
  const auto value = json::Parse(text, {}, "answer");
  ASSERT_TRUE(value.has_value()) << text;
  const int64_t n = value->as_object().at("n").as_int64();
  EXPECT_TRUE(n >= 10 && n <= 99) << text;
  EXPECT_TRUE(value->as_object().at("c").is_string());
}

TEST(Structured, AChatKeepsToItsSchema) {
  FakeService service = Noise();
  const json::Object body = service.Post("/v1/chat/completions", Chat(kForm));
  ExpectForm(Message(body));
  EXPECT_EQ(Choice(body).at("finish_reason").as_string(), "stop");
}

TEST(Structured, AStreamIsTheSameAnswer) {
  FakeService service = Noise();
  const std::string whole = Message(service.Post("/v1/chat/completions", Chat(kForm)));
  std::string streamed;
  for (const std::string& event :
       service.Stream("/v1/chat/completions", Chat(std::string(kForm) + R"(,"stream":true)"))) {
    if (event == "[DONE]") continue;
    const json::Object chunk = json::Parse(event, {}, "event").value().as_object();
    const json::Object choice = Choice(chunk);
    const json::Object& delta = choice.at("delta").as_object();
    if (const json::Value* text = json::Find(delta, "content"))
      streamed += std::string(text->as_string());
  }
  EXPECT_EQ(streamed, whole);
}

TEST(Structured, EachOfSeveralChoicesKeepsToIt) {
  FakeService service = Noise();
  const json::Object body =
      service.Post("/v1/chat/completions", Chat(std::string(kForm) + R"(,"n":4)"));
  for (const json::Value& choice : body.at("choices").as_array())
    ExpectForm(std::string(choice.as_object().at("message").as_object().at("content").as_string()));
}

TEST(Structured, CompletionsTakeRegexChoiceAndGrammar) {
  FakeService service = Noise();
  const auto text = [&](const std::string& members) {
    return std::string(
        Choice(service.Post("/v1/completions", Completion(members))).at("text").as_string());
  };
  EXPECT_THAT(text(R"("guided_regex":"[ab]{3}-[0-9]{2}")"),
              ::testing::MatchesRegex("[ab]+-[0-9]+"));
  EXPECT_THAT(text(R"("guided_choice":["alpha","beta"])"), ::testing::AnyOf("alpha", "beta"));
  EXPECT_EQ(text(R"("guided_grammar":"start: \"x\" \"y\"")"), "xy");
  EXPECT_EQ(text(R"("structured_outputs":{"choice":["only"]})"), "only");
  // Its text does not show all that it asks for.
  EXPECT_EQ(text(R"("guided_grammar":"start: \"x\" <|im_start|> \"y\"")"), "xy");
  EXPECT_EQ(text(R"("guided_json":{"const":[1,"a"]})").substr(0, 3), "[1,");
  EXPECT_THAT(text(R"("response_format":{"type":"json_object"})"), StartsWith("{"));
}

struct Refusal {
  const char* members;
  const char* param;
  const char* message;
};

TEST(Structured, WhatCannotBeEnforcedIsRefusedWithFieldAndPlace) {
  FakeService service = Noise();
  const Refusal refusals[] = {
      {R"("guided_json":{"properties":{"a":{"not":{}}}})", "guided_json", "#/properties/a/not: "},
      {R"("guided_json":{"type":"objekt"})", "guided_json", "#/type: "},
      {R"("guided_json":"no json")", "guided_json", "no JSON"},
      {R"("guided_regex":"(")", "guided_regex", "guided_regex: "},
      {R"("guided_choice":[])", "guided_choice", "choices"},
      {R"("guided_grammar":"start: nowhere")", "guided_grammar", "nowhere"},
      {R"("structured_outputs":{"regex":"a","json":{}})", "structured_outputs", "both"},
      {R"("guided_regex":"a","response_format":{"type":"json_object"})", "guided_regex", "both"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"if":{},"then":{}}}})",
       "response_format", "#/if: "},
      {R"("guided_regex":"a","num_beams":2)", "", "beam search"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.members);
    const json::Object error =
        service.Post("/v1/completions", Completion(refusal.members), 400).at("error").as_object();
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr(refusal.message));
    if (*refusal.param == '\0') continue;
    EXPECT_EQ(error.at("param").as_string(), refusal.param);
  }
}

TEST(Structured, TagsInFreeTextHoldJson) {
  // The model says the trigger and then only wants to ramble.
  testing::FakeSessionOptions options;
  options.next = testing::Recite("so <f>junk", testing::kMark, testing::kImEnd);
  FakeService service(options);
  const json::Object body = service.Post(
      "/v1/chat/completions",
      R"({"model":"org/fake","messages":[{"role":"user","content":"hi"}],"max_tokens":60,
          "temperature":0,"response_format":{"type":"structural_tag","triggers":["<f>"],
          "structures":[{"begin":"<f>","end":"</f>","schema":{"enum":["yes"]}}]}})");
  EXPECT_THAT(Message(body), StartsWith("so <f>\"yes\"</f>"));
  service.Post("/v1/chat/completions",
               Chat(R"("response_format":{"type":"structural_tag","structures":[]})"), 400);
}

TEST(Structured, UnknownKeywordsAreAWarningAndUnderStrictAnError) {
  FakeService service = Noise();
  const auto form = [](bool strict) {
    return std::string(R"("response_format":{"type":"json_schema","json_schema":{"strict":)") +
           (strict ? "true" : "false") + R"(,"schema":{"const":1,"minLenght":2}}})";
  };
  const json::Object body = service.Post("/v1/chat/completions", Chat(form(false)));
  const json::Object warning = body.at("warnings").as_array().at(0).as_object();
  EXPECT_EQ(warning.at("code").as_string(), "unknown_keyword");
  EXPECT_THAT(std::string(warning.at("message").as_string()), HasSubstr("#/minLenght: "));
  service.Post("/v1/chat/completions", Chat(form(true)), 400);
}

TEST(Structured, CountersTellHowAnswersEnded) {
  FakeService service = Noise();
  service.Post("/v1/chat/completions", Chat(kForm));
  service.Post("/v1/chat/completions",
               Chat(std::string(kForm) + R"(,"max_completion_tokens":60,"stop":"\"")"));
  service.Post("/v1/completions",
               R"({"model":"org/fake","prompt":"p","max_tokens":2,"guided_regex":"[a]{9}"})");
  const auto page = service.Call("GET", "/metrics").body;
  const auto counted = [&page](const char* result, int count) {
    return page.find(std::string("tessera_structured_outputs_total{model_name=\"org/fake\",") +
                     "result=\"" + result + "\"} " + std::to_string(count)) != std::string::npos;
  };
  EXPECT_TRUE(counted("valid", 1)) << page;
  EXPECT_TRUE(counted("cut", 2)) << page;
  EXPECT_TRUE(counted("invalid", 0)) << page;
  EXPECT_THAT(page, HasSubstr("tessera_grammar_requests_total{model_name=\"org/fake\",result="
                              "\"cached\"} 1"));
}

}  // namespace
}  // namespace tessera::server
