// SPDX-License-Identifier: Apache-2.0
//
// Internal to quantise_fit*.cc: the search for scales, as a template over the vector type V: float
// (the definition) or eight floats. Eight groups of a row are searched side by side, one a lane;
// lanes never mix and every lane's operations come in one order, so all V give the same bytes. For
// that the translation units are compiled without contraction, as everything here.
//
// Included by units for different instruction sets: all names have internal linkage, and nothing of
// the standard library's templates is used, whose weak copies the linker could exchange.
#pragma once

#include <cstdint>

namespace tessera::tensor {
namespace {

constexpr int kLanes = 8;
constexpr float kMaxHalf = 65504.0F;

/// Eight groups of N elements, transposed: x[i][lane].
template <int N>
struct Groups {
  alignas(32) float x[N][kLanes];
  alignas(32) float w[N][kLanes];  // Weights of the squared errors.
};

template <class V>
constexpr int kWidth = static_cast<int>(sizeof(V) / sizeof(float));

template <class V>
V Load(const float* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}
template <class V>
void Store(float* to, V v) {
  __builtin_memcpy(to, &v, sizeof(V));
}
template <class V>
V Splat(float value) {
  return V{} + value;
}
template <class V>
V Max(V a, V b) {
  return a > b ? a : b;
}
template <class V>
V Min(V a, V b) {
  return a < b ? a : b;
}
template <class V>
V Abs(V a) {
  return Max(a, -a);
}

/// To the nearest integer, halves to even; |a| < 2^22.
template <class V>
V Round(V a) {
  constexpr float kIntegers = 0x1.8p23F;  // From here on float32 has no fractions.
  return (a + kIntegers) - kIntegers;
}

/// To a value that an f16 holds; |a| is at most kMaxHalf.
template <class V>
V ToHalfPrecision(V a) {
  const V magnitude = Abs(a);
  const V wide = magnitude * 8193.0F;             // Veltkamp: keeps the 11 leading bits.
  const V normal = wide - (wide - magnitude);     // From 2^-14 on.
  const V subnormal = (magnitude + 0.5F) - 0.5F;  // Below: multiples of 2^-24.
  const V rounded = Min(magnitude < 0x1p-14F ? subnormal : normal, Splat<V>(kMaxHalf));
  return a < 0.0F ? -rounded : rounded;
}

/// Sums over one group: of w e^2 for x = d q + m + e, w q, w q^2 and w q x.
template <class V>
struct Sums {
  V error{}, q{}, qq{}, qx{};
};

template <class V>
V InverseOrZero(V d) {
  const V one = Splat<V>(1.0F);
  return d != 0.0F ? one / (d != 0.0F ? d : one) : V{};
}

template <class V>
V CodeOf(V x, V inverse, V m, float low, float high) {
  return Max(Min(Round((x - m) * inverse), Splat<V>(high)), Splat<V>(low));
}

/// What the nearest codes in [low, high] give at scale d and minimum m.
template <class V, int N>
Sums<V> Evaluate(const Groups<N>& g, int lane, V d, V m, float low, float high) {
  Sums<V> s;
  const V inverse = InverseOrZero(d);
  for (int i = 0; i < N; ++i) {
    const V x = Load<V>(&g.x[i][lane]);
    const V w = Load<V>(&g.w[i][lane]);
    const V q = CodeOf(x, inverse, m, low, high);
    const V e = x - (d * q + m);
    const V wq = w * q;
    s.error = s.error + w * e * e;
    s.q = s.q + wq;
    s.qq = s.qq + wq * q;
    s.qx = s.qx + wq * x;
  }
  return s;
}

/// The best so far of one group, by the error of what is stored.
template <class V>
struct Best {
  V error = Splat<V>(3e38F);
  V d{}, m{};
  Sums<V> sums;

  void Offer(V new_d, V new_m, const Sums<V>& s) {
    const auto better = s.error < error;
    error = better ? s.error : error;
    d = better ? new_d : d;
    m = better ? new_m : m;
    sums.error = error;
    sums.q = better ? s.q : sums.q;
    sums.qq = better ? s.qq : sums.qq;
    sums.qx = better ? s.qx : sums.qx;
  }
};

/// The element of largest magnitude, with its sign.
template <class V, int N>
V Extreme(const Groups<N>& g, int lane) {
  V extreme{};
  for (int i = 0; i < N; ++i) {
    const V x = Load<V>(&g.x[i][lane]);
    extreme = Abs(x) > Abs(extreme) ? x : extreme;
  }
  return extreme;
}

template <class V>
struct Fixed {
  V w{}, wx{}, smallest{}, largest{};
};
/// What does not depend on codes. The range includes zero where `with_zero`.
template <class V, int N>
Fixed<V> FixedSums(const Groups<N>& g, int lane, bool with_zero) {
  Fixed<V> f;
  if (!with_zero) f.smallest = f.largest = Load<V>(&g.x[0][lane]);
  for (int i = 0; i < N; ++i) {
    const V x = Load<V>(&g.x[i][lane]);
    const V w = Load<V>(&g.w[i][lane]);
    f.w = f.w + w;
    f.wx = f.wx + w * x;
    f.smallest = Min(f.smallest, x);
    f.largest = Max(f.largest, x);
  }
  return f;
}

/// Scale and minimum that fit given codes best.
template <class V>
struct Line {
  V d{}, m{};
};
template <class V>
Line<V> SolveLine(const Fixed<V>& f, const Sums<V>& s, bool minimum_at_most_zero) {
  const V one = Splat<V>(1.0F);
  const V determinant = f.w * s.qq - s.q * s.q;
  const auto solvable = determinant > 0.0F;
  const V safe = solvable ? determinant : one;
  Line<V> line;
  line.d = solvable ? (f.w * s.qx - f.wx * s.q) / safe : V{};
  line.m = solvable ? (s.qq * f.wx - s.q * s.qx) / safe : V{};
  if (minimum_at_most_zero) {
    const auto bound = line.m > 0.0F;
    const V alone = s.qx / (s.qq > 0.0F ? s.qq : one);
    line.d = bound ? alone : line.d;
    line.m = bound ? V{} : line.m;
  }
  return line;
}

/// A line of real numbers for each lane, before its parts are stored: for every candidate range the
/// codes, and the line that fits those best.
template <class V, int N>
Line<V> FitLine(const Groups<N>& g, int lane, const Fixed<V>& f, float high, bool signed_minimum) {
  constexpr int kSteps = 10;     // To each side.
  constexpr float kStep = 0.1F;  // In codes: ranges that end up to one code off the extremes.
  const V range = f.largest - f.smallest;
  Line<V> best;
  best.m = f.smallest;
  V best_gain = Splat<V>(-1.0F);
  for (int step = -kSteps; step <= kSteps; ++step) {
    const V d = range / Splat<V>(high + kStep * static_cast<float>(step));
    const Sums<V> s = Evaluate<V, N>(g, lane, d, f.smallest, 0.0F, high);
    const Line<V> line = SolveLine(f, s, !signed_minimum);
    // The error is the sum of w x^2 less this.
    const V gain = (line.d * s.qx + line.m * f.wx) * 2.0F -
                   (line.d * (line.d * s.qq + line.m * s.q * 2.0F) + line.m * line.m * f.w);
    const auto better = (gain > best_gain) & (line.d > 0.0F);
    best_gain = better ? gain : best_gain;
    best.d = better ? line.d : best.d;
    best.m = better ? line.m : best.m;
  }
  return best;
}

/// One f16 scale a group, codes low..high, low = -high or -(high + 1).
template <class V, int N>
void FitScales(const Groups<N>& g, float low, float high, float* scales) {
  // Candidates let the extreme lie up to one code off an end of the codes: 19 of them, finely
  // spaced where codes are few.
  constexpr int kSteps = 9;
  constexpr float kStep = 0.1F;
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const V extreme = Extreme<V, N>(g, lane);
    Best<V> best;
    const auto offer = [&](V wanted) {
      const V d = ToHalfPrecision(wanted);
      best.Offer(d, V{}, Evaluate<V, N>(g, lane, d, V{}, low, high));
    };
    for (int step = -kSteps; step <= kSteps; ++step)
      offer(extreme / Splat<V>(low + kStep * static_cast<float>(step)));
    offer(extreme / Splat<V>(high));
    for (int i = 0; i < 2; ++i)
      offer(best.sums.qx / (best.sums.qq > 0.0F ? best.sums.qq : Splat<V>(1.0F)));
    Store(scales + lane, best.d);
  }
}

/// An f16 scale and an f16 minimum a group, codes 0..high.
template <class V, int N>
void FitLines(const Groups<N>& g, float high, float* scales, float* minima) {
  for (int lane = 0; lane < kLanes; lane += kWidth<V>) {
    const Fixed<V> f = FixedSums<V, N>(g, lane, false);
    Best<V> best;
    const auto offer = [&](V wanted_d, V wanted_m) {
      const V limit = Splat<V>(kMaxHalf);
      const V d = ToHalfPrecision(Min(wanted_d, limit));
      const V m = ToHalfPrecision(Max(Min(wanted_m, limit), -limit));
      best.Offer(d, m, Evaluate<V, N>(g, lane, d, m, 0.0F, high));
    };
    offer((f.largest - f.smallest) / Splat<V>(high), f.smallest);
    const Line<V> line = FitLine<V, N>(g, lane, f, high, true);
    offer(line.d, line.m);
    for (int i = 0; i < 2; ++i) {
      const Line<V> refit = SolveLine(f, best.sums, false);
      offer(Max(refit.d, V{}), refit.m);
    }
    Store(scales + lane, best.d);
    Store(minima + lane, best.m);
  }
}

}  // namespace
}  // namespace tessera::tensor
