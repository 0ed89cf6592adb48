// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece vocabularies: the list of merges that textkit derives from scores must lead to the
// tokens of the rule itself, here written down plainly: of all neighbours whose text is a token,
// merge the pair of the best score, the leftmost of equals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/fixtures.h"
#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace tessera::text {
namespace {

constexpr std::string_view kSpace = "\u2581";
constexpr int32_t kNormal = 1;
constexpr int32_t kUserDefined = 4;

std::vector<std::string> Characters(std::string_view text) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
    characters.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return characters;
}

class ScoreMerging {
 public:
  explicit ScoreMerging(const GgufVocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      ids_[vocabulary.tokens[id]] = static_cast<TokenId>(id);
    }
  }

  std::vector<TokenId> Encode(std::string_view text) const {
    std::string shown(kSpace);
    for (const char c : text) {
      if (c == ' ') {
        shown += kSpace;
      } else {
        shown += c;
      }
    }
    std::vector<std::string> symbols = Characters(shown);
    while (MergeBest(symbols)) {
    }
    std::vector<TokenId> ids;
    for (const std::string& symbol : symbols) {
      if (const auto found = ids_.find(symbol); found != ids_.end()) {
        ids.push_back(found->second);
        continue;
      }
      for (const char byte : symbol) {
        ids.push_back(ids_.at(fmt::format("<0x{:02X}>", static_cast<uint8_t>(byte))));
      }
    }
    return ids;
  }

 private:
  bool MergeBest(std::vector<std::string>& symbols) const {
    size_t best = symbols.size();
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ids_.find(symbols[i] + symbols[i + 1]);
      if (found == ids_.end()) continue;
      const auto id = static_cast<size_t>(found->second);
      // Control tokens never come from text.
      const int32_t type = vocabulary_.token_types[id];
      if (type != kNormal && type != kUserDefined) continue;
      if (best == symbols.size() || vocabulary_.scores[id] > best_score) {
        best = i;
        best_score = vocabulary_.scores[id];
      }
    }
    if (best == symbols.size()) return false;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    return true;
  }

  const GgufVocabulary& vocabulary_;
  std::unordered_map<std::string, TokenId> ids_;
};

/// Texts that provoke ties: runs of one character, short cycles, pieces of the vocabulary.
std::string RandomText(std::mt19937_64& random, std::span<const std::string> tokens) {
  std::string text;
  const auto below = [&](uint64_t n) { return random() % n; };
  const uint64_t parts = 1 + below(6);
  for (uint64_t part = 0; part < parts; ++part) {
    switch (below(4)) {
      case 0:
        text += std::string(1 + below(20), " -=_.*#a0\n"[below(10)]);
        break;
      case 1: {
        const std::string_view cycle =
            std::vector<std::string_view>{"ab", "aba", "()", ". ", "ha", "../"}[below(6)];
        for (uint64_t i = 0; i < 1 + below(8); ++i) text += cycle;
        break;
      }
      case 2:
        text += Characters("aeé水🌊ßqЖ\u00a0\u2581")[below(10)];
        break;
      default:
        text += tokens[300 + below(tokens.size() - 300)];
        break;
    }
  }
  return text;
}

class ScoreMerges : public ::testing::TestWithParam<const char*> {};

TEST_P(ScoreMerges, GiveTheTokensOfTheRule) {
  const auto metadata = ReadGgufTokenizer(testing::TestData(GetParam()));
  const GgufVocabulary vocabulary = metadata.vocabulary();
  const auto tokenizer = Tokenizer::FromGguf(vocabulary);
  ASSERT_TRUE(tokenizer.has_value()) << StatusOf(tokenizer).ToString();
  const ScoreMerging rule(vocabulary);
  constexpr uint64_t kSeed = 20260115;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = RandomText(random, vocabulary.tokens);
    if (text.find('<') != std::string::npos) continue;  // User-defined tokens come first.
    const auto ids = (*tokenizer)->Encode(text, {.add_special = false, .parse_special = false});
    ASSERT_TRUE(ids.has_value());
    ASSERT_EQ(*ids, rule.Encode(text)) << "seed " << kSeed << " text " << i << ": " << text;
    ++compared;
  }
  EXPECT_GT(compared, 2000);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ScoreMerges,
                         ::testing::Values("llama_cpp_models/ggml-vocab-llama-spm.gguf",
                                           "llama_cpp_models/ggml-vocab-phi-3.gguf",
                                           "llama_cpp_models/ggml-vocab-baichuan.gguf"));

TEST(ScoreMerges, ControlTokensNeverComeFromText) {
  for (const char* file :
       {"llama_cpp_models/ggml-vocab-llama-spm.gguf", "llama_cpp_models/ggml-vocab-phi-3.gguf"}) {
    const auto tokenizer = GgufTokenizer(file);
    ASSERT_NE(tokenizer, nullptr);
    for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) {
      if (!tokenizer->IsSpecial(id)) continue;
      const std::string text = tokenizer->TokenText(id);
      const auto ids =
          tokenizer->Encode(text, {.add_special = false, .parse_special = false}).value();
      EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0) << text;
      EXPECT_EQ(tokenizer->Decode(ids, false).value(), text);
    }
  }
}

TEST(ScoreMerges, UnigramVocabulariesGiveTheirTextBack) {
  const auto tokenizer = GgufTokenizer("llama_cpp_models/ggml-vocab-nomic-bert-moe.gguf");
  ASSERT_NE(tokenizer, nullptr);
  const auto ids = tokenizer->Encode("The ferry  leaves at nine; bring rope.", {}).value();
  ASSERT_GT(ids.size(), 2u);
  EXPECT_EQ(ids.front(), tokenizer->FindToken("<s>"));
  EXPECT_EQ(ids.back(), tokenizer->FindToken("</s>"));
  EXPECT_EQ(tokenizer->Decode(ids, true).value(), "The ferry leaves at nine; bring rope.");
}

}  // namespace
}  // namespace tessera::text
