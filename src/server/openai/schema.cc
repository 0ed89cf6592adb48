// SPDX-License-Identifier: Apache-2.0
#include "server/openai/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/limits.h"
#include "server/limits.h"

namespace tessera::server::openai {
namespace {

constexpr double kAnyInteger = 9007199254740992.0;  // 2^53: what every JSON reader keeps exact.
constexpr double kTimeoutMin = 0.001, kTimeoutMax = 86400;
constexpr double kTokensMax = 2147483647.0;

// clang-format off
constexpr Field kFields[] = {
    // name, where, kind, low, high, use, meaning
    {"model", kBoth | kEmbeddings, Kind::kString, 0, 0, Use::kUsed, "Which model; must be the one served here."},
    {"model", kRender | kDetokenize, Kind::kString, 0, 0, Use::kUsed, "May be left out."},
    {"prompt", kCompletions, Kind::kAny, 0, 0, Use::kUsed, "Text, token ids, or a list of either."},
    {"prompt", kTokenize, Kind::kString, 0, 0, Use::kUsed, "Text to tokenise; or give messages."},
    {"messages", kChat | kRender, Kind::kArray, 0, 0, Use::kUsed, "The conversation so far."},
    {"tokens", kDetokenize, Kind::kArray, 0, 0, Use::kUsed, "Token ids."},
    {"max_tokens", kCompletions, Kind::kInteger, 0, kTokensMax, Use::kUsed, "Most tokens to generate (16 by default); 0 only with echo or prompt_logprobs."},
    {"max_tokens", kChat, Kind::kInteger, 1, kTokensMax, Use::kUsed, "Most tokens to generate (what fits by default)."},
    {"max_completion_tokens", kCompletions, Kind::kInteger, 0, kTokensMax, Use::kUsed, "The newer name of max_tokens."},
    {"max_completion_tokens", kChat, Kind::kInteger, 1, kTokensMax, Use::kUsed, "The newer name of max_tokens."},
    {"min_tokens", kBoth, Kind::kInteger, 0, kTokensMax, Use::kUsed, "No end and no stop string before that many tokens."},
    {"temperature", kBoth, Kind::kNumber, 0, 2, Use::kUsed, "Spread of the choice; 0 is greedy."},
    {"do_sample", kBoth, Kind::kBool, 0, 0, Use::kUsed, "false is greedy, whatever temperature says; true changes nothing."},
    {"top_p", kBoth, Kind::kNumber, 0, 1, Use::kUsed, "Smallest set of likeliest tokens with that probability together."},
    {"top_k", kBoth, Kind::kInteger, -1, kTokensMax, Use::kUsed, "The k likeliest tokens; 0 or -1 is off."},
    {"min_p", kBoth, Kind::kNumber, 0, 1, Use::kUsed, "Least probability relative to the likeliest token."},
    {"typical_p", kBoth, Kind::kNumber, 0, 1, Use::kUsed, "Locally typical tokens with that probability together; 1 is off."},
    {"presence_penalty", kBoth, Kind::kNumber, -2, 2, Use::kUsed, "Taken from the logit of each token generated before."},
    {"frequency_penalty", kBoth, Kind::kNumber, -2, 2, Use::kUsed, "The same, times its count."},
    {"repetition_penalty", kBoth, Kind::kNumber, 0.01, 100, Use::kUsed, "Divides the logit of tokens in prompt or answer; 1 is off."},
    {"dry_multiplier", kBoth, Kind::kNumber, 0, 100, Use::kUsed, "DRY: taken from the logit of a token that would go on with a repetition; 0 is off."},
    {"dry_base", kBoth, Kind::kNumber, 1, 100, Use::kUsed, "DRY: factor for each token that the repetition is longer than dry_allowed_length (default 1.75)."},
    {"dry_allowed_length", kBoth, Kind::kInteger, 1, engine::kDryLastTokensMax, Use::kUsed, "DRY: tokens of the shortest repetition that counts (default 2)."},
    {"dry_penalty_last_n", kBoth, Kind::kInteger, -1, engine::kDryLastTokensMax, Use::kUsed, "DRY: so many tokens back; -1 is all (default), 0 is off."},
    {"dry_sequence_breakers", kBoth, Kind::kArray, 0, 0, Use::kUsed, "DRY: no repetition reaches across a token with one of these strings (default newline, colon, quote, asterisk)."},
    {"xtc_probability", kBoth, Kind::kNumber, 0, 1, Use::kUsed, "XTC: how often all likely tokens but the least likely of them are taken out; 0 is off."},
    {"xtc_threshold", kBoth, Kind::kNumber, 0, 1, Use::kUsed, "XTC: probability from which on a token is likely (default 0.1)."},
    {"logit_bias", kBoth, Kind::kObject, 0, 0, Use::kUsed, "Token id -> -100 to 100, added to its logit."},
    {"seed", kBoth, Kind::kInteger, -9.3e18, 1.9e19, Use::kUsed, "Same seed, same answer. Drawn when absent or -1."},
    {"stop", kBoth, Kind::kStringOrArray, 0, 0, Use::kUsed, "Strings that end the answer."},
    {"stop_token_ids", kBoth, Kind::kArray, 0, 0, Use::kUsed, "Tokens that end the answer."},
    {"include_stop_str_in_output", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Keep the stop string in the text."},
    {"ignore_eos", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Go on after an end-of-sequence token."},
    {"skip_special_tokens", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Leave special tokens out of the text (default true)."},
    {"n", kBoth, Kind::kInteger, 1, kChoicesPerPromptMax, Use::kUsed, "Answers per prompt."},
    {"stream", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Send tokens as server-sent events."},
    {"stream_options", kBoth, Kind::kObject, 0, 0, Use::kUsed, "include_usage: a last chunk with usage; include_progress: chunks while the prompt is computed; resumable: the stream can be gone on with."},
    {"suffix", kCompletions, Kind::kString, 0, 0, Use::kUsed, "Text after the gap that the answer fills; for models trained for it."},
    {"echo", kCompletions, Kind::kBool, 0, 0, Use::kUsed, "The text begins with the prompt; with logprobs these too."},
    {"logprobs", kCompletions, Kind::kInteger, 0, 20, Use::kUsed, "Log-probabilities of so many tokens at each place."},
    {"logprobs", kChat, Kind::kBool, 0, 0, Use::kUsed, "Log-probabilities of the answer's tokens."},
    {"top_logprobs", kChat, Kind::kInteger, 0, 20, Use::kUsed, "And of so many alternatives."},
    {"add_special_tokens", kCompletions | kTokenize | kEmbeddings, Kind::kBool, 0, 0, Use::kUsed, "Let the tokenizer add its BOS and the like (default true)."},
    {"add_generation_prompt", kChat | kRender, Kind::kBool, 0, 0, Use::kUsed, "End the prompt with the assistant's turn (default true)."},
    {"cache_prompt", kBoth | kEmbeddings, Kind::kBool, 0, 0, Use::kUsed, "Take the prompt's beginning from the prefix cache, and leave it there (default true)."},
    {"strict", kBoth | kRender | kDetokenize | kEmbeddings, Kind::kBool, 0, 0, Use::kUsed, "What would be a warning is an error instead."},
    {"tools", kChat | kRender, Kind::kArray, 0, 0, Use::kUsed, "Functions the model may call, at most 128: {\"type\": \"function\", \"function\": {name, description?, parameters?, strict?}}."},
    {"tool_choice", kChat, Kind::kStringOrObject, 0, 0, Use::kUsed, "none, auto (default with tools), required, or one function by name."},
    {"parallel_tool_calls", kChat, Kind::kBool, 0, 0, Use::kUsed, "Whether an answer may hold more than one call (default true)."},
    {"functions", kChat, Kind::kArray, 0, 0, Use::kUsed, "The older name of tools: the functions themselves; the answer then has function_call."},
    {"function_call", kChat, Kind::kStringOrObject, 0, 0, Use::kUsed, "The older name of tool_choice: none, auto or {\"name\": ...}."},
    {"separate_reasoning", kChat, Kind::kBool, 0, 0, Use::kUsed, "Thoughts are reasoning_content instead of text (default: true if the server has --reasoning-parser)."},
    {"include_reasoning", kChat, Kind::kBool, 0, 0, Use::kUsed, "false leaves thoughts out of the answer."},
    {"thinking_token_budget", kChat, Kind::kInteger, 0, kTokensMax, Use::kUsed, "Most tokens of thoughts; then the mark that ends them follows."},
    {"reasoning_effort", kChat | kRender, Kind::kString, 0, 0, Use::kUsed, "Given to the chat template."},
    {"continue_final_message", kChat | kRender, Kind::kBool, 0, 0, Use::kUsed, "The answer goes on within the last message instead of after it."},
    {"priority", kBoth, Kind::kInteger, -1000000, 1000000, Use::kUsed, "Who comes first when not all can run: lesser numbers do (default 0)."},
    {"timeout", kBoth, Kind::kNumber, kTimeoutMin, kTimeoutMax, Use::kUsed, "Seconds that the answer may take from its arrival; then it ends with 504."},
    {"documents", kChat | kApplyTemplate, Kind::kArray, 0, 0, Use::kUsed, "Given to the chat template."},
    {"chat_template_kwargs", kChat | kRender, Kind::kObject, 0, 0, Use::kUsed, "More variables for the chat template."},
    {"response_format", kBoth, Kind::kObject, 0, 0, Use::kUsed, "What form the output has: type text, json_object, json_schema or structural_tag; see below."},
    {"prompt_logprobs", kBoth, Kind::kInteger, 0, 20, Use::kUsed, "Log-probabilities of the prompt's tokens and of so many alternatives. Not in a stream."},
    {"best_of", kCompletions, Kind::kInteger, 1, 20, Use::kUsed, "So many answers are generated, the n likeliest (mean log-probability of a token) returned. Not in a stream."},
    {"num_beams", kBoth, Kind::kInteger, 1, engine::kBeamsMax, Use::kUsed, "More than 1: beam search of that width; the n best answers are returned. It draws nothing."},
    {"use_beam_search", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Beam search of width n or best_of, as vLLM has it."},
    {"length_penalty", kBoth, Kind::kNumber, -10, 10, Use::kUsed, "A beam's score is its log-probability / tokens ^ length_penalty (default 1)."},
    {"early_stopping", kBoth, Kind::kBool, 0, 0, Use::kUsed, "Beam search ends as soon as num_beams answers are complete (default false: when none alive scores better)."},
    {"input", kEmbeddings, Kind::kStringOrArray, 0, 0, Use::kUsed, "Text, token ids, or a list of either."},
    {"encoding_format", kEmbeddings, Kind::kString, 0, 0, Use::kUsed, "float (default) or base64: little-endian float32."},
    {"dimensions", kEmbeddings, Kind::kInteger, 1, kTokensMax, Use::kUsed, "Only the first so many values; has a meaning for models trained for it."},
    {"pooling", kEmbeddings, Kind::kString, 0, 0, Use::kUsed, "mean (default) or last: of the last hidden states."},
    {"normalize", kEmbeddings, Kind::kBool, 0, 0, Use::kUsed, "To length 1 (default true)."},
    {"user", kBoth | kEmbeddings, Kind::kString, 0, 0, Use::kIgnored, "Who asks."},
    {"safety_identifier", kBoth, Kind::kString, 0, 0, Use::kIgnored, "Who asks."},
    {"prompt_cache_key", kBoth, Kind::kString, 0, 0, Use::kIgnored, "A hint for caches of hosted services."},
    {"metadata", kBoth, Kind::kObject, 0, 0, Use::kIgnored, "For the client's own records."},
    {"store", kBoth, Kind::kBool, 0, 0, Use::kIgnored, "Nothing is stored here."},
    {"service_tier", kBoth, Kind::kString, 0, 0, Use::kIgnored, "There is one tier."},
    {"guided_json", kBoth, Kind::kAny, 0, 0, Use::kUsed, "A JSON schema that the output keeps to."},
    {"guided_regex", kBoth, Kind::kString, 0, 0, Use::kUsed, "A regular expression that the whole output matches."},
    {"guided_choice", kBoth, Kind::kArray, 0, 0, Use::kUsed, "Strings, one of which is the output."},
    {"guided_grammar", kBoth, Kind::kString, 0, 0, Use::kUsed, "A Lark grammar that the output keeps to."},
    {"structured_outputs", kBoth, Kind::kObject, 0, 0, Use::kUsed, "The same as guided_*: one of json, regex, choice, grammar, json_object."},
    {"audio", kChat, Kind::kAny, 0, 0, Use::kRefused, "Spoken output."},
    {"prediction", kChat, Kind::kAny, 0, 0, Use::kRefused, "Expected output."},
    {"web_search_options", kChat, Kind::kAny, 0, 0, Use::kRefused, "Search."},
    {"chat_template", kChat | kRender, Kind::kString, 0, 0, Use::kUsed, "Instead of the model's, if the server has --trust-request-chat-template; else 400."},
};
// clang-format on

const Field* FindField(std::span<const Field> fields, std::string_view name, unsigned api) {
  const auto found = std::ranges::find_if(
      fields, [&](const Field& field) { return field.name == name && (field.apis & api) != 0; });
  return found == fields.end() ? nullptr : &*found;
}

bool IsNumber(const json::Value& value) {
  return value.is_number();
}

double ToDouble(const json::Value& value) {
  return value.to_number<double>();
}

bool HasKind(const json::Value& value, Kind kind) {
  int64_t whole = 0;
  switch (kind) {
    case Kind::kString:
      return value.is_string();
    case Kind::kBool:
      return value.is_bool();
    case Kind::kInteger:
      return value.is_uint64() || AsInteger(value, &whole);
    case Kind::kNumber:
      return IsNumber(value);
    case Kind::kObject:
      return value.is_object();
    case Kind::kArray:
      return value.is_array();
    case Kind::kStringOrArray:
      return value.is_string() || value.is_array();
    case Kind::kStringOrObject:
      return value.is_string() || value.is_object();
    case Kind::kAny:
      return true;
  }
  return false;
}

std::string_view KindText(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return "a string";
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
      return "an integer";
    case Kind::kNumber:
      return "a number";
    case Kind::kObject:
      return "an object";
    case Kind::kArray:
      return "an array";
    case Kind::kStringOrArray:
      return "a string or an array";
    case Kind::kStringOrObject:
      return "a string or an object";
    case Kind::kAny:
      return "anything";
  }
  return "";
}

std::string Expected(const Field& field) {
  if (field.low == 0 && field.high == 0) return std::string(KindText(field.kind));
  if (std::abs(field.low) > kAnyInteger) return "a 64-bit integer";
  return fmt::format("{} from {} to {}", KindText(field.kind), field.low, field.high);
}

/// What came, short enough for a message.
std::string Shown(const json::Value& value) {
  if (value.is_primitive() && !value.is_string()) return json::Serialize(value);
  return fmt::format("of type {}", json::KindName(value));
}

std::optional<ApiError> CheckField(const Field& field, const json::Value& value) {
  if (field.use == Use::kRefused)
    return ApiError{
        .http_status = 400,
        .message = fmt::format("{} is not supported by this server yet; leave it out", field.name),
        .type = "invalid_request_error",
        .param = std::string(field.name),
        .code = "unsupported_parameter"};
  const bool has_range = field.low != 0 || field.high != 0;
  const bool fits = HasKind(value, field.kind) &&
                    (!has_range || (ToDouble(value) >= field.low && ToDouble(value) <= field.high));
  if (fits) return std::nullopt;
  return BadField(field.name,
                  fmt::format("{} is {}, expected {}", field.name, Shown(value), Expected(field)));
}

/// A refused field that asks for nothing is no reason to refuse.
bool AsksForNothing(const json::Value& value) {
  if (const json::Array* array = value.if_array()) return array->empty();
  if (const bool* truth = value.if_bool()) return !*truth;
  if (const auto* text = value.if_string()) return text->empty() || *text == "none";
  if (const json::Object* object = value.if_object()) {
    const json::Value* type = json::Find(*object, "type");
    return type != nullptr && (*type == "none" || *type == "disabled");
  }
  return false;
}

}  // namespace

std::span<const Field> RequestFields() {
  return kFields;
}

bool AsInteger(const json::Value& value, int64_t* number) {
  if (const int64_t* whole = value.if_int64()) {
    *number = *whole;
    return true;
  }
  const double* real = value.if_double();
  if (real == nullptr || std::trunc(*real) != *real || std::abs(*real) > kAnyInteger) return false;
  *number = static_cast<int64_t>(*real);
  return true;
}

void AddWarning(Warning warning, std::vector<Warning>* warnings) {
  if (warnings->size() < kWarningsHeldMax) warnings->push_back(std::move(warning));
}

json::Array WarningsBody(std::span<const Warning> warnings) {
  json::Array array;
  for (const Warning& warning : warnings) {
    if (array.size() == kWarningsMax) {
      array.push_back(
          {{"code", "more_warnings"},
           {"param", nullptr},
           {"message", fmt::format("and {} more{}", warnings.size() - kWarningsMax,
                                   warnings.size() < kWarningsHeldMax ? "" : " at least")}});
      break;
    }
    array.push_back(
        {{"code", warning.code}, {"param", warning.param}, {"message", warning.message}});
  }
  return array;
}

ApiResult<std::vector<Warning>> CheckFields(const json::Object& body, std::span<const Field> fields,
                                            unsigned api) {
  std::vector<Warning> warnings;
  for (const auto& [key, value] : body) {
    if (value.is_null()) continue;
    const Field* field = FindField(fields, key, api);
    if (field == nullptr) {
      AddWarning({"unknown_field", fmt::format("{:.100}", std::string_view(key)),
                  fmt::format("the field \"{:.100}\" is not known and was ignored",
                              std::string_view(key))},
                 &warnings);
      continue;
    }
    if (field->use == Use::kRefused && AsksForNothing(value)) continue;
    if (std::optional<ApiError> error = CheckField(*field, value))
      return std::unexpected(*std::move(error));
  }
  return warnings;
}

std::optional<ApiError> RefuseIfStrict(const json::Object& body,
                                       std::span<const Warning> warnings) {
  if (warnings.empty() || !BoolOr(body, "strict", false)) return std::nullopt;
  const Warning& first = warnings.front();
  return ApiError{
      .http_status = 400,
      .message = fmt::format(
          "strict is true and this would be a warning: {}{}", first.message,
          warnings.size() == 1 ? "" : fmt::format(" (and {} more)", warnings.size() - 1)),
      .type = "invalid_request_error",
      .param = first.param,
      .code = first.code};
}

int64_t IntegerOr(const json::Object& body, std::string_view name, int64_t fallback) {
  const json::Value* value = json::Find(body, name);
  if (value == nullptr) return fallback;
  // A seed above 2^63 keeps its bits.
  if (value->is_uint64()) return static_cast<int64_t>(value->get_uint64());
  int64_t number = 0;
  TESSERA_CHECK(AsInteger(*value, &number));
  return number;
}

double NumberOr(const json::Object& body, std::string_view name, double fallback) {
  const json::Value* value = json::Find(body, name);
  return value == nullptr ? fallback : ToDouble(*value);
}

bool BoolOr(const json::Object& body, std::string_view name, bool fallback) {
  const json::Value* value = json::Find(body, name);
  return value == nullptr ? fallback : value->get_bool();
}

}  // namespace tessera::server::openai
