// SPDX-License-Identifier: Apache-2.0
//
// What answers say of probabilities: echo with logprobs, prompt_logprobs, best_of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/json.h"
#include "engine/logprobs.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using testing::FakeService;
using testing::FakeSession;
using testing::FakeSessionOptions;

std::string Completion(std::string_view members, std::string_view prompt = "\"say\\n\"") {
  return fmt::format(R"({{"model":"org/fake","prompt":{},"temperature":0,{}}})", prompt, members);
}

/// What the fake model gives `ids[i]` after those before it.
double Expected(const std::vector<int32_t>& ids, size_t i) {
  const FakeSession session(FakeService::Says("abc"));
  return static_cast<double>(
      engine::ComputeLogprobs(session.Logits(std::span(ids).first(i)), ids[i], 0).chosen);
}

const json::Array& At(const json::Object& choice, std::string_view name) {
  return choice.at("logprobs").at(name).as_array();
}

TEST(Scoring, EchoWithLogprobsHasPromptAndAnswer) {
  FakeService server(FakeService::Says("abc"));
  const json::Object body =
      server.Post("/v1/completions", Completion(R"("echo":true,"logprobs":2)"));
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("text").as_string(), "say\nabc");
  EXPECT_EQ(json::Serialize(At(choice, "tokens")),
            R"(["s","a","y","\n","a","b","c","<|im_end|>"])");
  EXPECT_EQ(json::Serialize(At(choice, "text_offset")), "[0,1,2,3,4,5,6,7]");
  const json::Array& values = At(choice, "token_logprobs");
  ASSERT_EQ(values.size(), 8u);
  EXPECT_TRUE(values[0].is_null());
  EXPECT_TRUE(At(choice, "top_logprobs")[0].is_null());
  const std::vector<int32_t> ids{'s', 'a', 'y', '\n', 'a', 'b', 'c', testing::kImEnd};
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_NEAR(values[i].to_number<double>(), Expected(ids, i), 1e-5) << i;
    const json::Object& top = At(choice, "top_logprobs")[i].as_object();
    EXPECT_GE(top.size(), 2u);
    EXPECT_EQ(top.at(At(choice, "tokens")[i].as_string()), values[i]);
  }
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64() +
                body.at("usage").at("completion_tokens").as_int64(),
            8);
}

TEST(Scoring, AStreamHasTheSameEntries) {
  FakeService server(FakeService::Says("abc"));
  const std::string members = R"("echo":true,"logprobs":1,"n":2)";
  const json::Object whole = server.Post("/v1/completions", Completion(members));
  std::string texts[2];
  json::Array values[2];
  for (const std::string& event :
       server.Stream("/v1/completions", Completion(members + ",\"stream\":true"))) {
    if (event == "[DONE]") continue;
    const json::Object chunk = json::Parse(event, {}, "event").value().as_object();
    const json::Object& choice = chunk.at("choices").at(0).as_object();
    const auto index = static_cast<size_t>(choice.at("index").as_int64());
    texts[index] += std::string_view(choice.at("text").as_string());
    for (const json::Value& value : At(choice, "token_logprobs")) values[index].push_back(value);
  }
  for (size_t i = 0; i < 2; ++i) {
    const json::Object& choice = whole.at("choices").at(i).as_object();
    EXPECT_EQ(texts[i], std::string_view(choice.at("text").as_string()));
    EXPECT_EQ(values[i], At(choice, "token_logprobs"));
  }
}

TEST(Scoring, NothingNeedBeGenerated) {
  FakeService server(FakeService::Says("abc"));
  const json::Object body = server.Post(
      "/v1/completions",
      Completion(R"("echo":true,"logprobs":0,"max_tokens":0)", R"([[115,97,121],"x"])"));
  ASSERT_EQ(body.at("choices").as_array().size(), 2u);
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("text").as_string(), "say");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
  EXPECT_EQ(At(choice, "tokens").size(), 3u);
  EXPECT_NEAR(At(choice, "token_logprobs")[2].to_number<double>(), Expected({'s', 'a', 'y'}, 2),
              1e-5);
  EXPECT_EQ(At(body.at("choices").at(1).as_object(), "tokens").size(), 1u);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 0);
  // The bare prompt, without scores.
  EXPECT_EQ(server.Post("/v1/completions", Completion(R"("echo":true,"max_tokens":0)"))
                .at("choices")
                .at(0)
                .at("text")
                .as_string(),
            "say\n");
  for (const char* members : {R"("max_tokens":0)", R"("max_tokens":0,"logprobs":1)"}) {
    const json::Object refused = server.Post("/v1/completions", Completion(members), 400);
    EXPECT_EQ(refused.at("error").at("param").as_string(), "max_tokens");
  }
}

TEST(Scoring, SpecialTokensThatTheTextLacksTakeNoRoom) {
  FakeService server(FakeService::Says("abc"));
  const json::Object body =
      server.Post("/v1/completions",
                  Completion(R"("echo":true,"logprobs":0,"max_tokens":0)", R"([256,97,256,98])"));
  const json::Object& choice = body.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("text").as_string(), "ab");
  EXPECT_EQ(json::Serialize(At(choice, "text_offset")), "[0,0,1,1]");
}

TEST(Scoring, PromptLogprobsAreWrittenAsVllmDoes) {
  FakeService server(FakeService::Says("abc"));
  const json::Object body =
      server.Post("/v1/completions", Completion(R"("prompt_logprobs":2,"max_tokens":1)"));
  const json::Array& entries = body.at("choices").at(0).at("prompt_logprobs").as_array();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_TRUE(entries[0].is_null());
  const json::Object& mine = entries[1].at("97").as_object();
  EXPECT_EQ(mine.at("decoded_token").as_string(), "a");
  EXPECT_NEAR(mine.at("logprob").to_number<double>(), Expected({'s', 'a'}, 1), 1e-5);
  EXPECT_GE(entries[1].as_object().size(), 2u);
  std::set<int64_t> ranks;
  for (const auto& [id, entry] : entries[1].as_object()) ranks.insert(entry.at("rank").as_int64());
  EXPECT_TRUE(ranks.contains(1) && ranks.contains(2));
  EXPECT_FALSE(body.at("choices").at(0).as_object().contains("text_offset"));
  const json::Object chat = server.Post(
      "/v1/chat/completions",
      R"({"model":"org/fake","messages":[{"role":"user","content":"x"}],"prompt_logprobs":0})");
  EXPECT_EQ(static_cast<int64_t>(chat.at("prompt_logprobs").as_array().size()),
            chat.at("usage").at("prompt_tokens").as_int64());
  EXPECT_EQ(server.Post("/v1/completions", Completion(R"("prompt_logprobs":1,"stream":true)"), 400)
                .at("error")
                .at("param")
                .as_string(),
            "prompt_logprobs");
}

double MeanLogprob(const json::Value& choice) {
  double sum = 0;
  const json::Array& values = choice.at("logprobs").at("token_logprobs").as_array();
  for (const json::Value& value : values) sum += value.to_number<double>();
  return sum / static_cast<double>(values.size());
}

TEST(Scoring, TheBestOfManyAreReturnedBestFirst) {
  // Hashed logits: sampled answers differ. No end token, so all have five tokens.
  FakeService server(FakeSessionOptions{});
  const auto post = [&](std::string_view members) {
    return server.Post(
        "/v1/completions",
        fmt::format(R"({{"model":"org/fake","prompt":["q","r"],"max_tokens":5,"seed":3,)"
                    R"("ignore_eos":true,"logprobs":0,{}}})",
                    members));
  };
  const json::Object all = post(R"("n":8)");
  const json::Object best = post(R"("n":2,"best_of":8)");
  ASSERT_EQ(best.at("choices").as_array().size(), 4u);
  EXPECT_EQ(best.at("usage").at("completion_tokens").as_int64(), 2 * 8 * 5);
  for (size_t p = 0; p < 2; ++p) {
    std::vector<std::pair<double, std::string>> expected;
    for (size_t i = 0; i < 8; ++i) {
      const json::Value& choice = all.at("choices").at(p * 8 + i);
      expected.emplace_back(MeanLogprob(choice), choice.at("text").as_string());
    }
    std::ranges::sort(expected, std::greater<>());
    for (size_t i = 0; i < 2; ++i) {
      const json::Value& choice = best.at("choices").at(p * 2 + i);
      EXPECT_EQ(choice.at("index").as_int64(), static_cast<int64_t>(p * 2 + i));
      EXPECT_EQ(std::string_view(choice.at("text").as_string()), expected[i].second);
    }
  }
}

TEST(Scoring, BestOfIsCheckedAgainstNAndStream) {
  FakeService server(FakeService::Says("abc"));
  for (const char* members : {R"("n":3,"best_of":2)", R"("best_of":2,"stream":true)",
                              R"("best_of":21)", R"("best_of":0)"})
    EXPECT_EQ(server.Post("/v1/completions", Completion(members), 400)
                  .at("error")
                  .at("param")
                  .as_string(),
              "best_of")
        << members;
  const json::Object body = server.Post("/v1/completions", Completion(R"("n":2,"best_of":2)"));
  EXPECT_EQ(body.at("choices").as_array().size(), 2u);
  EXPECT_TRUE(server.Post("/v1/completions", Completion(R"("best_of":3)"))
                  .at("choices")
                  .at(0)
                  .at("logprobs")
                  .is_null())
      << "what decides is not what was asked for";
}

TEST(Scoring, BeamSearchReturnsItsBestAnswers) {
  FakeService server(FakeSessionOptions{});
  const auto post = [&](std::string_view members) {
    return server.Post(
        "/v1/completions",
        fmt::format(R"({{"model":"org/fake","prompt":["q","r"],"max_tokens":5,{}}})", members));
  };
  const auto total = [](const json::Value& choice) {
    double sum = 0;
    for (const json::Value& value : choice.at("logprobs").at("token_logprobs").as_array())
      sum += value.to_number<double>();
    return sum;
  };
  const std::string ban = R"("logprobs":0,"ignore_eos":true,)";
  const json::Object body = post(ban + R"("num_beams":4,"n":3)");
  ASSERT_EQ(body.at("choices").as_array().size(), 6u);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 6 * 5);
  const json::Object greedy = post(ban + R"("temperature":0)");
  for (size_t p = 0; p < 2; ++p) {
    double last = 0;
    for (size_t i = 0; i < 3; ++i) {
      const json::Value& choice = body.at("choices").at(p * 3 + i);
      EXPECT_EQ(choice.at("index").as_int64(), static_cast<int64_t>(p * 3 + i));
      if (i > 0) {
        EXPECT_LE(total(choice), last) << "best first";
      }
      last = total(choice);
    }
    EXPECT_GE(total(body.at("choices").at(p * 3)), total(greedy.at("choices").at(p)));
  }
  // The two spellings mean the same, and so does a stream.
  EXPECT_EQ(post(ban + R"("use_beam_search":true,"best_of":4,"n":3)").at("choices"),
            body.at("choices"));
  std::map<int64_t, std::string> streamed;
  for (const std::string& event :
       server.Stream("/v1/completions",
                     R"({"model":"org/fake","prompt":["q","r"],"max_tokens":5,"num_beams":4,)"
                     R"("ignore_eos":true,"n":3,"stream":true})")) {
    if (event == "[DONE]") continue;
    const json::Object chunk = json::Parse(event, {}, "event").value().as_object();
    if (chunk.at("choices").as_array().empty()) continue;
    const json::Object& choice = chunk.at("choices").at(0).as_object();
    streamed[choice.at("index").as_int64()] += std::string_view(choice.at("text").as_string());
  }
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(streamed[static_cast<int64_t>(i)],
              std::string_view(body.at("choices").at(i).at("text").as_string()));
}

TEST(Scoring, BeamSearchSaysWhatItDoesNotUse) {
  FakeService server(FakeService::Says("abc"));
  const json::Object body = server.Post(
      "/v1/chat/completions", R"({"model":"org/fake","messages":[{"role":"user","content":"x"}],)"
                              R"("num_beams":2,"top_p":0.5,"temperature":0,"length_penalty":0.5})");
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content").as_string(), "abc");
  ASSERT_EQ(body.at("warnings").as_array().size(), 1u);
  EXPECT_EQ(body.at("warnings").at(0).at("param").as_string(), "top_p");
  EXPECT_EQ(server.Post("/v1/completions", Completion(R"("length_penalty":2)"))
                .at("warnings")
                .at(0)
                .at("param")
                .as_string(),
            "length_penalty");
  for (const auto& [members, field] : std::map<std::string, std::string>{
           {R"("num_beams":2,"n":3)", "n"},
           {R"("num_beams":33)", "num_beams"},
           {R"("num_beams":4,"use_beam_search":false)", "num_beams"},
           {R"("num_beams":4,"best_of":4)", "best_of"},
           {R"("num_beams":4,"cache_prompt":false)", "cache_prompt"},
           {R"("num_beams":4,"echo":true,"max_tokens":0)", "max_tokens"},
           {R"("num_beams":4,"length_penalty":11)", "length_penalty"}})
    EXPECT_EQ(server.Post("/v1/completions", Completion(members), 400)
                  .at("error")
                  .at("param")
                  .as_string(),
              field)
        << members;
}

TEST(Scoring, PriorityAndTimeoutAreTaken) {
  FakeService server(FakeSessionOptions{});
  const json::Object body =
      server.Post("/v1/completions", Completion(R"("priority":-3,"timeout":60.5)"));
  EXPECT_FALSE(body.contains("warnings"));
  const json::Object late =
      server.Post("/v1/completions",
                  Completion(R"("timeout":0.001,"max_tokens":250,"ignore_eos":true,"n":100)"), 504);
  EXPECT_EQ(late.at("error").at("code").as_string(), "deadline_exceeded");
  for (const char* members : {R"("timeout":0)", R"("timeout":86401)", R"("timeout":-1)"})
    EXPECT_EQ(server.Post("/v1/completions", Completion(members), 400)
                  .at("error")
                  .at("param")
                  .as_string(),
              "timeout");
  EXPECT_EQ(server.Post("/v1/completions", Completion(R"("priority":1000001)"), 400)
                .at("error")
                .at("param")
                .as_string(),
            "priority");
}

TEST(Scoring, TheTokenizerIntroducesItself) {
  FakeService server(FakeService::Says("abc"));
  const net::Response response = server.Call("GET", "/tokenizer_info");
  EXPECT_EQ(response.status, 200);
  const json::Object info = json::Parse(response.body, {}, "info").value().as_object();
  EXPECT_EQ(info.at("eos_token").as_string(), "<|im_end|>");
  EXPECT_TRUE(info.at("bos_token").is_null());
  EXPECT_EQ(info.at("model_max_length").as_int64(), 256);
}

}  // namespace
}  // namespace tessera::server
