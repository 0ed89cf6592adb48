// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"

namespace tessera::cli {
namespace {

int64_t PagesOf(int64_t positions, int64_t page_tokens) {
  return (positions + page_tokens - 1) / page_tokens;
}

/// The sequences of a case: the same pseudo-random tokens, pages dealt out in order.
class Sequences {
 public:
  Sequences(runtime::Session* session, const BenchCase& test)
      : session_(session), tokens_(static_cast<size_t>(test.length())) {
    const runtime::ModelShape& shape = session->shape();
    Random random(42);
    for (int32_t& token : tokens_)
      token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(shape.vocab_size)));
    const int64_t pages = PagesOf(test.length(), shape.page_tokens);
    for (int64_t i = 0; i < test.batch; ++i) {
      std::vector<runtime::PageId> own(static_cast<size_t>(pages));
      std::iota(own.begin(), own.end(), static_cast<runtime::PageId>(i * pages));
      pages_.push_back(std::move(own));
    }
  }

  Status Run(const std::vector<BenchStep>& steps) {
    for (const BenchStep& step : steps) {
      chunks_.clear();
      for (const auto& [sequence, shape] : step)
        chunks_.push_back(
            {std::span<const int32_t>(tokens_).subspan(static_cast<size_t>(shape.start),
                                                       static_cast<size_t>(shape.rows)),
             shape.start, pages_[static_cast<size_t>(sequence)],
             shape.logit_rows > 0 ? runtime::Chunk::Logits::kLast : runtime::Chunk::Logits::kNone});
      TESSERA_RETURN_IF_ERROR(StatusOf(session_->Step(chunks_)));
    }
    return {};
  }

 private:
  runtime::Session* session_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<runtime::PageId>> pages_;
  std::vector<runtime::Chunk> chunks_;
};

runtime::SessionStats Difference(const runtime::SessionStats& after,
                                 const runtime::SessionStats& before) {
  return {.steps = after.steps - before.steps,
          .barriers = after.barriers - before.barriers,
          .weight_bytes = after.weight_bytes - before.weight_bytes,
          .kv_bytes = after.kv_bytes - before.kv_bytes,
          .matmul_macs = after.matmul_macs - before.matmul_macs,
          .attention_macs = after.attention_macs - before.attention_macs};
}

}  // namespace

double BenchFigures::Mean() const {
  return std::accumulate(tokens_per_second.begin(), tokens_per_second.end(), 0.0) /
         static_cast<double>(tokens_per_second.size());
}

double BenchFigures::Median() const {
  std::vector<double> sorted = tokens_per_second;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double BenchFigures::Deviation() const {
  if (tokens_per_second.size() < 2) return 0;
  const double mean = Mean();
  double sum = 0;
  for (double value : tokens_per_second) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(tokens_per_second.size() - 1));
}

double BenchFigures::Min() const {
  return *std::min_element(tokens_per_second.begin(), tokens_per_second.end());
}

double BenchFigures::Max() const {
  return *std::max_element(tokens_per_second.begin(), tokens_per_second.end());
}

Status CheckFits(const BenchCase& test, const runtime::ModelShape& shape) {
  if (test.length() > shape.max_seq_len)
    return InvalidArgument(fmt::format("{} needs {} positions, the model has {}", test.Name(),
                                       test.length(), shape.max_seq_len));
  const int64_t pages = test.batch * PagesOf(test.length(), shape.page_tokens);
  if (pages > shape.page_count)
    return InvalidArgument(fmt::format(
        "{} needs {} pages of KV memory, there are {}: raise --kv-memory to {} bytes", test.Name(),
        pages, shape.page_count, pages * shape.page_tokens * shape.kv_bytes_per_token));
  return {};
}

Result<BenchFigures> RunBenchCase(runtime::Session* session, const BenchCase& test,
                                  int repetitions) {
  const int64_t max_rows = session->shape().max_rows;
  Sequences sequences(session, test);
  const BenchCase context = {true, test.depth, 0, test.batch};
  TESSERA_RETURN_IF_ERROR(sequences.Run(BenchSteps(context, max_rows)));
  const std::vector<BenchStep> steps = BenchSteps(test, max_rows);
  TESSERA_RETURN_IF_ERROR(sequences.Run(steps));  // Warm-up.
  BenchFigures figures;
  for (int i = 0; i < repetitions; ++i) {
    const runtime::SessionStats before = session->stats();
    const TimePoint begin = Clock::Real().Now();
    TESSERA_RETURN_IF_ERROR(sequences.Run(steps));
    const double seconds = Seconds(Clock::Real().Now() - begin);
    figures.counted = Difference(session->stats(), before);
    figures.tokens_per_second.push_back(static_cast<double>(test.all_tokens()) / seconds);
  }
  return figures;
}

}  // namespace tessera::cli
