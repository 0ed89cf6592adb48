// SPDX-License-Identifier: Apache-2.0
//
// The walk over blocks of logits that both vector ISAs share. V gives
//   float Max(const float* x)                          of 32 logits, as BlockMaxFn
//   double Mass(const float* x, double max, double scale)  of 32 logits, as SoftmaxMassFn
// The last block is copied and padded when it is short.
#pragma once

#include <limits>

#include "kernels/layout.h"
#include "kernels/logits.h"

namespace tessera::kernels {

/// The block at x if it is whole; else a copy in `space`, with -infinity behind its end.
TESSERA_KERNEL_INLINE const float* WholeBlock(const float* x, int64_t count, float* space) {
  if (count >= kLogitBlock) return x;
  for (int64_t i = 0; i < kLogitBlock; ++i)
    space[i] = i < count ? x[i] : -std::numeric_limits<float>::infinity();
  return space;
}

template <class V>
TESSERA_KERNEL_INLINE void WalkBlockMax(const float* x, int64_t count, float* out) {
  float space[kLogitBlock];
  for (int64_t at = 0; at < count; at += kLogitBlock)
    out[at / kLogitBlock] = V::Max(WholeBlock(x + at, count - at, space));
}

template <class V>
TESSERA_KERNEL_INLINE void WalkSoftmaxMass(const SoftmaxMassArgs& args) {
  float space[kLogitBlock];
  for (int64_t at = 0; at < args.count; at += kLogitBlock) {
    const int64_t b = at / kLogitBlock;
    const double nearest = (static_cast<double>(args.block_max[b]) - args.max) * args.scale;
    args.mass[b] = nearest <= -args.cut ? 0.0
                                        : V::Mass(WholeBlock(args.x + at, args.count - at, space),
                                                  args.max, args.scale);
  }
}

}  // namespace tessera::kernels
