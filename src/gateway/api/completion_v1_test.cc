// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/completion_v1.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::gateway {
namespace {

json::Object Object(std::string_view text) {
  return json::Parse(text, {}, "test")->get_object();
}

AskedCompletion Asked(std::string_view body, bool is_stream = false) {
  auto asked = ReadCompletion(Object(body), "e", is_stream);
  EXPECT_TRUE(asked.has_value()) << ErrorBody(asked.error());
  return *asked;
}

std::string ErrorOf(std::string_view body, bool is_stream = false) {
  const auto asked = ReadCompletion(Object(body), "e", is_stream);
  return asked.has_value() ? "accepted"
                           : std::to_string(asked.error().status) + ErrorBody(asked.error());
}

TEST(ReadCompletion, TakesWhatThePythonClientSends) {
  const AskedCompletion asked = Asked(R"({"prompt": "p", "max_new_tokens": 20, "temperature": 0.2,
    "stop_sequences": null, "return_token_log_probs": false, "presence_penalty": null,
    "frequency_penalty": null, "top_k": null, "top_p": null, "include_stop_str_in_output": null,
    "guided_json": null, "guided_regex": null, "guided_choice": null, "guided_grammar": null,
    "skip_special_tokens": true})");
  EXPECT_EQ(json::Serialize(asked.body),
            R"({"model":"e","prompt":"p","max_tokens":20,"logprobs":0,"temperature":0.2,)"
            R"("skip_special_tokens":true})");
  EXPECT_FALSE(asked.is_early);
}

TEST(ReadCompletion, TakesTheFirstVersionsForm) {
  const AskedCompletion asked =
      Asked(R"({"prompts": ["a", "b"], "max_new_tokens": 30, "temperature": 0.1})");
  EXPECT_TRUE(asked.is_early);
  EXPECT_EQ(json::Serialize(asked.body.at("prompt")), R"(["a","b"])");
}

TEST(ReadCompletion, NamesWhatIsWrong) {
  const struct {
    const char* body;
    const char* named;
  } cases[] = {
      {R"({"prompt": "p", "temperature": 0})", "max_new_tokens"},
      {R"({"max_new_tokens": 1, "temperature": 0})", "prompt"},
      {R"({"prompt": "p", "max_new_tokens": "many", "temperature": 0})", "max_new_tokens"},
      {R"({"prompt": "p", "max_new_tokens": 0, "temperature": 0})", "max_new_tokens"},
      {R"({"prompt": "p", "max_new_tokens": 1, "temperature": 1.5})", "temperature"},
      {R"({"prompt": "p", "max_new_tokens": 1, "temperature": 1, "top_k": 0})", "top_k"},
      {R"({"prompt": "p", "max_new_tokens": 1, "temperature": 0, "top_p": 0.5})", "top_p"},
      {R"({"prompt": "p", "max_new_tokens": 1, "temperature": 1, "top_p": 0})", "top_p"},
      {R"({"prompt": "p", "prompts": ["p"], "max_new_tokens": 1, "temperature": 0})", "prompts"},
      {R"({"prompts": [], "max_new_tokens": 1, "temperature": 0})", "prompts"},
      {R"({"prompts": [1], "max_new_tokens": 1, "temperature": 0})", "prompts"},
      {R"({"prompt": "p", "max_new_tokens": 1, "temperature": 0, "guided_regex": "a",
           "guided_choice": ["a"]})",
       "guided_regex"},
  };
  for (const auto& test : cases) {
    const std::string error = ErrorOf(test.body);
    EXPECT_TRUE(error.starts_with("4")) << test.body;
    EXPECT_NE(error.find(test.named), std::string::npos) << error;
  }
  EXPECT_TRUE(ErrorOf(R"({"prompts": ["p"], "max_new_tokens": 1, "temperature": 0})", true)
                  .starts_with("400"));
}

constexpr std::string_view kAnswer = R"({"choices": [
  {"index": 0, "text": "ab", "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-0.5, -1.0]}},
  {"index": 1, "text": "c", "logprobs": {"tokens": ["c"], "token_logprobs": [-0.1]}}],
  "usage": {"prompt_tokens": 7, "completion_tokens": 3}})";

TEST(CompletionAnswer, HasBothForms) {
  const auto later = CompletionAnswer(
      Asked(R"({"prompt": "p", "max_new_tokens": 2, "temperature": 0})"), kAnswer, "id");
  EXPECT_EQ(json::Serialize(*later),
            R"({"request_id":"id","output":{"text":"ab","num_completion_tokens":2,)"
            R"("num_prompt_tokens":7,"tokens":null}})");
  const auto early = CompletionAnswer(
      Asked(R"({"prompts": ["p", "q"], "max_new_tokens": 2, "temperature": 0})"), kAnswer, "id");
  EXPECT_EQ(json::Serialize(*early),
            R"({"status":"SUCCESS","outputs":[{"text":"ab","num_completion_tokens":2},)"
            R"({"text":"c","num_completion_tokens":1}],"traceback":null})");
  const auto tokens =
      CompletionAnswer(Asked(R"({"prompt": "p", "max_new_tokens": 2, "temperature": 0,
                                 "return_token_log_probs": true})"),
                       kAnswer, "id");
  EXPECT_NE(json::Serialize(*tokens).find(R"("tokens":[{"token":"a","log_prob":-0.5},)"),
            std::string::npos);
  for (const char* bad : {"", "[]", "{}", R"({"choices": []})", R"({"choices": [1]})"})
    EXPECT_FALSE(CompletionAnswer(Asked(R"({"prompt": "p", "max_new_tokens": 2,
                                            "temperature": 0})"),
                                  bad, "id")
                     .has_value());
}

TEST(CompletionChunks, CountTokensAndEndOnce) {
  CompletionChunks chunks(Asked(R"({"prompt": "p", "max_new_tokens": 3, "temperature": 0})", true),
                          "id");
  std::string all;
  for (const char* event :
       {R"({"choices":[{"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[-1.0]}}]})",
        R"({"choices":[{"text":"bc","finish_reason":"stop",
            "logprobs":{"tokens":["b","c"],"token_logprobs":[-1.0,-2.0]}}]})",
        R"({"choices":[{"text":"","finish_reason":"stop"}]})",
        R"({"choices":[],"usage":{"prompt_tokens":5}})", "[DONE]"}) {
    const auto fed = chunks.Feed(event);
    ASSERT_TRUE(fed.has_value());
    for (const std::string& chunk : *fed) all += chunk + "\n";
  }
  EXPECT_TRUE(chunks.is_finished());
  EXPECT_EQ(all,
            R"({"request_id":"id","output":{"text":"a","finished":false,"num_prompt_tokens":null,)"
            R"("num_completion_tokens":1,"token":null},"error":null})"
            "\n"
            R"({"request_id":"id","output":{"text":"bc","finished":false,"num_prompt_tokens":null,)"
            R"("num_completion_tokens":3,"token":null},"error":null})"
            "\n"
            R"({"request_id":"id","output":{"text":"","finished":true,"num_prompt_tokens":5,)"
            R"("num_completion_tokens":3,"token":null},"error":null})"
            "\n");
}

TEST(CompletionChunks, AWorkersErrorIsOurs) {
  CompletionChunks chunks(Asked(R"({"prompt": "p", "max_new_tokens": 3, "temperature": 0})", true),
                          "id");
  const auto fed = chunks.Feed(R"({"error":{"message":"out of pages"}})");
  ASSERT_EQ(fed->size(), 1u);
  EXPECT_NE((*fed)[0].find(R"("error":{"status_code":500,"content":{"error":"out of pages")"),
            std::string::npos);
  EXPECT_TRUE(chunks.is_finished());
}

}  // namespace
}  // namespace tessera::gateway
