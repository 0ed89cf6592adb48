// SPDX-License-Identifier: Apache-2.0
//
// The stored form: same answers as the tokenizer that it was made from, and what damage does. The
// reference fixtures run through it in tokenizer_parity_test.cc.
#include "text/tokenizer_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "support/fixtures.h"
#include "text/limits.h"
#include "text/table_for_test.h"

namespace tessera::text {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Tokenizer> Tiny() {
  static const auto tokenizer =
      Tokenizer::FromJson(
          testing::ReadAll(testing::Shared("fixtures/tiny_llama/hf/tokenizer.json")))
          .value();
  return tokenizer;
}

const std::string& TinyTable() {
  static const std::string table = MakeTokenizerTable(*Tiny()).value();
  return table;
}

Status ReadStatus(std::string_view table) {
  return StatusOf(ReadTokenizerTable(table));
}

/// Where the tables begin, behind the first section.
size_t JsonEnd(std::string_view table) {
  uint64_t place[2];  // Offset and size.
  std::memcpy(place, table.data() + 48, sizeof(place));
  return place[0] + place[1];
}

void ExpectSame(const Tokenizer& a, const Tokenizer& b, const std::string& text) {
  for (const bool special : {false, true}) {
    const EncodeOptions options{.add_special = special, .parse_special = special};
    const auto expected = a.Encode(text, options);
    const auto found = b.Encode(text, options);
    ASSERT_EQ(expected.has_value(), found.has_value()) << text;
    if (!expected.has_value()) continue;
    ASSERT_EQ(*expected, *found) << text;
    ASSERT_EQ(a.Decode(*expected, special).value(), b.Decode(*found, special).value()) << text;
  }
}

TEST(TokenizerTable, AnswersEveryQuestionAsTheOriginal) {
  const auto table = ReadTokenizerTable(TinyTable());
  ASSERT_TRUE(table.has_value()) << StatusOf(table).ToString();
  EXPECT_EQ((*table)->vocab_size(), Tiny()->vocab_size());
  EXPECT_EQ((*table)->SpecialIds(), Tiny()->SpecialIds());
  EXPECT_EQ((*table)->ToJson(), Tiny()->ToJson());
  for (TokenId id = -1; id <= Tiny()->vocab_size(); ++id) {
    const std::string text = Tiny()->TokenText(id);
    EXPECT_EQ((*table)->TokenText(id), text);
    EXPECT_EQ((*table)->TokenBytes(id), Tiny()->TokenBytes(id));
    EXPECT_EQ((*table)->IsSpecial(id), Tiny()->IsSpecial(id));
    EXPECT_EQ((*table)->FindToken(text), Tiny()->FindToken(text));
  }
  EXPECT_EQ((*table)->FindToken("no such token"), -1);
}

TEST(TokenizerTable, IsTheSameForTheSameTokenizerAndForItsTable) {
  EXPECT_EQ(MakeTokenizerTable(*Tiny()).value(), TinyTable());
  EXPECT_EQ(MakeTokenizerTable(**ReadTokenizerTable(TinyTable())).value(), TinyTable());
}

/// BPE with random tokens, merges and options over a few letters, some of them unknown: the corners
/// that no published vocabulary reaches together.
std::string RandomJson(Random* random) {
  const auto flag = [&] { return random->Below(2) == 0; };
  const std::string prefix = flag() ? "##" : "";
  const std::string suffix = random->Below(3) == 0 ? "</w>" : "";
  std::vector<std::string> tokens;
  std::set<std::string> known;
  const auto add = [&](const std::string& token) {
    if (known.insert(token).second) tokens.push_back(token);
  };
  for (const std::string_view letter : {"a", "b", "c", "\xC3\xA9", "<unk>"})
    if (random->Below(5) > 0 || letter == "<unk>") add(std::string(letter));
  if (flag())
    for (int byte = 0; byte < 256; byte += flag() ? 1 : 7) add(fmt::format("<0x{:02X}>", byte));
  const size_t letters = tokens.size();
  for (size_t i = 0; i < letters; ++i) {
    if (!prefix.empty()) add(prefix + tokens[i]);
    if (!suffix.empty()) add(tokens[i] + suffix);
  }
  std::string merges;
  for (int i = 0; i < 40; ++i) {
    const std::string left = tokens[random->Below(tokens.size())];
    std::string right = tokens[random->Below(tokens.size())];
    // What is cut must end between characters, as the library asserts.
    if (right.size() < prefix.size() || (right.substr(prefix.size()) + "a")[0] < 0) continue;
    add(left + right.substr(prefix.size()));
    merges += fmt::format(R"({}["{}","{}"])", merges.empty() ? "" : ",", left, right);
  }
  std::string vocab;
  for (size_t i = 0; i < tokens.size(); ++i)
    vocab += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",", tokens[i], i + (i > 7 ? 3 : 0));
  const auto text = [](const std::string& value) {
    return value.empty() ? std::string("null") : fmt::format(R"("{}")", value);
  };
  return fmt::format(
      R"({{"version":"1.0","model":{{"type":"BPE","unk_token":{},"continuing_subword_prefix":{},)"
      R"("end_of_word_suffix":{},"fuse_unk":{},"byte_fallback":{},"ignore_merges":{},)"
      R"("vocab":{{{}}},"merges":[{}]}}}})",
      flag() ? "\"<unk>\"" : "null", text(prefix), text(suffix), flag(), flag(), flag(), vocab,
      merges);
}

TEST(TokenizerTable, GivesTheSameIdsUnderAllOptionsOfBpe) {
  Random random(17);
  constexpr std::string_view kPieces[] = {
      "a", "b", "c", "ab", "aa", "\xC3\xA9", "z", "\xE4\xB8\xAD", "<unk>", "##", "</w>", " "};
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string json = RandomJson(&random);
    const auto original = Tokenizer::FromJson(json);
    ASSERT_TRUE(original.has_value()) << StatusOf(original).ToString() << json;
    const auto bytes = MakeTokenizerTable(**original);
    ASSERT_TRUE(bytes.has_value()) << StatusOf(bytes).ToString() << json;
    const auto table = ReadTokenizerTable(*bytes).value();
    for (int i = 0; i < 40; ++i, ++compared) {
      std::string text;
      for (uint64_t n = random.Below(12); n > 0; --n)
        text += kPieces[random.Below(std::size(kPieces))];
      SCOPED_TRACE(json);
      ExpectSame(**original, *table, text);
    }
  }
  EXPECT_EQ(compared, 60 * 40);
}

TEST(TokenizerTable, ModelsWithoutOneAreNamed) {
  const auto refusal = [](std::string_view model) {
    const auto tokenizer =
        Tokenizer::FromJson(fmt::format(R"({{"version":"1.0","model":{}}})", model));
    EXPECT_TRUE(tokenizer.has_value()) << StatusOf(tokenizer).ToString();
    return StatusOf(MakeTokenizerTable(**tokenizer));
  };
  const Status unigram = refusal(R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1]]})");
  EXPECT_EQ(unigram.code(), Code::kUnimplemented);
  EXPECT_THAT(unigram.message(), HasSubstr("not BPE"));
  const Status chance = refusal(R"({"type":"BPE","dropout":0.5,"vocab":{"a":0},"merges":[]})");
  EXPECT_EQ(chance.code(), Code::kUnimplemented);
  EXPECT_THAT(chance.message(), HasSubstr("by chance"));
  const Status sparse = refusal(R"({"type":"BPE","vocab":{"a":0,"b":9999},"merges":[]})");
  EXPECT_EQ(sparse.code(), Code::kUnimplemented);
}

TEST(TokenizerTable, EveryTruncationIsRefused) {
  const std::string_view table = TinyTable();
  for (size_t size = 0; size < table.size(); size += size < 256 ? 1 : 61) {
    const Status status = ReadStatus(table.substr(0, size));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << size;
    EXPECT_THAT(status.message(), HasSubstr("stored tokenizer")) << size;
  }
  EXPECT_FALSE(ReadStatus(std::string(table) + '\0').ok());
}

TEST(TokenizerTable, EveryAlteredByteIsRefused) {
  std::string table = TinyTable();
  for (size_t at = 0; at < table.size(); at += at < 256 ? 1 : 37) {
    table[at] = static_cast<char>(table[at] ^ 0x10);
    EXPECT_FALSE(ReadStatus(table).ok()) << at;
    table[at] = static_cast<char>(table[at] ^ 0x10);
  }
  EXPECT_TRUE(ReadStatus(table).ok());
}

TEST(TokenizerTable, AnotherVersionIsRefusedWithBothVersions) {
  std::string table = TinyTable();
  PutNumber<uint32_t>(&table, kTableVersionAt, 2);
  const Status status = ReadStatus(WithChecksum(table));
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("version 2, this program reads version 1"));
}

TEST(TokenizerTable, LargerThanTheLimitIsRefusedBeforeItIsRead) {
  testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "tokenizer.table";
  const auto status_at = [&](uint64_t size) {
    std::ofstream(path, std::ios::binary) << TinyTable().substr(0, kTableHeaderBytes);
    std::filesystem::resize_file(path, size);
    return StatusOf(OpenTokenizerTable(path));
  };
  // Within the limit it is only not what its header says.
  EXPECT_EQ(status_at(kMaxTokenizerTableBytes - 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(status_at(kMaxTokenizerTableBytes).code(), Code::kInvalidArgument);
  EXPECT_EQ(status_at(kMaxTokenizerTableBytes + 1).code(), Code::kResourceExhausted);
}

TEST(TokenizerTable, LiesWithARightChecksumGiveOnlyIdsOfTheVocabulary) {
  ASSERT_EQ(WithChecksum(TinyTable()), TinyTable()) << "the layout's checksum is another one";
  Random random(23);
  const std::string text = "Once upon a time, <|im_start|> there was a \xE4\xB8\xAD dragon\n 12";
  const size_t tables_at = JsonEnd(TinyTable());  // Most changes of the JSON are refused.
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string table = TinyTable();
    for (uint64_t n = 1 + random.Below(30); n > 0; --n) {
      const size_t from = random.Below(40) == 0 ? kTableCheckedFrom : tables_at;
      const size_t at = from + random.Below(table.size() - from);
      table[at] = static_cast<char>(random());
    }
    const auto tokenizer = ReadTokenizerTable(WithChecksum(table));
    if (!tokenizer.has_value()) continue;
    ++opened;
    const auto ids = (*tokenizer)->Encode(text, {});
    for (const TokenId id : ids.value_or(std::vector<TokenId>())) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, (*tokenizer)->vocab_size());
    }
    for (TokenId id = 0; id < (*tokenizer)->vocab_size(); id += 7) {
      (void)(*tokenizer)->TokenBytes(id);
      (void)(*tokenizer)->Decode(std::span(&id, 1), false);
    }
  }
  EXPECT_GT(opened, 500) << "the alterations reach nothing behind the checks";
}

TEST(TokenizerTable, OutlivesItsFileAndHandle) {
  testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "tokenizer.table";
  ASSERT_TRUE(WriteFileAtomic(path, TinyTable()).ok());
  auto tokenizer = OpenTokenizerTable(path).value();
  std::filesystem::remove(path);
  const auto ids = Tiny()->Encode("Once upon a time", {}).value();
  const auto stream = Detokenizer::Make(tokenizer, true);
  tokenizer.reset();
  std::string text;
  for (const TokenId id : ids) text += stream->Push(id).value();
  EXPECT_EQ(text + stream->Flush().value(), Tiny()->Decode(ids, true).value());
}

TEST(TokenizerTable, MissingFileNamesItsPath) {
  const auto tokenizer = OpenTokenizerTable("/nonexistent/tokenizer.table");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().code(), Code::kNotFound);
  EXPECT_THAT(tokenizer.error().ToString(), HasSubstr("/nonexistent/tokenizer.table"));
}

TEST(TokenizerTable, ThreadsAndManyTablesDoNotMixTheirWords) {
  // More tables than a thread keeps words of, all with other ids for the same text.
  std::vector<std::shared_ptr<const Tokenizer>> tables;
  for (int shift = 0; shift < 12; ++shift) {
    const std::string json =
        fmt::format(R"({{"version":"1.0","model":{{"type":"BPE","vocab":{{"a":{},"b":{},"ab":{}}},)"
                    R"("merges":[["a","b"]]}}}})",
                    shift, shift + 1, shift + 2);
    const auto bytes = MakeTokenizerTable(*Tokenizer::FromJson(json).value());
    tables.push_back(ReadTokenizerTable(bytes.value()).value());
  }
  const auto work = [&tables] {
    for (int round = 0; round < 200; ++round)
      for (TokenId shift = 0; shift < 12; ++shift)
        EXPECT_EQ(tables[static_cast<size_t>(shift)]->Encode("abba", {}).value(),
                  (std::vector<TokenId>{shift + 2, shift + 1, shift}));
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace tessera::text
