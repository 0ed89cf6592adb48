// SPDX-License-Identifier: Apache-2.0
//
// What `bench` measures: the cells of its grid, and the steps that each is made of. Pure.
//
// Definitions of llama-bench and llama-batched-bench: pp = N tokens of each sequence from depth d
// on, in steps as large as a session takes, logits for the last token only; tg = N steps of one
// token of each sequence. B sequences of the same length; a step takes rows of several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/step_work.h"

namespace tessera::cli {

struct BenchCase {
  bool is_prompt = true;
  int64_t tokens = 0;  // A sequence.
  int64_t depth = 0;
  int64_t batch = 1;

  int64_t all_tokens() const { return tokens * batch; }
  int64_t length() const { return depth + tokens; }
  /// "pp512", "tg128 @ d512 x 8"
  std::string Name() const;
};

/// Lists as the flags give them. Batches outermost, then depths; prompts before generation; lengths
/// of 0 are left out.
std::vector<BenchCase> BenchGrid(const std::vector<int64_t>& prompts,
                                 const std::vector<int64_t>& generations,
                                 const std::vector<int64_t>& depths,
                                 const std::vector<int64_t>& batches);

/// Rows of one sequence in a step.
struct BenchPiece {
  int64_t sequence = 0;
  runtime::ChunkShape shape;  // logit_rows 0 or 1: the last one.
};
using BenchStep = std::vector<BenchPiece>;

/// The steps of a case, each of at most `max_rows` rows.
std::vector<BenchStep> BenchSteps(const BenchCase& test, int64_t max_rows);

/// Seconds that the steps take at the least, and of these the arithmetic alone.
struct BenchBound {
  double seconds = 0;
  double arithmetic_seconds = 0;
};
BenchBound BoundOf(const std::vector<BenchStep>& steps, const runtime::ProgramWork& work,
                   const runtime::MachineRates& rates);

}  // namespace tessera::cli
