// SPDX-License-Identifier: Apache-2.0
//
// The form that a client asks the output to have: response_format (OpenAI), guided_json,
// guided_regex, guided_choice, guided_grammar and structured_outputs (vLLM). At most one of them.
// Pure functions of the body; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "text/grammar_cache.h"

namespace tessera::server::openai {

struct OutputForm {
  text::GrammarKind kind = text::GrammarKind::kJsonSchema;
  std::string source;  // As text::Grammar::Compile takes it.
  std::string field;   // Of the body, where it came from.
  /// What of the source would have no effect is an error instead of a warning.
  bool is_strict = false;
};

/// Nothing when any text will do.
ApiResult<std::optional<OutputForm>> ReadOutputForm(const json::Object& body,
                                                    std::vector<Warning>* warnings);

/// Compiles it, or takes it from the cache. 400 with the field's name for what is wrong with it or
/// cannot be enforced.
ApiResult<std::shared_ptr<const text::Grammar>> CompileOutputForm(const OutputForm& form,
                                                                  text::GrammarCache* grammars,
                                                                  std::vector<Warning>* warnings);

}  // namespace tessera::server::openai
