// SPDX-License-Identifier: Apache-2.0
#include "model/text_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "model/limits.h"
#include "support/fixtures.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;
using ::tessera::testing::Shared;
using ::tessera::testing::TempDir;
using ::tessera::testing::TestData;
using ::testing::HasSubstr;

TEST(TextSources, AFolderItsTokenizerFileAndAGgufAllGiveATokenizer) {
  const fs::path folder = Shared("fixtures/tiny_llama/hf");
  const auto from_folder = OpenTokenizer(folder);
  ASSERT_TRUE(from_folder.has_value()) << from_folder.error().ToString();
  const auto from_file = OpenTokenizer(folder / "tokenizer.json");
  ASSERT_TRUE(from_file.has_value()) << from_file.error().ToString();
  EXPECT_EQ(std::get<JsonTokenizer>(from_folder->tokenizer).json,
            testing::ReadAll(folder / "tokenizer.json"));
  EXPECT_EQ(std::get<JsonTokenizer>(from_folder->tokenizer).json,
            std::get<JsonTokenizer>(from_file->tokenizer).json);
  const auto gguf = OpenTokenizer(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"));
  ASSERT_TRUE(gguf.has_value()) << gguf.error().ToString();
  EXPECT_EQ(std::get<GgufTokenizer>(gguf->tokenizer).tokens.size(), 49152u);
}

TEST(TextSources, AFolderThatHoldsOnlyAGgufGivesTheFilesTexts) {
  const TempDir dir;
  fs::create_symlink(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"), dir.path() / "m.gguf");
  const auto tokenizer = OpenTokenizer(dir.path());
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().ToString();
  EXPECT_TRUE(std::holds_alternative<GgufTokenizer>(tokenizer->tokenizer));
  const auto templates = OpenChatTemplates(dir.path());
  ASSERT_TRUE(templates.has_value()) << templates.error().ToString();
  ASSERT_EQ(templates->size(), 1u);
  EXPECT_EQ(templates->front().name, "default");
}

TEST(TextSources, ATemplateFileHasALimit) {
  const TempDir dir;
  const fs::path file = dir.path() / "t.jinja";
  for (const uint64_t extra : {0, 1}) {
    ASSERT_TRUE(WriteFileAtomic(file, std::string(kMaxTemplateFileBytes - 1 + extra, 'x')).ok());
    EXPECT_TRUE(ReadTemplateFile(file).has_value()) << extra;
  }
  ASSERT_TRUE(WriteFileAtomic(file, std::string(kMaxTemplateFileBytes + 1, 'x')).ok());
  EXPECT_EQ(StatusOf(ReadTemplateFile(file)).code(), Code::kResourceExhausted);
}

TEST(TextSources, ATokenizerFileHasALimit) {
  const TempDir dir;
  const fs::path file = dir.path() / "tokenizer.json";
  ASSERT_TRUE(WriteFileAtomic(file, "{}").ok());
  for (const uint64_t size : {kMaxTokenizerBytes - 1, kMaxTokenizerBytes, kMaxTokenizerBytes + 1}) {
    fs::resize_file(file, size);
    EXPECT_EQ(StatusOf(OpenTokenizer(dir.path())).code(),
              size <= kMaxTokenizerBytes ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
}

TEST(TextSources, ATokenizerConfigHasALimit) {
  const TempDir dir;
  std::string text = R"({"chat_template": "x"})";
  for (const uint64_t size :
       {kMaxTokenizerConfigBytes - 1, kMaxTokenizerConfigBytes, kMaxTokenizerConfigBytes + 1}) {
    text.resize(size, ' ');
    ASSERT_TRUE(WriteFileAtomic(dir.path() / "tokenizer_config.json", text).ok());
    EXPECT_EQ(StatusOf(OpenChatTemplates(dir.path())).code(),
              size <= kMaxTokenizerConfigBytes ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
}

TEST(TextSources, ATokenizerConfigIsAnObjectWithoutKeysThatStandTwice) {
  const TempDir dir;
  const fs::path file = dir.path() / "tokenizer_config.json";
  const auto absent = ReadOptionalJsonFile(file, 100);
  ASSERT_TRUE(absent.has_value());
  EXPECT_TRUE(absent->value.is_null());
  EXPECT_EQ(StatusOf(ReadJsonFile(file, 100)).code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(file, "[1]").ok());
  EXPECT_THAT(StatusOf(OpenChatTemplates(dir.path())).message(), HasSubstr("expected an object"));
  ASSERT_TRUE(WriteFileAtomic(file, R"({"a": 1, "a": 2})").ok());
  EXPECT_EQ(StatusOf(OpenChatTemplates(dir.path())).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::model
