// SPDX-License-Identifier: Apache-2.0
//
// Input: the kind of grammar ('j' JSON Schema, 'r' regular expression, 'l' Lark, 'c' choices,
// 't' tags, 'p' Lark with schemas), the grammar, a zero byte, bytes that choose tokens. A grammar
// is refused, or generates under its own masks: what a mask allows can be committed, what it
// forbids cannot, and there is a way on until the end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/grammar.h"

namespace tessera::text {
namespace {

constexpr size_t kMaxTokens = 64;

/// Every byte, some words that JSON likes, and the end.
std::shared_ptr<const ConstraintVocabulary> MakeVocabulary() {
  std::vector<ConstraintToken> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({.bytes = std::string(1, static_cast<char>(byte))});
  for (const char* word :
       {"true", "false", "null", "\":", "\", \"", "[]", "{\"", "123", "\xE2\x82"})
    tokens.push_back({.bytes = word});
  const auto end = static_cast<TokenId>(tokens.size());
  tokens.push_back({.bytes = {}, .special = true});
  return ConstraintVocabulary::Make(tokens, std::span(&end, 1)).value();
}

std::optional<GrammarKind> KindOf(uint8_t letter) {
  switch (letter) {
    case 'j':
      return GrammarKind::kJsonSchema;
    case 'r':
      return GrammarKind::kRegex;
    case 'l':
      return GrammarKind::kLark;
    case 'c':
      return GrammarKind::kChoices;
    case 't':
      return GrammarKind::kTags;
    case 'p':
      return GrammarKind::kLarkParts;
    default:
      return std::nullopt;
  }
}

/// A panic inside textkit comes out as kInternal: a bug to fix.
void CheckError(const Status& status) {
  TESSERA_CHECK(status.code() != Code::kInternal);
  TESSERA_CHECK(!status.message().empty());
}

bool IsAllowed(std::span<const uint32_t> mask, int64_t id) {
  return (mask[static_cast<size_t>(id / 32)] >> (id % 32) & 1) != 0;
}

/// The `choice`-th allowed token, round about; nothing when none is.
std::optional<TokenId> Pick(std::span<const uint32_t> mask, int64_t size, uint8_t choice) {
  std::vector<TokenId> allowed;
  for (int64_t id = 0; id < size; ++id)
    if (IsAllowed(mask, id)) allowed.push_back(static_cast<TokenId>(id));
  if (allowed.empty()) return std::nullopt;
  return allowed[choice % allowed.size()];
}

void Generate(const ConstraintVocabulary& vocabulary, Constraint& constraint,
              std::string_view choices) {
  std::vector<uint32_t> mask(vocabulary.mask_words());
  for (const char choice : choices.substr(0, kMaxTokens)) {
    if (const Status status = constraint.ComputeMask(mask); !status.ok()) return CheckError(status);
    const auto token = Pick(mask, vocabulary.size(), static_cast<uint8_t>(choice));
    if (constraint.is_finished()) {
      TESSERA_CHECK(!token.has_value());
      return;
    }
    TESSERA_CHECK(token.has_value());
    const int64_t other = static_cast<uint8_t>(choice);
    if (!IsAllowed(mask, other))
      TESSERA_CHECK(!constraint.Commit(static_cast<TokenId>(other)).ok());
    if (const Status status = constraint.Commit(*token); !status.ok()) {
      TESSERA_CHECK(status.code() == Code::kResourceExhausted);
      return;
    }
  }
}

void Fuzz(uint8_t letter, std::string_view input) {
  static const auto vocabulary = MakeVocabulary();
  const auto kind = KindOf(letter);
  if (!kind.has_value()) return;
  const size_t zero = std::min(input.find('\0'), input.size());
  const auto grammar = Grammar::Compile(vocabulary, *kind, input.substr(0, zero));
  if (!grammar.has_value()) return CheckError(grammar.error());
  const auto constraint = (*grammar)->Start();
  if (!constraint.has_value()) return CheckError(constraint.error());
  if (zero < input.size()) Generate(*vocabulary, **constraint, input.substr(zero + 1));
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tessera::text::Fuzz(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
