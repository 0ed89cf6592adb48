// SPDX-License-Identifier: Apache-2.0
//
// Calls that are JSON objects: members in any order, unknown members skipped.
#include "base/json.h"
#include "text/call_reader_kinds.h"
#include "text/json_scanner.h"

namespace tessera::text {
namespace {

/// A name and its quotes, escaped throughout.
constexpr size_t kKeyBytesMax = 6 * kToolNameBytesMax + 2;

/// The string that a JSON text is; nothing when it is none.
std::optional<std::string> StringOf(std::string_view json_text) {
  const auto value = json::Parse(json_text, {}, "string");
  if (!value.has_value() || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

class ObjectCallReader : public CallReader {
 public:
  explicit ObjectCallReader(const ToolSyntax& syntax) : syntax_(syntax) {}

  Step Push(char c) override {
    switch (state_) {
      case State::kOpen:
        if (IsJsonSpace(c)) return Step::kMore;
        if (c != '{') return Bad("the call is no JSON object");
        state_ = State::kKeyOrEnd;
        return Step::kMore;
      case State::kKeyOrEnd:
      case State::kColon:
      case State::kValueBegin:
      case State::kCommaOrEnd:
        return Between(c);
      case State::kKey:
        return InKey(c);
      case State::kValue:
        return InValue(c);
    }
    return Step::kMore;
  }

 private:
  enum class State : uint8_t { kOpen, kKeyOrEnd, kKey, kColon, kValueBegin, kValue, kCommaOrEnd };
  enum class Member : uint8_t { kName, kArguments, kOther };

  Step Between(char c) {
    if (IsJsonSpace(c)) return Step::kMore;
    if (state_ == State::kKeyOrEnd && c == '"') {
      scanner_ = {};
      text_.clear();
      state_ = State::kKey;
      return InKey(c);
    }
    if (state_ == State::kColon && c == ':') {
      state_ = State::kValueBegin;
      return Step::kMore;
    }
    if (state_ == State::kValueBegin) {
      scanner_ = {};
      text_.clear();
      state_ = State::kValue;
      return BeginValue(c);
    }
    if (state_ == State::kCommaOrEnd && c == ',') {
      state_ = State::kKeyOrEnd;
      return Step::kMore;
    }
    if (c == '}' && state_ == State::kCommaOrEnd) return End();
    return Bad("the call is no valid JSON");
  }

  Step InKey(char c) {
    text_ += c;
    const JsonScanner::Step step = scanner_.Push(c);
    if (step == JsonScanner::Step::kBad || text_.size() > kKeyBytesMax)
      return Bad("the call is no valid JSON");
    if (step != JsonScanner::Step::kDone) return Step::kMore;
    const std::optional<std::string> key = StringOf(text_);
    if (!key.has_value()) return Bad("the call is no valid JSON");
    state_ = State::kColon;
    if (syntax_.form == ToolSyntax::Form::kNameAsKey) {
      if (has_name()) return Bad("the call names two functions");
      SetName(*key);
      member_ = Member::kArguments;
    } else {
      member_ = MemberOf(*key);
    }
    return Step::kMore;
  }

  /// Models mix the words that they were trained on.
  Member MemberOf(std::string_view key) const {
    if (key == syntax_.name_key) return Member::kName;
    if (key == syntax_.arguments_key || key == "arguments" || key == "parameters")
      return Member::kArguments;
    return Member::kOther;
  }

  Step BeginValue(char c) {
    if (member_ == Member::kArguments) {
      if (has_arguments_) return Bad("the call has arguments twice");
      is_streamed_ = c == '{';
      if (!is_streamed_ && c != '"' && c != 'n') return Bad("the arguments are no JSON object");
    }
    if (member_ == Member::kName && (c != '"' || has_name()))
      return Bad("the call's name is no string");
    return InValue(c);
  }

  Step InValue(char c) {
    const JsonScanner::Step step = scanner_.Push(c);
    if (step == JsonScanner::Step::kBad) return Bad("the call is no valid JSON");
    if (step != JsonScanner::Step::kDoneBefore) Take(c);
    if (member_ == Member::kName && text_.size() > kKeyBytesMax)
      return Bad("the call's name is too long");
    if (step == JsonScanner::Step::kMore) return Step::kMore;
    state_ = State::kCommaOrEnd;
    if (const Step done = EndValue(); done == Step::kBad) return done;
    return step == JsonScanner::Step::kDoneBefore ? Between(c) : Step::kMore;
  }

  void Take(char c) {
    if (member_ == Member::kArguments && is_streamed_) {
      AddArguments({&c, 1});
    } else if (member_ != Member::kOther) {
      text_ += c;
    }
  }

  Step EndValue() {
    if (member_ == Member::kName) {
      std::optional<std::string> name = StringOf(text_);
      if (!name.has_value()) return Bad("the call's name is no string");
      SetName(*std::move(name));
    }
    if (member_ != Member::kArguments) return Step::kMore;
    has_arguments_ = true;
    if (is_streamed_) return Step::kMore;
    if (text_ == "null") {  // Of a function without parameters.
      AddArguments("{}");
      return Step::kMore;
    }
    // Arguments that are JSON within a string.
    const std::optional<std::string> inner = StringOf(text_);
    const auto object = json::Parse(inner.value_or(""), {}, "arguments");
    if (!object.has_value() || !object->is_object()) return Bad("the arguments are no JSON object");
    AddArguments(*inner);
    return Step::kMore;
  }

  Step End() {
    if (!has_name()) return Bad("the call names no function");
    if (!has_arguments_) AddArguments("{}");
    return Step::kDone;
  }

  const ToolSyntax& syntax_;
  State state_ = State::kOpen;
  Member member_ = Member::kOther;
  JsonScanner scanner_;
  std::string text_;  // Of a key, a name, arguments in a string.
  bool has_arguments_ = false;
  bool is_streamed_ = false;
};

}  // namespace

std::unique_ptr<CallReader> MakeObjectCallReader(const ToolSyntax& syntax) {
  return std::make_unique<ObjectCallReader>(syntax);
}

}  // namespace tessera::text
