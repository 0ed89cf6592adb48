// SPDX-License-Identifier: Apache-2.0
#include "server/openai/choices.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "engine/grammar_constraint.h"
#include "server/reasoning_budget.h"
#include "text/kept_specials.h"

namespace tessera::server::openai {
namespace {

/// Marks of calls and thoughts may be special tokens; the parser of the answer needs them.
std::unique_ptr<text::Detokenizer> MakeDetokenizer(const ServedModel& model,
                                                   const GenerationFields& fields) {
  const std::set<text::TokenId>& kept = fields.message.kept_specials;
  if (!fields.skip_special || kept.empty()) return model.make_detokenizer(fields.skip_special);
  return text::KeepSpecials(model.make_detokenizer(/*skip_special=*/false), model.tokenizer, kept);
}

/// The constraint of an answer whose thoughts are bounded: as the client asks, and where a call has
/// to be made so that half of max_tokens is left for it.
std::shared_ptr<engine::TokenConstraint> WithBudget(
    std::shared_ptr<engine::TokenConstraint> constraint, const ServedModel& model,
    const GenerationFields& fields, const engine::Request& request) {
  const MessageFields& message = fields.message;
  std::optional<int64_t> budget = message.reasoning_budget;
  if (!budget.has_value() && message.needs_call) budget = request.stop.max_tokens / 2;
  if (!budget.has_value() || !message.format.reasoning.has_value()) return constraint;
  return std::make_shared<ReasoningBudget>(
      std::move(constraint), model.tokenizer, *message.format.reasoning,
      ReasoningBudget::Options{.starts_reasoning = message.format.starts_reasoning,
                               .budget_tokens = *budget,
                               .end_ids = message.reasoning_end,
                               .eos_ids = request.stop.eos_ids});
}

}  // namespace

ChoiceSpec MakeChoice(const Context& context, const GenerationFields& fields,
                      const std::vector<engine::TokenId>& prompt, size_t prompt_index,
                      int64_t max_tokens, uint64_t stream, TimePoint arrival) {
  engine::Request request;
  request.prompt = prompt;
  request.sampling = fields.sampling;
  request.sampling.stream = stream;
  request.stop = MakeStopParams(fields, context.model, max_tokens);
  request.top_logprobs = fields.top_logprobs;
  request.prompt_logprobs = fields.prompt_logprobs;
  request.beams = fields.beams;
  request.wants_progress = fields.include_progress;
  request.cache_prompt = fields.cache_prompt;
  if (fields.timeout.has_value()) request.deadline = arrival + *fields.timeout;
  request.arrival = arrival;
  std::shared_ptr<engine::TokenConstraint> form;
  if (fields.grammar != nullptr) form = engine::MakeGrammarConstraint(fields.grammar);
  request.constraint = WithBudget(form, context.model, fields, request);
  const bool has_budget = request.constraint != form;
  const size_t tail = std::min(prompt.size(), kPromptTail);
  auto processor = std::make_unique<engine::OutputProcessor>(
      MakeDetokenizer(context.model, fields),
      engine::OutputOptions{.stop_strings = fields.stop_strings,
                            .include_stop = fields.include_stop,
                            .min_tokens = fields.min_tokens,
                            .place_end = fields.place_end},
      std::span(prompt).last(tail));
  ChoiceSpec spec{std::move(request), std::move(processor), prompt_index};
  if (fields.message.text_form != nullptr) {
    spec.grammar = fields.message.text_form;
    spec.thoughts.emplace(
        *fields.message.format.reasoning,
        text::ReasoningParser::Options{.is_open = fields.message.format.starts_reasoning});
  } else if (!has_budget) {
    spec.grammar = fields.grammar;
  }
  spec.priority = fields.priority;
  spec.may_be_cut = !fields.stop_strings.empty() || !fields.stop_ids.empty();
  return spec;
}

AnswerHead MakeHead(const Context& context, std::string_view id_prefix,
                    const GenerationFields& fields) {
  return {.id = MakeId(id_prefix),
          .created = context.clock->UnixSeconds(),
          .model = context.model.id,
          .fingerprint = context.model.fingerprint,
          .warnings = fields.warnings,
          .include_usage = fields.include_usage,
          .tokenizer = context.model.tokenizer,
          .top_logprobs = fields.top_logprobs,
          .prompt_logprobs = fields.prompt_logprobs,
          .counters = context.warnings};
}

}  // namespace tessera::server::openai
