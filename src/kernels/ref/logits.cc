// SPDX-License-Identifier: Apache-2.0
#include "kernels/logits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/ref/ref.h"

namespace tessera::kernels::ref {
namespace {

/// Whether b is greater than a; +0 is greater than -0.
bool IsGreater(float b, float a) {
  return b > a || (b == a && std::signbit(a) && !std::signbit(b));
}

double Exp(double z) {
  z = std::max(z, softmax::kLowest);
  const double n = std::nearbyint(z * softmax::kLog2E);
  const double r = std::fma(n, -softmax::kLn2Low, std::fma(n, -softmax::kLn2High, z));
  double p = softmax::kTaylor[0];
  for (size_t i = 1; i < std::size(softmax::kTaylor); ++i) p = std::fma(p, r, softmax::kTaylor[i]);
  return std::bit_cast<double>(std::bit_cast<int64_t>(p) + (static_cast<int64_t>(n) << 52));
}

}  // namespace

void BlockMax(const float* x, int64_t count, float* out) {
  for (int64_t b = 0; b < LogitBlocks(count); ++b) {
    float max = -std::numeric_limits<float>::infinity();
    bool has_nan = false;
    for (int64_t i = b * kLogitBlock; i < std::min(count, (b + 1) * kLogitBlock); ++i) {
      has_nan |= std::isnan(x[i]);
      if (IsGreater(x[i], max)) max = x[i];
    }
    out[b] = has_nan ? std::numeric_limits<float>::quiet_NaN() : max;
  }
}

void SoftmaxMass(const SoftmaxMassArgs& args) {
  for (int64_t b = 0; b < LogitBlocks(args.count); ++b) {
    const double nearest = (static_cast<double>(args.block_max[b]) - args.max) * args.scale;
    args.mass[b] = 0;
    if (nearest <= -args.cut) continue;
    double e[kLogitBlock];
    for (int64_t i = 0; i < kLogitBlock; ++i) {
      const int64_t at = b * kLogitBlock + i;
      e[i] = Exp(at < args.count ? (static_cast<double>(args.x[at]) - args.max) * args.scale
                                 : softmax::kLowest);
    }
    double v[8];
    for (int i = 0; i < 8; ++i) v[i] = (e[i] + e[8 + i]) + (e[16 + i] + e[24 + i]);
    args.mass[b] = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
  }
}

}  // namespace tessera::kernels::ref
