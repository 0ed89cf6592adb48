// SPDX-License-Identifier: Apache-2.0
//
// Internal to quantise_fit*.cc: the two-level formats. Groups get real scales first; then the
// super-block's f16 scales are chosen so that the integer sub-scales reach far enough, sub-scales
// are searched among their neighbours by the error of what is stored, and the f16 scales are fitted
// once more to all codes. The better of the two rounds stays.
#pragma once

#include "tensor/quantise_fit_search.h"

namespace tessera::tensor {
namespace {

constexpr int kRounds = 2;

/// A number between scalar and vector code: rounds as ToHalfPrecision does.
inline float HalfOf(float value) {
  return ToHalfPrecision<float>(value);
}
inline float Clamped(float value, float low, float high) {
  return Max(Min(value, high), low);
}

// Q4_K: x = (d sc) q - (dmin mn), q in 0..15, sc and mn in 0..63; one group of 32 a lane.

struct FitQ4K {
  float d = 0, dmin = 0;
  float scale[kLanes] = {};    // sc
  float minimum[kLanes] = {};  // mn
};

/// Sums of a super-block that the next d and dmin follow from.
struct LanesQ4K {
  float error[kLanes], q[kLanes], qq[kLanes], qx[kLanes], w[kLanes], wx[kLanes];
};

/// The best sub-scales near the real ones, for given d and dmin.
template <class V>
void ChooseSubScales(const Groups<32>& g, const float* real_d, const float* real_m, FitQ4K* fit,
                     LanesQ4K* sums) {
  const V most = Splat<V>(63.0F);
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const V near_d = Round(Load<V>(real_d + lane) * InverseOrZero(fit->d));
    const V near_m = Round(Load<V>(real_m + lane) * InverseOrZero(fit->dmin));
    Best<V> best;
    V best_sc{}, best_mn{};
    for (int i = -1; i <= 1; ++i) {
      for (int j = -1; j <= 1; ++j) {
        const V sc = Max(Min(near_d + static_cast<float>(i), most), V{});
        const V mn = Max(Min(near_m + static_cast<float>(j), most), V{});
        const V d = sc * fit->d;
        const V m = -(mn * fit->dmin);
        const Sums<V> s = Evaluate<V, 32>(g, lane, d, m, 0.0F, 15.0F);
        const auto better = s.error < best.error;
        best_sc = better ? sc : best_sc;
        best_mn = better ? mn : best_mn;
        best.Offer(d, m, s);
      }
    }
    Store(fit->scale + lane, best_sc);
    Store(fit->minimum + lane, best_mn);
    Store(sums->error + lane, best.error);
    Store(sums->q + lane, best.sums.q);
    Store(sums->qq + lane, best.sums.qq);
    Store(sums->qx + lane, best.sums.qx);
  }
}

inline float Total(const float* lanes) {
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += lanes[lane];
  return total;
}

/// d and dmin that fit the codes and sub-scales at hand best; unchanged where nothing follows.
inline void RefitQ4K(const LanesQ4K& sums, FitQ4K* fit) {
  // x = d a - dmin b with a = sc q and b = mn; normal equations in a and b.
  float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const float sc = fit->scale[lane], mn = fit->minimum[lane];
    aa += sc * sc * sums.qq[lane];
    ab += sc * mn * sums.q[lane];
    bb += mn * mn * sums.w[lane];
    ax += sc * sums.qx[lane];
    bx += mn * sums.wx[lane];
  }
  const float determinant = aa * bb - ab * ab;
  if (determinant > 0) {
    const float d = (bb * ax - ab * bx) / determinant;
    const float dmin = (ab * ax - aa * bx) / determinant;
    if (d > 0 && dmin > 0 && d <= kMaxHalf && dmin <= kMaxHalf) {
      fit->d = HalfOf(d);
      fit->dmin = HalfOf(dmin);
    }
  } else if (aa > 0 && bb == 0 && ax > 0) {
    fit->d = HalfOf(Min(ax / aa, kMaxHalf));
  }
}

template <class V>
FitQ4K FitSuperQ4K(const Groups<32>& g) {
  float real_d[kLanes], real_m[kLanes];
  LanesQ4K sums;
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const Fixed<V> f = FixedSums<V, 32>(g, lane, true);
    const Line<V> line = FitLine<V, 32>(g, lane, f, 15.0F, false);
    Store(real_d + lane, line.d);
    Store(real_m + lane, -line.m);
    Store(sums.w + lane, f.w);
    Store(sums.wx + lane, f.wx);
  }
  float largest_d = 0, largest_m = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    largest_d = Max(largest_d, real_d[lane]);
    largest_m = Max(largest_m, real_m[lane]);
  }
  FitQ4K fit, best;
  float best_error = 3e38F;
  fit.d = HalfOf(largest_d / 63.0F);
  fit.dmin = HalfOf(largest_m / 63.0F);
  for (int round = 0; round < kRounds; ++round) {
    ChooseSubScales<V>(g, real_d, real_m, &fit, &sums);
    const float error = Total(sums.error);
    if (error < best_error) {
      best = fit;
      best_error = error;
    }
    RefitQ4K(sums, &fit);
  }
  return best;
}

// Q6_K: x = (d sc) q, q in -32..31, sc in -128..127; sixteen groups of 16, as two sets of lanes.

struct FitQ6K {
  float d = 0;
  float scale[2][kLanes] = {};
};

/// The scale of each group in real numbers, by the gain of the codes that candidates lead to.
template <class V>
void FitRealScales(const Groups<16>& g, float* scales) {
  constexpr int kSteps = 9;
  constexpr float kStep = 0.1F;
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const V extreme = Extreme<V, 16>(g, lane);
    V best_gain{}, best{};
    for (int step = -kSteps; step <= kSteps; ++step) {
      const V d = extreme / Splat<V>(-32.0F + kStep * static_cast<float>(step));
      const Sums<V> s = Evaluate<V, 16>(g, lane, d, V{}, -32.0F, 31.0F);
      const V fitted = s.qx / (s.qq > 0.0F ? s.qq : Splat<V>(1.0F));
      const V gain = fitted * s.qx;
      const auto better = gain > best_gain;
      best_gain = better ? gain : best_gain;
      best = better ? fitted : best;
    }
    Store(scales + lane, best);
  }
}

struct LanesQ6K {
  float error[kLanes], qq[kLanes], qx[kLanes];
};

template <class V>
void ChooseSubScales(const Groups<16>& g, const float* real, float d, float* scale,
                     LanesQ6K* sums) {
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const V near = Round(Load<V>(real + lane) * InverseOrZero(d));
    Best<V> best;
    V best_sc{};
    for (int i = -1; i <= 1; ++i) {
      const V sc = Max(Min(near + static_cast<float>(i), Splat<V>(127.0F)), Splat<V>(-128.0F));
      const Sums<V> s = Evaluate<V, 16>(g, lane, sc * d, V{}, -32.0F, 31.0F);
      best_sc = s.error < best.error ? sc : best_sc;
      best.Offer(sc, V{}, s);
    }
    Store(scale + lane, best_sc);
    Store(sums->error + lane, best.error);
    Store(sums->qq + lane, best.sums.qq);
    Store(sums->qx + lane, best.sums.qx);
  }
}

template <class V>
FitQ6K FitSuperQ6K(const Groups<16>* sets) {
  float real[2][kLanes];
  float extreme = 0;
  for (int s = 0; s < 2; ++s) {
    FitRealScales<V>(sets[s], real[s]);
    for (int lane = 0; lane < kLanes; ++lane)
      if (Abs(real[s][lane]) > Abs(extreme)) extreme = real[s][lane];
  }
  FitQ6K fit, best;
  float best_error = 3e38F;
  fit.d = HalfOf(extreme / -128.0F);
  for (int round = 0; round < kRounds; ++round) {
    float error = 0, aa = 0, ax = 0;  // Of x = d a, a = sc q.
    for (int s = 0; s < 2; ++s) {
      LanesQ6K sums;
      ChooseSubScales<V>(sets[s], real[s], fit.d, fit.scale[s], &sums);
      error += Total(sums.error);
      for (int lane = 0; lane < kLanes; ++lane) {
        aa += fit.scale[s][lane] * fit.scale[s][lane] * sums.qq[lane];
        ax += fit.scale[s][lane] * sums.qx[lane];
      }
    }
    if (error < best_error) {
      best = fit;
      best_error = error;
    }
    if (aa > 0) fit.d = HalfOf(Clamped(ax / aa, -kMaxHalf, kMaxHalf));
  }
  return best;
}

}  // namespace
}  // namespace tessera::tensor
