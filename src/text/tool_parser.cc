// SPDX-License-Identifier: Apache-2.0
#include "text/tool_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "text/json_scanner.h"

namespace tessera::text {
namespace {

std::string WithoutSpace(std::string text) {
  std::erase_if(text, IsJsonSpace);
  return text;
}

/// The opening bracket of an object is matched with the mark before it: what is no object is then
/// seen to be no call at once.
std::string WithBracket(std::string text, const ToolSyntax& syntax) {
  return syntax.IsObject() ? text + "{" : text;
}

}  // namespace

ToolParser::ToolParser(std::shared_ptr<const ToolSyntax> syntax,
                       std::shared_ptr<const std::vector<ToolSpec>> tools, Options options)
    : syntax_(std::move(syntax)),
      tools_(std::move(tools)),
      options_(options),
      marker_(syntax_->Marker()) {
  const std::string begin = syntax_->section_begin + syntax_->call_begin;
  opening_ = WithoutSpace(WithBracket(begin, *syntax_));
  TESSERA_CHECK(opening_.starts_with(WithoutSpace(marker_)));
  opening_.erase(0, WithoutSpace(marker_).size());
  next_ = WithBracket(syntax_->separator + syntax_->call_begin, *syntax_);
  has_section_ = !WithoutSpace(syntax_->section_end).empty();
}

void ToolParser::Push(std::string_view text, std::vector<ToolEvent>* events) {
  events_ = events;
  for (const char c : text) {
    queue_ += c;
    while (!queue_.empty() && state_ != State::kFull) {
      const char first = queue_.front();
      queue_.erase(0, 1);
      Step(first);
    }
    queue_.clear();
  }
  events_ = nullptr;
}

void ToolParser::Step(char c) {
  switch (state_) {
    case State::kText:
      return InText(c);
    case State::kCall:
      return InCall(c);
    case State::kOpening:
    case State::kClosing:
    case State::kNext:
      return InLiteral(c);
    case State::kFull:
      return;
  }
}

void ToolParser::InText(char c) {
  if (marker_.empty()) {
    if (c != '{' || !is_blank_) return AddText({&c, 1});
    raw_.clear();
    BeginCall();
    return InCall(c);
  }
  held_ += c;
  while (!held_.empty() && !marker_.starts_with(held_)) {
    AddText(std::string_view(held_).substr(0, 1));
    held_.erase(0, 1);
  }
  if (held_ != marker_) return;
  raw_ = std::exchange(held_, {});
  if (Enter(State::kOpening)) BeginCall();
}

/// Expects the literals of a state. Returns true when none is needed: the caller then goes on.
bool ToolParser::Enter(State state) {
  state_ = state;
  const std::array<std::string, 2> both{state == State::kOpening   ? opening_
                                        : state == State::kClosing ? syntax_->call_end
                                                                   : next_,
                                        syntax_->section_end};
  matcher_ = LiteralMatcher(std::span(both).first(state == State::kNext ? 2 : 1));
  return matcher_.Empty() == 0;
}

void ToolParser::InLiteral(char c) {
  const LiteralMatcher::Step step = matcher_.Push(c);
  if (step == LiteralMatcher::Step::kMatched) {
    if (state_ != State::kClosing) raw_ += matcher_.taken();
    return OnLiteral(matcher_.matched());
  }
  if (step == LiteralMatcher::Step::kMore) return;
  // What was taken may be the beginning of something else.
  const std::string taken = matcher_.taken();
  if (state_ == State::kOpening) return Fail(fmt::format("no call follows {}", marker_), taken);
  state_ = State::kText;
  queue_.insert(0, taken);
}

void ToolParser::OnLiteral(size_t matched) {
  switch (state_) {
    case State::kOpening:
      return BeginCall();
    case State::kClosing:
      return EndCall(true);
    default:
      if (matched == 0) return BeginCall();
      state_ = State::kText;
  }
}

void ToolParser::BeginCall() {
  reader_ = MakeCallReader(*syntax_, *tools_);
  is_committed_ = false;
  state_ = State::kCall;
  // The bracket was part of the mark.
  if (syntax_->IsObject() && !marker_.empty()) (void)reader_->Push('{');
}

void ToolParser::InCall(char c) {
  const bool knew_name = reader_->has_name();
  const CallReader::Step step = reader_->Push(c);
  if (step == CallReader::Step::kBad) return Fail(reader_->problem(), {&c, 1});
  if (!is_committed_) raw_ += c;
  if (!knew_name && reader_->has_name() && !CheckName()) return;
  const bool is_done = step != CallReader::Step::kMore;
  if (!is_committed_ && reader_->has_name() && (is_done || options_.gives_partial_calls)) Commit();
  if (is_committed_) {
    const std::string more = reader_->TakeArguments();
    if (!more.empty()) Emit(ToolEvent::Kind::kArguments, more);
  }
  if (is_done) EndCall(step == CallReader::Step::kDoneClosed);
}

bool ToolParser::CheckName() {
  if (std::ranges::find(*tools_, reader_->name(), &ToolSpec::name) != tools_->end()) return true;
  Fail("the call names a function that is none of the tools", {});
  return false;
}

void ToolParser::Commit() {
  is_committed_ = true;
  raw_.clear();
  space_.clear();
  is_blank_ = true;
  ++calls_;
  Emit(ToolEvent::Kind::kCall, reader_->name());
}

/// First behind the call itself, then, `is_closed`, behind its end mark.
void ToolParser::EndCall(bool is_closed) {
  if (reader_ != nullptr) {
    reader_.reset();
    raw_.clear();
    if (calls_ >= options_.calls_max) {
      state_ = State::kFull;
      return;
    }
    if (!is_closed && !Enter(State::kClosing)) return;
  }
  if (!has_section_) {
    state_ = State::kText;
    return;
  }
  (void)Enter(State::kNext);
}

/// The call is none: what was read of it is text, `again` is read anew.
void ToolParser::Fail(std::string_view why, std::string_view again) {
  Problem(why);
  const std::string rest(again);  // May be a part of what is dropped below.
  has_broken_call_ |= is_committed_ && reader_ != nullptr;
  const std::string raw = std::exchange(raw_, {});
  reader_.reset();
  state_ = State::kText;
  AddText(raw);
  queue_.insert(0, rest);
}

void ToolParser::Problem(std::string_view why) {
  if (problem_.empty()) problem_ = std::string(why);
}

void ToolParser::Finish(std::vector<ToolEvent>* events) {
  events_ = events;
  switch (state_) {
    case State::kText:
      AddText(std::exchange(held_, {}));
      break;
    case State::kOpening:
      Problem("the answer ended within a call");
      AddText(std::exchange(raw_, {}) + matcher_.taken());
      break;
    case State::kCall:
      Fail("the answer ended within a call", {});
      break;
    default:  // An end mark that did not come takes nothing from its call.
      break;
  }
  state_ = State::kText;
  if (calls_ == 0 || !is_blank_) FlushText();
  space_.clear();
  events_ = nullptr;
}

void ToolParser::FlushText() {
  if (!space_.empty()) Emit(ToolEvent::Kind::kText, std::exchange(space_, {}));
}

void ToolParser::AddText(std::string_view text) {
  for (const char c : text) {
    space_ += c;
    if (IsJsonSpace(c)) continue;
    is_blank_ = false;
    FlushText();
  }
}

void ToolParser::Emit(ToolEvent::Kind kind, std::string_view text) {
  const size_t call = kind == ToolEvent::Kind::kText ? 0 : calls_ - 1;
  // Neighbours of a kind are one event, so that a byte is not one each.
  if (kind != ToolEvent::Kind::kCall && !events_->empty() && events_->back().kind == kind &&
      events_->back().call == call) {
    events_->back().text += text;
    return;
  }
  events_->push_back({kind, call, std::string(text)});
}

}  // namespace tessera::text
