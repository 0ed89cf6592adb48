// SPDX-License-Identifier: Apache-2.0
//
// The reference kernels against double arithmetic. Tolerances come from the operands: a chain of n
// roundings in float32 errs by at most n * eps * sum |terms|, and far less in practice.
#include <gtest/gtest.h>

#include "kernels/cts/data.h"
#include "kernels/cts/prepare.h"
#include "kernels/ref/ref.h"

namespace tessera::kernels {
namespace {

using tensor::DType;

struct Problem {
  DType dtype;
  int64_t n, k, rows, segments;
};

/// Runs the reference on random data and compares with sum of w * x~ in double, where x~ is what
/// the kernel's activations stand for.
template <DType dtype>
void CheckMatmul(int64_t n, int64_t k, int64_t rows, int64_t segments) {
  Random random(static_cast<uint64_t>(k * 31 + n));
  const auto source = cts::RandomWeights(dtype, n, k, random);
  cts::Buffer packed(PackedBytes(dtype, n, k));
  PackRows(dtype, n, k, source.data(), cts::SourceRowBytes(dtype, k), nullptr, 0, GroupCount(n),
           packed.data());
  std::vector<float> x = cts::RandomFloats(random, rows * k);
  cts::Buffer prepared(cts::PreparedBytes(dtype, rows, k));
  MatmulArgs args{.weights = packed.data(), .n = n, .k = k, .segments = segments};
  cts::PrepareRows(dtype, x.data(), 0, rows, prepared.data(), &args);
  for (int64_t i = 0; i < rows * k; ++i) {  // Replace x by what the codes stand for.
    float& value = x[static_cast<size_t>(i)];
    const int64_t at = (i % k) / 32 * rows + i / k;
    if (UsesQuantisedRows(dtype))
      value = args.q.scales[at] * static_cast<float>(args.q.codes[at * 32 + i % k % 32]);
    if (UsesBFloat16Rows(dtype)) value = ref::BFloat16ToFloat(args.b.values[at * 32 + i % k % 32]);
  }
  std::vector<float> out(static_cast<size_t>(rows * n), NAN);
  args.out = out.data();
  args.ld_out = n;
  args.group_end = GroupCount(n);
  ref::Matmul<dtype>(args);
  std::vector<float> w(static_cast<size_t>(k));
  for (int64_t i = 0; i < n; ++i) {
    UnpackRow(dtype, k, packed.data(), i, w.data());
    for (int64_t m = 0; m < rows; ++m) {
      double sum = 0, norm = 0;
      for (int64_t c = 0; c < k; ++c) {
        const double term = double{w[static_cast<size_t>(c)]} * x[static_cast<size_t>(m * k + c)];
        sum += term;
        norm += term * term;
      }
      // Random-walk bound: rounding errors of sqrt(k) steps of the root-mean-square size.
      const double tolerance = 8 * 0x1p-24 * std::sqrt(static_cast<double>(k)) *
                                   std::max(std::sqrt(norm), std::fabs(sum)) +
                               1e-30;
      ASSERT_NEAR(out[static_cast<size_t>(m * n + i)], sum, tolerance)
          << tensor::Name(dtype) << " n=" << n << " k=" << k << " row " << m << " column " << i;
    }
  }
}

template <DType dtype>
void CheckShapes() {
  for (const int64_t k : {7, 8, 32, 64, 96, 192, 256, 576, 1536}) {
    if (!CanPack(dtype, k)) continue;
    CheckMatmul<dtype>(13, k, 3, 1);
    if (k % 1024 == 0 || k == 1536) CheckMatmul<dtype>(8, k, 2, k / 256);
  }
}

TEST(ReferenceMatmul, AgreesWithDoubleForEveryFormat) {
  CheckShapes<DType::kF32>();
  CheckShapes<DType::kF16>();
  CheckShapes<DType::kBF16>();
  CheckShapes<DType::kQ4_0>();
  CheckShapes<DType::kQ4_1>();
  CheckShapes<DType::kQ5_0>();
  CheckShapes<DType::kQ5_1>();
  CheckShapes<DType::kQ8_0>();
  CheckShapes<DType::kQ4_K>();
  CheckShapes<DType::kQ5_K>();
  CheckShapes<DType::kQ6_K>();
}

}  // namespace
}  // namespace tessera::kernels
