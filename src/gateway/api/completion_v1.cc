// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/completion_v1.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "gateway/spec/field_table.h"

namespace tessera::gateway {
namespace {

using enum FieldKind;
constexpr double kTokensMax = 2147483647.0;
constexpr size_t kEarlyPromptsMax = 128;

// clang-format off
constexpr Field kFields[] = {
    {"prompt", kText, FieldUse::kOptional, 0, 64e6, "", "The text to go on with."},
    {"prompts", kTextList, FieldUse::kOptional, 0, 0, "", "The first version's form: several, answered in its form."},
    {"max_new_tokens", kInteger, FieldUse::kRequired, 1, kTokensMax, "", "Most tokens to generate."},
    {"temperature", kNumber, FieldUse::kRequired, 0, 1, "", "Spread of the choice; 0 is greedy."},
    {"stop_sequences", kTextList, FieldUse::kOptional, 0, 0, "", "Texts that end the answer."},
    {"return_token_log_probs", kBool, FieldUse::kOptional, 0, 0, "", "With each token and its log-probability."},
    {"presence_penalty", kNumber, FieldUse::kOptional, 0, 2, "", "Less of tokens that have come."},
    {"frequency_penalty", kNumber, FieldUse::kOptional, 0, 2, "", "Less of tokens by how often they have come."},
    {"top_k", kInteger, FieldUse::kOptional, -1, kTokensMax, "", "The k likeliest; -1 is all."},
    {"top_p", kNumber, FieldUse::kOptional, 0, 1, "", "Above 0."},
    {"include_stop_str_in_output", kBool, FieldUse::kOptional, 0, 0, "", "Keep the text that ended the answer."},
    {"guided_json", kObject, FieldUse::kOptional, 0, 0, "", "The answer is JSON of this schema. At most one of the guided_ fields."},
    {"guided_regex", kText, FieldUse::kOptional, 0, 1e6, "", "The answer matches it."},
    {"guided_choice", kTextList, FieldUse::kOptional, 0, 0, "", "The answer is one of these."},
    {"guided_grammar", kText, FieldUse::kOptional, 0, 1e6, "", "The answer follows it."},
    {"skip_special_tokens", kBool, FieldUse::kOptional, 0, 0, "", "Leave special tokens out of the text."},
};
// clang-format on
constexpr std::string_view kGuided[] = {"guided_json", "guided_regex", "guided_choice",
                                        "guided_grammar"};
// Same name and meaning at the worker.
constexpr std::string_view kSame[] = {"temperature",
                                      "presence_penalty",
                                      "frequency_penalty",
                                      "top_k",
                                      "top_p",
                                      "include_stop_str_in_output",
                                      "skip_special_tokens",
                                      "guided_json",
                                      "guided_regex",
                                      "guided_choice",
                                      "guided_grammar"};

std::unexpected<ApiError> Refuse(std::string text) {
  return std::unexpected(ApiError{.status = 400, .text = std::move(text)});
}

void CheckMembers(const json::Object& body, std::vector<FieldError>* errors) {
  const bool is_early = json::Find(body, "prompts") != nullptr;
  for (const Field& field : kFields) {
    const json::Value* value = json::Find(body, field.name);
    if (value != nullptr) {
      // The first version took temperatures beyond 1; the worker knows its own limit.
      Field known = field;
      if (is_early && field.name == "temperature") known.high = 100;
      CheckField(known, *value, errors);
    } else if (field.use == FieldUse::kRequired) {
      errors->push_back(
          {"missing", {"body", std::string(field.name)}, "Field required", json::Value()});
    }
  }
  if (!is_early && json::Find(body, "prompt") == nullptr)
    errors->push_back({"missing", {"body", "prompt"}, "Field required", json::Value()});
}

ApiResult<void> CheckMeaning(const json::Object& body, bool is_stream) {
  const json::Value* prompts = json::Find(body, "prompts");
  if (prompts != nullptr && json::Find(body, "prompt") != nullptr)
    return Refuse("prompt and prompts: give one of them");
  if (prompts != nullptr && is_stream) return Refuse("prompts: a stream takes one prompt");
  if (prompts != nullptr &&
      (prompts->get_array().empty() || prompts->get_array().size() > kEarlyPromptsMax))
    return Refuse(fmt::format("prompts: expected 1 to {} of them", kEarlyPromptsMax));
  const double temperature = json::Find(body, "temperature")->to_number<double>();
  const json::Value* top_k = json::Find(body, "top_k");
  const json::Value* top_p = json::Find(body, "top_p");
  if (top_k != nullptr && top_k->to_number<double>() == 0)
    return Refuse("top_k: 0 leaves no token; give -1 for all, or a number from 1 on");
  if (top_p != nullptr && top_p->to_number<double>() == 0) return Refuse("top_p: must be above 0");
  const bool has_top_k = top_k != nullptr && top_k->to_number<double>() != -1;
  const bool has_top_p = top_p != nullptr && top_p->to_number<double>() != 1;
  if (temperature == 0 && (has_top_k || has_top_p))
    return Refuse(fmt::format("{}: has no meaning with temperature 0, which is greedy",
                              has_top_k ? "top_k" : "top_p"));
  const auto guided = std::ranges::count_if(
      kGuided, [&](std::string_view name) { return json::Find(body, name) != nullptr; });
  if (guided > 1)
    return Refuse(fmt::format("{}: at most one of these can be given", fmt::join(kGuided, ", ")));
  return {};
}

std::string_view TextOf(const json::Object& object, std::string_view key) {
  const json::Value* value = json::Find(object, key);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

/// [{token, log_prob}] of a choice's logprobs.
json::Array Tokens(const json::Object& choice) {
  json::Array tokens;
  const json::Value* logprobs = json::Find(choice, "logprobs");
  if (logprobs == nullptr || !logprobs->is_object()) return tokens;
  const json::Value* names = json::Find(logprobs->get_object(), "tokens");
  const json::Value* values = json::Find(logprobs->get_object(), "token_logprobs");
  if (names == nullptr || values == nullptr || !names->is_array() || !values->is_array())
    return tokens;
  const size_t count = std::min(names->get_array().size(), values->get_array().size());
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(
        json::Object{{"token", names->get_array()[i]}, {"log_prob", values->get_array()[i]}});
  return tokens;
}

json::Value PromptTokens(const json::Object& body) {
  const json::Value* usage = json::Find(body, "usage");
  if (usage == nullptr || !usage->is_object()) return {};
  const json::Value* count = json::Find(usage->get_object(), "prompt_tokens");
  return count == nullptr ? json::Value() : *count;
}

Result<json::Object> ParseObject(std::string_view text) {
  TESSERA_ASSIGN_OR_RETURN(json::Value value, json::Parse(text, {}, "a worker's answer"));
  if (!value.is_object()) return Fail(DataLoss("a worker's answer is no object"));
  return std::move(value.get_object());
}

}  // namespace

std::span<const Field> CompletionFields() {
  return kFields;
}

ApiResult<AskedCompletion> ReadCompletion(const json::Object& body, std::string_view endpoint,
                                          bool is_stream) {
  ApiError error{.status = 422};
  CheckMembers(body, &error.fields);
  if (!error.fields.empty()) return std::unexpected(std::move(error));
  if (auto meaning = CheckMeaning(body, is_stream); !meaning.has_value())
    return std::unexpected(std::move(meaning).error());
  AskedCompletion asked;
  const json::Value* prompts = json::Find(body, "prompts");
  asked.is_early = prompts != nullptr;
  const json::Value& prompt = asked.is_early ? *prompts : *json::Find(body, "prompt");
  asked.prefix =
      std::string(asked.is_early ? prompt.get_array()[0].get_string() : prompt.get_string());
  const json::Value* tokens = json::Find(body, "return_token_log_probs");
  asked.wants_tokens = tokens != nullptr && tokens->get_bool();
  asked.body = {{"model", endpoint},
                {"prompt", prompt},
                {"max_tokens", *json::Find(body, "max_new_tokens")},
                // Tokens are counted by their log-probabilities, per choice and per chunk.
                {"logprobs", 0}};
  for (const std::string_view name : kSame)
    if (const json::Value* value = json::Find(body, name)) asked.body[name] = *value;
  if (const json::Value* stop = json::Find(body, "stop_sequences");
      stop != nullptr && !stop->get_array().empty())
    asked.body["stop"] = *stop;
  if (is_stream) {
    asked.body["stream"] = true;
    asked.body["stream_options"] = json::Object{{"include_usage", true}};
  }
  return asked;
}

Result<json::Object> CompletionAnswer(const AskedCompletion& asked, std::string_view worker_body,
                                      std::string_view request_id) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object body, ParseObject(worker_body));
  const json::Value* choices = json::Find(body, "choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty())
    return Fail(DataLoss("a worker's answer has no choices"));
  json::Array outputs;
  for (const json::Value& choice : choices->get_array()) {
    if (!choice.is_object()) return Fail(DataLoss("a worker's choice is no object"));
    json::Array tokens = Tokens(choice.get_object());
    json::Object output{{"text", TextOf(choice.get_object(), "text")},
                        {"num_completion_tokens", tokens.size()}};
    if (!asked.is_early) output["num_prompt_tokens"] = PromptTokens(body);
    if (!asked.is_early || asked.wants_tokens)
      output["tokens"] = asked.wants_tokens ? json::Value(std::move(tokens)) : json::Value();
    outputs.push_back(std::move(output));
  }
  if (asked.is_early)
    return json::Object{
        {"status", "SUCCESS"}, {"outputs", std::move(outputs)}, {"traceback", nullptr}};
  return json::Object{{"request_id", request_id}, {"output", std::move(outputs[0])}};
}

json::Object StreamError(int status, std::string_view text) {
  const std::time_t now = std::time(nullptr);
  return {{"status_code", status},
          {"content",
           json::Object{{"error", text},
                        {"timestamp", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now))}}}};
}

json::Object CompletionChunks::Output(std::string_view text, const json::Value& token) const {
  return {{"text", text},
          {"finished", false},
          {"num_prompt_tokens", nullptr},
          {"num_completion_tokens", completion_tokens_},
          {"token", token}};
}

std::string CompletionChunks::Chunk(json::Object output) const {
  return json::Serialize(
      json::Object{{"request_id", request_id_}, {"output", std::move(output)}, {"error", nullptr}});
}

std::string CompletionChunks::ErrorChunk(int status, std::string_view text) {
  is_finished_ = true;
  return json::Serialize(json::Object{
      {"request_id", request_id_}, {"output", nullptr}, {"error", StreamError(status, text)}});
}

Result<std::vector<std::string>> CompletionChunks::Feed(std::string_view data) {
  std::vector<std::string> chunks;
  if (is_finished_ || data == "[DONE]") return chunks;
  TESSERA_ASSIGN_OR_RETURN(const json::Object event, ParseObject(data));
  if (const json::Value* error = json::Find(event, "error")) {
    const std::string_view text =
        error->is_object() ? TextOf(error->get_object(), "message") : "the worker failed";
    chunks.push_back(ErrorChunk(500, text));
    return chunks;
  }
  const json::Value* choices = json::Find(event, "choices");
  const bool has_choice = choices != nullptr && choices->is_array() &&
                          !choices->get_array().empty() && choices->get_array()[0].is_object();
  if (has_choice) {
    const json::Object& choice = choices->get_array()[0].get_object();
    const json::Array tokens = Tokens(choice);
    completion_tokens_ += static_cast<int64_t>(tokens.size());
    const std::string_view text = TextOf(choice, "text");
    if (text.empty() && tokens.empty()) return chunks;
    // One chunk has room for one token: a piece of several is cut into as many, the text in the
    // last of them, so that nobody misses a token.
    if (asked_.wants_tokens)
      for (size_t i = 0; i + 1 < tokens.size(); ++i) chunks.push_back(Chunk(Output("", tokens[i])));
    const json::Value token =
        asked_.wants_tokens && !tokens.empty() ? tokens.back() : json::Value();
    chunks.push_back(Chunk(Output(text, token)));
  } else if (json::Find(event, "usage") != nullptr) {
    json::Object output = Output("", json::Value());
    output["finished"] = true;
    output["num_prompt_tokens"] = PromptTokens(event);
    is_finished_ = true;
    chunks.push_back(Chunk(std::move(output)));
  }
  return chunks;
}

}  // namespace tessera::gateway
