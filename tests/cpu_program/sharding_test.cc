// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism: any number of ranks gives the bytes that one gives, in every weight format,
// chunking and batch; ranks find their own archives, and errors say what works.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/random.h"
#include "bundle/bundle.h"
#include "harness.h"
#include "support/scale.h"
#include "synthetic_model.h"
#include "thread_transport.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using tensor::DType;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Eight KV heads; what AssignSegments cuts in eight. A vocabulary of no whole blocks.
model::ModelConfig ShardableConfig() {
  model::ModelConfig config = SyntheticConfig();
  config.hidden = 512;
  config.vocab_size = 1003;
  config.attention.heads = 16;
  config.attention.kv_heads = 8;
  config.attention.head_dim = 32;
  config.rope.rotary_dim = 32;
  config.ffn.intermediate = 768;
  return config;
}

Result<compiler::CompileReport> CompileRanks(const model::ModelSource& source,
                                             const fs::path& cache, int64_t ranks,
                                             bool allow_uneven = false) {
  compiler::CompileInput input;
  input.source = &source;
  input.name = "synthetic";
  input.tokenizer_json = "{}";
  compiler::CompileOptions options;
  options.tensor_parallel = ranks;
  options.allow_uneven = allow_uneven;
  return compiler::Compile(input, options, bundle::Store(cache));
}

std::vector<int32_t> Prompt(int64_t vocabulary, size_t count) {
  Random random(3);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens)
    token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocabulary)));
  return tokens;
}

class Sharding : public ::testing::Test {
 protected:
  model::ModelSource Make(const model::ModelConfig& config, const TypeOf& type_of) {
    return MakeSynthetic(config, type_of, dir_.path() / "model.gguf");
  }
  fs::path Bundle(const model::ModelSource& source, int64_t ranks, bool allow_uneven = false) {
    const auto report = CompileRanks(source, dir_.path(), ranks, allow_uneven);
    EXPECT_TRUE(report.has_value()) << report.error().ToString();
    return report.has_value() ? report->bundle : fs::path();
  }
  /// Every number of ranks gives the bytes of one, in whatever chunks.
  void ExpectSame(const model::ModelSource& source, std::vector<int64_t> ranks,
                  runtime::LoadOptions options = {}, bool allow_uneven = false) {
    options.threads = 1;
    const auto alone = MustLoad(Bundle(source, 1), options);
    ASSERT_NE(alone, nullptr);
    const std::vector<int32_t> prompt = Prompt(source.config.vocab_size, 150);
    const Logits expected = RunAll(alone.get(), prompt, std::ssize(prompt));
    for (const int64_t count : ranks) {
      SCOPED_TRACE(count);
      const fs::path folder = Bundle(source, count, allow_uneven);
      // One worker a rank, or two.
      for (const int threads : count > 2 ? std::vector<int>{1} : std::vector<int>{1, 4}) {
        options.threads = threads;
        const auto session = MustLoad(folder, options);
        ASSERT_NE(session, nullptr);
        EXPECT_EQ(RunAll(session.get(), prompt, 150), expected) << threads;
        EXPECT_EQ(RunAll(session.get(), prompt, 9), expected) << threads;
        const std::span<const int32_t> some = std::span(prompt).first(20);
        const Logits rows = RunAll(session.get(), some, 1);
        EXPECT_TRUE(std::ranges::equal(rows, std::span(expected).first(rows.size()))) << threads;
      }
    }
  }
  /// A rank for each transport, each in a session and a thread of its own, gives the bytes of one.
  void ExpectSameApart(const model::ModelSource& source, int ranks, int threads = 1,
                       bool allow_uneven = false) {
    SCOPED_TRACE(fmt::format("{} ranks of {} threads", ranks, threads));
    runtime::LoadOptions options;
    options.threads = threads;
    const auto alone = MustLoad(Bundle(source, 1), options);
    ASSERT_NE(alone, nullptr);
    const std::vector<int32_t> prompt = Prompt(source.config.vocab_size, 70);
    const Logits expected = RunAll(alone.get(), prompt, 70);
    const fs::path folder = Bundle(source, ranks, allow_uneven);
    const auto group = ThreadTransport::Group(ranks);
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank)
      others.emplace_back([&, rank] {
        runtime::LoadOptions own = options;
        own.transport = group[static_cast<size_t>(rank)];
        const auto session = MustLoad(folder, own);
        if (session == nullptr) own.transport->Abort("not loaded");
        EXPECT_TRUE(session->Follow().ok());
      });
    options.transport = group[0];
    const auto session = MustLoad(folder, options);
    if (session == nullptr) group[0]->Abort("not loaded");
    EXPECT_EQ(RunAll(session.get(), prompt, 70), expected);
    EXPECT_EQ(RunAll(session.get(), prompt, 9), expected);
    const Logits rows = RunAll(session.get(), std::span(prompt).first(20), 1);
    EXPECT_TRUE(std::ranges::equal(rows, std::span(expected).first(rows.size())));
    EXPECT_GT(group[0]->scatters, 0) << "large sums are shared";
  }
  TempDir dir_;
};

TEST_F(Sharding, RanksOfSeveralProcessesGiveTheSameBytes) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kQ8_0));
  ExpectSameApart(source, 2, 2);
  ExpectSameApart(source, 8);
}

TEST_F(Sharding, BiasesFloatsAndUnevenSharesGiveTheSameBytesInSeveralProcesses) {
  model::ModelConfig config = ShardableConfig();
  config.attention.heads = 6;
  config.attention.kv_heads = 3;
  config.attention.output_bias = true;
  config.ffn.intermediate = 320;
  ExpectSameApart(Make(config, AllMatrices(DType::kBF16)), 2, 1, /*allow_uneven=*/true);
  ExpectSameApart(Make(config, AllMatrices(DType::kF32)), 3);
}

/// Of eight ranks a value reaches each about twice: as its share of the segments, and as a sum.
TEST_F(Sharding, LargeSumsTravelAboutTwiceNotOnceASegment) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kQ8_0));
  const fs::path folder = Bundle(source, 8);
  const auto group = ThreadTransport::Group(8);
  std::vector<std::jthread> others;
  const auto load = [&](int rank) {
    runtime::LoadOptions options;
    options.threads = 1;
    options.transport = group[static_cast<size_t>(rank)];
    return MustLoad(folder, options);
  };
  for (int rank = 1; rank < 8; ++rank)
    others.emplace_back([&, rank] { EXPECT_TRUE(load(rank)->Follow().ok()); });
  const auto session = load(0);
  const int64_t rows = 64, hidden = source.config.hidden;
  const auto chunk_rows = Prompt(source.config.vocab_size, static_cast<size_t>(rows));
  RunAll(session.get(), chunk_rows, rows);
  const int64_t projections = 2 * source.config.layers;
  EXPECT_LE(group[0]->floats, projections * rows * hidden * 2);
}

/// Why no bfloat16 travels: the weights and what a matmul reads may be bfloat16, sums are not, and
/// a rank that is told rounded ones gives other logits. The same group without rounding gives equal
/// ones.
TEST_F(Sharding, SumsRoundedToBFloat16GiveOtherBytes) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kBF16));
  const std::vector<int32_t> prompt = Prompt(source.config.vocab_size, 64);
  runtime::LoadOptions alone;
  alone.threads = 1;
  const Logits expected = RunAll(MustLoad(Bundle(source, 1), alone).get(), prompt, 64);
  const fs::path folder = Bundle(source, 2);
  const auto run = [&](bool segments, bool sums) {
    const auto group = ThreadTransport::Group(2);
    const auto load = [&](size_t rank) {
      group[rank]->segments_as_bf16 = segments;
      group[rank]->sums_as_bf16 = sums;
      runtime::LoadOptions options = alone;
      options.transport = group[rank];
      return MustLoad(folder, options);
    };
    std::jthread other([&] { EXPECT_TRUE(load(1)->Follow().ok()); });
    return RunAll(load(0).get(), prompt, 64);
  };
  EXPECT_EQ(run(false, false), expected);
  EXPECT_NE(run(true, false), expected);
  EXPECT_NE(run(false, true), expected);
}

TEST_F(Sharding, AnyDivisorOfTheKvHeadsWorks) {
  model::ModelConfig config = ShardableConfig();
  config.attention.heads = 20;
  config.attention.kv_heads = 10;
  const model::ModelSource source = Make(config, AllMatrices(DType::kQ8_0));
  ExpectSame(source, {2, 5});
  const auto report = CompileRanks(source, dir_.path(), 4);
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().ToString(), HasSubstr("use tp1 or tp2 or tp5"));
}

TEST_F(Sharding, AnyNumberOfRanksGivesTheSameBytes) {
  ExpectSame(Make(ShardableConfig(), AllMatrices(DType::kQ8_0)), {2, 4, 8});
}

class ShardingFormats : public Sharding, public ::testing::WithParamInterface<DType> {};

TEST_P(ShardingFormats, TwoRanksGiveTheSameBytes) {
  ExpectSame(Make(ShardableConfig(), AllMatrices(GetParam())), {2});
}

TEST_F(Sharding, AnInt8KvCacheGivesTheSameBytes) {
  runtime::LoadOptions options;
  options.kv_type = kernels::KvType::kInt8;
  ExpectSame(Make(ShardableConfig(), AllMatrices(DType::kQ4_0)), {4}, options);
}

/// Q4_K_M and its like: matrices of several formats, so nothing is joined.
TEST_F(Sharding, MixedFormatsBiasesHeadNormsAndATiedEmbeddingGiveTheSameBytes) {
  model::ModelConfig config = ShardableConfig();
  config.attention.qkv_bias = true;
  config.attention.qk_norm = true;
  config.attention.output_bias = true;
  config.embedding.tied = true;
  const TypeOf types = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    return name.contains("_v") || name.contains("up") ? DType::kQ8_0 : DType::kQ4_0;
  };
  ExpectSame(Make(config, types), {2, 8});
}

/// Rows of one step in int8 and in float32 at once.
TEST_F(Sharding, FormatsThatReadOtherActivationsGiveTheSameBytes) {
  const TypeOf types = [](const std::string& name, const tensor::Shape& shape) {
    if (shape.rank() == 1) return DType::kF32;
    return name.contains("attn_q") || name.contains("gate") ? DType::kF16 : DType::kQ8_0;
  };
  ExpectSame(Make(ShardableConfig(), types), {4});
}

TEST_F(Sharding, UnevenSharesGiveTheSameBytes) {
  model::ModelConfig config = ShardableConfig();
  config.attention.heads = 6;
  config.attention.kv_heads = 3;
  config.ffn.intermediate = 320;  // Five segments of 64.
  const model::ModelSource source = Make(config, AllMatrices(DType::kQ8_0));
  ExpectSame(source, {3});
  ExpectSame(source, {2}, {}, true);
}

TEST_F(Sharding, WhatDoesNotDivideIsRefusedWithWhatDoes) {
  model::ModelConfig config = ShardableConfig();
  config.attention.heads = 9;
  config.attention.kv_heads = 3;
  const model::ModelSource source = Make(config, AllMatrices(DType::kQ8_0));
  const auto error = [&](int64_t ranks, bool allow_uneven) {
    const auto report = CompileRanks(source, dir_.path(), ranks, allow_uneven);
    return report.has_value() ? "compiled" : report.error().ToString();
  };
  EXPECT_THAT(error(2, false),
              HasSubstr("tp2 does not divide this model's 9 heads over 3 KV heads; "
                        "use tp1 or tp3, or uneven shares (--allow-uneven)"));
  EXPECT_THAT(error(8, true), HasSubstr("use tp1 or tp2 or tp3"));
  EXPECT_THAT(error(9, false), HasSubstr("tp9: expected tp1 to tp8"));
}

TEST_F(Sharding, EveryRankHasItsOwnArchive) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kQ8_0));
  const fs::path folder = Bundle(source, 4), whole = Bundle(source, 1);
  uint64_t bytes = 0, largest = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const uint64_t part = fs::file_size(folder / fmt::format("model.rank{}.irpa", rank));
    bytes += part;
    largest = std::max(largest, part);
  }
  EXPECT_LT(largest, bytes / 4 + bytes / 50) << "equal shares";
  const uint64_t common = fs::file_size(folder / "model.irpa");
  EXPECT_LT(bytes + common, fs::file_size(whole / "model.irpa") * 105 / 100) << "nothing twice";
  const auto manifest = bundle::LoadManifest(folder);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->tensor_parallel, 4);
  EXPECT_NE(manifest->FindFile("model.rank3.irpa"), nullptr);
}

TEST_F(Sharding, AMissingOrForeignRankFileIsNamed) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kQ8_0));
  const fs::path folder = Bundle(source, 2);
  const auto error = [&] {
    const auto session = runtime::LoadSession(folder, {.threads = 1});
    return session.has_value() ? "loaded" : session.error().ToString();
  };
  const fs::path first = folder / "model.rank0.irpa", second = folder / "model.rank1.irpa";
  fs::rename(second, folder / "aside");
  EXPECT_THAT(error(), HasSubstr("model.rank1.irpa is missing"));
  fs::copy_file(first, second);
  EXPECT_THAT(error(), AnyOf(HasSubstr("model.rank1.irpa has"), HasSubstr(".shard.1 is missing"),
                             HasSubstr("shard.0")));
}

/// The file of another model of the same shape has the same size and entries.
TEST_F(Sharding, ARankFileOfAnotherModelOfTheSameShapeIsNoticedWhenOpened) {
  const fs::path folder = Bundle(Make(ShardableConfig(), AllMatrices(DType::kQ8_0)), 2);
  const model::ModelSource source = MakeSynthetic(ShardableConfig(), AllMatrices(DType::kQ8_0),
                                                  dir_.path() / "other.gguf", /*seed=*/2);
  const fs::path foreign = Bundle(source, 2);
  ASSERT_NE(folder, foreign);
  const auto error = [&] {
    const auto session = runtime::LoadSession(folder, {.threads = 1});
    return session.has_value() ? "loaded" : session.error().ToString();
  };
  ASSERT_EQ(error(), "loaded");
  for (const char* name : {"model.irpa", "model.rank1.irpa"}) {
    ASSERT_EQ(fs::file_size(folder / name), fs::file_size(foreign / name));
    fs::rename(folder / name, folder / "aside");
    fs::copy_file(foreign / name, folder / name);
    EXPECT_THAT(error(), HasSubstr(fmt::format("{} is of another compilation", name)));
    bundle::Parts parts{folder / "program.json", folder / "config.json", {}};
    for (const std::string& archive : bundle::ArchiveNames(2))
      parts.parameters.push_back(folder / archive);
    const auto opened = bundle::OpenParts(parts);
    ASSERT_FALSE(opened.has_value());
    EXPECT_THAT(opened.error().ToString(), HasSubstr("is of another compilation"));
    fs::remove(folder / name);
    fs::rename(folder / "aside", folder / name);
  }
  EXPECT_EQ(error(), "loaded");
}

TEST_F(Sharding, PartsOfAnotherNumberOfRanksAreOneSentence) {
  const model::ModelSource source = Make(ShardableConfig(), AllMatrices(DType::kQ8_0));
  const fs::path four = Bundle(source, 4), one = Bundle(source, 1);
  const auto error = [&](const fs::path& documents, const std::vector<fs::path>& parameters) {
    const auto opened =
        bundle::OpenParts({documents / "program.json", documents / "config.json", parameters});
    return opened.has_value() ? "opened" : opened.error().ToString();
  };
  EXPECT_THAT(error(four, {four / "model.irpa", four / "model.rank0.irpa"}),
              HasSubstr("config.json: it is for tp4, and model.rank1.irpa, model.rank2.irpa, "
                        "model.rank3.irpa is not among the parameters; name model.irpa and all of "
                        "its 4 rank files"));
  EXPECT_THAT(error(one, {four / "model.irpa", four / "model.rank0.irpa"}),
              HasSubstr("it is for tp1, and a file of rank 0 is given"));
  EXPECT_EQ(error(one, {one / "model.irpa"}), "opened");
}

INSTANTIATE_TEST_SUITE_P(All, ShardingFormats,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0,
                                           DType::kQ4_1),
                         [](const auto& test) { return std::string(tensor::Name(test.param)); });

}  // namespace
}  // namespace tessera::testing
