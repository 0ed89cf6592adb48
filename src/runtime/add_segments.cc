// SPDX-License-Identifier: Apache-2.0
#include "runtime/add_segments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tessera::runtime {
namespace {

// Columns at a time: the sums stay in registers and the first cache.
constexpr int64_t kPiece = 256;

template <bool kFlush>
void AddPiece(const AddSegmentsArgs& args, int64_t begin, int64_t count) {
  std::array<float, kPiece> sums;
  std::copy_n(args.segments[0] + begin, count, sums.data());
  for (size_t i = 1; i < args.segments.size(); ++i) {
    const float* segment = args.segments[i] + begin;
    for (int64_t c = 0; c < count; ++c) {
      float sum = sums[static_cast<size_t>(c)] + segment[c];
      if constexpr (kFlush)
        sum = std::fabs(sum) < std::numeric_limits<float>::min() ? std::copysign(0.0F, sum) : sum;
      sums[static_cast<size_t>(c)] = sum;
    }
  }
  if (args.bias != nullptr)
    for (int64_t c = 0; c < count; ++c) sums[static_cast<size_t>(c)] += args.bias[begin + c];
  float* residual = args.residual + begin;
  for (int64_t c = 0; c < count; ++c) residual[c] += sums[static_cast<size_t>(c)];
}

}  // namespace

void AddSegments(const AddSegmentsArgs& args) {
  for (int64_t begin = 0; begin < args.columns; begin += kPiece) {
    const int64_t count = std::min(kPiece, args.columns - begin);
    if (args.flush) {
      AddPiece<true>(args, begin, count);
    } else {
      AddPiece<false>(args, begin, count);
    }
  }
}

}  // namespace tessera::runtime
