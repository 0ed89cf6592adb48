// SPDX-License-Identifier: Apache-2.0
#include "server/openai/logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "engine/limits.h"

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

std::span<const engine::TokenLogprob> Head(std::span<const engine::TokenLogprob> all, int count) {
  return all.first(std::min(all.size(), static_cast<size_t>(count)));
}

/// The four arrays of a completion's logprobs.
class CompletionArrays {
 public:
  explicit CompletionArrays(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void Add(text::TokenId id, const engine::Logprobs& logprobs, int top_count, int64_t offset) {
    const std::string label = TokenLabel(tokenizer_, id);
    json::Object top;
    // Two tokens may have one label: the likelier comes first and stays.
    for (const engine::TokenLogprob& other : Head(logprobs.top, top_count))
      top.emplace(TokenLabel(tokenizer_, other.id), Finite(other.logprob));
    top.emplace(label, Finite(logprobs.chosen));
    labels_.emplace_back(label);
    values_.emplace_back(Finite(logprobs.chosen));
    tops_.push_back(std::move(top));
    offsets_.emplace_back(offset);
  }
  /// A token that nothing comes before.
  void AddUnknown(text::TokenId id, int64_t offset) {
    labels_.emplace_back(TokenLabel(tokenizer_, id));
    values_.emplace_back(nullptr);
    tops_.emplace_back(nullptr);
    offsets_.emplace_back(offset);
  }
  json::Object Body() && {
    return {{"tokens", std::move(labels_)},
            {"token_logprobs", std::move(values_)},
            {"top_logprobs", std::move(tops_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  const text::Tokenizer& tokenizer_;
  json::Array labels_, values_, tops_, offsets_;
};

}  // namespace

std::string TokenLabel(const text::Tokenizer& tokenizer, text::TokenId id) {
  const std::string bytes = tokenizer.TokenBytes(id);
  if (IsUtf8(bytes)) return bytes;
  std::string label = "bytes:";
  for (const char byte : bytes) label += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return label;
}

json::Object CompletionLogprobs(const EchoedLogprobs& prompt,
                                std::span<const engine::PlacedToken> tokens,
                                const text::Tokenizer& tokenizer, int64_t offset) {
  CompletionArrays arrays(tokenizer);
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    if (i == 0) {
      arrays.AddUnknown(prompt.ids[i], prompt.offsets[i]);
    } else {
      arrays.Add(prompt.ids[i], prompt.logprobs[i - 1], prompt.top, prompt.offsets[i]);
    }
  }
  for (const engine::PlacedToken& token : tokens) {
    TESSERA_CHECK(token.logprobs.has_value());
    arrays.Add(token.id, *token.logprobs, engine::kTopLogprobsMax, token.text_offset + offset);
  }
  return std::move(arrays).Body();
}

json::Array PromptLogprobsBody(std::span<const text::TokenId> ids,
                               std::span<const engine::Logprobs> logprobs, int top,
                               const text::Tokenizer& tokenizer) {
  TESSERA_CHECK(logprobs.size() + 1 == ids.size());
  json::Array body{nullptr};
  for (size_t i = 0; i < logprobs.size(); ++i) {
    json::Object entry;
    const auto add = [&](text::TokenId id, float logprob, int64_t rank) {
      entry.emplace(std::to_string(id), json::Object{{"logprob", Finite(logprob)},
                                                     {"rank", rank},
                                                     {"decoded_token", TokenLabel(tokenizer, id)}});
    };
    int64_t rank = 0;
    for (const engine::TokenLogprob& other : Head(logprobs[i].top, top))
      add(other.id, other.logprob, ++rank);
    add(ids[i + 1], logprobs[i].chosen, logprobs[i].rank);
    body.push_back(std::move(entry));
  }
  return body;
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
