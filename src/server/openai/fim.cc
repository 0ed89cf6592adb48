// SPDX-License-Identifier: Apache-2.0
#include "server/openai/fim.h"

#include <array>

namespace tessera::server::openai {
namespace {

struct Family {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view middle;               // Empty: suffix first, none.
  std::array<std::string_view, 4> ends;  // Empty ones are none.
};

// As the model cards and tokenizers of the families write them.
constexpr Family kFamilies[] = {
    // Qwen2.5-Coder and later, CodeGemma.
    {"<|fim_prefix|>",
     "<|fim_suffix|>",
     "<|fim_middle|>",
     {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|file_separator|>"}},
    // StarCoder, StarCoder2, Granite Code, Refact.
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", {"<fim_pad>", "<file_sep>"}},
    // SantaCoder, StableCode.
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", {"<fim-pad>"}},
    // DeepSeek-Coder and DeepSeek-V2/V3: the hole stands between prefix and suffix.
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", {}},
    // Codestral.
    {"[PREFIX]", "[SUFFIX]", "", {}},
};

void Append(const std::vector<text::TokenId>& ids, std::vector<text::TokenId>* out) {
  out->insert(out->end(), ids.begin(), ids.end());
}

}  // namespace

std::optional<FimTokens> FindFimTokens(const text::Tokenizer& tokenizer) {
  for (const Family& family : kFamilies) {
    FimTokens found{.prefix = tokenizer.FindToken(family.prefix),
                    .suffix = tokenizer.FindToken(family.suffix)};
    if (found.prefix < 0 || found.suffix < 0) continue;
    if (!family.middle.empty()) {
      found.middle = tokenizer.FindToken(family.middle);
      if (found.middle < 0) continue;
    }
    for (const std::string_view end : family.ends)
      if (const text::TokenId id = end.empty() ? -1 : tokenizer.FindToken(end); id >= 0)
        found.ends.push_back(id);
    return found;
  }
  return std::nullopt;
}

std::vector<text::TokenId> MakeFimPrompt(const FimTokens& tokens,
                                         const std::vector<text::TokenId>& lead,
                                         const std::vector<text::TokenId>& prefix,
                                         const std::vector<text::TokenId>& suffix) {
  std::vector<text::TokenId> prompt = lead;
  if (tokens.middle >= 0) {
    prompt.push_back(tokens.prefix);
    Append(prefix, &prompt);
    prompt.push_back(tokens.suffix);
    Append(suffix, &prompt);
    prompt.push_back(tokens.middle);
  } else {
    prompt.push_back(tokens.suffix);
    Append(suffix, &prompt);
    prompt.push_back(tokens.prefix);
    Append(prefix, &prompt);
  }
  return prompt;
}

}  // namespace tessera::server::openai
