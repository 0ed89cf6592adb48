// SPDX-License-Identifier: Apache-2.0
//
// RopeCache: cos and sin of every position and pair, computed in double and rounded once. Grows
// on demand, so that a long context costs only what it uses. Owner thread grows, workers read.
#pragma once

#include <cstdint>

#include "bundle/program.h"
#include "runtime/arena.h"

namespace tessera::runtime {

class RopeCache {
 public:
  static Result<RopeCache> Make(const bundle::Rope& rope, int64_t max_positions);

  /// Positions [0, positions) are ready afterwards; positions <= max_positions.
  void Extend(int64_t positions);
  /// [positions][rotary / 2][2]: cos, sin. The address never changes.
  const float* table() const { return reinterpret_cast<const float*>(memory_.data()); }
  int64_t rotary() const { return rope_.rotary_dim; }

 private:
  RopeCache(const bundle::Rope& rope, int64_t max_positions, Mapping memory)
      : rope_(rope), max_positions_(max_positions), memory_(std::move(memory)) {}
  bundle::Rope rope_;
  int64_t max_positions_;
  int64_t ready_ = 0;
  Mapping memory_;
};

}  // namespace tessera::runtime
