// SPDX-License-Identifier: Apache-2.0
//
// Arguments of which each stands between marks of its own (<parameter=city>\nParis\n</parameter>),
// turned into one JSON object: a value becomes known as a whole when its end mark comes.
#include <algorithm>
#include <array>

#include "base/json.h"
#include "text/call_reader_kinds.h"
#include "text/json_scanner.h"
#include "text/literal_matcher.h"

namespace tessera::text {
namespace {

std::string_view TrimmedFront(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view Trimmed(std::string_view text) {
  text = TrimmedFront(text);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

class ParameterReader : public CallReader {
 public:
  ParameterReader(const ToolSyntax& syntax, const ToolSpec* tool)
      : tool_(tool),
        first_{syntax.parameter_begin, syntax.call_end},
        next_{syntax.parameter_separator + syntax.parameter_begin, syntax.call_end},
        key_ends_{syntax.key_end,
                  syntax.json_key_end.empty() ? syntax.key_end : syntax.json_key_end},
        key_stop_(TrimmedFront(syntax.key_end).front()),
        value_end_(Trimmed(syntax.parameter_end)),
        strips_begin_(syntax.key_end.ends_with('\n')),
        strips_end_(syntax.parameter_end.starts_with('\n')),
        matcher_(first_) {}

  Step Push(char c) override {
    switch (state_) {
      case State::kNext:
        return AtNext(c);
      case State::kKey:
        return InKey(c);
      case State::kKeyEnd:
        return InKeyEnd(c);
      case State::kValue:
        return InValue(c);
    }
    return Step::kMore;
  }

 private:
  enum class State : uint8_t { kNext, kKey, kKeyEnd, kValue };

  Step AtNext(char c) {
    const LiteralMatcher::Step step = matcher_.Push(c);
    if (step == LiteralMatcher::Step::kFailed) return Bad("neither a parameter nor the call's end");
    if (step == LiteralMatcher::Step::kMore) return Step::kMore;
    if (matcher_.matched() == 1) {
      AddArguments(keys_.empty() ? "{}" : "}");
      return Step::kDoneClosed;
    }
    key_.clear();
    state_ = State::kKey;
    return Step::kMore;
  }

  Step InKey(char c) {
    if (c == key_stop_) {
      matcher_ = LiteralMatcher(key_ends_);
      state_ = State::kKeyEnd;
      return InKeyEnd(c);
    }
    key_ += c;
    return key_.size() > kKeyBytesMax ? Bad("a parameter's name is too long") : Step::kMore;
  }

  Step InKeyEnd(char c) {
    const LiteralMatcher::Step step = matcher_.Push(c);
    if (step == LiteralMatcher::Step::kFailed) return Bad("a parameter's name has no proper end");
    if (step == LiteralMatcher::Step::kMore) return Step::kMore;
    key_ = std::string(Trimmed(key_));
    if (key_.empty() || !keys_.insert(key_).second)
      return Bad("a parameter has no name, or one that was there before");
    is_marked_json_ = matcher_.matched() == 1;
    value_.clear();
    state_ = State::kValue;
    return Step::kMore;
  }

  Step InValue(char c) {
    value_ += c;
    if (!value_.ends_with(value_end_)) return Step::kMore;
    std::string_view value = value_;
    value.remove_suffix(value_end_.size());
    if (strips_begin_ && value.starts_with('\n')) value.remove_prefix(1);
    if (strips_end_ && value.ends_with('\n')) value.remove_suffix(1);
    AddArguments(keys_.size() == 1 ? "{" : ", ");
    AddArguments(json::Serialize(json::Value(key_)));
    AddArguments(": ");
    AddArguments(ValueOf(value));
    matcher_ = LiteralMatcher(next_);
    state_ = State::kNext;
    return Step::kMore;
  }

  /// JSON where the value is JSON and the schema does not ask for a string.
  std::string ValueOf(std::string_view text) const {
    if (is_marked_json_ || tool_ == nullptr || !tool_->text_parameters.contains(key_)) {
      const auto value = json::Parse(Trimmed(text), {}, "value");
      if (value.has_value()) return std::string(Trimmed(text));
    }
    return json::Serialize(json::Value(text));
  }

  static constexpr size_t kKeyBytesMax = 1024;

  const ToolSpec* const tool_;  // Null: unknown, so will be refused.
  const std::array<std::string, 2> first_;
  const std::array<std::string, 2> next_;
  const std::array<std::string, 2> key_ends_;  // Before any value, before one that is JSON.
  const char key_stop_;                        // What no key holds.
  bool is_marked_json_ = false;
  const std::string value_end_;
  const bool strips_begin_;
  const bool strips_end_;
  State state_ = State::kNext;
  LiteralMatcher matcher_;
  std::string key_;
  std::string value_;
  std::set<std::string> keys_;
};

}  // namespace

std::unique_ptr<CallReader> MakeParameterReader(const ToolSyntax& syntax, const ToolSpec* tool) {
  return std::make_unique<ParameterReader>(syntax, tool);
}

}  // namespace tessera::text
