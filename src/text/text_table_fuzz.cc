// SPDX-License-Identifier: Apache-2.0
//
// A stored tokenizer from outside. Its size and checksum are made right, so that the fuzzer gets
// past them; the last byte of the input says whether. What opens must encode and decode without a
// crash, and give ids of its vocabulary only.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/table_for_test.h"
#include "text/tokenizer_table.h"

namespace tessera::text {
namespace {

constexpr std::string_view kTexts[] = {"", "abba <|end|> z",
                                       "caf\xC3\xA9 \xE4\xB8\xAD\xF0\x9F\x91\x8D",
                                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

void Use(const Tokenizer& tokenizer) {
  for (const std::string_view text : kTexts) {
    const auto ids = tokenizer.Encode(text, {});
    if (!ids.has_value()) continue;
    for (const TokenId id : *ids) TESSERA_CHECK(id >= 0 && id < tokenizer.vocab_size());
    (void)tokenizer.Decode(*ids, false);
    (void)tokenizer.Decode(*ids, true);
  }
  const TokenId end = static_cast<TokenId>(std::min<int64_t>(tokenizer.vocab_size(), 64));
  for (TokenId id = 0; id < end; ++id) {
    (void)tokenizer.TokenBytes(id);
    (void)tokenizer.FindToken(tokenizer.TokenText(id));
  }
  (void)tokenizer.SpecialIds();
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tessera::text::ReadTokenizerTable;
  if (size == 0) return 0;
  std::string table(reinterpret_cast<const char*>(data), size - 1);
  if (data[size - 1] != 0) table = tessera::text::WithChecksum(std::move(table));
  const auto tokenizer = ReadTokenizerTable(table);
  if (tokenizer.has_value()) tessera::text::Use(**tokenizer);
  return 0;
}
