// SPDX-License-Identifier: Apache-2.0
#include "text/tool_syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/json_scanner.h"

namespace tessera::text {
namespace {

/// Longer marks are prose between brackets.
constexpr size_t kMarkBytesMax = 64;

/// Bytes of the mark at the front, 0 if there is none.
size_t MarkBytes(std::string_view text) {
  const char close = text.front() == '<' ? '>' : text.front() == '[' ? ']' : '\0';
  if (close == '\0') return 0;
  const size_t end = text.substr(0, kMarkBytesMax).find(close, 1);
  if (end == std::string_view::npos || end == 1) return 0;
  const std::string_view inner = text.substr(1, end - 1);
  if (inner.find_first_of(" \n\t\"'{}[<=") != std::string_view::npos) return 0;
  // "[1]" or "[x]" is JSON or prose; marks in square brackets are capitals.
  const bool is_capitals = std::ranges::all_of(
      inner, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || c == '/'; });
  return close == ']' && !is_capitals ? 0 : end + 1;
}

std::string IdOf(size_t index) {
  return fmt::format("call{:05}", index % 100'000);
}

void WriteArguments(const ToolSyntax& syntax, const json::Object& arguments, std::string* out) {
  if (syntax.arguments == ToolSyntax::Arguments::kJson) {
    *out += json::Serialize(arguments);
    return;
  }
  bool is_first = true;
  for (const auto& [key, value] : arguments) {
    if (!is_first) *out += syntax.parameter_separator;
    is_first = false;
    *out += syntax.parameter_begin;
    *out += std::string_view(key);
    const auto* text = value.if_string();
    *out += text != nullptr || syntax.json_key_end.empty() ? syntax.key_end : syntax.json_key_end;
    *out += text != nullptr ? std::string(*text) : json::Serialize(value);
    *out += syntax.parameter_end;
  }
}

}  // namespace

std::vector<std::string_view> Atoms(std::string_view text) {
  std::vector<std::string_view> atoms;
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(MarkBytes(text), 1);
    atoms.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return atoms;
}

std::string ToolSyntax::Marker() const {
  std::string_view text;
  const std::string both = section_begin + call_begin;
  text = both;
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  // A bracket that belongs to the JSON announces nothing.
  if (text.empty() || text.front() == '{') return {};
  const size_t mark = MarkBytes(text);
  if (mark > 0) return std::string(text.substr(0, mark));
  const size_t end = text.find_first_of("\n\t[{");
  std::string_view word = text.substr(0, end == 0 ? 1 : end);
  while (!word.empty() && IsJsonSpace(word.back())) word.remove_suffix(1);
  return word == "[" ? std::string() : std::string(word);
}

std::string WriteToolCalls(const ToolSyntax& syntax, std::span<const ToolCall> calls) {
  std::string out = syntax.section_begin;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) out += syntax.separator;
    out += syntax.call_begin;
    for (const CallPart& part : syntax.parts) {
      switch (part.kind) {
        case CallPart::Kind::kLiteral:
          out += part.text;
          break;
        case CallPart::Kind::kName:
          out += calls[i].name;
          break;
        case CallPart::Kind::kArguments:
          WriteArguments(syntax, calls[i].arguments, &out);
          break;
        case CallPart::Kind::kId:
          out += IdOf(i);
          break;
        case CallPart::Kind::kIndex:
          out += std::to_string(i);
          break;
      }
    }
    out += syntax.call_end;
  }
  return out + syntax.section_end;
}

}  // namespace tessera::text
