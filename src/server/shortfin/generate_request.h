// SPDX-License-Identifier: Apache-2.0
//
// POST or PUT /generate, the native route of the shortfin LLM server: body -> values. The field set
// and defaults are that server's; where it was silent or wrong we are not: values out of range are
// refused instead of clamped, 0 is greedy, unknown fields are warned about.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/openai/schema.h"
#include "server/served_model.h"

namespace tessera::server::shortfin {

struct GeneratePrompt {
  std::optional<std::string> text;  // Absent when ids were given.
  std::vector<engine::TokenId> ids;
  std::string rid;
  engine::SamplingParams sampling;
  int64_t max_tokens = 0;
  int num_beams = 1;  // More: that many answers, best first.
};

struct GenerateRequest {
  std::vector<GeneratePrompt> prompts;
  bool is_batch = false;    // The client sent a list, if only of one.
  bool return_ids = false;  // Answer with generated ids instead of text.
  bool stream = false;
  std::vector<openai::Warning> warnings;
};

inline constexpr int64_t kMaxCompletionTokensDefault = 50;

/// kInvalidArgument says which field is wrong. `max_model_len` bounds prompt and answer.
Result<GenerateRequest> ReadGenerateRequest(std::string_view body, const ServedModel& model,
                                            int64_t max_model_len);

}  // namespace tessera::server::shortfin
