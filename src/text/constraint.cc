// SPDX-License-Identifier: Apache-2.0
#include "text/constraint.h"

#include <utility>

#include "text/textkit_abi.h"
#include "textkit_constraint.h"

namespace tessera::text {
Result<std::shared_ptr<const ConstraintVocabulary>> ConstraintVocabulary::Make(
    std::span<const ConstraintToken> tokens, std::span<const TokenId> eos) {
  std::vector<tk_slice> slices;
  std::vector<uint8_t> special;
  slices.reserve(tokens.size());
  special.reserve(tokens.size());
  for (const ConstraintToken& token : tokens) {
    slices.push_back(ToSlice(token.bytes));
    special.push_back(token.special ? 1 : 0);
  }
  tk_vocabulary* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_vocabulary_new(slices.data(), special.data(), tokens.size(), eos.data(),
                                         eos.size(), &handle, error.out());
  if (code != TK_OK) return Fail(FromTextkit(code, error));
  return std::shared_ptr<const ConstraintVocabulary>(
      new ConstraintVocabulary(handle, static_cast<int64_t>(tokens.size()), eos));
}

Result<std::shared_ptr<const ConstraintVocabulary>> ConstraintVocabulary::Make(
    const Tokenizer& tokenizer, std::span<const TokenId> eos) {
  std::vector<ConstraintToken> tokens(static_cast<size_t>(tokenizer.vocab_size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool special = tokenizer.IsSpecial(id);
    tokens[i] = {.bytes = special ? tokenizer.TokenText(id) : tokenizer.TokenBytes(id),
                 .special = special};
  }
  return Make(tokens, eos);
}

ConstraintVocabulary::~ConstraintVocabulary() {
  tk_vocabulary_free(handle_);
}

Constraint::~Constraint() {
  tk_constraint_free(handle_);
}

Status Constraint::ComputeMask(std::span<uint32_t> mask) {
  TextkitBuffer error;
  const tk_code code = tk_constraint_mask(handle_, mask.data(), mask.size(), error.out());
  return FromTextkit(code, error);
}

Status Constraint::Commit(TokenId id) {
  TextkitBuffer error;
  const tk_code code = tk_constraint_commit(handle_, id, error.out());
  return FromTextkit(code, error);
}

Result<bool> Constraint::IsAccepting() {
  bool accepting = false;
  TextkitBuffer error;
  const tk_code code = tk_constraint_is_accepting(handle_, &accepting, error.out());
  if (code != TK_OK) return Fail(FromTextkit(code, error));
  return accepting;
}

bool Constraint::must_end() const {
  return tk_constraint_must_end(handle_);
}

bool Constraint::is_finished() const {
  return tk_constraint_is_finished(handle_);
}

}  // namespace tessera::text
