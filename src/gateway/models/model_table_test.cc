// SPDX-License-Identifier: Apache-2.0
#include "gateway/models/model_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using testing::TempDir;

TEST(ModelTable, AliasesComeBeforeAllElse) {
  const TempDir dir;
  std::ofstream(dir.path() / "models.toml") << "[models]\nllama-7b = \"small.gguf\"\n"
                                               "\"my model\" = \"org/name@main\"\n";
  std::ofstream(dir.path() / "small.gguf") << "x";
  const auto table =
      ModelTable::Read({.aliases_file = dir.path() / "models.toml", .model_root = {}});
  ASSERT_TRUE(table.has_value()) << table.error().ToString();
  EXPECT_EQ(*table->Resolve("llama-7b"), (dir.path() / "small.gguf").string());
  EXPECT_EQ(*table->Resolve("my model"), "org/name@main");
  EXPECT_EQ(*table->Resolve("llama-3-1-8b"), "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(*table->Resolve("org/other:Q4_K_M"), "org/other:Q4_K_M");
}

TEST(ModelTable, UnknownNamesGetTheNearest) {
  const auto table = ModelTable::Read({});
  const auto wrong = table->Resolve("lama-3-1-8b");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code(), Code::kNotFound);
  EXPECT_NE(wrong.error().ToString().find("did you mean llama-3-1-8b"), std::string::npos)
      << wrong.error().ToString();
  EXPECT_TRUE(table->Nearest("something else entirely").empty());
  EXPECT_FALSE(table->Resolve(std::string(1 << 16, 'a')).has_value());
}

TEST(ModelTable, PathsStayUnderTheRoot) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() / "root/inside");
  std::ofstream(dir.path() / "root/inside/m.gguf") << "x";
  std::ofstream(dir.path() / "secret") << "x";
  std::filesystem::create_symlink(dir.path() / "secret", dir.path() / "root/link");
  const auto table = ModelTable::Read({.aliases_file = {}, .model_root = dir.path() / "root"});
  ASSERT_TRUE(table.has_value());
  const auto root = std::filesystem::canonical(dir.path() / "root");
  EXPECT_EQ(*table->Resolve("inside/m.gguf"), (root / "inside/m.gguf").string());
  for (const char* path : {"../secret", "link", "/etc/passwd", "inside/../../secret"})
    EXPECT_EQ(table->Resolve(path).error().code(), Code::kPermissionDenied) << path;
  EXPECT_EQ(*table->ResolveCheckpoint("inside"), (root / "inside").string());
  EXPECT_EQ(*table->ResolveCheckpoint("hf://org/name"), "org/name");
  EXPECT_EQ(*table->ResolveCheckpoint("s3://bucket/key"), "s3://bucket/key");
  EXPECT_FALSE(table->ResolveCheckpoint("../secret").has_value());
  EXPECT_FALSE(ModelTable::Read({})->ResolveCheckpoint("inside").has_value());
}

TEST(ParseAliases, SaysWhereItIsWrong) {
  for (const char* text : {"[models]\na = 3\n", "[models]\na = \"\"\n", "[modells]\na = \"x\"\n",
                           "a = \"x\"\n", "[models\n", "[models]\na = \"x\"\na = \"y\"\n"}) {
    const auto aliases = ParseAliases(text, "models.toml");
    ASSERT_FALSE(aliases.has_value()) << text;
    EXPECT_TRUE(aliases.error().ToString().starts_with("models.toml:"))
        << aliases.error().ToString();
  }
  EXPECT_TRUE(ParseAliases("", "x")->empty());
}

TEST(ParseAliases, WhatTheLibraryDoesNotSayIsSaid) {
  const std::pair<std::string_view, std::string_view> texts[] = {
      {std::string_view("[models]\n[\0x]", 13), "2:2"},
      {"[models]\n[\x18]", "2:2"},
      {"[models]\na = \"\x7f\"", "2:6"},
      {"[(models]", "1:2"},
      {"[models]\n\t[[ +]]", "2:5"},
      {"[", "1:2"},
      {"[models]\n\xc3\xa9 = \"b\"", "2:1"},
      {"[models]\na = \"\"\"\n[(\n\"\"\" \xc3\xa9", "4:5"},
      {"[models]\na = 'b\\' \xc3\xa9", "2:10"}};
  for (const auto& [text, where] : texts) {
    const auto aliases = ParseAliases(text, "models.toml");
    ASSERT_FALSE(aliases.has_value());
    EXPECT_EQ(aliases.error().ToString(),
              fmt::format("models.toml:{}: expected a name; outside of quotes letters of ASCII, "
                          "nowhere control characters",
                          where));
  }
  EXPECT_TRUE(
      ParseAliases("[ \"models\" ] # \xc3\xa9\r\n\t\"\xc3\xa9\\\"\" = \"b\"\n", "x").has_value());
}

TEST(EditDistance, IsLevenshteins) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("ab", "ba"), 2u);
}

}  // namespace
}  // namespace tessera::gateway
