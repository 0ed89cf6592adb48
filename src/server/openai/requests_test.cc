// SPDX-License-Identifier: Apache-2.0
//
// Request bodies -> values or errors: schema.cc, generation_fields.cc, completion_request.cc,
// chat_request.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/limits.h"
#include "server/limits.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/messages.h"
#include "support/fake_model.h"

namespace tessera::server::openai {
namespace {

const ServedModel& Model() {
  static const ServedModel model = testing::FakeServedModel();
  return model;
}

std::string CompletionBody(std::string_view members) {
  return fmt::format(R"({{"model":"org/fake","prompt":"x"{}{}}})", members.empty() ? "" : ",",
                     members);
}
std::string ChatBody(std::string_view members) {
  return fmt::format(R"({{"model":"org/fake","messages":[{{"role":"user","content":"x"}}]{}{}}})",
                     members.empty() ? "" : ",", members);
}
ApiResult<CompletionRequest> Completion(std::string_view members) {
  return ReadCompletionRequest(CompletionBody(members), Model());
}
ApiResult<ChatRequest> Chat(std::string_view body) {
  static const text::SpecialTokens specials(*Model().tokenizer);
  return ReadChatRequest(body, Model(), specials, 0);
}

TEST(OpenAiRequest, DefaultsAreTheModelsThenOurs) {
  const auto plain = Completion("");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->fields.sampling.temperature, 1.0);
  EXPECT_EQ(plain->fields.sampling.top_p, 1.0);
  EXPECT_EQ(plain->fields.sampling.top_k, 0);
  EXPECT_FALSE(plain->fields.max_tokens.has_value());
  EXPECT_TRUE(plain->fields.warnings.empty());
  ServedModel model = testing::FakeServedModel();
  model.defaults = {
      .temperature = 0.6, .top_p = 0.9, .top_k = 40, .min_p = {}, .repetition_penalty = {}};
  const auto tuned = ReadCompletionRequest(CompletionBody(R"("top_k":7)"), model);
  EXPECT_EQ(tuned->fields.sampling.temperature, 0.6);
  EXPECT_EQ(tuned->fields.sampling.top_p, 0.9);
  EXPECT_EQ(tuned->fields.sampling.top_k, 7);
}

TEST(OpenAiRequest, DoSampleFalseIsGreedyAndSaysWhatItOverrules) {
  const auto plain = Completion(R"("do_sample":false)");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->fields.sampling.temperature, 0);
  EXPECT_TRUE(plain->fields.warnings.empty());
  const auto both = Completion(R"("do_sample":false,"temperature":0.5)");
  EXPECT_EQ(both->fields.sampling.temperature, 0);
  ASSERT_EQ(both->fields.warnings.size(), 1u);
  EXPECT_EQ(both->fields.warnings[0].code, "normalized");
  EXPECT_EQ(both->fields.warnings[0].param, "temperature");
  const auto sampled = Completion(R"("do_sample":true,"temperature":0.5)");
  EXPECT_EQ(sampled->fields.sampling.temperature, 0.5);
  EXPECT_TRUE(sampled->fields.warnings.empty());
  const auto greedy = Completion(R"("do_sample":true,"temperature":0)");
  EXPECT_EQ(greedy->fields.sampling.temperature, 0);
  ASSERT_EQ(greedy->fields.warnings.size(), 1u);
  EXPECT_EQ(greedy->fields.warnings[0].param, "do_sample");
  EXPECT_EQ(Completion(R"("do_sample":"no")").error().param, "do_sample");
}

TEST(OpenAiRequest, ReadsEveryField) {
  const auto request = Completion(
      R"("max_tokens":5,"min_tokens":2,"temperature":0.5,"top_p":0.25,"top_k":3,"min_p":0.125,
      "typical_p":0.75,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.5,
      "logit_bias":{"65":-100,"66":2.5},"seed":18446744073709551615,"stop":["a","b"],
      "stop_token_ids":[1,2],"include_stop_str_in_output":true,"ignore_eos":true,
      "skip_special_tokens":false,"n":3,"stream":true,"stream_options":{"include_usage":true},
      "logprobs":4,"user":"me")");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  const GenerationFields& fields = request->fields;
  EXPECT_EQ(fields.max_tokens, 5);
  EXPECT_EQ(fields.min_tokens, 2);
  EXPECT_EQ(fields.sampling.temperature, 0.5);
  EXPECT_EQ(fields.sampling.top_p, 0.25);
  EXPECT_EQ(fields.sampling.top_k, 3);
  EXPECT_EQ(fields.sampling.min_p, 0.125);
  EXPECT_EQ(fields.sampling.typical_p, 0.75);
  EXPECT_EQ(fields.sampling.presence_penalty, 1);
  EXPECT_EQ(fields.sampling.frequency_penalty, -1);
  EXPECT_EQ(fields.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(fields.sampling.logit_bias,
            (std::vector<std::pair<text::TokenId, double>>{{65, -100}, {66, 2.5}}));
  EXPECT_EQ(fields.sampling.seed, 18446744073709551615u);
  EXPECT_EQ(fields.stop_strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.stop_ids, (std::vector<text::TokenId>{1, 2}));
  EXPECT_TRUE(fields.include_stop);
  EXPECT_TRUE(fields.ignore_eos);
  EXPECT_FALSE(fields.skip_special);
  EXPECT_EQ(fields.n, 3);
  EXPECT_TRUE(fields.stream);
  EXPECT_TRUE(fields.include_usage);
  EXPECT_EQ(fields.top_logprobs, 4);
  EXPECT_TRUE(fields.warnings.empty());
  EXPECT_TRUE(MakeStopParams(fields, Model(), 5).eos_ids.empty());
}

TEST(OpenAiRequest, ALongFieldNameIsCutBetweenCharacters) {
  // 99 bytes, then a character of two: cut by bytes it would be half a character.
  const auto request = Completion(fmt::format(R"("{}\u00e9\u00e9":1)", std::string(99, 'k')));
  ASSERT_TRUE(request.has_value()) << request.error().message;
  ASSERT_EQ(request->fields.warnings.size(), 1u);
  EXPECT_EQ(request->fields.warnings[0].param, std::string(99, 'k') + "\u00e9");
}

TEST(OpenAiRequest, NullMeansAbsent) {
  const auto request =
      Completion(R"("max_tokens":null,"stop":null,"logit_bias":null,"tools":null,"seed":null)");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_TRUE(request->fields.warnings.empty());
}

TEST(OpenAiRequest, ASeedIsDrawnWhenNoneIsGivenOrMinusOne) {
  const auto seed = [](std::string_view field) {
    return Completion(std::string(field))->fields.sampling.seed;
  };
  EXPECT_NE(seed(""), seed(""));
  EXPECT_NE(seed(R"("seed":-1)"), seed(R"("seed":-1)"));
  EXPECT_EQ(seed(R"("seed":-2)"), ~uint64_t{1});
  EXPECT_EQ(seed(R"("seed":0)"), 0u);
  EXPECT_EQ(seed(R"("seed":18446744073709551615)"), ~uint64_t{0});
}

TEST(OpenAiRequest, ABadValueNamesItsField) {
  const std::pair<const char*, const char*> cases[] = {
      {"temperature", "\"hot\""},
      {"temperature", "-0.1"},
      {"temperature", "2.0001"},
      {"temperature", "true"},
      {"top_p", "1.5"},
      {"top_p", "-1"},
      {"top_k", "-2"},
      {"top_k", "1.5"},
      {"min_p", "2"},
      {"typical_p", "-1"},
      {"max_tokens", "0"},
      {"max_tokens", "-1"},
      {"max_tokens", "\"ten\""},
      {"max_tokens", "1e30"},
      {"max_tokens", "99999999999999999999"},
      {"n", "0"},
      {"n", "1.5"},
      {"n", "129"},
      {"presence_penalty", "3"},
      {"frequency_penalty", "-3"},
      {"repetition_penalty", "0"},
      {"stream", "\"yes\""},
      {"stop", "5"},
      {"stop", "[5]"},
      {"stop", "\"\""},
      {"stop", "[\"\"]"},
      {"logit_bias", "{\"abc\":1}"},
      {"logit_bias", "{\"1\":101}"},
      {"logit_bias", "{\"260\":1}"},
      {"logit_bias", "{\"-1\":1}"},
      {"logit_bias", "{\"1\":\"x\"}"},
      {"logit_bias", "[]"},
      {"seed", "\"x\""},
      {"seed", "1.5"},
      {"stop_token_ids", "[260]"},
      {"stop_token_ids", "[\"a\"]"},
      {"min_tokens", "-1"},
      {"ignore_eos", "1"},
      {"user", "5"},
      {"stream_options", "{\"include_usage\":true}"},
      {"response_format", "{\"type\":\"yaml\"}"},
      {"response_format", "{}"},
      {"response_format", "{\"type\":\"json_schema\"}"},
      {"response_format", "{\"type\":\"json_schema\",\"json_schema\":{\"schema\":7}}"},
      {"guided_regex", "\"[\""},
      {"guided_choice", "[]"},
      {"guided_choice", "[1]"},
      {"guided_grammar", "\"start: nowhere\""},
      {"guided_json", "{\"type\":\"objekt\"}"},
      {"structured_outputs", "{\"json\":7}"},
      {"model", "5"},
  };
  for (const auto& [field, value] : cases) {
    const std::string member = fmt::format("\"{}\":{}", field, value);
    SCOPED_TRACE(member);
    const bool is_model = std::string_view(field) == "model";
    for (const auto& error :
         {is_model ? ReadCompletionRequest(R"({"model":5,"prompt":"x"})", Model()).error()
                   : Completion(member).error(),
          is_model ? Chat(R"({"model":5,"messages":[]})").error()
                   : Chat(ChatBody(member)).error()}) {
      EXPECT_EQ(error.http_status, 400);
      EXPECT_EQ(error.param, field);
      EXPECT_EQ(error.type, "invalid_request_error");
      EXPECT_NE(error.message.find(field), std::string::npos) << error.message;
    }
  }
}

TEST(OpenAiRequest, BoundsOfRangesAreIn) {
  for (const char* member :
       {"\"temperature\":2", "\"temperature\":0", "\"top_p\":0", "\"top_p\":1", "\"n\":128",
        "\"n\":1.0", "\"top_k\":-1", "\"presence_penalty\":-2", "\"max_tokens\":2147483647"})
    EXPECT_TRUE(Completion(member).has_value()) << member;
}

TEST(OpenAiRequest, ListsAreBounded) {
  const auto list = [](int64_t count, const char* entry) {
    std::string text = "[";
    for (int64_t i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", entry);
    return text + "]";
  };
  EXPECT_TRUE(Completion("\"stop\":" + list(engine::kStopStringsMax, "\"a\"")).has_value());
  EXPECT_EQ(Completion("\"stop\":" + list(engine::kStopStringsMax + 1, "\"a\"")).error().param,
            "stop");
  EXPECT_TRUE(Completion("\"stop_token_ids\":" + list(engine::kStopTokenIdsMax, "1")).has_value());
  EXPECT_FALSE(
      Completion("\"stop_token_ids\":" + list(engine::kStopTokenIdsMax + 1, "1")).has_value());
  const auto stop_of = [](int64_t bytes) {
    return "\"stop\":\"" + std::string(static_cast<size_t>(bytes), 'a') + "\"";
  };
  EXPECT_TRUE(Completion(stop_of(engine::kStopStringBytesMax)).has_value());
  EXPECT_FALSE(Completion(stop_of(engine::kStopStringBytesMax + 1)).has_value());
  const auto prompts = [&](size_t count) {
    return ReadCompletionRequest(
        R"({"model":"org/fake","prompt":)" + list(static_cast<int64_t>(count), "\"a\"") + "}",
        Model());
  };
  EXPECT_TRUE(prompts(kPromptsMax).has_value());
  EXPECT_FALSE(prompts(kPromptsMax + 1).has_value());
}

TEST(OpenAiRequest, LogitBiasAndLogprobsAreBounded) {
  const auto biases = [](int64_t count) {
    std::string members;
    // Leading zeros: more keys than the vocabulary has ids.
    for (int64_t i = 0; i < count; ++i) members += fmt::format("{}\"{:05}\":1", i ? "," : "", i);
    return Completion("\"logit_bias\":{" + members + "}");
  };
  EXPECT_EQ(biases(engine::kLogitBiasMax + 1).error().message,
            fmt::format("logit_bias has {} entries, expected at most {}", engine::kLogitBiasMax + 1,
                        engine::kLogitBiasMax));
  // Up to the limit it is the ids that are looked at.
  EXPECT_NE(biases(engine::kLogitBiasMax).error().message.find("token ids from 0"),
            std::string::npos);
  const auto logprobs = [](int count) {
    return Completion("\"logprobs\":" + std::to_string(count)).has_value();
  };
  EXPECT_TRUE(logprobs(engine::kTopLogprobsMax - 1));
  EXPECT_TRUE(logprobs(engine::kTopLogprobsMax));
  EXPECT_FALSE(logprobs(engine::kTopLogprobsMax + 1));
}

TEST(OpenAiRequest, JsonIsBoundedInDepthAndKeys) {
  const auto depth = [](size_t n) {  // The body itself is the first level.
    return Completion("\"x\":" + std::string(n - 1, '[') + std::string(n - 1, ']'));
  };
  EXPECT_TRUE(depth(kJsonDepthMax - 1).has_value());
  EXPECT_TRUE(depth(kJsonDepthMax).has_value());
  EXPECT_EQ(depth(kJsonDepthMax + 1).error().code, "invalid_json");
  const auto keys = [](uint64_t n) {
    std::string members;
    for (uint64_t i = 0; i < n; ++i) members += fmt::format("{}\"k{}\":1", i ? "," : "", i);
    return Completion("\"x\":{" + members + "}");
  };
  EXPECT_TRUE(keys(kJsonKeysMax - 1).has_value());
  EXPECT_TRUE(keys(kJsonKeysMax).has_value());
  EXPECT_EQ(keys(kJsonKeysMax + 1).error().code, "invalid_json");
}

TEST(OpenAiRequest, UnknownFieldsAreWarnedAboutAndIgnoredOnesAreNot) {
  const auto request =
      Completion(R"("frobnicate":1,"user":"u","store":false,"metadata":{"a":"b"})");
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->fields.warnings.size(), 1u);
  EXPECT_EQ(request->fields.warnings[0].code, "unknown_field");
  EXPECT_EQ(request->fields.warnings[0].param, "frobnicate");
}

TEST(OpenAiRequest, ManyWarningsAreSummedUp) {
  std::vector<Warning> warnings(kWarningsMax);
  EXPECT_EQ(WarningsBody(warnings).size(), kWarningsMax);
  warnings.resize(kWarningsMax + 5);
  const json::Array body = WarningsBody(warnings);
  EXPECT_EQ(body.size(), kWarningsMax + 1);
  EXPECT_EQ(body.back().at("message").as_string(), "and 5 more");
}

TEST(OpenAiRequest, NoBodyMakesMoreWarningsThanAreHeld) {
  for (const size_t count : {kWarningsHeldMax - 1, kWarningsHeldMax, kWarningsHeldMax + 1}) {
    std::string members;
    for (size_t i = 0; i < count; ++i) members += fmt::format(",\"u{}\":1", i);
    const auto request = Completion(members.substr(1));
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->fields.warnings.size(), std::min(count, kWarningsHeldMax));
    EXPECT_EQ(WarningsBody(request->fields.warnings).back().at("message").as_string(),
              count < kWarningsHeldMax ? "and 1007 more" : "and 1008 more at least");
  }
}

TEST(OpenAiRequest, WhatIsNotBuiltIsRefusedByName) {
  for (const Field& field : RequestFields()) {
    if (field.use != Use::kRefused) continue;
    const std::string member = fmt::format("\"{}\":{{\"a\":1}}", field.name);
    if ((field.apis & kCompletions) != 0) {
      EXPECT_EQ(Completion(member).error().param, field.name);
    }
    if ((field.apis & kChat) != 0) {
      EXPECT_EQ(Chat(ChatBody(member)).error().param, field.name);
    }
  }
  EXPECT_TRUE(Chat(ChatBody(R"("tools":[],"tool_choice":"none","response_format":{"type":"text"})"))
                  .has_value());
}

TEST(OpenAiRequest, TheSchemaHasOneRowForEachFieldAndPlace) {
  std::set<std::pair<std::string_view, unsigned>> seen;
  for (const Field& field : RequestFields()) {
    EXPECT_FALSE(field.meaning.empty());
    for (unsigned api = 1; api <= kDetokenize; api *= 2)
      if ((field.apis & api) != 0) {
        EXPECT_TRUE(seen.emplace(field.name, api).second) << field.name;
      }
  }
}

TEST(OpenAiRequest, ModelMustBeThisOne) {
  const auto missing = ReadCompletionRequest(R"({"prompt":"x"})", Model());
  EXPECT_EQ(missing.error().param, "model");
  const auto other = ReadCompletionRequest(R"({"model":"gpt-nope","prompt":"x"})", Model());
  EXPECT_EQ(other.error().http_status, 404);
  EXPECT_EQ(other.error().code, "model_not_found");
  EXPECT_NE(other.error().message.find("gpt-nope"), std::string::npos);
}

TEST(OpenAiRequest, BrokenBodiesAreRefused) {
  for (const std::string& body :
       {std::string(""), std::string("{"), std::string(R"({"model": })"), std::string("[]"),
        std::string("\"text\""), std::string("null"), std::string("\xff\xfe"),
        std::string(R"({"model":"org/fake","prompt":"x"} 1)"),
        std::string(R"({"model":"org/fake","prompt":"x","n":NaN})"),
        std::string(R"({"model":"org/fake","prompt":"x","temperature":1e999999})"),
        std::string(R"({"model":"org/fake","model":"b","prompt":"x"})"),
        std::string(100'000, '[') + std::string(100'000, ']')}) {
    const auto request = ReadCompletionRequest(body, Model());
    ASSERT_FALSE(request.has_value()) << body.substr(0, 50);
    EXPECT_EQ(request.error().http_status, 400);
  }
}

TEST(CompletionRequest, PromptMayBeTextIdsOrListsOfEither) {
  const auto prompts = [](std::string_view json) {
    return ReadCompletionRequest(
        fmt::format(R"({{"model":"org/fake","echo":true,"prompt":{}}})", json), Model());
  };
  EXPECT_EQ(prompts("\"ab\"")->prompts[0]->ids, (std::vector<text::TokenId>{97, 98}));
  EXPECT_EQ(prompts("[97,98]")->prompts[0]->ids, (std::vector<text::TokenId>{97, 98}));
  EXPECT_EQ(prompts("[97,98]")->prompts[0]->text, "ab");
  EXPECT_EQ(prompts("[\"a\",\"b\"]")->prompts.size(), 2u);
  EXPECT_EQ(prompts("[[97],[98,99]]")->prompts[1]->ids, (std::vector<text::TokenId>{98, 99}));
  EXPECT_EQ(prompts("[\"a\",[98]]")->prompts[1]->ids, (std::vector<text::TokenId>{98}));
  for (const char* bad : {"{\"a\":1}", "[]", "\"\"", "[[]]", "[1000000000]", "[-1]", "[260]",
                          "[1.5]", "5", "[\"a\",5]", "[97,\"a\"]", "[null]", "true"})
    EXPECT_EQ(prompts(bad).error().param, "prompt") << bad;
  EXPECT_EQ(ReadCompletionRequest(R"({"model":"org/fake"})", Model()).error().param, "prompt");
}

TEST(CompletionRequest, ChoicesAreBounded) {
  std::string prompts = "\"a\"";
  for (int i = 1; i < 3; ++i) prompts += ",\"a\"";
  const auto read = [&](int n) {
    return ReadCompletionRequest(
        fmt::format(R"({{"model":"org/fake","prompt":[{}],"n":{}}})", prompts, n), Model());
  };
  EXPECT_TRUE(read(85).has_value());  // 255
  EXPECT_EQ(read(86).error().param, "n");
}

TEST(CompletionRequest, AnswersOfOneRequestAreBounded) {
  const auto with = [](size_t prompts, int64_t n) {
    std::string list = "\"x\"";
    for (size_t i = 1; i < prompts; ++i) list += ",\"x\"";
    return ReadCompletionRequest(
        fmt::format(R"({{"model":"org/fake","prompt":[{}],"n":{}}})", list, n), Model());
  };
  static_assert(kChoicesMax == 256 && kChoicesPerPromptMax == 128);
  EXPECT_TRUE(with(3, 85).has_value()) << 255;
  EXPECT_TRUE(with(2, 128).has_value()) << 256;
  EXPECT_EQ(with(3, 86).error().param, "n") << "258; 257 is a prime";
  EXPECT_TRUE(with(1, kChoicesPerPromptMax - 1).has_value());
  EXPECT_TRUE(with(1, kChoicesPerPromptMax).has_value());
  EXPECT_EQ(with(1, kChoicesPerPromptMax + 1).error().param, "n");
}

TEST(CheckLength, NamesTheNumbersAndIsExact) {
  EXPECT_FALSE(CheckLength(99, std::nullopt, 100, "prompt").has_value());
  EXPECT_FALSE(CheckLength(90, 10, 100, "prompt").has_value());
  const auto long_prompt = CheckLength(100, std::nullopt, 100, "prompt");
  ASSERT_TRUE(long_prompt.has_value());
  EXPECT_EQ(long_prompt->param, "prompt");
  const auto both = CheckLength(91, 10, 100, "prompt");
  ASSERT_TRUE(both.has_value());
  for (const char* number : {"91", "10", "100"})
    EXPECT_NE(both->message.find(number), std::string::npos);
  EXPECT_TRUE(CheckLength(1, INT64_MAX, 100, "prompt").has_value());
}

TEST(ChatRequest, LogprobsAndTopLogprobs) {
  EXPECT_EQ(Chat(ChatBody("\"logprobs\":true"))->fields.top_logprobs, 0);
  EXPECT_EQ(Chat(ChatBody("\"logprobs\":true,\"top_logprobs\":20"))->fields.top_logprobs, 20);
  EXPECT_EQ(Chat(ChatBody("\"logprobs\":false"))->fields.top_logprobs, -1);
  EXPECT_EQ(Chat(ChatBody("\"logprobs\":true,\"top_logprobs\":21")).error().param, "top_logprobs");
  EXPECT_EQ(Chat(ChatBody("\"top_logprobs\":2")).error().param, "top_logprobs");
  EXPECT_EQ(Completion("\"logprobs\":21").error().param, "logprobs");
}

TEST(ChatRequest, MaxTokensHasTwoNamesThatMayNotDisagree) {
  EXPECT_EQ(Chat(ChatBody("\"max_completion_tokens\":7"))->fields.max_tokens, 7);
  EXPECT_EQ(Chat(ChatBody("\"max_completion_tokens\":7,\"max_tokens\":7"))->fields.max_tokens, 7);
  EXPECT_EQ(Chat(ChatBody("\"max_completion_tokens\":7,\"max_tokens\":8")).error().param,
            "max_tokens");
  EXPECT_EQ(Chat(ChatBody("\"min_tokens\":8,\"max_tokens\":7")).error().param, "min_tokens");
}

TEST(ChatRequest, MessagesAndPartsAreBounded) {
  const auto messages = [](size_t count) {
    json::Value list = json::Array(count, json::Object{{"role", "user"}, {"content", "x"}});
    return NormalizeMessages(&list).has_value();
  };
  EXPECT_TRUE(messages(kMessagesMax - 1));
  EXPECT_TRUE(messages(kMessagesMax));
  EXPECT_FALSE(messages(kMessagesMax + 1));
  const auto parts = [](size_t count) {
    json::Array list(count, json::Object{{"type", "text"}, {"text", "x"}});
    json::Value one = json::Array{json::Object{{"role", "user"}, {"content", std::move(list)}}};
    return NormalizeMessages(&one).has_value();
  };
  EXPECT_TRUE(parts(kContentPartsMax - 1));
  EXPECT_TRUE(parts(kContentPartsMax));
  EXPECT_FALSE(parts(kContentPartsMax + 1));
}

TEST(ChatRequest, BadMessagesAreNamed) {
  for (const char* messages :
       {"[]", "\"hi\"", "[5]", R"([{"content":"x"}])", R"([{"role":"wizard","content":"x"}])",
        R"([{"role":"user"}])", R"([{"role":"user","content":null}])",
        R"([{"role":"user","content":5}])", R"([{"role":"user","content":[]}])",
        R"([{"role":"user","content":["x"]}])",
        R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}])",
        R"([{"role":"user","content":[{"type":"text"}]}])", R"([{"role":1,"content":"x"}])",
        R"([{"role":"assistant","content":"","tool_calls":5}])",
        R"([{"role":"assistant","content":"","tool_calls":[{"id":"1"}]}])",
        R"([{"role":"user","content":"raise"}])"}) {
    const auto request = Chat(fmt::format(R"({{"model":"org/fake","messages":{}}})", messages));
    ASSERT_FALSE(request.has_value()) << messages;
    EXPECT_EQ(request.error().http_status, 400);
    EXPECT_EQ(request.error().param, "messages");
  }
  EXPECT_EQ(Chat(R"({"model":"org/fake"})").error().param, "messages");
}

TEST(ChatRequest, MessagesAreNormalisedAndEachChangeIsTold) {
  json::Value messages = json::Parse(R"([{"role":"developer","content":"be kind"},
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
        {"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"not json"}}]},
        {"role":"assistant","content":null},
        {"role":"tool","content":"ok","tool_call_id":"1"}])",
                                     {}, "test")
                             .value();
  const auto warnings = NormalizeMessages(&messages);
  ASSERT_TRUE(warnings.has_value());
  EXPECT_EQ(messages.at(0).at("role").as_string(), "system");
  EXPECT_EQ(messages.at(1).at("content").as_string(), "a\nb");
  EXPECT_EQ(messages.at(2).at("content").as_string(), "");
  EXPECT_EQ(messages.at(2).at("tool_calls").at(0).at("function").at("arguments").at("x").as_int64(),
            1);
  EXPECT_TRUE(messages.at(3).at("tool_calls").at(0).at("function").at("arguments").is_string());
  ASSERT_EQ(warnings->size(), 4u);  // Not of the arguments that are an object now.
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE((*warnings)[i].message.starts_with(fmt::format("messages[{}].", i < 2 ? i : i + 1)))
        << (*warnings)[i].message;
}

TEST(ChatRequest, UnknownMembersOfMessagesAreNamed) {
  json::Value messages =
      json::Parse(R"([{"role":"user","content":"a","zzz":1,"null_is_absent":null},
        {"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]},
        {"role":"assistant","content":"","refusal":"","annotations":[],"name":"n",
         "tool_calls":[{"id":"1","more":1,"function":{"name":"f","arguments":{},"extra":2}}]}])",
                  {}, "test")
          .value();
  const auto warnings = NormalizeMessages(&messages);
  ASSERT_TRUE(warnings.has_value());
  std::vector<std::string> params;
  for (const Warning& warning : *warnings)
    if (warning.code == "unknown_field") params.push_back(warning.param);
  EXPECT_EQ(params,
            (std::vector<std::string>{"messages[0].zzz", "messages[1].content[0].cache_control",
                                      "messages[2].tool_calls[0].more",
                                      "messages[2].tool_calls[0].function.extra"}));
}

TEST(ChatRequest, AModelWithoutTemplateSaysSo) {
  ServedModel model = testing::FakeServedModel();
  model.chat_template = nullptr;
  const auto request =
      ReadChatRequest(ChatBody(""), model, text::SpecialTokens(*model.tokenizer), 0);
  ASSERT_FALSE(request.has_value());
  EXPECT_NE(request.error().message.find("no chat template"), std::string::npos);
}

}  // namespace
}  // namespace tessera::server::openai
