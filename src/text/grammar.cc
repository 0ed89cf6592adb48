// SPDX-License-Identifier: Apache-2.0
#include "text/grammar.h"

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
  return std::shared_ptr<const Grammar>(new Grammar(std::move(vocabulary), handle));
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
