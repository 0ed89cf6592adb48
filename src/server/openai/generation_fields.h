// SPDX-License-Identifier: Apache-2.0
//
// The fields that completions and chat share: JSON -> sampling, stopping and streaming values.
// Pure functions of body and model; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "engine/request.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "server/served_model.h"
#include "text/grammar.h"
#include "text/message_parser.h"

namespace tessera::server::openai {

/// What a chat answer may hold beside text, and how it is told.
struct MessageFields {
  text::MessageFormat format;
  std::set<text::TokenId> kept_specials;    // That mark it.
  bool drops_reasoning = false;             // Thoughts are not given out.
  std::optional<int64_t> reasoning_budget;  // Tokens of thoughts, then their end mark follows:
  std::vector<text::TokenId> reasoning_end;
  /// Of the text behind the thoughts, when GenerationFields::grammar has these in front.
  std::shared_ptr<const text::Grammar> text_form;
  bool needs_call = false;  // tool_choice: there is no answer without one.
  bool is_older = false;    // A call is `function_call`, as `functions` asks for.
};

struct GenerationFields {
  engine::SamplingParams sampling;    // Seed is set: the client's or a drawn one.
  std::optional<int64_t> max_tokens;  // Absent: the endpoint's default.
  int64_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<engine::TokenId> stop_ids;
  std::vector<std::string> stop_strings;
  bool include_stop = false;
  bool skip_special = true;
  bool cache_prompt = true;
  std::optional<int32_t> priority;  // As engine::Request.
  std::optional<Duration> timeout;  // From arrival.
  int64_t n = 1;
  std::optional<engine::BeamParams> beams;  // Absent: tokens are drawn, or greedy.
  bool stream = false;
  bool include_usage = false;
  bool include_progress = false;
  bool is_resumable = false;
  int top_logprobs = -1;                         // As engine::Request.
  int prompt_logprobs = -1;                      // The same.
  bool place_end = false;                        // As engine::OutputOptions.
  std::shared_ptr<const text::Grammar> grammar;  // What the output keeps to; null: anything.
  MessageFields message;
  std::vector<Warning> warnings;
};

/// Body text -> object, checked against the schema and the model's name.
struct CheckedBody {
  json::Object body;
  std::vector<Warning> warnings;
};
/// By a dialect's table. `needs_model`: `model` must be there.
ApiResult<CheckedBody> ReadBody(std::string_view text, std::span<const Field> fields, unsigned api,
                                bool needs_model, const ServedModel& model);
/// By this dialect's.
ApiResult<CheckedBody> ReadBody(std::string_view text, unsigned api, const ServedModel& model);

/// `body` has passed CheckFields for `api`.
ApiResult<GenerationFields> ReadGenerationFields(const json::Object& body, unsigned api,
                                                 const ServedModel& model);

/// The engine's side of it for one choice. `max_tokens` is what applies.
engine::StopParams MakeStopParams(const GenerationFields& fields, const ServedModel& model,
                                  int64_t max_tokens);

/// Token ids of a JSON array, each in [0, vocab_size).
ApiResult<std::vector<engine::TokenId>> ReadTokenIds(const json::Array& array,
                                                     std::string_view field, int64_t vocab_size);

}  // namespace tessera::server::openai
