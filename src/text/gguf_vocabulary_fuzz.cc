// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer from GGUF metadata that nobody checked. Input: lines, the first byte says of what.
//   M model   P pre   N model_name   X the text to encode
//   T type score text: a token; type is a digit or '-', score a digit d for -d, n for NaN, i for
//     infinity, anything else for its byte
//   G one more score without a token   R merge ("left right")
//   I b|e|u number: bos_id, eos_id, unk_id   F b|e|s|r 0|1: add_bos, add_eos, prefix, whitespace
//   C precompiled_charsmap: all bytes up to the end
// A vocabulary is refused, or gives ids inside itself that decode, stream and survive ToJson().
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"

namespace tessera::text {
namespace {

/// What the spans of a GgufVocabulary point into.
struct Metadata {
  GgufVocabulary vocabulary;
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::string text = "A b, 1 \xE6\xB0\xB4";
};

char At(std::string_view text, size_t i) {
  return i < text.size() ? text[i] : '-';
}

std::string_view From(std::string_view text, size_t i) {
  return text.substr(std::min(i, text.size()));
}

float ScoreOf(char letter) {
  if (letter >= '0' && letter <= '9') return static_cast<float>('0' - letter);
  if (letter == 'n') return NAN;
  if (letter == 'i') return std::numeric_limits<float>::infinity();
  return static_cast<float>(static_cast<unsigned char>(letter));
}

void AddToken(std::string_view line, Metadata& m) {
  m.types.push_back(At(line, 0) == '-' ? 1 : At(line, 0) - '0');
  m.scores.push_back(ScoreOf(At(line, 1)));
  m.tokens.emplace_back(From(line, 2));
}

void SetId(std::string_view line, GgufVocabulary& v) {
  int64_t id = 0;
  for (const char digit : From(line, 1).substr(0, 12)) id = id * 10 + (digit - '0');
  (At(line, 0) == 'b' ? v.bos_id : At(line, 0) == 'e' ? v.eos_id : v.unk_id) = id;
}

void SetFlag(std::string_view line, GgufVocabulary& v) {
  const bool on = At(line, 1) == '1';
  switch (At(line, 0)) {
    case 'b':
      v.add_bos = on;
      break;
    case 'e':
      v.add_eos = on;
      break;
    case 's':
      v.add_space_prefix = on;
      break;
    default:
      v.remove_extra_whitespaces = on;
  }
}

void ReadLine(char kind, std::string_view line, Metadata& m) {
  if (kind == 'M') m.vocabulary.model = line;
  if (kind == 'P') m.vocabulary.pre = line;
  if (kind == 'N') m.vocabulary.model_name = line;
  if (kind == 'X') m.text = line;
  if (kind == 'T') AddToken(line, m);
  if (kind == 'G') m.scores.push_back(ScoreOf(At(line, 0)));
  if (kind == 'R') m.merges.emplace_back(line);
  if (kind == 'I') SetId(line, m.vocabulary);
  if (kind == 'F') SetFlag(line, m.vocabulary);
}

void Read(std::string_view input, Metadata& m) {
  while (!input.empty()) {
    const char kind = input[0];
    if (kind == 'C') {
      const auto* bytes = reinterpret_cast<const uint8_t*>(input.data());
      m.vocabulary.precompiled_charsmap = {bytes + 1, input.size() - 1};
      break;
    }
    const size_t end = std::min(input.find('\n'), input.size());
    ReadLine(kind, input.substr(1, end == 0 ? 0 : end - 1), m);
    input = From(input, end + 1);
  }
  m.vocabulary.tokens = m.tokens;
  m.vocabulary.merges = m.merges;
  m.vocabulary.scores = m.scores;
  m.vocabulary.token_types = m.types;
}

void CheckTokens(const Tokenizer& tokenizer, size_t tokens) {
  TESSERA_CHECK(tokenizer.vocab_size() >= static_cast<int64_t>(tokens));
  for (TokenId id = 0; id < static_cast<TokenId>(tokens); ++id) {
    const std::string text = tokenizer.TokenText(id);
    TESSERA_CHECK(!text.empty());
    TESSERA_CHECK(tokenizer.FindToken(text) == id);
    (void)tokenizer.TokenBytes(id);
    (void)tokenizer.IsSpecial(id);
  }
}

void CheckText(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
  const auto again = Tokenizer::FromJson(tokenizer->ToJson());
  TESSERA_CHECK(again.has_value());
  for (const bool special : {false, true}) {
    const EncodeOptions options{.add_special = special, .parse_special = special};
    const auto ids = tokenizer->Encode(text, options);
    if (!ids.has_value()) {
      TESSERA_CHECK(ids.error().code() == Code::kInvalidArgument);
      continue;
    }
    const auto same = (*again)->Encode(text, options);
    TESSERA_CHECK(same.has_value() && *same == *ids);
    TESSERA_CHECK(tokenizer->Decode(*ids, special).has_value());
    const auto stream = Detokenizer::Make(tokenizer, special);
    for (const TokenId id : *ids) {
      TESSERA_CHECK(id >= 0 && id < tokenizer->vocab_size());
      TESSERA_CHECK(stream->Push(id).has_value());
    }
    TESSERA_CHECK(stream->Flush().has_value());
  }
}

void Fuzz(std::string_view input) {
  Metadata metadata;
  Read(input, metadata);
  const auto tokenizer = Tokenizer::FromGguf(metadata.vocabulary);
  if (!tokenizer.has_value()) {
    TESSERA_CHECK(tokenizer.error().code() != Code::kInternal);
    TESSERA_CHECK(!tokenizer.error().message().empty());
    return;
  }
  CheckTokens(**tokenizer, metadata.tokens.size());
  CheckText(*tokenizer, metadata.text);
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::text::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
