// SPDX-License-Identifier: Apache-2.0
//
// The determinism rule: the logits of a row depend on its tokens and positions only, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "harness.h"
#include "runtime/limits.h"
#include "support/scale.h"
#include "synthetic_model.h"

namespace tessera::testing {
namespace {

/// A model, a prompt, and its logits in one chunk with one thread: what all else must equal.
struct Case {
  std::filesystem::path bundle;
  kernels::KvType kv_type = kernels::KvType::kF16;
  std::vector<int32_t> prompt;
  Logits expected;

  std::unique_ptr<runtime::Session> Load(runtime::LoadOptions options) const {
    options.kv_type = kv_type;
    return MustLoad(bundle, options);
  }
};

std::vector<int32_t> RandomTokens(uint64_t seed, size_t count, int64_t vocabulary) {
  Random random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens)
    token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocabulary)));
  return tokens;
}

Case MakeCaseOfBundle(const std::filesystem::path& bundle, size_t tokens,
                      kernels::KvType kv_type = kernels::KvType::kF16) {
  Case c;
  c.bundle = bundle;
  c.kv_type = kv_type;
  const auto session = c.Load({.threads = 1});
  c.prompt = RandomTokens(7, tokens, session->shape().vocab_size);
  c.expected = RunAll(session.get(), c.prompt, std::ssize(c.prompt));
  return c;
}

Case MakeCase(const std::filesystem::path& model, size_t tokens,
              kernels::KvType kv_type = kernels::KvType::kF16) {
  return MakeCaseOfBundle(BundleOf(model), tokens, kv_type);
}

/// Random BF16 weights, wide enough to stay so; the folder lives as long as the tests.
Case MakeBFloat16Case() {
  static const TempDir dir;
  const model::ModelSource source = MakeSynthetic(
      WideSyntheticConfig(), AllMatrices(tensor::DType::kBF16), dir.path() / "model.gguf");
  const auto report = CompileSynthetic(source, dir.path());
  EXPECT_TRUE(report.has_value()) << report.error().ToString();
  return MakeCaseOfBundle(report->bundle, 150);
}

/// Made once: the first use pays.
const Case& CaseOf(const std::string& name) {
  if (name == "bfloat16") {
    static const Case bfloat16 = MakeBFloat16Case();
    return bfloat16;
  }
  static const Case tiny = MakeCase(TinyLlama("hf"), 150);
  static const Case smol = MakeCase(SmolLm2(), Scaled<size_t>(70, 44));
  static const Case int8 = MakeCase(SmolLm2(), Scaled<size_t>(70, 44), kernels::KvType::kInt8);
  return name == "tiny" ? tiny : name == "smol" ? smol : int8;
}

class Determinism : public ::testing::TestWithParam<std::string> {
 protected:
  const Case& c() const { return CaseOf(GetParam()); }
};

TEST_P(Determinism, TokenByTokenEqualsOneChunk) {
  const auto session = c().Load({.threads = 2});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(RunAll(session.get(), c().prompt, 1), c().expected);
}

TEST_P(Determinism, AnyChunkingEqualsOneChunk) {
  const auto session = c().Load({.threads = 2});
  ASSERT_NE(session, nullptr);
  for (const int64_t chunk : Scaled<std::vector<int64_t>>({2, 3, 7, 8, 9, 16, 33, 64}, {3, 33}))
    EXPECT_EQ(RunAll(session.get(), c().prompt, chunk), c().expected) << "chunks of " << chunk;
}

TEST(RowTiles, AChunkAtTheEdgeOfATileEqualsRowsAlone) {
  const Case& tiny = CaseOf("tiny");
  const auto session = MustLoad(tiny.bundle, {.threads = 2});
  ASSERT_NE(session, nullptr);
  for (const int64_t edge : {runtime::kRedundantRows, runtime::kTileRows}) {
    for (const int64_t chunk : {edge - 1, edge, edge + 1})
      EXPECT_EQ(RunAll(session.get(), tiny.prompt, chunk), tiny.expected) << chunk;
  }
}

TEST_P(Determinism, RandomChunkingsOnRandomPagesEqualOneChunk) {
  const auto session = c().Load({.threads = 2});
  ASSERT_NE(session, nullptr);
  const uint64_t seed = 20261130;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < Scaled(4, 1); ++round) {
    std::vector<runtime::PageId> pages(
        static_cast<size_t>(std::min<int64_t>(session->shape().page_count, 200)));
    std::iota(pages.begin(), pages.end(), 0);
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[random.Below(i)]);
    Sequence sequence(session.get(), pages);
    Logits all;
    for (std::span<const int32_t> rest(c().prompt); !rest.empty();) {
      const size_t rows = std::min(rest.size(), 1 + random.Below(20));
      const Logits part = sequence.Feed(rest.first(rows), 64);
      all.insert(all.end(), part.begin(), part.end());
      rest = rest.subspan(rows);
    }
    EXPECT_EQ(all, c().expected) << "round " << round;
  }
}

/// From the last attention on, only rows that want logits are computed, put together without gaps.
TEST_P(Determinism, RowsThatWantNoLogitsChangeNothing) {
  const std::span<const int32_t> prompt(c().prompt);
  const size_t some = prompt.size() / 2;
  for (const int threads : {1, 2}) {
    const auto session = c().Load({.threads = threads});
    ASSERT_NE(session, nullptr);
    const auto vocabulary = static_cast<size_t>(session->shape().vocab_size);
    const int64_t pages = std::ssize(prompt) / session->shape().page_tokens + 1;
    Sequence last(session.get(), 0, pages), all(session.get(), static_cast<int32_t>(pages), pages),
        none(session.get(), static_cast<int32_t>(2 * pages), pages);
    const runtime::Chunk chunks[] = {
        last.Next(prompt, runtime::Chunk::Logits::kLast), all.Next(prompt.first(some)),
        none.Next(prompt.first(prompt.size() - 1), runtime::Chunk::Logits::kNone)};
    const auto logits = session->Step(chunks);
    ASSERT_TRUE(logits.has_value()) << logits.error().ToString();
    ASSERT_EQ(logits->size(), (1 + some) * vocabulary);
    const std::span<const float> expected(c().expected), last_row = expected.last(vocabulary);
    EXPECT_TRUE(std::ranges::equal(logits->first(vocabulary), last_row));
    EXPECT_TRUE(std::ranges::equal(logits->subspan(vocabulary), expected.first(some * vocabulary)));
    EXPECT_TRUE(std::ranges::equal(none.Feed(prompt.last(1), 1), last_row));
  }
}

TEST_P(Determinism, EveryThreadCountGivesTheSame) {
  for (const int threads : Scaled<std::vector<int>>({2, 3, 5}, {3})) {
    const auto session = c().Load({.threads = threads});
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(RunAll(session.get(), c().prompt, std::ssize(c().prompt)), c().expected) << threads;
    EXPECT_EQ(RunAll(session.get(), c().prompt, 5), c().expected) << threads;
  }
}

TEST_P(Determinism, ScalarReferencesGiveTheSameAsTheMachinesKernels) {
  const auto session = c().Load({.threads = 2, .isa = Isa{}});
  ASSERT_NE(session, nullptr);
  // The references are slow: a part of the prompt says as much.
  const auto prompt = std::span(c().prompt).first(Scaled(24, 9));
  const Logits logits = RunAll(session.get(), prompt, Scaled(13, 5));
  EXPECT_EQ(logits, Logits(c().expected.begin(), c().expected.begin() + std::ssize(logits)));
}

TEST_P(Determinism, OtherSequencesOfTheStepDoNotMatter) {
  const auto session = c().Load({.threads = 2});
  ASSERT_NE(session, nullptr);
  const int64_t vocabulary = session->shape().vocab_size;
  const std::vector<int32_t> other = RandomTokens(8, 160, vocabulary);
  Sequence ours(session.get(), 0, 8);
  Sequence long_one(session.get(), 8, 8);
  Sequence decoding(session.get(), 16, 8);
  const std::span<const int32_t> others(other);
  decoding.Feed(others.first(3), 3);
  Logits all;
  size_t at = 0;
  for (size_t step = 0; at < c().prompt.size(); ++step) {
    const size_t rows = std::min<size_t>(c().prompt.size() - at, 1 + step % 11);
    // Ours stands between a prefill chunk and a decode row, each with its own wishes.
    const runtime::Chunk chunks[] = {
        long_one.Next(others.subspan(step * 2, 2), runtime::Chunk::Logits::kNone),
        ours.Next(std::span(c().prompt).subspan(at, rows)),
        decoding.Next(others.subspan(step, 1), runtime::Chunk::Logits::kLast)};
    const auto logits = session->Step(chunks);
    ASSERT_TRUE(logits.has_value()) << logits.error().ToString();
    ASSERT_EQ(logits->size(), (rows + 1) * static_cast<size_t>(vocabulary));
    all.insert(all.end(), logits->begin(), logits->end() - vocabulary);
    at += rows;
  }
  EXPECT_EQ(all, c().expected);
}

TEST_P(Determinism, ACopiedPageContinuesTheSame) {
  const auto session = c().Load({.threads = 2});
  ASSERT_NE(session, nullptr);
  const std::span<const int32_t> prompt(c().prompt);
  Sequence original(session.get(), {0, 1, 2, 3, 4, 5, 6, 7});
  original.Feed(prompt.first(40), 40);  // Page 1 is partly filled (32 positions a page).
  ASSERT_TRUE(session->CopyPage(1, 20).ok());
  Sequence copy(session.get(), {0, 20, 21, 22, 23, 24, 25, 26});
  copy.Next(prompt.first(40));
  const Logits rest = copy.Feed(prompt.subspan(40), 64);
  const Logits tail(c().expected.end() - std::ssize(rest), c().expected.end());
  EXPECT_EQ(rest, tail);
}

INSTANTIATE_TEST_SUITE_P(Models, Determinism,
                         ::testing::Values(std::string("tiny"), std::string("bfloat16"),
                                           std::string("smol"), std::string("smol_int8_kv")),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::testing
