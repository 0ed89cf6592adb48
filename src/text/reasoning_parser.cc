// SPDX-License-Identifier: Apache-2.0
#include "text/reasoning_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/json_scanner.h"

namespace tessera::text {
namespace {

const std::vector<ReasoningSyntax>& Table() {
  static const std::vector<ReasoningSyntax> table = {
      {"think", "<think>", "</think>"},
      {"deepseek_r1", "<think>", "</think>", true},
      {"mistral", "[THINK]", "[/THINK]"},
      {"command_r7b", "<|START_THINKING|>", "<|END_THINKING|>"},
      {"seed_oss", "<seed:think>", "</seed:think>"},
      {"apertus", "<|inner_prefix|>", "<|inner_suffix|>"},
      {"gemma4", "<|channel>thought", "<channel|>"},
  };
  return table;
}

std::string_view TrimmedEnd(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

const ReasoningSyntax* FindReasoningSyntax(std::string_view name) {
  if (name == "qwen3" || name == "glm45" || name == "granite") name = "think";
  const auto found = std::ranges::find(Table(), name, &ReasoningSyntax::name);
  return found == Table().end() ? nullptr : &*found;
}

std::vector<std::string_view> ReasoningSyntaxNames() {
  std::vector<std::string_view> names;
  std::ranges::transform(Table(), std::back_inserter(names), &ReasoningSyntax::name);
  return names;
}

std::optional<ReasoningSyntax> ReasoningSyntaxOf(std::string_view template_source) {
  for (const ReasoningSyntax& syntax : Table())
    if (template_source.find(syntax.end) != std::string_view::npos) return syntax;
  return std::nullopt;
}

bool StartsClosed(const ReasoningSyntax& syntax, std::string_view prompt) {
  return TrimmedEnd(prompt).ends_with(syntax.end);
}

bool StartsOpen(const ReasoningSyntax& syntax, std::string_view prompt) {
  return TrimmedEnd(prompt).ends_with(syntax.begin);
}

ReasoningParser::ReasoningParser(ReasoningSyntax syntax, Options options)
    : syntax_(std::move(syntax)),
      keeps_marks_(options.keeps_marks),
      state_(options.is_open || syntax_.is_implied ? State::kReasoning : State::kBegin) {}

void ReasoningParser::Push(std::string_view text, Delta* delta) {
  for (const char c : text) Step(c, delta);
}

void ReasoningParser::Step(char c, Delta* delta) {
  switch (state_) {
    case State::kBegin:
      return AtBegin(c, delta);
    case State::kReasoning:
      return InReasoning(c, delta);
    case State::kBehind:
      if (IsJsonSpace(c) && !keeps_marks_) return;
      state_ = State::kText;
      [[fallthrough]];
    case State::kText:
      delta->text += c;
  }
}

void ReasoningParser::AtBegin(char c, Delta* delta) {
  if (held_.empty() && IsJsonSpace(c)) {
    space_ += c;
    return;
  }
  held_ += c;
  if (held_ == syntax_.begin) {
    if (keeps_marks_) delta->reasoning += space_ + held_;
    state_ = State::kReasoning;
    may_begin_ = false;
  } else if (!syntax_.begin.starts_with(held_)) {
    delta->text += space_ + held_;
    state_ = State::kText;
  } else {
    return;
  }
  space_.clear();
  held_.clear();
}

void ReasoningParser::InReasoning(char c, Delta* delta) {
  if (keeps_marks_) delta->reasoning += c;
  held_ += c;
  // The begin mark again, of a model that writes it although it is implied.
  if (may_begin_ && held_ == syntax_.begin) {
    held_.clear();
    may_begin_ = false;
    return;
  }
  while (!held_.empty() && !syntax_.end.starts_with(held_) &&
         !(may_begin_ && syntax_.begin.starts_with(held_))) {
    AddReasoning(held_.front(), delta);
    held_.erase(0, 1);
  }
  if (held_ != syntax_.end) return;
  held_.clear();
  space_.clear();
  state_ = State::kBehind;
}

void ReasoningParser::AddReasoning(char c, Delta* delta) {
  if (IsJsonSpace(c)) {
    if (has_reasoning_) space_ += c;
    return;
  }
  has_reasoning_ = true;
  may_begin_ = false;
  const std::string text = std::exchange(space_, {}) + c;
  if (!keeps_marks_) delta->reasoning += text;
}

void ReasoningParser::Finish(Delta* delta) {
  if (state_ == State::kBegin) delta->text += space_ + held_;
  if (state_ == State::kReasoning)
    for (const char c : std::exchange(held_, {})) AddReasoning(c, delta);
  held_.clear();
  space_.clear();
  state_ = State::kText;
}

}  // namespace tessera::text
