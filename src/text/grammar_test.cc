// SPDX-License-Identifier: Apache-2.0
//
// Grammars as servers use them: tags written in C++, the cache, finished outputs held against them.
#include "text/grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_text.h"
#include "text/grammar_cache.h"
#include "text/tag_grammar.h"

namespace tessera::text {
namespace {

constexpr TokenId kEnd = 256;
constexpr TokenId kCall = 257;

std::shared_ptr<const Tokenizer> Bytes() {
  return std::make_shared<testing::FakeTokenizer>(std::vector<std::string>{"</s>", "<|call|>"});
}

/// Takes `text`, a special token for each "<|call|>" in it; whether it may end there.
Result<bool> Take(const Grammar& grammar, const std::string& text) {
  TESSERA_ASSIGN_OR_RETURN(const auto constraint, grammar.Start());
  TESSERA_ASSIGN_OR_RETURN(const auto ids,
                           Bytes()->Encode(text, {.add_special = false, .parse_special = true}));
  for (const TokenId id : ids) TESSERA_RETURN_IF_ERROR(constraint->Commit(id));
  return constraint->IsAccepting();
}

TagGrammar Calls() {
  const char* add = R"({"type":"object","properties":{"a":{"type":"integer"}},
                        "required":["a"],"additionalProperties":false})";
  return {.tags = {{"<|call|>add ", GrammarKind::kJsonSchema, add, "\n"},
                   {"<|call|>say ", GrammarKind::kRegex, "[a-z]+", "\n"},
                   {"<|call|>sum ", GrammarKind::kLark, "start: N (\"+\" N)*\nN: /[0-9]+/", "\n"}},
          .triggers = {"<|call|>"},
          .free_text = true,
          .separator = {},
          .min_tags = 0,
          .max_tags = std::nullopt};
}

TEST(TagGrammar, ContentsOfThreeKindsInFreeText) {
  GrammarCache cache(Bytes(), {kEnd});
  const auto grammar = cache.Get(GrammarKind::kTags, ToSource(Calls()));
  ASSERT_TRUE(grammar.has_value()) << grammar.error().ToString();
  EXPECT_TRUE(*Take(**grammar, "well"));
  EXPECT_TRUE(*Take(**grammar, "well <|call|>add {\"a\": 12}\nand <|call|>say hi\n"));
  EXPECT_TRUE(*Take(**grammar, "<|call|>sum 1+2\n"));
  EXPECT_FALSE(*Take(**grammar, "<|call|>sum 1+2"));
  EXPECT_FALSE(Take(**grammar, "<|call|>add {\"b\"").has_value());
  EXPECT_FALSE(Take(**grammar, "<|call|>other").has_value());
}

TEST(TagGrammar, OneTagAndNothingElse) {
  TagGrammar calls = Calls();
  calls.free_text = false;
  calls.min_tags = 1;
  calls.max_tags = 1;
  GrammarCache cache(Bytes(), {kEnd});
  const auto grammar = cache.Get(GrammarKind::kTags, ToSource(calls));
  ASSERT_TRUE(grammar.has_value()) << grammar.error().ToString();
  EXPECT_FALSE(*Take(**grammar, ""));
  EXPECT_FALSE(Take(**grammar, "w").has_value());
  EXPECT_TRUE(*Take(**grammar, "<|call|>say hi\n"));
}

TEST(TagGrammar, AnErrorNamesTagAndKeyword) {
  GrammarCache cache(Bytes(), {kEnd});
  TagGrammar calls = Calls();
  calls.tags[0].content = R"({"properties":{"a":{"not":{}}}})";
  const auto refused = cache.Get(GrammarKind::kTags, ToSource(calls));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kUnimplemented);
  EXPECT_TRUE(std::string(refused.error().message()).starts_with("tag 0: #/properties/a/not: "));
  calls.tags[0].content = "{";
  EXPECT_FALSE(cache.Get(GrammarKind::kTags, ToSource(calls)).has_value());
}

TEST(GrammarCache, CompilesOnceAndForgetsWhatWasUsedLeast) {
  GrammarCache cache(Bytes(), {kEnd}, {.grammars = 2, .source_bytes = 100});
  const auto get = [&cache](const std::string& regex) {
    return cache.Get(GrammarKind::kRegex, regex).value();
  };
  const auto a = get("a");
  EXPECT_EQ(get("a"), a);
  get("b");
  get("a");
  get("c");  // b has to go.
  EXPECT_EQ(get("a"), a);
  get("b");
  const GrammarCache::Counters counters = cache.counters();
  EXPECT_EQ(counters.compiled, 4);
  EXPECT_EQ(counters.hits, 3);
  EXPECT_EQ(counters.grammars, 2u);
}

TEST(GrammarCache, BytesAreBoundedToTheByte) {
  GrammarCache cache(Bytes(), {kEnd}, {.grammars = 10, .source_bytes = 20});
  // A key is the source and one byte for its kind.
  for (const size_t length : {8u, 9u}) {
    ASSERT_TRUE(cache.Get(GrammarKind::kRegex, std::string(length, 'x')).has_value());
    ASSERT_TRUE(cache.Get(GrammarKind::kRegex, std::string(length, 'y')).has_value());
  }
  EXPECT_EQ(cache.counters().source_bytes, 20u);
  EXPECT_EQ(cache.counters().grammars, 2u);
  ASSERT_TRUE(cache.Get(GrammarKind::kRegex, std::string(10, 'z')).has_value());
  EXPECT_EQ(cache.counters().grammars, 1u);
  ASSERT_TRUE(cache.Get(GrammarKind::kRegex, std::string(20, 'z')).has_value());
  EXPECT_EQ(cache.counters().grammars, 0u) << "what does not fit is not kept";
}

TEST(GrammarCache, TheKindIsPartOfTheKey) {
  GrammarCache cache(Bytes(), {kEnd});
  EXPECT_TRUE(cache.Get(GrammarKind::kRegex, "[\"a\"]").has_value());
  EXPECT_TRUE(cache.Get(GrammarKind::kChoices, "[\"a\"]").has_value());
  EXPECT_FALSE(cache.Get(GrammarKind::kJsonSchema, "[\"a\"]").has_value());
  EXPECT_EQ(cache.counters().refused, 1);
}

TEST(Grammar, FinishedOutputsAreHeldAgainstIt) {
  GrammarCache cache(Bytes(), {kEnd});
  const auto fits = [&](GrammarKind kind, const char* source, const char* output) {
    return cache.Get(kind, source).value()->Validate(output).ok();
  };
  const char* schema = R"({"type":"array","items":{"type":"integer","minimum":3}})";
  EXPECT_TRUE(fits(GrammarKind::kJsonSchema, schema, "[3, 4]"));
  EXPECT_FALSE(fits(GrammarKind::kJsonSchema, schema, "[3, 2]"));
  EXPECT_FALSE(fits(GrammarKind::kJsonSchema, schema, "[3, 4"));
  EXPECT_TRUE(fits(GrammarKind::kRegex, "a+b?", "aa"));
  EXPECT_TRUE(fits(GrammarKind::kRegex, "ab", "ab"));
  EXPECT_FALSE(fits(GrammarKind::kRegex, "a+b", "aa"));
  EXPECT_FALSE(fits(GrammarKind::kRegex, "ab", "abc"));
  EXPECT_TRUE(fits(GrammarKind::kChoices, R"(["one","two"])", "two"));
  EXPECT_FALSE(fits(GrammarKind::kChoices, R"(["one","two"])", "three"));
}

TEST(Grammar, UnknownKeywordsAreNoted) {
  GrammarCache cache(Bytes(), {kEnd});
  const auto grammar =
      cache.Get(GrammarKind::kJsonSchema, R"({"type":"string","minLenght":3,"maxLenght":4})");
  ASSERT_TRUE(grammar.has_value());
  ASSERT_EQ((*grammar)->notes().size(), 2u);
  EXPECT_TRUE((*grammar)->notes()[1].starts_with("#/maxLenght: "));
}

}  // namespace
}  // namespace tessera::text
