// SPDX-License-Identifier: Apache-2.0
//
// LogitRow: one row of logits as a sampler sees it: what the model gave, less the tokens that a
// mask forbids, with single values changed by biases and penalties. It is read in blocks of 32 and
// knows the greatest value of each, so that a sampler looks only into blocks that can matter: of a
// vocabulary of 128,256 a top_k of 40 reads a few dozen. Nothing is copied but under a mask.
//
// All values are double. A LogitRow holds scratch memory and is used by one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/candidate.h"
#include "kernels/logits.h"

namespace tessera::engine {

/// Logits as a model gives them; views. Without `block_max` it is computed where it is needed.
struct Logits {
  Logits(std::span<const float> row) : values(row) {}     // NOLINT: a row is logits.
  Logits(const std::vector<float>& row) : values(row) {}  // NOLINT
  Logits(std::span<const float> row, std::span<const float> maxima)
      : values(row), block_max(maxima) {}

  std::span<const float> values;     // [vocab]
  std::span<const float> block_max;  // [LogitBlocks(vocab)], kernels/logits.h; or empty
};

class LogitRow {
 public:
  static constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

  /// Starts with `logits`, which must stay until the next call. Bits of `allowed` (bit id % 32 of
  /// word id / 32; empty = all) that are clear forbid a token. kInternal when the logits hold a
  /// NaN, +infinity or nothing finite: the model is at fault.
  Status Reset(const Logits& logits, std::span<const uint32_t> allowed);

  int64_t size() const { return std::ssize(values_); }
  double At(text::TokenId id) const;
  /// After the last Set comes FindBest, then what depends on the greatest value.
  void Set(text::TokenId id, double value);
  /// The id of the greatest value, the lowest of equals; -1 when all are -infinity.
  text::TokenId FindBest();
  double max() const { return max_; }

  void CopyTo(std::vector<double>* values) const;

  /// Ids with value >= least (and > -infinity), ascending, with x relative to the greatest value in
  /// units of 1 / scale, to the end of `out`.
  void Collect(double least, double scale, std::vector<Candidate>* out) const;
  /// A bound that at least `count` values reach, by the maxima of the blocks; -infinity when there
  /// are fewer blocks.
  double LeastOf(int64_t count);

  /// sum of exp((value - max) * scale) over all. Values 60 or more below count as nothing, which
  /// changes no bit that matters: 2^20 of them weigh 1e-20.
  double Mass(double scale);
  /// After Mass(scale): the id at which the cumulated mass, in id order, passes `mass`; the last id
  /// with any mass when it never does.
  text::TokenId FindMass(double mass, double scale) const;

 private:
  static constexpr double kCut = 60;

  /// Values of block b, its end filled up with -infinity.
  void Load(int64_t b, double* values) const;
  void Mask(std::span<const uint32_t> allowed);

  std::span<const float> values_;
  std::span<const float> raw_max_;    // [blocks] of values_
  std::vector<float> masked_;         // [vocab] when there is a mask
  std::vector<float> own_max_;        // [blocks] when the model gave none, or there is a mask
  std::vector<double> block_max_;     // [blocks] with changes
  std::vector<uint32_t> is_changed_;  // [blocks] one bit a token
  std::vector<int64_t> changed_;      // Blocks with a bit set.
  std::vector<double> changes_;       // [vocab], valid where is_changed_ has the bit
  std::vector<double> mass_;          // [blocks]
  std::vector<double> scratch_;
  double max_ = kMinusInfinity;
};

}  // namespace tessera::engine
