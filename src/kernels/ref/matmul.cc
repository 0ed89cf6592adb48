// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {
namespace {

/// Block b of activation row m.
struct Activation {
  const int8_t* codes;
  float scale;
  float scaled_sum;
};

Activation At(const QuantisedRows& q, int64_t b, int64_t m) {
  const int64_t i = b * q.rows + m;
  return {q.codes + i * kBlock, q.scales[i], q.scaled_sums[i]};
}

/// Inputs [begin, end) of row j of a group of a float format.
template <DType dtype>
float FloatChain(const std::byte* group, int64_t j, const float* x, int64_t begin, int64_t end) {
  float s = 0;
  for (int64_t k = begin; k < end; ++k) {
    float w;
    if constexpr (dtype == DType::kF32) {
      std::memcpy(&w, group + (k * kGroupRows + j) * 4, 4);
    } else {
      w = HalfAt(group, k * kGroupRows + j);
    }
    s = std::fma(w, x[k], s);
  }
  return s;
}

/// Inputs [begin, end) of row j of a BF16 group, activation row m.
float BFloat16Chain(const MatmulArgs& a, const std::byte* group, int64_t j, int64_t m,
                    int64_t begin, int64_t end) {
  const auto weight = [&](int64_t k) {
    return BFloat16ToFloat(LoadU16(group + ((k / 2 * kGroupRows + j) * 2 + k % 2) * 2));
  };
  const auto input = [&](int64_t k) {
    return BFloat16ToFloat(a.b.values[(k / kBlock * a.b.rows + m) * kBlock + k % kBlock]);
  };
  float s = 0;
  for (int64_t k = begin; k < end; k += 2) {
    s = FlushedFma(weight(k + 1), input(k + 1), s);
    s = FlushedFma(weight(k), input(k), s);
  }
  return s;
}

/// Blocks [begin, end) of row j, activation row m.
template <DType dtype>
float SimpleChain(const MatmulArgs& a, const std::byte* group, int64_t j, int64_t m, int64_t begin,
                  int64_t end) {
  using F = Format<dtype>;
  float s = 0;
  for (int64_t b = begin; b < end; ++b) {
    const BlockParts parts = PartsOf<F>(group, a.k / kBlock, b);
    const Activation x = At(a.q, b, m);
    int32_t dot = 0;
    for (int t = 0; t < kBlock; ++t) dot += Code<F>(parts, j, t) * x.codes[t];
    s = std::fma(static_cast<float>(dot), HalfAt(parts.d, j) * x.scale, s);
    if constexpr (F::kHasMin) s = std::fma(HalfAt(parts.m, j), x.scaled_sum, s);
  }
  return s;
}

/// The same for K-quants.
template <DType dtype>
float SuperChain(const MatmulArgs& a, const std::byte* group, int64_t j, int64_t m, int64_t begin,
                 int64_t end) {
  float s = 0;
  for (int64_t b = begin; b < end; ++b) {
    const SuperParts parts = SuperPartsOf<dtype>(group, b / 8);
    const int i = static_cast<int>(b % 8);
    const Activation x = At(a.q, b, m);
    int32_t dot[2] = {0, 0};
    constexpr int kZero = dtype == DType::kQ6_K ? 32 : 0;
    for (int t = 0; t < kBlock; ++t) {
      dot[t / 16] += (SuperCode<dtype>(parts, i, j, t) - kZero) * x.codes[t];
    }
    if constexpr (dtype == DType::kQ6_K) {
      const int32_t scaled = static_cast<int8_t>(parts.scales[i * 16 + 2 * j]) * dot[0] +
                             static_cast<int8_t>(parts.scales[i * 16 + 2 * j + 1]) * dot[1];
      s = std::fma(static_cast<float>(scaled), HalfAt(parts.d, j) * x.scale, s);
    } else {
      int scale = 0, min = 0;
      ScaleMin(parts.scales, j, i, &scale, &min);
      const float d = HalfAt(parts.d, j) * static_cast<float>(scale);
      const float minimum = -(HalfAt(parts.dmin, j) * static_cast<float>(min));
      s = std::fma(static_cast<float>(dot[0] + dot[1]), d * x.scale, s);
      s = std::fma(minimum, x.scaled_sum, s);
    }
  }
  return s;
}

template <DType dtype>
float Chain(const MatmulArgs& a, const std::byte* group, int64_t j, int64_t m, int64_t begin,
            int64_t end) {
  if constexpr (dtype == DType::kF32 || dtype == DType::kF16) {
    return FloatChain<dtype>(group, j, a.x + m * a.ldx, begin, end);
  } else if constexpr (dtype == DType::kBF16) {
    return BFloat16Chain(a, group, j, m, begin, end);
  } else if constexpr (SuperBytes(dtype) != 0) {
    return SuperChain<dtype>(a, group, j, m, begin / kBlock, end / kBlock);
  } else {
    return SimpleChain<dtype>(a, group, j, m, begin / kBlock, end / kBlock);
  }
}

}  // namespace

template <DType dtype>
void Matmul(const MatmulArgs& a) {
  const int64_t group_bytes = GroupBytes(dtype, a.k);
  const int64_t segment = a.k / a.segments;
  for (int64_t g = a.group_begin; g < a.group_end; ++g) {
    const std::byte* group = a.weights + g * group_bytes;
    for (int64_t j = 0; j < kGroupRows && g * kGroupRows + j < a.n; ++j) {
      for (int64_t m = 0; m < a.rows; ++m) {
        float total = Chain<dtype>(a, group, j, m, 0, segment);
        for (int64_t i = 1; i < a.segments; ++i) {
          const float next = Chain<dtype>(a, group, j, m, i * segment, (i + 1) * segment);
          total = dtype == DType::kBF16 ? FlushedSum(total, next) : total + next;
        }
        a.out[m * a.ld_out + g * kGroupRows + j] = total;
      }
    }
  }
}

template void Matmul<DType::kF32>(const MatmulArgs&);
template void Matmul<DType::kF16>(const MatmulArgs&);
template void Matmul<DType::kBF16>(const MatmulArgs&);
template void Matmul<DType::kQ4_0>(const MatmulArgs&);
template void Matmul<DType::kQ4_1>(const MatmulArgs&);
template void Matmul<DType::kQ5_0>(const MatmulArgs&);
template void Matmul<DType::kQ5_1>(const MatmulArgs&);
template void Matmul<DType::kQ8_0>(const MatmulArgs&);
template void Matmul<DType::kQ4_K>(const MatmulArgs&);
template void Matmul<DType::kQ5_K>(const MatmulArgs&);
template void Matmul<DType::kQ6_K>(const MatmulArgs&);

}  // namespace tessera::kernels::ref
