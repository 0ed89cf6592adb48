// SPDX-License-Identifier: Apache-2.0
#include "runtime/rope_cache.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tessera::runtime {

Result<RopeCache> RopeCache::Make(const bundle::Rope& rope, int64_t max_positions) {
  const uint64_t bytes = static_cast<uint64_t>(max_positions * rope.rotary_dim) * sizeof(float);
  TESSERA_ASSIGN_OR_RETURN(Mapping memory, Mapping::Reserve(bytes, false));
  return RopeCache(rope, max_positions, std::move(memory));
}

void RopeCache::Extend(int64_t positions) {
  if (positions <= ready_) return;
  TESSERA_CHECK(positions <= max_positions_);
  constexpr int64_t kStep = 256;  // Amortises growth; a decode step then rarely computes any.
  const int64_t end = std::min(max_positions_, (positions + kStep - 1) / kStep * kStep);
  float* out = reinterpret_cast<float*>(memory_.data()) + ready_ * rope_.rotary_dim;
  for (int64_t position = ready_; position < end; ++position) {
    for (const double frequency : rope_.inverse_frequency) {
      const double angle = static_cast<double>(position) * frequency;
      *out++ = static_cast<float>(std::cos(angle) * rope_.attention_factor);
      *out++ = static_cast<float>(std::sin(angle) * rope_.attention_factor);
    }
  }
  ready_ = end;
}

}  // namespace tessera::runtime
