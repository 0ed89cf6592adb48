// SPDX-License-Identifier: Apache-2.0
#include "server/responses/fields.h"

namespace tessera::server::responses {
namespace {

using openai::Field;
using openai::Kind;
using openai::Use;

constexpr double kTokensMax = 2147483647.0;

// clang-format off
constexpr Field kFields[] = {
    // name, where, kind, low, high, use, meaning
    {"model", kResponses, Kind::kString, 0, 0, Use::kUsed, "Which model; must be the one served here."},
    {"input", kResponses, Kind::kStringOrArray, 0, 0, Use::kUsed, "Text, or the items so far: message, reasoning, function_call, function_call_output. Required."},
    {"instructions", kResponses, Kind::kString, 0, 0, Use::kUsed, "The system prompt."},
    {"max_output_tokens", kResponses, Kind::kInteger, 1, kTokensMax, Use::kUsed, "Most tokens to generate; by default what fits."},
    {"temperature", kResponses, Kind::kNumber, 0, 2, Use::kUsed, "Spread of the choice; 0 is greedy."},
    {"top_p", kResponses, Kind::kNumber, 0, 1, Use::kUsed, "Smallest set of likeliest tokens with that probability together."},
    {"seed", kResponses, Kind::kInteger, -9.3e18, 1.9e19, Use::kUsed, "Ours: same seed, same answer."},
    {"stream", kResponses, Kind::kBool, 0, 0, Use::kUsed, "Send the answer as server-sent events."},
    {"text", kResponses, Kind::kObject, 0, 0, Use::kUsed, "format: text, json_object, or json_schema with its schema."},
    {"truncation", kResponses, Kind::kString, 0, 0, Use::kUsed, "Only \"disabled\": nothing is cut away in silence."},
    {"strict", kResponses, Kind::kBool, 0, 0, Use::kUsed, "Ours: what would be a warning is an error instead."},
    {"metadata", kResponses, Kind::kObject, 0, 0, Use::kIgnored, "Comes back in the answer."},
    {"user", kResponses, Kind::kString, 0, 0, Use::kIgnored, "Who asks."},
    {"safety_identifier", kResponses, Kind::kString, 0, 0, Use::kIgnored, "Who asks."},
    {"prompt_cache_key", kResponses, Kind::kString, 0, 0, Use::kIgnored, "A hint for caches of hosted services."},
    {"service_tier", kResponses, Kind::kString, 0, 0, Use::kIgnored, "There is one tier."},
    {"parallel_tool_calls", kResponses, Kind::kBool, 0, 0, Use::kUsed, "Whether an answer may hold more than one call (default true)."},
    {"stream_options", kResponses, Kind::kObject, 0, 0, Use::kIgnored, "Obfuscation of streams."},
    {"store", kResponses, Kind::kAny, 0, 0, Use::kRefused, "Nothing is stored here: false is taken."},
    {"previous_response_id", kResponses, Kind::kAny, 0, 0, Use::kRefused, "Nothing is stored here: send the messages so far as input."},
    {"conversation", kResponses, Kind::kAny, 0, 0, Use::kRefused, "Nothing is stored here."},
    {"background", kResponses, Kind::kAny, 0, 0, Use::kRefused, "Nothing is stored here."},
    {"prompt", kResponses, Kind::kAny, 0, 0, Use::kRefused, "A stored prompt."},
    {"tools", kResponses, Kind::kArray, 0, 0, Use::kUsed, "Functions the model may call, at most 128: {\"type\": \"function\", name, description?, parameters?, strict?}."},
    {"tool_choice", kResponses, Kind::kStringOrObject, 0, 0, Use::kUsed, "none, auto (default), required, one function by name, or allowed_tools."},
    {"max_tool_calls", kResponses, Kind::kInteger, 0, kTokensMax, Use::kIgnored, "Counts calls that a hosted service carries out itself."},
    {"reasoning", kResponses, Kind::kObject, 0, 0, Use::kUsed, "Thoughts are items of their own; effort is given to the chat template, none tells it not to think. There are no summaries."},
    {"include", kResponses, Kind::kArray, 0, 0, Use::kUsed, "Only reasoning.encrypted_content, which adds nothing: thoughts come in the clear."},
    {"top_logprobs", kResponses, Kind::kAny, 0, 0, Use::kRefused, "Log-probabilities."},
};
// clang-format on

}  // namespace

std::span<const Field> ResponseFields() {
  return kFields;
}

}  // namespace tessera::server::responses
