// SPDX-License-Identifier: Apache-2.0
//
// BF16 with AVX512_BF16: vdpbf16ps takes a pair of inputs of sixteen weight rows.
#include "kernels/x86/avx512.h"
#include "kernels/x86/bf16_avx512.h"

namespace tessera::kernels::avx512 {
namespace {

struct Dot512 : V512 {
  static constexpr int kSteps = 1;
  static constexpr int64_t kFewRows = 13;  // One run; two read the weights twice.
  static constexpr int64_t kPanel = 256, kTileRows = 128, kTileVectors = 4;

  TESSERA_KERNEL_INLINE Float Step(Float w, Float x, Float sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }
  template <int step>
  TESSERA_KERNEL_INLINE Float Widen(Pairs pairs) {
    return _mm512_castsi512_ps(pairs);
  }
};

/// One lane: sum + the dot product of two pairs, the even number of a pair in its low half.
/// Expected is what matmul.h says, computed with exact arithmetic.
struct Example {
  uint32_t sum, weights, inputs, expected;
};

constexpr Example kExamples[16] = {
    {0xbe7fb4fd, 0xc03740db, 0x3c4c3cb5, 0xbe0952fc},  // another order or fewer roundings
    {0xbd1c4995, 0xbf12bee9, 0x3ed73fca, 0xbf7eed9a},  // another order or fewer roundings
    {0x3e2550be, 0xbcbb3d5e, 0xc16ebff9, 0x3eca86e0},  // another order or fewer roundings
    {0x4191c38d, 0xbe5e4031, 0xbd91c0d3, 0xb7000000},  // the same where sums cancel
    {0x3bb6e3fd, 0xbc8cbcb4, 0xbe5d3ed8, 0xb1000000},  // the same where sums cancel
    {0xbce03803, 0x3d753c0c, 0xbe30408d, 0xb2000000},  // the same where sums cancel
    {0x3f800000, 0x00403f80, 0x7e803f80, 0x40000000},  // subnormal weight
    {0x3f800000, 0x3f800040, 0x3f807e80, 0x40000000},  // subnormal weight, even
    {0x3f800000, 0x7e803f80, 0x80403f80, 0x40000000},  // subnormal input
    {0x00400000, 0x00000000, 0x00000000, 0x00000000},  // subnormal sum
    {0x00000000, 0x1f800000, 0x1f800000, 0x00000000},  // subnormal result
    {0x00000000, 0x1f800080, 0x1f803f80, 0x00800000},  // subnormal after the odd input
    {0x80000000, 0x9f800080, 0x1f803f80, 0x00800000},  // negative subnormal
    {0x00800000, 0x9a000000, 0x1a000000, 0x00000000},  // tiny once rounded to 24 bits
    {0x00800000, 0x99800000, 0x1a000000, 0x00800000},  // normal once rounded to 24 bits
    {0x3f800000, 0xff007f00, 0x7f007f00, 0xff800000},  // overflow after the odd input
};

}  // namespace

void MatmulDotBFloat16(const MatmulArgs& a) {
  const FlushSubnormals flush;
  RunBFloat16<Dot512>(a);
}

bool DotKeepsContract() {
  uint32_t sum[16], weights[16], inputs[16], expected[16];
  for (int i = 0; i < 16; ++i) {
    sum[i] = kExamples[i].sum;
    weights[i] = kExamples[i].weights;
    inputs[i] = kExamples[i].inputs;
    expected[i] = kExamples[i].expected;
  }
  const auto number = [](const uint32_t* bits) {
    return _mm512_castsi512_ps(_mm512_loadu_si512(bits));
  };
  const __m512 result = Dot512::Step(number(weights), number(inputs), number(sum));
  return _mm512_cmpneq_epi32_mask(_mm512_castps_si512(result), _mm512_loadu_si512(expected)) == 0;
}

}  // namespace tessera::kernels::avx512
