// SPDX-License-Identifier: Apache-2.0
#include "kernels/probe.h"

#include <emmintrin.h>

#include <cstring>

#include "kernels/x86/probe_x86.h"

namespace tessera::kernels {
namespace {

template <class T>
uint64_t FirstWord(const T& vector) {
  uint64_t word;
  std::memcpy(&word, &vector, sizeof(word));
  return word;
}

/// Baseline x86-64 has no fused multiply-add: a multiply and an add.
uint64_t MulAddSse2(int64_t iterations) {
  constexpr int kChains = 8;
  __m128 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm_set1_ps(1.0f + 0.125f * static_cast<float>(i));
  __m128 x = _mm_set1_ps(0.5f);
  const __m128 y = _mm_set1_ps(0.75f);
  for (int64_t n = 0; n < iterations; ++n) {
    asm volatile("" : "+x"(x));
    for (__m128& s : sum) s = _mm_add_ps(_mm_mul_ps(s, x), y);
  }
  uint64_t words = 0;
  for (const __m128& s : sum) words += FirstWord(s);
  return words;
}

/// And no product of bytes: pmaddwd on codes widened to 16 bits.
uint64_t MaddWordsSse2(int64_t iterations) {
  constexpr int kChains = 8;
  __m128i sum[kChains];
  for (__m128i& s : sum) s = _mm_setzero_si128();
  __m128i codes = _mm_set1_epi16(3);
  const __m128i x = _mm_set1_epi16(5);
  for (int64_t n = 0; n < iterations; ++n)
    for (__m128i& s : sum) {
      asm volatile("" : "+x"(codes));
      s = _mm_add_epi32(s, _mm_madd_epi16(codes, x));
    }
  uint64_t words = 0;
  for (const __m128i& s : sum) words += FirstWord(s);
  return words;
}

uint64_t ReadSse2(const std::byte* data, int64_t bytes) {
  constexpr int kChains = 4;
  constexpr int64_t kStride = kChains * sizeof(__m128i);
  __m128i sum[kChains];
  for (__m128i& s : sum) s = _mm_setzero_si128();
  for (int64_t at = 0; at < bytes; at += kStride)
    for (int i = 0; i < kChains; ++i)
      sum[i] =
          _mm_add_epi32(sum[i], _mm_load_si128(reinterpret_cast<const __m128i*>(data + at) + i));
  uint64_t words = 0;
  for (const __m128i& s : sum) words += FirstWord(s);
  return words;
}

// Operations an iteration: 2 x chains x products of one instruction sequence.
// clang-format off
const Probe kProbes[] = {
  {Mix::kFloatFma,  KernelIsa::kAvx512,     "fma.avx512",         2 * 12 * 16,     &avx512::ProbeFma},
  {Mix::kFloatFma,  KernelIsa::kAvx2,       "fma.avx2",           2 * 12 * 8,      &avx2::ProbeFma},
  {Mix::kFloatFma,  KernelIsa::kRef,        "mul_add.sse2",       2 * 8 * 4,       &MulAddSse2},
  {Mix::kDotBFloat16, KernelIsa::kAvx512Bf16, "dpbf16.avx512_bf16", 2 * 16 * 32,   &avx512::ProbeDpbf16},
  {Mix::kDot5Bits,  KernelIsa::kAvx512,     "maddubs_x4.avx512",  2 * 8 * 4 * 64,  &avx512::ProbeMaddubsX4},
  {Mix::kDot5Bits,  KernelIsa::kAvx2,       "maddubs_x4.avx2",    2 * 8 * 4 * 32,  &avx2::ProbeMaddubsX4},
  {Mix::kDot6Bits,  KernelIsa::kAvx512,     "maddubs_x2.avx512",  2 * 8 * 2 * 64,  &avx512::ProbeMaddubsX2},
  {Mix::kDot6Bits,  KernelIsa::kAvx2,       "maddubs_x2.avx2",    2 * 8 * 2 * 32,  &avx2::ProbeMaddubsX2},
  {Mix::kDot8Bits,  KernelIsa::kAvx512Vnni, "dpbusd.avx512_vnni", 2 * 10 * 64,     &avx512::ProbeDpbusd},
  {Mix::kDot8Bits,  KernelIsa::kAvxVnni,    "dpbusd.avx_vnni",    2 * 10 * 32,     &avx_vnni::ProbeDpbusd},
  {Mix::kDot8Bits,  KernelIsa::kAvx512,     "maddubs.avx512",     2 * 8 * 64,      &avx512::ProbeMaddubs},
  {Mix::kDot8Bits,  KernelIsa::kAvx2,       "maddubs.avx2",       2 * 8 * 32,      &avx2::ProbeMaddubs},
  {Mix::kDot8Bits,  KernelIsa::kRef,        "madd_words.sse2",    2 * 8 * 8,       &MaddWordsSse2},
};
// clang-format on

}  // namespace

std::span<const Probe> Probes() {
  return kProbes;
}

ReadFn FindRead(const Isa& machine) {
  if (Runs(KernelIsa::kAvx512, machine)) return &avx512::ProbeRead;
  if (Runs(KernelIsa::kAvx2, machine)) return &avx2::ProbeRead;
  return &ReadSse2;
}

}  // namespace tessera::kernels
