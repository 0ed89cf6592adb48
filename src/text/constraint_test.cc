// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "text/grammar.h"
#include "text/test_vocabularies.h"

namespace tessera::text {
namespace {

constexpr TokenId kEnd = 256;
constexpr TokenId kTrueWord = 258;

/// The 256 bytes, an end token, a special token, and one token of several bytes.
std::shared_ptr<const ConstraintVocabulary> Bytes() {
  std::vector<ConstraintToken> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string(1, static_cast<char>(byte))});
  tokens.push_back({"</s>", true});
  tokens.push_back({"<tool>", true});
  tokens.push_back({"true"});
  const TokenId end[] = {kEnd};
  return *ConstraintVocabulary::Make(tokens, end);
}

std::unique_ptr<Constraint> Make(GrammarKind kind, std::string_view grammar) {
  static const auto vocabulary = Bytes();
  const auto made = Grammar::Compile(vocabulary, kind, grammar);
  EXPECT_TRUE(made.has_value()) << made.error().ToString();
  return std::move(*(*made)->Start());
}

/// The allowed tokens: bytes as characters, 'E' for the end, 'T' for the tool token, 'W' for
/// "true".
std::string Allowed(Constraint& constraint) {
  std::vector<uint32_t> mask(9, ~0u);
  EXPECT_TRUE(constraint.ComputeMask(mask).ok());
  std::string shown;
  for (uint32_t id = 0; id < 9 * 32; ++id) {
    if ((mask[id / 32] >> (id % 32) & 1) == 0) continue;
    if (id < 256) shown += static_cast<char>(id);
    if (id == 256) shown += "<E>";
    if (id == 257) shown += "<T>";
    if (id == 258) shown += "<W>";
    if (id > 258) shown += "<beyond>";
  }
  return shown;
}

Status Feed(Constraint& constraint, std::string_view text) {
  for (const char c : text) {
    const Status status = constraint.Commit(static_cast<unsigned char>(c));
    if (!status.ok()) return status;
  }
  return Status();
}

bool Accepts(GrammarKind kind, std::string_view grammar, std::string_view text) {
  const auto constraint = Make(kind, grammar);
  return Feed(*constraint, text).ok() && constraint->IsAccepting().value_or(false);
}

TEST(Constraint, ARegexAllowsWhatContinuesIt) {
  const auto constraint = Make(GrammarKind::kRegex, "a(b|c)?true");
  EXPECT_EQ(Allowed(*constraint), "a");
  ASSERT_TRUE(constraint->Commit('a').ok());
  EXPECT_EQ(Allowed(*constraint), "bct<W>");
  ASSERT_TRUE(constraint->Commit(kTrueWord).ok());
  EXPECT_TRUE(constraint->must_end());
  EXPECT_TRUE(*constraint->IsAccepting());
  EXPECT_EQ(Allowed(*constraint), "<E>");
}

TEST(Constraint, ATokenOutsideTheMaskIsRefusedAndChangesNothing) {
  const auto constraint = Make(GrammarKind::kRegex, "ab");
  for (const TokenId bad : {TokenId{'b'}, kEnd, TokenId{257}, TokenId{-1}, TokenId{259}}) {
    EXPECT_EQ(constraint->Commit(bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(Allowed(*constraint), "a");
  EXPECT_TRUE(Feed(*constraint, "ab").ok());
}

TEST(Constraint, TheEndFinishesAnOutputThatCouldGoOn) {
  const auto constraint = Make(GrammarKind::kRegex, "a+");
  EXPECT_FALSE(*constraint->IsAccepting());
  ASSERT_TRUE(constraint->Commit('a').ok());
  EXPECT_EQ(Allowed(*constraint), "a<E>");
  EXPECT_FALSE(constraint->must_end());
  ASSERT_TRUE(constraint->Commit(kEnd).ok());
  EXPECT_TRUE(constraint->is_finished());
  EXPECT_EQ(Allowed(*constraint), "");
  EXPECT_FALSE(constraint->Commit(kEnd).ok());
}

TEST(Constraint, ChoicesAreLiteral) {
  const char* choices = R"x(["a.b", "a.c/(d)", "é \"q\"", "#x~"])x";
  EXPECT_TRUE(Accepts(GrammarKind::kChoices, choices, "a.b"));
  EXPECT_TRUE(Accepts(GrammarKind::kChoices, choices, "a.c/(d)"));
  EXPECT_TRUE(Accepts(GrammarKind::kChoices, choices, "é \"q\""));
  EXPECT_TRUE(Accepts(GrammarKind::kChoices, choices, "#x~"));
  EXPECT_FALSE(Accepts(GrammarKind::kChoices, choices, "axb"));
  EXPECT_FALSE(Accepts(GrammarKind::kChoices, choices, "a."));
}

TEST(Constraint, AChoiceThatBeginsAnotherCanEndOrGoOn) {
  const auto constraint = Make(GrammarKind::kChoices, R"(["ab", "abc"])");
  ASSERT_TRUE(Feed(*constraint, "ab").ok());
  EXPECT_EQ(Allowed(*constraint), "c<E>");
}

TEST(Constraint, AJsonSchemaIsFollowed) {
  const char* schema = R"({"type": "object", "additionalProperties": false,
    "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 12}, "ok": {"type": "boolean"},
                   "s": {"enum": ["x", "y"]}},
    "required": ["n", "ok"]})";
  EXPECT_TRUE(Accepts(GrammarKind::kJsonSchema, schema, R"({"n": 12, "ok": false})"));
  EXPECT_TRUE(Accepts(GrammarKind::kJsonSchema, schema, R"({"n":1,"ok":true,"s":"y"})"));
  EXPECT_FALSE(Accepts(GrammarKind::kJsonSchema, schema, R"({"n": 13, "ok": false})"));
  EXPECT_FALSE(Accepts(GrammarKind::kJsonSchema, schema, R"({"n": 1})"));
  EXPECT_FALSE(Accepts(GrammarKind::kJsonSchema, schema, R"({"n": 1, "ok": true, "s": "z"})"));
}

TEST(Constraint, LarkGrammars) {
  const char* grammar = "start: expr\nexpr: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]+/\n";
  EXPECT_TRUE(Accepts(GrammarKind::kLark, grammar, "1+23+4"));
  EXPECT_FALSE(Accepts(GrammarKind::kLark, grammar, "1+"));
}

TEST(Constraint, AnErrorSaysWhatIsWrongWithTheGrammar) {
  const auto vocabulary = Bytes();
  const auto message = [&](GrammarKind kind, std::string_view grammar) {
    const auto made = Grammar::Compile(vocabulary, kind, grammar);
    return made.has_value() ? "made" : made.error().ToString();
  };
  EXPECT_NE(message(GrammarKind::kJsonSchema, R"({"type": "strin"})").find("strin"),
            std::string::npos);
  EXPECT_NE(message(GrammarKind::kJsonSchema, R"({"type": "array", "uniqueItems": true})")
                .find("uniqueItems"),
            std::string::npos);
  EXPECT_NE(message(GrammarKind::kJsonSchema, "{").find("no JSON"), std::string::npos);
  EXPECT_NE(message(GrammarKind::kRegex, "a(").find("made"), 0u);
  EXPECT_NE(message(GrammarKind::kLark, "start: nowhere").find("nowhere"), std::string::npos);
  EXPECT_NE(message(GrammarKind::kChoices, "[]").find("choices"), std::string::npos);
  EXPECT_NE(message(GrammarKind::kChoices, R"(["a", ""])").find("empty"), std::string::npos);
}

TEST(Constraint, GrammarsThatCostTooMuchEndInAnError) {
  const auto vocabulary = Bytes();
  const auto huge =
      Grammar::Compile(vocabulary, GrammarKind::kRegex, "a" + std::string((1 << 20), 'b'));
  ASSERT_FALSE(huge.has_value());
  EXPECT_EQ(huge.error().code(), Code::kResourceExhausted);
  std::string deep(100'000, '[');
  EXPECT_FALSE(Grammar::Compile(vocabulary, GrammarKind::kJsonSchema, deep).has_value());
  EXPECT_FALSE(
      Grammar::Compile(vocabulary, GrammarKind::kRegex, std::string(50'000, '(')).has_value());
}

TEST(Constraint, AVocabularyNeedsAnEnd) {
  const std::vector<ConstraintToken> tokens = {{"a"}, {"</s>", true}};
  const TokenId outside[] = {2};
  EXPECT_FALSE(ConstraintVocabulary::Make(tokens, {}).has_value());
  EXPECT_FALSE(ConstraintVocabulary::Make(tokens, outside).has_value());
  EXPECT_FALSE(ConstraintVocabulary::Make(std::span<const ConstraintToken>{}, {}).has_value());
}

TEST(Constraint, ARealVocabularySpellsJson) {
  const auto tokenizer = GgufTokenizer("SmolLM2-135M-Instruct.Q4_1.gguf");
  const TokenId end[] = {tokenizer->FindToken("<|im_end|>")};
  ASSERT_GE(end[0], 0);
  const auto vocabulary = ConstraintVocabulary::Make(*tokenizer, end);
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().ToString();
  const auto grammar = Grammar::Compile(*vocabulary, GrammarKind::kJsonSchema,
                                        R"({"type": "object", "additionalProperties": false,
      "properties": {"city": {"type": "string"}}, "required": ["city"]})");
  ASSERT_TRUE(grammar.has_value()) << grammar.error().ToString();
  const auto constraint = (*grammar)->Start();
  ASSERT_TRUE(constraint.has_value()) << constraint.error().ToString();
  const auto ids = tokenizer->Encode("{\"city\": \"Köln\"}", {.add_special = false});
  ASSERT_TRUE(ids.has_value());
  std::vector<uint32_t> mask((*vocabulary)->mask_words());
  for (const TokenId id : *ids) {
    ASSERT_TRUE((*constraint)->ComputeMask(mask).ok());
    const auto at = static_cast<uint32_t>(id);
    EXPECT_TRUE(mask[at / 32] >> (at % 32) & 1) << id;
    ASSERT_TRUE((*constraint)->Commit(id).ok());
  }
  EXPECT_TRUE((*constraint)->must_end());
  EXPECT_TRUE((*constraint)->Commit(end[0]).ok());
  EXPECT_TRUE((*constraint)->is_finished());
}

}  // namespace
}  // namespace tessera::text
