// SPDX-License-Identifier: Apache-2.0
//
// What a step costs besides arithmetic: no allocation, few barriers, each weight read once, no copy
// of the parameters. And what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>

#include "allocation_counter.h"
#include "harness.h"

namespace tessera::testing {
namespace {

using runtime::Chunk;
using ::testing::HasSubstr;

std::vector<int32_t> Tokens(size_t count) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>(i * 37 % 500);
  return tokens;
}

TEST(SteadyState, AStepAllocatesNothing) {
  const auto session = MustLoad(BundleOf(TinyLlama("hf")), {.threads = 2});
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> tokens = Tokens(200);
  Sequence a(session.get(), 0, 10), b(session.get(), 10, 10);
  a.Feed(std::span(tokens).first(100), 100);
  const int64_t before = Allocations();
  for (size_t i = 0; i < 50; ++i) {
    const Chunk chunks[] = {a.Next(std::span(tokens).subspan(i, 1), Chunk::Logits::kLast),
                            b.Next(std::span(tokens).subspan(i * 3, 3), Chunk::Logits::kAll)};
    ASSERT_TRUE(session->Step(chunks).has_value());
  }
  EXPECT_EQ(Allocations() - before, 0);
}

TEST(Logits, ComeWithTheMaximumOfEveryBlock) {
  for (const int threads : {1, 2, 3}) {
    const auto session = MustLoad(BundleOf(TinyLlama("hf")), {.threads = threads});
    ASSERT_NE(session, nullptr);
    const std::vector<int32_t> tokens = Tokens(20);
    Sequence sequence(session.get(), 0, 4);
    const Chunk chunk = sequence.Next(tokens, Chunk::Logits::kAll);
    const auto logits = session->Step({&chunk, 1});
    ASSERT_TRUE(logits.has_value());
    const auto vocabulary = static_cast<size_t>(session->shape().vocab_size);
    const size_t blocks = (vocabulary + 31) / 32;
    const std::span<const float> maxima = session->block_max();
    ASSERT_EQ(maxima.size(), tokens.size() * blocks);
    for (size_t i = 0; i < maxima.size(); ++i) {
      const auto row = logits->subspan(i / blocks * vocabulary, vocabulary);
      const size_t begin = i % blocks * 32;
      ASSERT_EQ(maxima[i],
                std::ranges::max(row.subspan(begin, std::min<size_t>(32, vocabulary - begin))));
    }
  }
}

TEST(Workers, DoEveryTaskOnceBetweenSteps) {
  for (const int threads : {1, 2, 3}) {
    const auto session = MustLoad(BundleOf(TinyLlama("hf")), {.threads = threads});
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(session->workers(), threads);
    for (const int64_t count : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      session->ForEach(count, [&](int64_t i, int worker) {
        EXPECT_TRUE(worker >= 0 && worker < threads);
        ++done[static_cast<size_t>(i)];
      });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(SteadyState, PassesFiveBarriersALayerForFewRowsSevenForManyAndOneInStrips) {
  const auto session = MustLoad(BundleOf(TinyLlama("hf")), {.threads = 2});
  ASSERT_NE(session, nullptr);
  const int64_t layers = session->shape().layers;
  const std::vector<int32_t> tokens = Tokens(256);
  const auto barriers_of = [&](int64_t rows, Chunk::Logits logits) {
    Sequence sequence(session.get(), 0, 16);
    const Chunk chunk = sequence.Next(std::span(tokens).first(static_cast<size_t>(rows)), logits);
    const uint64_t before = session->stats().barriers;
    EXPECT_TRUE(session->Step({&chunk, 1}).has_value());
    return static_cast<int64_t>(session->stats().barriers - before);
  };
  EXPECT_EQ(barriers_of(1, Chunk::Logits::kLast), 5 * layers + 1);
  EXPECT_EQ(barriers_of(8, Chunk::Logits::kAll), 5 * layers + 1);
  // The last FFN of one row needs no barrier for its norm.
  EXPECT_EQ(barriers_of(9, Chunk::Logits::kLast), 7 * layers + 1 - 1);
  EXPECT_EQ(barriers_of(9, Chunk::Logits::kAll), 7 * layers + 2);
  // Strips of 64 rows; the one row that is left after the last attention is shared by columns.
  EXPECT_EQ(barriers_of(256, Chunk::Logits::kLast), layers + 3 + 1);
  EXPECT_EQ(barriers_of(256, Chunk::Logits::kAll), layers + 2);
  EXPECT_EQ(barriers_of(256, Chunk::Logits::kNone), layers - 1);
}

TEST(SteadyState, ADecodeStepReadsEveryPackedWeightOnce) {
  const auto session = MustLoad(BundleOf(SmolLm2()), {.threads = 2});
  ASSERT_NE(session, nullptr);
  const auto opened = bundle::OpenBundle(BundleOf(SmolLm2()), bundle::Check::kSizesAndSmallFiles);
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  int64_t packed = 0;
  for (const bundle::Weight& weight : opened->program.weights)
    if (weight.layout == bundle::WeightLayout::kPacked8) packed += weight.bytes;
  const std::vector<int32_t> tokens = Tokens(3);
  Sequence sequence(session.get(), 0, 4);
  sequence.Feed(tokens, 3);
  const uint64_t before = session->stats().weight_bytes;
  sequence.Feed(std::span(tokens).first(1), 1);
  EXPECT_EQ(static_cast<int64_t>(session->stats().weight_bytes - before), packed);
}

/// A field of /proc/self/status in bytes.
int64_t StatusField(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":")) return std::atoll(line.c_str() + name.size() + 1) * 1024;
  ADD_FAILURE() << "no field " << name;
  return 0;
}

TEST(SteadyState, LoadingCopiesNoParameters) {
  const std::filesystem::path bundle = BundleOf(SmolLm2());
  ::malloc_trim(0);
  const int64_t before = StatusField("RssAnon");
  const auto session = MustLoad(bundle, {.threads = 2});
  ASSERT_NE(session, nullptr);
  constexpr int64_t kMegabyte = 1 << 20;
  EXPECT_LE(StatusField("RssAnon") - before, 10 * kMegabyte);
  const std::vector<int32_t> tokens = Tokens(64);
  Sequence sequence(session.get(), 0, 4);
  sequence.Feed(tokens, 64);
  // Scratch, logits of 64 rows (12 MB), one sequence's pages.
  EXPECT_LE(StatusField("RssAnon") - before, 60 * kMegabyte);
}

TEST(SteadyState, TheCallerIsPinnedDuringAStepOnly) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const auto session = MustLoad(BundleOf(TinyLlama("hf")), {.threads = 1});
  ASSERT_NE(session, nullptr);
  RunAll(session.get(), Tokens(3));
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

class Refusals : public ::testing::Test {
 protected:
  Refusals() : session_(MustLoad(BundleOf(TinyLlama("hf")), Options())) {}
  static runtime::LoadOptions Options() {
    runtime::LoadOptions options;
    options.threads = 1;
    options.kv.tokens = 128;
    options.max_rows = 16;
    return options;
  }
  std::string ErrorOf(std::vector<int32_t> tokens, int64_t start,
                      std::vector<runtime::PageId> pages) {
    const Chunk chunk{tokens, start, pages, Chunk::Logits::kLast};
    const auto logits = session_->Step({&chunk, 1});
    return logits.has_value() ? "accepted" : logits.error().ToString();
  }
  std::unique_ptr<runtime::Session> session_;
};

TEST_F(Refusals, PoolHasThePagesThatWereAskedFor) {
  EXPECT_EQ(session_->shape().page_count, 128 / session_->shape().page_tokens);
  EXPECT_EQ(session_->shape().max_rows, 16);
}

TEST_F(Refusals, TokensOutsideTheVocabulary) {
  EXPECT_EQ(ErrorOf({511}, 0, {0}), "accepted");
  EXPECT_THAT(ErrorOf({512}, 0, {0}), HasSubstr("token 512 is not in the vocabulary of 512"));
  EXPECT_THAT(ErrorOf({-1}, 0, {0}), HasSubstr("token -1"));
}

TEST_F(Refusals, PositionsBeyondTheContext) {
  const std::vector<runtime::PageId> pages(32, 0);
  EXPECT_EQ(ErrorOf({1}, 1023, pages), "accepted");
  EXPECT_THAT(ErrorOf({1}, 1024, pages), HasSubstr("exceed the context of 1024"));
  EXPECT_THAT(ErrorOf({1}, -1, pages), HasSubstr("exceed the context"));
  EXPECT_THAT(ErrorOf({1}, INT64_MAX, pages), HasSubstr("exceed the context"));
}

TEST_F(Refusals, MissingAndUnknownPages) {
  EXPECT_EQ(ErrorOf({1}, 31, {0}), "accepted");
  EXPECT_THAT(ErrorOf({1}, 32, {0}), HasSubstr("1 pages, but positions up to 32 need 2"));
  EXPECT_EQ(ErrorOf({1}, 0, {3}), "accepted");
  EXPECT_THAT(ErrorOf({1}, 0, {4}), HasSubstr("page 4 of 4"));
  EXPECT_THAT(ErrorOf({1}, 0, {-1}), HasSubstr("page -1 of 4"));
  EXPECT_FALSE(session_->CopyPage(0, 4).ok());
  EXPECT_FALSE(session_->CopyPage(-1, 0).ok());
}

TEST_F(Refusals, TooManyRowsAndNone) {
  EXPECT_EQ(ErrorOf(std::vector<int32_t>(16, 1), 0, {0}), "accepted");
  EXPECT_THAT(ErrorOf(std::vector<int32_t>(17, 1), 0, {0}), HasSubstr("more than 16 tokens"));
  EXPECT_THAT(ErrorOf({}, 0, {0}), HasSubstr("no tokens"));
  EXPECT_FALSE(session_->Step({}).has_value());
}

TEST_F(Refusals, ARefusedStepChangesNothing) {
  const std::vector<int32_t> tokens = Tokens(12);
  Sequence sequence(session_.get(), 0, 1);
  const Logits expected = RunAll(session_.get(), tokens, 12);
  sequence.Feed(std::span(tokens).first(6), 6);
  const std::vector<runtime::PageId> pages = {0};
  const Chunk bad[] = {{std::span(tokens).first(3), 0, pages},
                       {std::span(tokens).first(3), 5000, {}}};
  EXPECT_FALSE(session_->Step(bad).has_value());
  const Logits rest = sequence.Feed(std::span(tokens).subspan(6), 6);
  EXPECT_EQ(rest, Logits(expected.begin() + std::ssize(rest), expected.end()));
}

/// Resident bytes of this process's mappings of a file.
int64_t ResidentOf(const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/smaps");
  int64_t kilobytes = 0;
  bool is_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_file = line.ends_with(file.string());
    if (is_file && line.starts_with("Rss:")) kilobytes += std::stoll(line.substr(4));
  }
  return kilobytes * 1024;
}

/// One pass over a model that is larger than memory: layers leave it when they are done, and
/// nothing else changes.
TEST(LoadSession, ReleasedWeightsAreNotResidentAndGiveTheSameLogits) {
  for (const std::filesystem::path& model : {TinyLlama("hf"), SmolLm2()}) {
    const std::filesystem::path bundle = BundleOf(model), archive = bundle / "model.irpa";
    const std::vector<int32_t> tokens = Tokens(70);
    const Logits expected = [&] {
      const auto session = MustLoad(bundle, {.threads = 2, .kv = {.tokens = 128}});
      const Logits logits = RunAll(session.get(), tokens);
      EXPECT_GT(ResidentOf(archive), 0);
      return logits;
    }();
    const auto session =
        MustLoad(bundle, {.threads = 2, .kv = {.tokens = 128}, .release_weights = true});
    EXPECT_EQ(RunAll(session.get(), tokens), expected);
    EXPECT_EQ(ResidentOf(archive), 0);
  }
}

TEST(LoadSession, RefusesOptionsOutOfRange) {
  const std::filesystem::path bundle = BundleOf(TinyLlama("hf"));
  EXPECT_FALSE(runtime::LoadSession(bundle, {.threads = -1}).has_value());
  EXPECT_FALSE(runtime::LoadSession(bundle, {.threads = 513}).has_value());
  EXPECT_FALSE(runtime::LoadSession(bundle, {.max_rows = 0}).has_value());
  EXPECT_FALSE(runtime::LoadSession(bundle, {.max_rows = 8193}).has_value());
  EXPECT_FALSE(runtime::LoadSession(bundle, {.kv = {.tokens = -1}}).has_value());
}

}  // namespace
}  // namespace tessera::testing
