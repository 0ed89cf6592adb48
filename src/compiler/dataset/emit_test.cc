// SPDX-License-Identifier: Apache-2.0
//
// Datasets against those that sharktank itself wrote: the same bytes.
#include "compiler/dataset/emit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/hash.h"
#include "compiler/dataset/draft.h"
#include "compiler/dataset/shard_rules.h"
#include "formats/irpa/dataset.h"
#include "model/open.h"
#include "support/fixtures.h"

namespace tessera::compiler {
namespace {

namespace fs = std::filesystem;
using ::tessera::testing::ReadAll;
using ::tessera::testing::Shared;
using ::tessera::testing::TempDir;
using ::tessera::testing::TestData;
using ::testing::HasSubstr;

fs::path Sample(std::string_view name) {
  return Shared(fmt::format("samples/shark/irpa_sharktank/{}", name));
}

model::ModelSource MustOpen(const fs::path& path) {
  Result<model::ModelSource> source = model::OpenModel(path);
  EXPECT_TRUE(source.has_value()) << StatusOf(source).ToString();
  return source.has_value() ? *std::move(source) : model::ModelSource{};
}

DatasetReport MustEmit(const model::ModelSource& source, const fs::path& path, int64_t ranks = 1) {
  Result<DatasetReport> report = EmitDataset(source, {path, ranks});
  EXPECT_TRUE(report.has_value()) << StatusOf(report).ToString();
  return report.has_value() ? *std::move(report) : DatasetReport{};
}

size_t FilesIn(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(EmitDataset, WritesSharktanksBytesAgain) {
  TempDir folder;
  for (const std::string_view name : {"toy_llama.irpa", "tiny2.irpa"}) {
    MustEmit(MustOpen(Sample(name)), folder.path() / name);
    EXPECT_TRUE(ReadAll(folder.path() / name) == ReadAll(Sample(name))) << name;
  }
}

TEST(EmitDataset, ShardsAsSharktankDoes) {
  TempDir folder;
  const DatasetReport report =
      MustEmit(MustOpen(Sample("tiny2.irpa")), folder.path() / "tiny2_tp2.irpa", 2);
  EXPECT_EQ(report.files.size(), 3u);
  for (const std::string_view name :
       {"tiny2_tp2.irpa", "tiny2_tp2.rank0.irpa", "tiny2_tp2.rank1.irpa"})
    EXPECT_TRUE(ReadAll(folder.path() / name) == ReadAll(Sample(name))) << name;
  EXPECT_EQ(FilesIn(folder.path()), 3u);
}

TEST(EmitDataset, JoinsRanksToTheOriginal) {
  TempDir folder;
  MustEmit(MustOpen(Sample("tiny2_tp2.irpa")), folder.path() / "tiny2.irpa");
  EXPECT_TRUE(ReadAll(folder.path() / "tiny2.irpa") == ReadAll(Sample("tiny2.irpa")));
}

// Size and hash of the whole file as sharktank's importer wrote it.
TEST(EmitDataset, ImportsARealGgufAsSharktankDoes) {
  TempDir folder;
  const fs::path path = folder.path() / "smollm2.irpa";
  MustEmit(MustOpen(TestData("SmolLM2-135M-Instruct.Q4_1.gguf")), path);
  const json::Value expected = testing::ReadJson(Sample("smollm2_q4_1.layout.excerpt.json"));
  EXPECT_EQ(fs::file_size(path), static_cast<uint64_t>(expected.at("size").as_int64()));
  EXPECT_EQ(Sha256Hex(AsBytes(ReadAll(path))), expected.at("sha256").as_string().c_str());
}

void Touch(const fs::path& path) {
  ASSERT_TRUE(WriteFileAtomic(path, "x").ok());
}

TEST(EmitDataset, RemovesWhatAKilledWriterLeft) {
  TempDir folder;
  for (const std::string_view stale :
       {".tiny.irpa.draft.0123456789abcdef", ".tiny.rank12.irpa.draft.0123456789abcdef"})
    Touch(folder.path() / stale);
  MustEmit(MustOpen(Sample("tiny2.irpa")), folder.path() / "tiny.irpa");
  EXPECT_EQ(FilesIn(folder.path()), 1u);
}

TEST(EmitDataset, LeavesTheFilesOfAWriterAtWork) {
  TempDir folder;
  const fs::path target = folder.path() / "tiny.irpa";
  fs::path mine;
  {
    DatasetDraft at_work(target);
    mine = at_work.Add(target).value();
    MustEmit(MustOpen(Sample("tiny2.irpa")), target);
    EXPECT_TRUE(fs::exists(mine));
  }
  EXPECT_FALSE(fs::exists(mine));
}

TEST(EmitDataset, RefusesMetadataThatJsonHasNoNumberFor) {
  TempDir folder;
  model::ModelSource source = MustOpen(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"));
  formats::SourceFile file = source.index.files().front();
  ASSERT_TRUE(file.metadata.Add("x", std::vector<float>{1, -HUGE_VALF}).ok());
  formats::ParameterIndex index;
  index.AddFile(std::move(file));
  for (const formats::ParameterEntry& entry : source.index.entries())
    ASSERT_TRUE(index.Add(entry).ok());
  source.index = std::move(index);
  const auto report = EmitDataset(source, {folder.path() / "x.irpa", 1});
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().ToString(), HasSubstr("'x': is -inf"));
  EXPECT_EQ(FilesIn(folder.path()), 0u);
}

TEST(EmitDataset, RefusesRanksThatDoNotDivideAndLeavesNothing) {
  TempDir folder;
  const model::ModelSource source = MustOpen(Sample("tiny2.irpa"));
  const auto report = EmitDataset(source, {folder.path() / "x.irpa", 3});
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().ToString(), HasSubstr("possible are tp1, tp2"));
  EXPECT_EQ(FilesIn(folder.path()), 0u);
}

TEST(ShardRules, AreThoseOfTheSpecification) {
  EXPECT_EQ(ShardRuleOf("token_embd.weight"), ShardRule::kReplicated);
  EXPECT_EQ(ShardRuleOf("blk.11.attn_norm.weight"), ShardRule::kReplicated);
  EXPECT_EQ(ShardRuleOf("blk.11.attn_q.weight"), ShardRule::kRows);
  EXPECT_EQ(ShardRuleOf("blk.11.attn_q.bias"), ShardRule::kRows);
  EXPECT_EQ(ShardRuleOf("blk.0.ffn_up.weight"), ShardRule::kRows);
  EXPECT_EQ(ShardRuleOf("blk.0.attn_output.weight"), ShardRule::kColumns);
  EXPECT_EQ(ShardRuleOf("blk.0.attn_output.bias"), ShardRule::kReplicated);
  EXPECT_EQ(ShardRuleOf("blk.0.ffn_down.weight"), ShardRule::kColumns);
  EXPECT_EQ(ShardRuleOf("output.weight"), ShardRule::kColumns);
  EXPECT_EQ(ShardRuleOf("output_norm.weight"), ShardRule::kReplicated);
  EXPECT_EQ(ShardRuleOf("rope_freqs.weight"), ShardRule::kDropped);
}

}  // namespace
}  // namespace tessera::compiler
