// SPDX-License-Identifier: Apache-2.0
//
// The last hidden states that a step gives beside logits: the same bytes whatever the chunks, the
// threads, the company and the rows that want logits. That they are what the output matrix is
// multiplied with is shown from outside (tests/e2e/test_embeddings.py).
#include <gtest/gtest.h>

#include <numeric>

#include "harness.h"

namespace tessera::testing {
namespace {

using runtime::Chunk;

constexpr size_t kLength = 70;  // More rows than one worker normalises alone.

std::vector<int32_t> Tokens(int32_t salt) {
  std::vector<int32_t> tokens(kLength);
  for (size_t i = 0; i < kLength; ++i)
    tokens[i] = static_cast<int32_t>((i * 7 + static_cast<size_t>(salt) * 31) % 100 + 3);
  return tokens;
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// Hidden states of all positions, fed in chunks.
std::vector<float> HiddenOf(runtime::Session* session, std::span<const int32_t> tokens,
                            size_t chunk_rows) {
  std::vector<runtime::PageId> pages(static_cast<size_t>(session->shape().page_count));
  std::iota(pages.begin(), pages.end(), 0);
  std::vector<float> hidden;
  for (size_t at = 0; at < tokens.size(); at += chunk_rows) {
    const size_t rows = std::min(chunk_rows, tokens.size() - at);
    const Chunk chunk{.tokens = tokens.subspan(at, rows),
                      .start = static_cast<int64_t>(at),
                      .pages = pages,
                      .logits = Chunk::Logits::kAll,
                      .hidden = true};
    EXPECT_TRUE(session->Step({&chunk, 1}).has_value());
    EXPECT_EQ(session->hidden().size(), rows * static_cast<size_t>(session->shape().hidden_size));
    const std::vector<float> part = Copy(session->hidden());
    hidden.insert(hidden.end(), part.begin(), part.end());
  }
  return hidden;
}

TEST(Hidden, DoesNotDependOnChunksOrThreads) {
  const auto bundle = BundleOf(TinyLlama("tiny-f16.gguf"));
  const std::vector<int32_t> tokens = Tokens(1);
  std::vector<float> wanted;
  for (const int threads : {1, 2}) {
    const auto session = MustLoad(bundle, {.threads = threads});
    for (const size_t rows : {kLength, size_t{33}, size_t{8}, size_t{1}}) {
      const std::vector<float> hidden = HiddenOf(session.get(), tokens, rows);
      if (wanted.empty()) wanted = hidden;
      EXPECT_EQ(hidden, wanted) << threads << " threads, chunks of " << rows;
    }
  }
}

TEST(Hidden, RowsStandAsThoseOfTheLogits) {
  const auto session = MustLoad(BundleOf(TinyLlama("tiny-f16.gguf")), {.threads = 2});
  const auto width = static_cast<size_t>(session->shape().hidden_size);
  const std::vector<int32_t> a = Tokens(1), b = Tokens(2);
  const std::vector<float> all_a = HiddenOf(session.get(), a, kLength);
  const std::vector<float> all_b = HiddenOf(session.get(), b, kLength);
  const int64_t pages = session->shape().page_count / 3;
  const auto run_of = [&](int64_t first) {
    std::vector<runtime::PageId> ids(static_cast<size_t>(pages));
    std::iota(ids.begin(), ids.end(), static_cast<runtime::PageId>(first));
    return ids;
  };
  const auto pages_a = run_of(0), pages_b = run_of(pages), pages_c = run_of(2 * pages);
  const std::vector<Chunk> chunks = {
      {.tokens = b, .pages = pages_c, .logits = Chunk::Logits::kNone},
      {.tokens = a, .pages = pages_a, .logits = Chunk::Logits::kLast, .hidden = true},
      {.tokens = b, .pages = pages_b, .logits = Chunk::Logits::kAll, .hidden = true}};
  ASSERT_TRUE(session->Step(chunks).has_value());
  const std::vector<float> hidden = Copy(session->hidden());
  ASSERT_EQ(hidden.size(), (1 + kLength) * width);
  EXPECT_TRUE(std::equal(hidden.begin(), hidden.begin() + static_cast<ptrdiff_t>(width),
                         all_a.end() - static_cast<ptrdiff_t>(width)));
  EXPECT_TRUE(
      std::equal(hidden.begin() + static_cast<ptrdiff_t>(width), hidden.end(), all_b.begin()));
}

TEST(Hidden, IsGivenOnlyWhereAskedFor) {
  const auto session = MustLoad(BundleOf(TinyLlama("tiny-f16.gguf")), {.threads = 1});
  const std::vector<int32_t> tokens = Tokens(1);
  const Logits with = [&] {
    HiddenOf(session.get(), tokens, kLength);
    return RunAll(session.get(), tokens);
  }();
  EXPECT_TRUE(session->hidden().empty());
  EXPECT_EQ(with, RunAll(session.get(), tokens)) << "logits do not care";
}

}  // namespace
}  // namespace tessera::testing
