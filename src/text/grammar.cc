// SPDX-License-Identifier: Apache-2.0
#include "text/grammar.h"

#include <algorithm>
#include <utility>

#include "text/textkit_abi.h"
#include "textkit_constraint.h"

namespace tessera::text {
namespace {

tk_grammar_kind ToKind(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return TK_GRAMMAR_JSON_SCHEMA;
    case GrammarKind::kRegex:
      return TK_GRAMMAR_REGEX;
    case GrammarKind::kLark:
      return TK_GRAMMAR_LARK;
    case GrammarKind::kChoices:
      return TK_GRAMMAR_CHOICES;
    case GrammarKind::kTags:
      return TK_GRAMMAR_TAGS;
    case GrammarKind::kLarkParts:
      return TK_GRAMMAR_PARTS;
  }
  return -1;
}

}  // namespace

Result<std::shared_ptr<const Grammar>> Grammar::Compile(
    std::shared_ptr<const ConstraintVocabulary> vocabulary, GrammarKind kind,
    std::string_view source) {
  tk_grammar* handle = nullptr;
  TextkitBuffer error;
  const tk_code code =
      tk_grammar_new(vocabulary->handle_, ToKind(kind), ToSlice(source), &handle, error.out());
  if (code != TK_OK) return Fail(FromTextkit(code, error));
  const std::shared_ptr<Grammar> grammar(new Grammar(std::move(vocabulary), handle));
  TextkitBuffer lines;
  const tk_code noted = tk_grammar_notes(handle, lines.out(), error.out());
  if (noted != TK_OK) return Fail(FromTextkit(noted, error));
  for (std::string_view rest = lines.view(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    grammar->notes_.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return grammar;
}

Status Grammar::Validate(std::string_view output) const {
  TextkitBuffer error;
  const tk_code code = tk_grammar_validate(handle_, ToSlice(output), error.out());
  return FromTextkit(code, error);
}

Grammar::~Grammar() {
  tk_grammar_free(handle_);
}

Result<std::unique_ptr<Constraint>> Grammar::Start() const {
  tk_constraint* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_grammar_start(handle_, &handle, error.out());
  if (code != TK_OK) return Fail(FromTextkit(code, error));
  return std::unique_ptr<Constraint>(new Constraint(handle));
}

}  // namespace tessera::text
