// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/fields.h"

namespace tessera::server::anthropic {
namespace {

using openai::Field;
using openai::Kind;
using openai::Use;

constexpr double kTokensMax = 2147483647.0;
constexpr unsigned kAll = kMessages | kCountTokens;

// clang-format off
constexpr Field kFields[] = {
    // name, where, kind, low, high, use, meaning
    {"model", kAll, Kind::kString, 0, 0, Use::kUsed, "Which model; must be the one served here."},
    {"messages", kAll, Kind::kArray, 0, 0, Use::kUsed, "Turns of user and assistant: blocks of text, thinking, tool_use and tool_result. A last turn of the assistant is gone on with."},
    {"system", kAll, Kind::kStringOrArray, 0, 0, Use::kUsed, "The system prompt, as text or text blocks."},
    {"max_tokens", kMessages, Kind::kInteger, 1, kTokensMax, Use::kUsed, "Most tokens to generate. Required."},
    {"stop_sequences", kMessages, Kind::kArray, 0, 0, Use::kUsed, "Strings that end the answer."},
    {"stream", kMessages, Kind::kBool, 0, 0, Use::kUsed, "Send the answer as server-sent events."},
    {"temperature", kMessages, Kind::kNumber, 0, 1, Use::kUsed, "Spread of the choice; 0 is greedy."},
    {"top_p", kMessages, Kind::kNumber, 0, 1, Use::kUsed, "Smallest set of likeliest tokens with that probability together."},
    {"top_k", kMessages, Kind::kInteger, 0, kTokensMax, Use::kUsed, "The k likeliest tokens; 0 is off."},
    {"seed", kMessages, Kind::kInteger, -9.3e18, 1.9e19, Use::kUsed, "Ours: same seed, same answer."},
    {"strict", kAll, Kind::kBool, 0, 0, Use::kUsed, "Ours: what would be a warning is an error instead."},
    {"metadata", kMessages, Kind::kObject, 0, 0, Use::kIgnored, "For the client's own records."},
    {"service_tier", kMessages, Kind::kString, 0, 0, Use::kIgnored, "There is one tier."},
    {"tools", kAll, Kind::kArray, 0, 0, Use::kUsed, "Functions the model may call, at most 128: {name, description?, input_schema, strict?}."},
    {"tool_choice", kAll, Kind::kObject, 0, 0, Use::kUsed, "By its type: auto (default with tools), any, tool (with a name) or none; disable_parallel_tool_use: one call at most."},
    {"thinking", kAll, Kind::kObject, 0, 0, Use::kUsed, "By its type: enabled (with budget_tokens, less than max_tokens), adaptive or disabled; display: omitted leaves the text of thoughts out."},
    {"output_config", kAll, Kind::kObject, 0, 0, Use::kUsed, "format: json_schema with its schema, which the answer's text keeps to; effort is given to the chat template."},
    {"output_format", kAll, Kind::kObject, 0, 0, Use::kUsed, "The older name of output_config.format."},
    {"context_management", kAll, Kind::kAny, 0, 0, Use::kRefused, "Editing of old turns."},
    {"mcp_servers", kAll, Kind::kAny, 0, 0, Use::kRefused, "Remote tools."},
    {"container", kMessages, Kind::kAny, 0, 0, Use::kRefused, "A place to run code."},
};
// clang-format on

}  // namespace

std::span<const Field> MessageFields() {
  return kFields;
}

}  // namespace tessera::server::anthropic
