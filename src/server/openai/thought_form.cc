// SPDX-License-Identifier: Apache-2.0
#include "server/openai/thought_form.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "server/openai/output_form.h"
#include "text/thought_grammar.h"

namespace tessera::server::openai {

ApiResult<void> AllowThoughts(const json::Object& body, const chat::ToolFields& tools,
                              const ServedModel& model, GenerationFields* fields) {
  const text::MessageFormat& format = fields->message.format;
  if (fields->grammar == nullptr || tools.choice != chat::ToolFields::Choice::kNone ||
      !format.reasoning.has_value())
    return {};
  std::vector<Warning> known;
  const auto form = ReadOutputForm(body, &known);
  TESSERA_CHECK(form.has_value() && form->has_value());  // It has been compiled before.
  const OutputForm& bare = **form;
  auto grammar =
      model.grammars->Get(text::GrammarKind::kLarkParts,
                          text::ThoughtGrammar(*format.reasoning, format.starts_reasoning,
                                               bare.kind, bare.source, *model.tokenizer));
  if (!grammar.has_value()) {
    if (grammar.error().code() == Code::kInternal)
      return std::unexpected(FromStatus(grammar.error()));
    return std::unexpected(BadField(
        bare.field, fmt::format("{} behind thoughts: {}", bare.field, grammar.error().message())));
  }
  fields->message.text_form = std::exchange(fields->grammar, *std::move(grammar));
  return {};
}

}  // namespace tessera::server::openai
