// SPDX-License-Identifier: Apache-2.0
//
// Row kernels: each vector kernel equals the reference bit for bit (tails, odd rows, in place), and
// the reference agrees with double.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>

#include "kernels/catalog.h"
#include "kernels/cts/data.h"

namespace tessera::kernels {
namespace {

template <class Fn>
Fn Best(Op op) {
  static const Isa machine = ReadIsa();
  const Entry* entry = Find(op, std::nullopt, RowsClass::kAny, machine);
  if (entry->isa == KernelIsa::kRef) {
    std::printf("skipped: %s has only its reference here\n", std::string(entry->name).c_str());
  }
  return std::get<Fn>(entry->fn);
}
template <class Fn>
Fn Reference(Op op) {
  return std::get<Fn>(Find(op, std::nullopt, RowsClass::kAny, Isa{})->fn);
}

/// Runs the reference and every kernel that this machine can run, and compares all bytes of the
/// outputs.
template <class Fn>
void ExpectSameBytes(Op op, int64_t bytes, const std::function<void(Fn, std::byte*)>& run) {
  static const Isa machine = ReadIsa();
  cts::Buffer expected(bytes);
  run(Reference<Fn>(op), expected.data());
  for (const Entry& entry : Catalog()) {
    if (entry.op != op || entry.isa == KernelIsa::kRef || !Runs(entry.isa, machine)) continue;
    cts::Buffer actual(bytes);
    run(std::get<Fn>(entry.fn), actual.data());
    for (int64_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(static_cast<int>(actual.data()[i]), static_cast<int>(expected.data()[i]))
          << entry.name << " byte " << i << " of " << bytes;
    }
  }
}

float* Floats(std::byte* bytes) {
  return reinterpret_cast<float*>(bytes);
}

std::vector<float> Inputs(Random& random, int64_t count) {
  std::vector<float> x = cts::RandomFloats(random, count, 3);
  for (size_t i = 0; i < x.size(); i += 37) x[i] = 0;
  for (size_t i = 5; i < x.size(); i += 91) x[i] *= 1e-40f;
  for (size_t i = 9; i < x.size(); i += 113) x[i] *= 1e3f;
  return x;
}

TEST(Quantise, EqualsTheReferenceForAllRowsAndBlocks) {
  Random random(1);
  for (const int64_t rows : {1, 2, 3, 8, 33}) {
    for (const int64_t k : {32, 64, 576, 1536}) {
      std::vector<float> x = Inputs(random, rows * (k + 5));
      std::fill(x.begin(), x.begin() + 32, 1e-35f);  // Below the smallest amax.
      ExpectSameBytes<QuantiseFn>(
          Op::kQuantise, QuantisedRowsBytes(rows, k), [&](QuantiseFn fn, std::byte* out) {
            const QuantisedRows q = MakeQuantisedRows(out, rows, k);
            fn({.x = x.data(), .ldx = k + 5, .k = k, .row_begin = 0, .row_end = rows, .out = q});
          });
    }
  }
}

TEST(Quantise, StandsForTheInputWithinHalfAStep) {
  Random random(2);
  constexpr int64_t kK = 256;
  const std::vector<float> x = cts::RandomFloats(random, kK, 5);
  cts::Buffer buffer(QuantisedRowsBytes(1, kK));
  const QuantisedRows q = MakeQuantisedRows(buffer.data(), 1, kK);
  Best<QuantiseFn>(Op::kQuantise)({.x = x.data(), .ldx = kK, .k = kK, .row_end = 1, .out = q});
  for (int64_t i = 0; i < kK; ++i) {
    const float step = q.scales[i / 32];
    EXPECT_NEAR(x[static_cast<size_t>(i)], step * static_cast<float>(q.codes[i]), 0.5001f * step);
    EXPECT_LE(std::abs(q.codes[i]), 127);
  }
  for (int64_t b = 0; b < kK / 32; ++b) {
    int32_t sum = 0;
    for (int64_t i = 0; i < 32; ++i) sum += q.codes[b * 32 + i];
    EXPECT_EQ(q.sums[b], sum);
    EXPECT_EQ(q.half_sums[2 * b] + q.half_sums[2 * b + 1], sum);
    EXPECT_EQ(q.scaled_sums[b], q.scales[b] * static_cast<float>(sum));
  }
}

TEST(Quantise, NonFiniteInputsGiveCodesInRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kInf, -kInf, std::nanf("")}) {
    std::vector<float> x(32, 1.0f);
    x[7] = bad;
    for (const QuantiseFn fn :
         {Reference<QuantiseFn>(Op::kQuantise), Best<QuantiseFn>(Op::kQuantise)}) {
      cts::Buffer buffer(QuantisedRowsBytes(1, 32));
      const QuantisedRows q = MakeQuantisedRows(buffer.data(), 1, 32);
      fn({.x = x.data(), .ldx = 32, .k = 32, .row_end = 1, .out = q});
      for (int i = 0; i < 32; ++i) EXPECT_GE(q.codes[i], -127);
    }
  }
}

TEST(RmsNorm, EqualsTheReferenceForAnyLength) {
  Random random(3);
  for (const int64_t k : {1, 3, 8, 31, 32, 33, 64, 100, 576, 2048}) {
    const std::vector<float> x = Inputs(random, 4 * k), w = cts::RandomFloats(random, k);
    ExpectSameBytes<RmsNormFn>(Op::kRmsNorm, 4 * k * 4, [&](RmsNormFn fn, std::byte* out) {
      fn({.x = x.data(),
          .ldx = k,
          .weight = w.data(),
          .eps = 1e-5f,
          .k = k,
          .row_end = 4,
          .out = Floats(out),
          .ld_out = k});
    });
  }
}

TEST(RmsNorm, AgreesWithDouble) {
  Random random(4);
  constexpr int64_t kK = 576;
  const std::vector<float> x = cts::RandomFloats(random, kK), w = cts::RandomFloats(random, kK);
  std::vector<float> out(kK);
  Best<RmsNormFn>(Op::kRmsNorm)({.x = x.data(),
                                 .ldx = kK,
                                 .weight = w.data(),
                                 .eps = 1e-5f,
                                 .k = kK,
                                 .row_end = 1,
                                 .out = out.data(),
                                 .ld_out = kK});
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  const double r = 1 / std::sqrt(sum / kK + 1e-5);
  for (size_t i = 0; i < kK; ++i) {
    EXPECT_NEAR(out[i], x[i] * r * w[i], 1e-6 * std::fabs(x[i] * r * w[i]) + 1e-12);
  }
}

TEST(RmsNormQuantise, IsTheNormFollowedByQuantise) {
  Random random(5);
  for (const auto& [rows, k] : {std::pair<int64_t, int64_t>{3, 32}, {3, 1536}, {33, 576}}) {
    const std::vector<float> x = Inputs(random, rows * k), w = cts::RandomFloats(random, k);
    const auto fused = [&](RmsNormFn fn, std::byte* out) {
      fn({.x = x.data(),
          .ldx = k,
          .weight = w.data(),
          .eps = 1e-6f,
          .k = k,
          .row_end = rows,
          .q = MakeQuantisedRows(out, rows, k)});
    };
    const int64_t bytes = QuantisedRowsBytes(rows, k);
    ExpectSameBytes<RmsNormFn>(Op::kRmsNormQuantise, bytes, fused);
    std::vector<float> y(x.size());
    Best<RmsNormFn>(Op::kRmsNorm)({.x = x.data(),
                                   .ldx = k,
                                   .weight = w.data(),
                                   .eps = 1e-6f,
                                   .k = k,
                                   .row_end = rows,
                                   .out = y.data(),
                                   .ld_out = k});
    cts::Buffer separate(bytes), together(bytes);
    Best<QuantiseFn>(Op::kQuantise)({.x = y.data(),
                                     .ldx = k,
                                     .k = k,
                                     .row_end = rows,
                                     .out = MakeQuantisedRows(separate.data(), rows, k)});
    fused(Best<RmsNormFn>(Op::kRmsNormQuantise), together.data());
    EXPECT_EQ(std::memcmp(separate.data(), together.data(), static_cast<size_t>(bytes)), 0);
  }
}

TEST(Round, EqualsTheReferenceAndTheConversionOfTensorForAnyLength) {
  Random random(7);
  for (const int64_t rows : {1, 2, 3, 9}) {
    for (const int64_t k : {1, 7, 31, 32, 33, 64, 576, 1001}) {
      std::vector<float> x = Inputs(random, rows * (k + 5));
      x[0] = std::bit_cast<float>(0x3f808000u);             // A tie: to even, down,
      x.back() = std::bit_cast<float>(0x3f818000u);         // and up.
      if (k > 3) x[3] = std::numeric_limits<float>::max();  // Becomes infinity.
      const int64_t bytes = BFloat16RowsBytes(rows, k);
      const auto run = [&](RoundFn fn, std::byte* out) {
        fn({.x = x.data(),
            .ldx = k + 5,
            .k = k,
            .row_begin = 0,
            .row_end = rows,
            .out = MakeBFloat16Rows(out, rows)});
      };
      ExpectSameBytes<RoundFn>(Op::kRound, bytes, run);
      cts::Buffer out(bytes);
      run(Best<RoundFn>(Op::kRound), out.data());
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t i = 0; i < (k + 31) / 32 * 32; ++i) {
          const float value = x[static_cast<size_t>(m * (k + 5) + i % k)];
          ASSERT_EQ(out.as<uint16_t>()[(i / 32 * rows + m) * 32 + i % 32],
                    i < k ? tensor::FloatToBFloat16(value) : 0)
              << "row " << m << " of " << rows << " element " << i << " of " << k;
        }
    }
  }
}

TEST(Round, ANaNStaysAQuietOneAndInfinityStays) {
  for (const RoundFn fn : {Reference<RoundFn>(Op::kRound), Best<RoundFn>(Op::kRound)}) {
    const float x[3] = {std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu),
                        -std::numeric_limits<float>::infinity()};
    cts::Buffer out(BFloat16RowsBytes(1, 3));
    fn({.x = x, .ldx = 3, .k = 3, .row_end = 1, .out = MakeBFloat16Rows(out.data(), 1)});
    EXPECT_EQ(out.as<uint16_t>()[0], 0x7fc0);
    EXPECT_EQ(out.as<uint16_t>()[1], 0xffff);
    EXPECT_EQ(out.as<uint16_t>()[2], 0xff80);
  }
}

TEST(RmsNormRound, IsTheNormFollowedByRound) {
  Random random(8);
  for (const int64_t k : {5, 32, 576, 1001}) {
    std::vector<float> x = Inputs(random, 3 * k);
    const std::vector<float> w = cts::RandomFloats(random, k);
    for (const bool broken : {false, true}) {
      // No number in the factor: beyond k the values are zero all the same.
      if (broken) x[1] = std::numeric_limits<float>::infinity();
      const RmsNormArgs args{
          .x = x.data(), .ldx = k, .weight = w.data(), .eps = 1e-6f, .k = k, .row_end = 3};
      const int64_t bytes = BFloat16RowsBytes(3, k);
      const auto fused = [&](RmsNormFn fn, std::byte* out) {
        RmsNormArgs rounded = args;
        rounded.b = MakeBFloat16Rows(out, 3);
        fn(rounded);
      };
      if (!broken) ExpectSameBytes<RmsNormFn>(Op::kRmsNormRound, bytes, fused);
      std::vector<float> y(x.size());
      RmsNormArgs plain = args;
      plain.out = y.data();
      plain.ld_out = k;
      Best<RmsNormFn>(Op::kRmsNorm)(plain);
      cts::Buffer separate(bytes), together(bytes);
      Best<RoundFn>(Op::kRound)({.x = y.data(),
                                 .ldx = k,
                                 .k = k,
                                 .row_end = 3,
                                 .out = MakeBFloat16Rows(separate.data(), 3)});
      fused(Best<RmsNormFn>(Op::kRmsNormRound), together.data());
      EXPECT_EQ(std::memcmp(separate.data(), together.data(), static_cast<size_t>(bytes)), 0);
    }
  }
}

TEST(Binary, AddAndMulEqualTheReferenceAndBroadcastARow) {
  Random random(6);
  for (const Op op : {Op::kAdd, Op::kMul}) {
    for (const int64_t columns : {1, 7, 8, 9, 64, 577}) {
      for (const int64_t ldb : {int64_t{0}, columns}) {
        const std::vector<float> a = Inputs(random, 3 * columns), b = Inputs(random, 3 * columns);
        ExpectSameBytes<BinaryFn>(op, 3 * columns * 4, [&](BinaryFn fn, std::byte* out) {
          fn({.a = a.data(),
              .lda = columns,
              .b = b.data(),
              .ldb = ldb,
              .out = Floats(out),
              .ld_out = columns,
              .columns = columns,
              .row_begin = 0,
              .row_end = 3});
        });
      }
    }
  }
}

TEST(Gate, EqualsTheReferenceInEveryLayout) {
  Random random(7);
  for (const Op op : {Op::kSiluGate, Op::kGeluGate}) {
    for (const int64_t columns : {8, 24, 29, 1536}) {
      for (const GateLayout layout :
           {GateLayout::kInterleaved, GateLayout::kHalves, GateLayout::kPlain}) {
        if (layout == GateLayout::kInterleaved && columns % 8 != 0) continue;
        std::vector<float> x = cts::RandomFloats(random, 2 * 2 * columns, 20);
        x[0] = 200, x[1] = -200, x[2] = 0;
        ExpectSameBytes<GatedFn>(op, 2 * columns * 4, [&](GatedFn fn, std::byte* out) {
          fn({.x = x.data(),
              .ldx = 2 * columns,
              .out = Floats(out),
              .ld_out = columns,
              .columns = columns,
              .layout = layout,
              .row_begin = 0,
              .row_end = 2});
        });
      }
    }
  }
}

TEST(Gate, ActivationsAgreeWithDouble) {
  std::vector<float> x;
  for (float v = -30; v < 30; v += 0.0137f) x.push_back(v);
  const auto columns = static_cast<int64_t>(x.size());
  std::vector<float> silu(x.size()), gelu(x.size());
  const GatedArgs args{.x = x.data(),
                       .ldx = columns,
                       .out = silu.data(),
                       .ld_out = columns,
                       .columns = columns,
                       .layout = GateLayout::kPlain,
                       .row_end = 1};
  Best<GatedFn>(Op::kSiluGate)(args);
  GatedArgs second = args;
  second.out = gelu.data();
  Best<GatedFn>(Op::kGeluGate)(second);
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], expected = v / (1 + std::exp(-v));
    EXPECT_NEAR(silu[i], expected, 2e-6 * std::fabs(expected)) << v;
    const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    EXPECT_NEAR(gelu[i], v / (1 + std::exp(-2 * u)), 4e-6 * std::fabs(v)) << v;
  }
}

TEST(Rope, EqualsTheReferenceForPartialAndSmallHeads) {
  Random random(8);
  struct Shape {
    int64_t heads, head_dim, rotary;
  };
  for (const Shape s : {Shape{2, 8, 8}, {3, 64, 64}, {1, 80, 20}, {2, 128, 64}, {9, 64, 2}}) {
    const std::vector<float> table = cts::RandomFloats(random, 10 * s.rotary);
    const std::vector<int32_t> positions = {3, 0, 9};
    const int64_t ld = s.heads * s.head_dim + 4;
    const std::vector<float> x = Inputs(random, 3 * ld);
    ExpectSameBytes<RopeFn>(Op::kRope, 3 * ld * 4, [&](RopeFn fn, std::byte* out) {
      std::memcpy(out, x.data(), static_cast<size_t>(3 * ld * 4));
      fn({.x = Floats(out),
          .ldx = ld,
          .heads = s.heads,
          .head_dim = s.head_dim,
          .rotary = s.rotary,
          .table = table.data(),
          .positions = positions.data(),
          .row_begin = 0,
          .row_end = 3});
    });
  }
}

TEST(Rope, RotatesPairsHalfARotaryApart) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> table = {0, 1, 1, 0};  // A quarter turn for pair 0, none for pair 1.
  const int32_t position = 0;
  Best<RopeFn>(Op::kRope)({.x = x.data(),
                           .ldx = 8,
                           .heads = 1,
                           .head_dim = 8,
                           .rotary = 4,
                           .table = table.data(),
                           .positions = &position,
                           .row_end = 1});
  EXPECT_EQ(x, (std::vector<float>{-3, 2, 1, 4, 5, 6, 7, 8}));
}

TEST(FloatToHalf, EqualsTensorConversionForEveryClassOfValue) {
  std::vector<float> x = {0.0f,  -0.0f, 1.0f,    65504, 65519.996f, 65520,      1e9f,
                          -1e9f, 6e-8f, 2.9e-8f, 3e-8f, 6.1e-5f,    6.0976e-5f, 1e-40f};
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    if ((bits & 0x7f800000) != 0x7f800000) x.push_back(std::bit_cast<float>(bits));
    x.push_back(static_cast<float>(random.Normal()));
  }
  std::vector<uint16_t> out(x.size());
  Best<FloatToHalfFn>(Op::kFloatToHalf)(x.data(), out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(out[i], tensor::FloatToHalf(x[i])) << x[i];
    ASSERT_EQ(out[i], ref::FloatToHalf(x[i])) << x[i];
    ASSERT_EQ(ref::HalfToFloat(out[i]), tensor::HalfToFloat(out[i]));
  }
}

TEST(Exp, RelativeErrorIsBelowThreeUlps) {
  double worst = 0;
  for (double v = -87; v < 88; v += 0.00137) {
    const auto x = static_cast<float>(v);
    worst = std::max(worst, std::fabs(ref::Exp(x) / std::exp(double{x}) - 1));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(ref::Exp(0), 1.0f);
}

}  // namespace
}  // namespace tessera::kernels
