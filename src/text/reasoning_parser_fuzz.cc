// SPDX-License-Identifier: Apache-2.0
//
// Input: a byte that chooses syntax and start, a byte that chooses where to cut, a model's text.
// However it is cut, thoughts and text are the same, and together they lose nothing but marks and
// white space.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/json_scanner.h"
#include "text/reasoning_parser.h"

namespace tessera::text {
namespace {

ReasoningParser::Delta Parse(const ReasoningSyntax& syntax, bool is_open, std::string_view text,
                             size_t piece, bool keeps_marks = false) {
  ReasoningParser parser(syntax, {.is_open = is_open, .keeps_marks = keeps_marks});
  ReasoningParser::Delta delta;
  for (size_t at = 0; at < text.size(); at += piece) parser.Push(text.substr(at, piece), &delta);
  parser.Finish(&delta);
  return delta;
}

size_t Letters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return !IsJsonSpace(c); }));
}

void Fuzz(uint8_t choice, uint8_t cut, std::string_view text) {
  const auto names = ReasoningSyntaxNames();
  const ReasoningSyntax& syntax = *FindReasoningSyntax(names[(choice >> 1) % names.size()]);
  const bool is_open = (choice & 1) != 0;
  const ReasoningParser::Delta whole = Parse(syntax, is_open, text, text.size() + 1);
  for (const size_t piece : {size_t{1}, size_t{1} + cut}) {
    const ReasoningParser::Delta delta = Parse(syntax, is_open, text, piece);
    TESSERA_CHECK(delta.reasoning == whole.reasoning && delta.text == whole.text);
  }
  const ReasoningParser::Delta raw = Parse(syntax, is_open, text, 1, /*keeps_marks=*/true);
  TESSERA_CHECK(raw.reasoning + raw.text == text);
  const size_t kept = Letters(whole.reasoning) + Letters(whole.text);
  TESSERA_CHECK(kept <= Letters(text));
  // At most one mark of each kind is taken out, the begin mark perhaps although it was implied.
  TESSERA_CHECK(kept + syntax.begin.size() + syntax.end.size() >= Letters(text));
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  tessera::text::Fuzz(data[0], data[1], {reinterpret_cast<const char*>(data) + 2, size - 2});
  return 0;
}
