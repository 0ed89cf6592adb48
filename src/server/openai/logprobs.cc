// SPDX-License-Identifier: Apache-2.0
#include "server/openai/logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace tessera::server::openai {
namespace {

/// JSON has no infinity; so small a value stands for "impossible" in the hosted API too.
double Finite(float logprob) {
  return std::max(static_cast<double>(logprob), -9999.0);
}

json::Array Bytes(std::string_view bytes) {
  json::Array array;
  for (const char byte : bytes) array.push_back(static_cast<unsigned char>(byte));
  return array;
}

json::Object ChatEntry(const text::Tokenizer& tokenizer, text::TokenId id, float logprob) {
  return {{"token", TokenLabel(tokenizer, id)},
          {"logprob", Finite(logprob)},
          {"bytes", Bytes(tokenizer.TokenBytes(id))}};
}

}  // namespace

std::string TokenLabel(const text::Tokenizer& tokenizer, text::TokenId id) {
  const std::string bytes = tokenizer.TokenBytes(id);
  if (IsUtf8(bytes)) return bytes;
  std::string label = "bytes:";
  for (const char byte : bytes) label += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return label;
}

json::Object CompletionLogprobs(std::span<const engine::PlacedToken> tokens,
                                const text::Tokenizer& tokenizer, int64_t offset) {
  json::Array labels, values, tops, offsets;
  for (const engine::PlacedToken& token : tokens) {
    TESSERA_CHECK(token.logprobs.has_value());
    const std::string label = TokenLabel(tokenizer, token.id);
    json::Object top;
    // Two tokens may have one label: the likelier comes first and stays.
    for (const engine::TokenLogprob& other : token.logprobs->top)
      top.emplace(TokenLabel(tokenizer, other.id), Finite(other.logprob));
    top.emplace(label, Finite(token.logprobs->chosen));
    labels.emplace_back(label);
    values.emplace_back(Finite(token.logprobs->chosen));
    tops.push_back(std::move(top));
    offsets.emplace_back(token.text_offset + offset);
  }
  return {{"tokens", std::move(labels)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

json::Array ChatLogprobs(std::span<const engine::PlacedToken> tokens,
                         const text::Tokenizer& tokenizer) {
  json::Array entries;
  for (const engine::PlacedToken& token : tokens) {
    TESSERA_CHECK(token.logprobs.has_value());
    json::Object entry = ChatEntry(tokenizer, token.id, token.logprobs->chosen);
    json::Array top;
    for (const engine::TokenLogprob& other : token.logprobs->top)
      top.push_back(ChatEntry(tokenizer, other.id, other.logprob));
    entry["top_logprobs"] = std::move(top);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tessera::server::openai
