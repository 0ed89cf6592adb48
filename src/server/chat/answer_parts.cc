// SPDX-License-Identifier: Apache-2.0
#include "server/chat/answer_parts.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "server/openai/answer.h"
#include "server/warning_counters.h"

namespace tessera::server::chat {

using text::MessageEvent;

AnswerParts::AnswerParts(const openai::MessageFields& fields, std::string_view call_prefix)
    : drops_reasoning_(fields.drops_reasoning), call_prefix_(call_prefix) {
  if (!fields.format.IsPlain()) parser_.emplace(fields.format);
}

std::vector<AnswerParts::Step> AnswerParts::Read(const engine::OutputDelta& delta) {
  if (!parser_.has_value()) {
    if (delta.text.empty()) return {};
    return Take({{MessageEvent::Kind::kText, 0, delta.text}});
  }
  const bool was_reasoning = parser_->is_reasoning();
  std::vector<MessageEvent> events = parser_->Push(delta.text);
  // Marks count as thoughts; of a piece that holds both thoughts and text, all of it.
  if (was_reasoning || parser_->is_reasoning())
    reasoning_tokens_ += static_cast<int64_t>(delta.tokens.size());
  return Take(std::move(events));
}

std::vector<AnswerParts::Step> AnswerParts::ReadEnd() {
  if (!parser_.has_value()) return {};
  return Take(parser_->Finish());
}

AnswerParts::Step AnswerParts::AddEmptyText() {
  return TakeEvent({MessageEvent::Kind::kText, 0, {}});
}

std::vector<AnswerParts::Step> AnswerParts::Take(std::vector<MessageEvent> events) {
  std::vector<Step> steps;
  for (MessageEvent& event : events)
    if (!drops_reasoning_ || event.kind != MessageEvent::Kind::kReasoning)
      steps.push_back(TakeEvent(std::move(event)));
  return steps;
}

AnswerParts::Step AnswerParts::TakeEvent(MessageEvent event) {
  Part* last = parts_.empty() ? nullptr : &parts_.back();
  if (event.kind == MessageEvent::Kind::kCall) {
    parts_.push_back(
        {Part::Kind::kCall, calls_++, openai::MakeId(call_prefix_), std::move(event.text), {}});
    return {parts_.size() - 1, true, {}};
  }
  if (event.kind == MessageEvent::Kind::kArguments) {
    // A call is over before anything else begins.
    TESSERA_CHECK(last != nullptr && last->kind == Part::Kind::kCall && last->call == event.call);
    last->text += event.text;
    return {parts_.size() - 1, false, std::move(event.text)};
  }
  const auto kind =
      event.kind == MessageEvent::Kind::kReasoning ? Part::Kind::kReasoning : Part::Kind::kText;
  const bool begins = last == nullptr || last->kind != kind;
  if (begins) parts_.push_back({.kind = kind});
  parts_.back().text += event.text;
  return {parts_.size() - 1, begins, std::move(event.text)};
}

std::string AnswerParts::Joined(Part::Kind kind) const {
  std::string text;
  for (const Part& part : parts_)
    if (part.kind == kind) text += part.text;
  return text;
}

bool AnswerParts::EndsInCalls(engine::FinishReason reason) const {
  // Of a call that broke off nobody can make use.
  return has_calls() && !parser_->has_broken_call() && reason != engine::FinishReason::kLength;
}

void AnswerParts::CountCalls(WarningCounters* counters) const {
  const bool is_broken = parser_.has_value() && !parser_->problem().empty();
  if (is_broken || has_calls()) counters->CountCalls(!is_broken);
}

std::optional<openai::Warning> AnswerParts::ProblemWarning(std::string_view param) const {
  if (!parser_.has_value() || parser_->problem().empty()) return std::nullopt;
  return openai::Warning{
      "tool_parse_error", std::string(param),
      fmt::format("what looked like a call of a function stays text: {}", parser_->problem())};
}

}  // namespace tessera::server::chat
