// SPDX-License-Identifier: Apache-2.0
//
// Calls that begin with a bare name, and the choice between the kinds.
#include "text/call_reader.h"

#include <algorithm>

#include "text/call_reader_kinds.h"
#include "text/json_scanner.h"
#include "text/literal_matcher.h"

namespace tessera::text {
namespace {

/// NAME, perhaps an id, a literal, the arguments.
class NameFirstReader : public CallReader {
 public:
  NameFirstReader(const ToolSyntax& syntax, const std::vector<ToolSpec>& tools)
      : syntax_(syntax), tools_(tools) {
    // NAME id_begin ID name_end ARGUMENTS or NAME name_end ARGUMENTS.
    for (const CallPart& part : syntax.parts) {
      if (part.kind == CallPart::Kind::kLiteral) literals_.push_back(part.text);
      has_id_ |= part.kind == CallPart::Kind::kId || part.kind == CallPart::Kind::kIndex;
    }
    if (literals_.empty()) literals_.emplace_back();
  }

  Step Push(char c) override {
    switch (state_) {
      case State::kName:
        return InName(c);
      case State::kNameEnd:
        return InNameEnd(c);
      case State::kId:
        if (IsToolNameByte(c)) return Step::kMore;
        Expect(literals_.back());
        return InNameEnd(c);
      case State::kArguments:
        return InArguments(c);
    }
    return Step::kMore;
  }

 private:
  enum class State : uint8_t { kName, kNameEnd, kId, kArguments };

  Step InName(char c) {
    if (name_.empty() && IsJsonSpace(c)) return Step::kMore;
    if (IsToolNameByte(c)) {
      name_ += c;
      return name_.size() > kToolNameBytesMax ? Bad("the call's name is too long") : Step::kMore;
    }
    if (name_.empty()) return Bad("the call names no function");
    SetName(name_);
    const auto tool = std::ranges::find(tools_, name_, &ToolSpec::name);
    if (syntax_.arguments == ToolSyntax::Arguments::kParameters)
      parameters_ = MakeParameterReader(syntax_, tool == tools_.end() ? nullptr : &*tool);
    // Models leave the id out at times.
    matcher_ = LiteralMatcher(literals_);
    state_ = State::kNameEnd;
    if (matcher_.Empty() != LiteralMatcher::npos) {
      state_ = State::kArguments;
      return InArguments(c);
    }
    return InNameEnd(c);
  }

  void Expect(const std::string& literal) {
    matcher_ = LiteralMatcher(std::span(&literal, 1));
    state_ = State::kNameEnd;
    after_id_ = true;
  }

  Step InNameEnd(char c) {
    const LiteralMatcher::Step step = matcher_.Push(c);
    if (step == LiteralMatcher::Step::kFailed) return Bad("the call's name has no proper end");
    if (step == LiteralMatcher::Step::kMore) return Step::kMore;
    const bool is_id = has_id_ && !after_id_ && matcher_.matched() == 0 && literals_.size() > 1;
    state_ = is_id ? State::kId : State::kArguments;
    return Step::kMore;
  }

  Step InArguments(char c) {
    if (parameters_ != nullptr) {
      const Step step = parameters_->Push(c);
      if (step == Step::kBad) return Bad(parameters_->problem());
      AddArguments(parameters_->TakeArguments());
      return step;
    }
    if (!began_) {
      if (IsJsonSpace(c)) return Step::kMore;
      if (c != '{') return Bad("the arguments are no JSON object");
      began_ = true;
    }
    const JsonScanner::Step step = scanner_.Push(c);
    if (step == JsonScanner::Step::kBad) return Bad("the arguments are no valid JSON");
    AddArguments({&c, 1});
    return step == JsonScanner::Step::kDone ? Step::kDone : Step::kMore;
  }

  const ToolSyntax& syntax_;
  const std::vector<ToolSpec>& tools_;
  std::vector<std::string> literals_;
  bool has_id_ = false;
  bool after_id_ = false;
  State state_ = State::kName;
  std::string name_;
  LiteralMatcher matcher_;
  bool began_ = false;
  JsonScanner scanner_;
  std::unique_ptr<CallReader> parameters_;
};

}  // namespace

bool TakesOnlyText(const json::Value& schema) {
  const json::Object* object = schema.if_object();
  if (object == nullptr) return false;
  if (const json::Value* type = json::Find(*object, "type"))
    return type->is_string() && type->get_string() == "string";
  if (const json::Value* fixed = json::Find(*object, "const")) return fixed->is_string();
  const json::Value* values = json::Find(*object, "enum");
  if (values == nullptr || !values->is_array() || values->get_array().empty()) return false;
  for (const json::Value& value : values->get_array())
    if (!value.is_string()) return false;
  return true;
}

bool IsToolNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::unique_ptr<CallReader> MakeCallReader(const ToolSyntax& syntax,
                                           const std::vector<ToolSpec>& tools) {
  if (syntax.IsObject()) return MakeObjectCallReader(syntax);
  return std::make_unique<NameFirstReader>(syntax, tools);
}

}  // namespace tessera::text
