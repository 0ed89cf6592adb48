// SPDX-License-Identifier: Apache-2.0
//
// Conformance of every matmul in the catalog with the reference: equal bytes, for edges and tails,
// and batch invariance: a row alone equals the row within a batch, groups in any split.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/catalog.h"
#include "kernels/cts/data.h"
#include "kernels/cts/prepare.h"
#include "support/scale.h"

namespace tessera::kernels {
namespace {

using tensor::DType;
using ::tessera::testing::Scaled;
using Sizes = std::vector<int64_t>;

/// Weights and activations of one shape, ready to run.
struct Case {
  Case(DType dtype_in, int64_t n_in, int64_t k_in, int64_t rows_in, uint64_t seed)
      : dtype(dtype_in),
        n(n_in),
        k(k_in),
        rows(rows_in),
        packed(PackedBytes(dtype, n, k)),
        prepared(cts::PreparedBytes(dtype, rows, k)) {
    Random random(seed);
    const auto source = cts::RandomWeights(dtype, n, k, random);
    PackRows(dtype, n, k, source.data(), cts::SourceRowBytes(dtype, k), nullptr, 0, GroupCount(n),
             packed.data());
    x = cts::RandomFloats(random, rows * k);
    if (rows > 1) std::fill(x.begin(), x.begin() + k, 0.0f);  // One row of zeros.
    Prepare();
  }

  /// After x has changed.
  void Prepare() {
    MatmulArgs args{.k = k};
    cts::PrepareRows(dtype, x.data(), 0, rows, prepared.data(), &args);
    q = args.q, b = args.b;
  }

  MatmulArgs Args(int64_t segments, float* out) const {
    return {.weights = packed.data(),
            .n = n,
            .k = k,
            .segments = segments,
            .q = q,
            .b = b,
            .x = x.data(),
            .ldx = k,
            .rows = rows,
            .out = out,
            .ld_out = n + 3,
            .group_begin = 0,
            .group_end = GroupCount(n)};
  }

  DType dtype;
  int64_t n, k, rows;
  cts::Buffer packed, prepared;
  std::vector<float> x;
  QuantisedRows q;
  BFloat16Rows b;
};

std::vector<float> Canvas(const Case& c) {
  return std::vector<float>(static_cast<size_t>(c.rows * (c.n + 3)), -77.25f);
}

/// Index of the first differing element, or -1.
int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

void ExpectEqual(const Entry& entry, const Case& c, int64_t segments,
                 const std::vector<float>& expected, const std::vector<float>& actual,
                 const char* what) {
  const int64_t at = FirstDifference(expected, actual);
  ASSERT_EQ(at, -1) << entry.name << " " << what << " n=" << c.n << " k=" << c.k
                    << " rows=" << c.rows << " segments=" << segments << ": row " << at / (c.n + 3)
                    << " column " << at % (c.n + 3) << " is " << actual[static_cast<size_t>(at)]
                    << ", expected " << expected[static_cast<size_t>(at)];
}

MatmulFn Reference(DType dtype) {
  return std::get<MatmulFn>(FindMatmul(dtype, 2, Isa{})->fn);
}

void CompareWithReference(const Entry& entry, int64_t n, int64_t k, int64_t rows,
                          int64_t segments) {
  const auto seed = static_cast<uint64_t>(n * 7919 + k * 31 + rows);
  const Case c(*entry.weights, n, k, rows, seed);
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::vector<float> expected = Canvas(c), actual = Canvas(c);
  Reference(c.dtype)(c.Args(segments, expected.data()));
  const auto run = std::get<MatmulFn>(entry.fn);
  run(c.Args(segments, actual.data()));
  ExpectEqual(entry, c, segments, expected, actual, "against the reference");
}

/// Each row alone, and the groups in two calls, must give the bytes of the whole call.
void CompareWithParts(const Entry& entry, int64_t n, int64_t k, int64_t rows, int64_t segments) {
  const Case c(*entry.weights, n, k, rows, 99);
  const auto run = std::get<MatmulFn>(entry.fn);
  std::vector<float> whole = Canvas(c), parts = Canvas(c), split = Canvas(c);
  run(c.Args(segments, whole.data()));
  cts::Buffer buffer(cts::PreparedBytes(c.dtype, 1, k));
  for (int64_t m = 0; m < rows; ++m) {
    MatmulArgs args = c.Args(segments, parts.data() + m * (n + 3));
    cts::PrepareRows(c.dtype, c.x.data(), m, m + 1, buffer.data(), &args);
    args.rows = 1;
    run(args);
  }
  ExpectEqual(entry, c, segments, whole, parts, "row by row");
  MatmulArgs args = c.Args(segments, split.data());
  args.group_end = GroupCount(n) / 3;
  run(args);
  args.group_begin = args.group_end;
  args.group_end = GroupCount(n);
  run(args);
  ExpectEqual(entry, c, segments, whole, split, "in two shares");
}

/// Vector matmuls that this machine runs. The rest is named in the log.
std::vector<const Entry*> Runnable() {
  static const Isa machine = ReadIsa();
  std::vector<const Entry*> entries;
  for (const Entry& entry : Catalog()) {
    if (entry.op != Op::kMatmul || entry.isa == KernelIsa::kRef) continue;
    if (Runs(entry.isa, machine)) {
      entries.push_back(&entry);
    } else {
      std::printf("skipped: %s needs %s\n", std::string(entry.name).c_str(),
                  std::string(Name(entry.isa)).c_str());
    }
  }
  return entries;
}

TEST(MatmulConformance, EqualsTheReferenceBitForBitForAnyRows) {
  for (const Entry* entry : Runnable()) {
    const bool super = !CanPack(*entry->weights, 32);
    for (int64_t rows = 1; rows <= 17; ++rows) {
      CompareWithReference(*entry, 21, super ? 256 : 96, rows, 1);
    }
    for (const int64_t rows : Scaled<Sizes>({32, 33, 63, 64, 65, 100, 512}, {33, 65})) {
      CompareWithReference(*entry, 24, super ? 256 : 64, rows, 1);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulConformance, EqualsTheReferenceBitForBitForAnyShape) {
  for (const Entry* entry : Runnable()) {
    for (const int64_t k : Scaled<Sizes>({7, 8, 32, 64, 96, 160, 192, 256, 512, 576, 768, 1536},
                                         {7, 8, 32, 96, 256, 512})) {
      if (!CanPack(*entry->weights, k)) continue;
      for (const int64_t n : {1, 7, 8, 9, 16, 17, 40}) {
        for (const int64_t rows : {1, 5}) CompareWithReference(*entry, n, k, rows, 1);
      }
    }
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulConformance, SegmentsAddInOrder) {
  for (const Entry* entry : Runnable()) {
    const int64_t unit = CanPack(*entry->weights, 32) ? 96 : 256;
    for (const int64_t segments : Scaled<Sizes>({2, 3, 8}, {3})) {
      for (const int64_t rows : Scaled<Sizes>({1, 6, 70}, {1, 6})) {
        CompareWithReference(*entry, 19, unit * segments, rows, segments);
      }
    }
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulConformance, ARowDependsOnNothingBesideIt) {
  for (const Entry* entry : Runnable()) {
    for (const int64_t rows : Scaled<Sizes>({2, 7, 16, 65}, {2, 7})) {
      CompareWithParts(*entry, 53, 768, rows, 1);
      CompareWithParts(*entry, 53, 768, rows, 3);
    }
    if (HasFatalFailure()) return;
  }
}

std::vector<const Entry*> RunnableBFloat16() {
  std::vector<const Entry*> entries = Runnable();
  std::erase_if(entries, [](const Entry* entry) { return entry->weights != DType::kBF16; });
  return entries;
}

TEST(MatmulBFloat16, TakesAnyNumberOfInputs) {
  for (const Entry* entry : RunnableBFloat16()) {
    for (int64_t k = 1; k <= 70; ++k)
      for (const int64_t rows : {1, 3, 17}) CompareWithReference(*entry, 17, k, rows, 1);
    for (const int64_t k : {127, 129, 255, 257, 511, 513, 1001})
      for (const int64_t rows : {2, 13, 61}) CompareWithReference(*entry, 33, k, rows, 1);
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulBFloat16, TakesAnyNumberOfRows) {
  for (const Entry* entry : RunnableBFloat16()) {
    for (int64_t rows = 1; rows <= Scaled<int64_t>(140, 30); ++rows)
      CompareWithReference(*entry, 41, 67, rows, 1);
    for (const int64_t rows : Scaled<Sizes>({255, 256, 257, 511, 512}, {257}))
      CompareWithReference(*entry, 41, 385, rows, 1);
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulBFloat16, FlushesSubnormalsAsTheReferenceDoes) {
  constexpr int64_t kRows = 14, kN = 40, kK = 96;
  for (const Entry* entry : RunnableBFloat16()) {
    Case c(DType::kBF16, kN, kK, kRows, 5);
    // Numbers around the square root of 2^-126, some below 2^-126, few weights that are not zero:
    // products, sums and operands are subnormal now and then.
    Random random(6);
    const auto small = [&] {
      const auto exponent = static_cast<int>(random.Uniform() * 10) - 69;
      const auto value = static_cast<float>(std::ldexp(random.Normal(), exponent));
      return random.Uniform() < 0.1 ? value * 0x1p-62f : value;
    };
    for (int64_t i = 0; i < c.packed.size() / 2; ++i)
      c.packed.as<uint16_t>()[i] =
          random.Uniform() < 0.95 ? uint16_t{0} : tensor::FloatToBFloat16(small());
    for (float& x : c.x) x = small();
    c.Prepare();
    for (const int64_t segments : {1, 3}) {
      std::vector<float> expected = Canvas(c), actual = Canvas(c);
      Reference(c.dtype)(c.Args(segments, expected.data()));
      std::get<MatmulFn>(entry->fn)(c.Args(segments, actual.data()));
      ExpectEqual(*entry, c, segments, expected, actual, "with subnormal numbers");
      // And the rule shows: without it some sums would be subnormal.
      EXPECT_TRUE(std::ranges::any_of(expected, [](float v) { return v == 0; }));
      EXPECT_TRUE(std::ranges::none_of(expected,
                                       [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; }));
    }
    if (HasFatalFailure()) return;
  }
}

TEST(MatmulBFloat16, LeavesTheThreadsRoundingModeAsItWas) {
  constexpr float kSubnormal = 0x1p-130f;
  for (const Entry* entry : RunnableBFloat16()) {
    const Case c(DType::kBF16, 16, 64, 2, 1);
    std::vector<float> out = Canvas(c);
    std::get<MatmulFn>(entry->fn)(c.Args(1, out.data()));
    volatile float x = kSubnormal;
    EXPECT_EQ(x * 0.5f, 0x1p-131f) << entry->name;
  }
}

TEST(MatmulBFloat16, NonFiniteNumbersStayInTheirRow) {
  constexpr int64_t kRows = 15, kN = 24, kK = 64;
  for (const Entry* entry : RunnableBFloat16()) {
    Case c(DType::kBF16, kN, kK, kRows, 8);
    std::vector<float> expected = Canvas(c), actual = Canvas(c);
    Reference(c.dtype)(c.Args(1, expected.data()));
    c.x[3 * kK + 7] = std::numeric_limits<float>::infinity();
    c.x[9 * kK + 1] = std::nanf("");
    c.Prepare();
    std::get<MatmulFn>(entry->fn)(c.Args(1, actual.data()));
    for (int64_t m = 0; m < kRows; ++m)
      for (int64_t i = 0; i < kN; ++i) {
        const auto at = static_cast<size_t>(m * (kN + 3) + i);
        if (m == 3 || m == 9) {
          EXPECT_FALSE(std::isfinite(actual[at])) << entry->name << " row " << m;
        } else {
          EXPECT_EQ(actual[at], expected[at]) << entry->name << " row " << m;
        }
      }
  }
}

}  // namespace
}  // namespace tessera::kernels
