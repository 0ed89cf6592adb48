// SPDX-License-Identifier: Apache-2.0
//
// Conformance of every matmul in the catalog with the reference: equal bytes, for edges and tails,
// and batch invariance: a row alone equals the row within a batch, groups in any split.
#include <gtest/gtest.h>

#include "kernels/catalog.h"
#include "kernels/cts/data.h"
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
        quantised(UsesQuantisedRows(dtype) ? QuantisedRowsBytes(rows, k) : 0) {
    Random random(seed);
    const auto source = cts::RandomWeights(dtype, n, k, random);
    PackRows(dtype, n, k, source.data(), cts::SourceRowBytes(dtype, k), nullptr, 0, GroupCount(n),
             packed.data());
    x = cts::RandomFloats(random, rows * k);
    if (rows > 1) std::fill(x.begin(), x.begin() + k, 0.0f);  // One row of zeros.
    if (UsesQuantisedRows(dtype)) q = QuantisedPart(quantised, 0, rows);
  }

  /// Rows [begin, end) of x, quantised on their own.
  QuantisedRows QuantisedPart(cts::Buffer& buffer, int64_t begin, int64_t end) const {
    const QuantisedRows out = MakeQuantisedRows(buffer.data(), end - begin, k);
    const Entry* quantise = Find(Op::kQuantise, std::nullopt, RowsClass::kAny, Isa{});
    std::get<QuantiseFn>(quantise->fn)(
        {.x = x.data() + begin * k, .ldx = k, .k = k, .row_end = end - begin, .out = out});
    return out;
  }

  MatmulArgs Args(int64_t segments, float* out) const {
    return {.weights = packed.data(),
            .n = n,
            .k = k,
            .segments = segments,
            .q = q,
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
  cts::Buffer packed, quantised;
  std::vector<float> x;
  QuantisedRows q;
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
  cts::Buffer buffer(UsesQuantisedRows(c.dtype) ? QuantisedRowsBytes(1, k) : 0);
  for (int64_t m = 0; m < rows; ++m) {
    MatmulArgs args = c.Args(segments, parts.data() + m * (n + 3));
    if (UsesQuantisedRows(c.dtype)) args.q = c.QuantisedPart(buffer, m, m + 1);
    args.x = c.x.data() + m * k;
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

}  // namespace
}  // namespace tessera::kernels
