// SPDX-License-Identifier: Apache-2.0
//
// Reads the stored logits and activations of ../shared/fixtures (made by an independent float64
// implementation) and compares rows with them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"

namespace tessera::testing {

/// What is stored of one row of logits.
struct ReferenceRow {
  std::vector<std::pair<int32_t, double>> top;  // Largest first.
  double sum = 0;
  double std = 0;
  double min = 0;
  double max = 0;
  double logsumexp = 0;
};

struct GreedyStep {
  int32_t id = 0;
  double logit = 0;
  double margin = 0;  // Between the best and the second best.
};

/// One line of logits.jsonl.
struct ReferenceCase {
  std::string id;
  std::vector<int32_t> tokens;
  ReferenceRow last;
  std::vector<ReferenceRow> positions;  // Of every token; empty for long cases.
  std::vector<int32_t> argmax;          // Of every token.
  std::vector<double> prompt_logprobs;  // Of tokens[1:].
  double mean_nll = 0;
  std::vector<GreedyStep> greedy;
};

std::vector<ReferenceCase> ReadReferenceCases(const std::filesystem::path& path);

/// Expects the row's stored logits and its smallest and largest within `tolerance`, its mean and
/// logsumexp too.
void ExpectRow(std::span<const double> row, const ReferenceRow& expected, double tolerance,
               const std::string& what);

/// Log of the probability of `id`.
double LogProb(std::span<const double> row, int32_t id);

}  // namespace tessera::testing
