// SPDX-License-Identifier: Apache-2.0
//
// Runs one case of `bench` on a session: fills the context to its depth, one warm-up run, then
// counted ones over the same positions. Tokens are pseudo-random; tokenising and sampling are not
// part of it.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/bench_case.h"

#include "base/status.h"
#include "runtime/session.h"

namespace tessera::cli {

struct BenchFigures {
  std::vector<double> tokens_per_second;  // One for each counted run.
  runtime::SessionStats counted;          // Of one run; all do the same. scratch_bytes stays 0.

  double Mean() const;
  double Median() const;
  double Deviation() const;  // Of the sample; 0 for a single run.
  double Min() const;
  double Max() const;
};

/// kInvalidArgument when the case needs more positions or KV pages than the session has.
Status CheckFits(const BenchCase& test, const runtime::ModelShape& shape);

/// Requires CheckFits and repetitions >= 1.
Result<BenchFigures> RunBenchCase(runtime::Session* session, const BenchCase& test,
                                  int repetitions);

}  // namespace tessera::cli
