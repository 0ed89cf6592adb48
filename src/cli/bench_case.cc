// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_case.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::cli {
namespace {

/// Puts pieces into steps, opening the next one when a step is full.
class StepFiller {
 public:
  explicit StepFiller(int64_t max_rows) : max_rows_(max_rows) {}

  void NewStep() { room_ = 0; }
  /// Positions [begin, end) of a sequence, logits for the last.
  void Add(int64_t sequence, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      if (room_ == 0) {
        steps_.emplace_back();
        room_ = max_rows_;
      }
      const int64_t rows = std::min(room_, end - at);
      steps_.back().push_back({sequence, {at, rows, at + rows == end ? 1 : 0}});
      room_ -= rows;
      at += rows;
    }
  }
  std::vector<BenchStep> Take() { return std::move(steps_); }

 private:
  const int64_t max_rows_;
  int64_t room_ = 0;
  std::vector<BenchStep> steps_;
};

}  // namespace

std::string BenchCase::Name() const {
  std::string name = fmt::format("{}{}", is_prompt ? "pp" : "tg", tokens);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  if (batch > 1) name += fmt::format(" x {}", batch);
  return name;
}

std::vector<BenchCase> BenchGrid(const std::vector<int64_t>& prompts,
                                 const std::vector<int64_t>& generations,
                                 const std::vector<int64_t>& depths,
                                 const std::vector<int64_t>& batches) {
  std::vector<BenchCase> grid;
  for (const int64_t batch : batches)
    for (const int64_t depth : depths) {
      for (const int64_t tokens : prompts)
        if (tokens > 0) grid.push_back({true, tokens, depth, batch});
      for (const int64_t tokens : generations)
        if (tokens > 0) grid.push_back({false, tokens, depth, batch});
    }
  return grid;
}

std::vector<BenchStep> BenchSteps(const BenchCase& test, int64_t max_rows) {
  StepFiller filler(max_rows);
  if (test.is_prompt) {
    for (int64_t i = 0; i < test.batch; ++i) filler.Add(i, test.depth, test.length());
    return filler.Take();
  }
  for (int64_t at = test.depth; at < test.length(); ++at) {
    filler.NewStep();
    for (int64_t i = 0; i < test.batch; ++i) filler.Add(i, at, at + 1);
  }
  return filler.Take();
}

BenchBound BoundOf(const std::vector<BenchStep>& steps, const runtime::ProgramWork& work,
                   const runtime::MachineRates& rates) {
  BenchBound bound;
  for (const BenchStep& step : steps) {
    std::vector<runtime::ChunkShape> shapes;
    for (const BenchPiece& piece : step) shapes.push_back(piece.shape);
    const runtime::StepWork least = work.Of(shapes);
    bound.seconds += runtime::BoundSeconds(least, rates);
    bound.arithmetic_seconds += runtime::ArithmeticSeconds(least, rates);
  }
  return bound;
}

}  // namespace tessera::cli
