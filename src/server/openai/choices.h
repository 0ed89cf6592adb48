// SPDX-License-Identifier: Apache-2.0
//
// Choices: checked fields -> what the engine is asked, for every dialect that generates from
// GenerationFields. Pure functions of their arguments; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "server/context.h"
#include "server/generation.h"
#include "server/openai/answer.h"
#include "server/openai/generation_fields.h"

namespace tessera::server::openai {

/// One choice of the call's prompt number `prompt_index`; `stream` counts the choices of one seed.
/// With beams all but the first of a prompt are to be marked is_next_beam.
ChoiceSpec MakeChoice(const Context& context, const GenerationFields& fields,
                      const std::vector<engine::TokenId>& prompt, size_t prompt_index,
                      int64_t max_tokens, uint64_t stream, TimePoint arrival);

AnswerHead MakeHead(const Context& context, std::string_view id_prefix,
                    const GenerationFields& fields);

inline int64_t Length(const std::vector<engine::TokenId>& ids) {
  return static_cast<int64_t>(ids.size());
}

}  // namespace tessera::server::openai
