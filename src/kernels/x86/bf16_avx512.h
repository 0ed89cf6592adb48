// SPDX-License-Identifier: Apache-2.0
//
// What both 512-bit BF16 matmuls (fused multiply-adds, dot products) share: two groups, sixteen
// weight rows, side by side in a vector.
#pragma once

#include "kernels/x86/matmul_bf16.h"

namespace tessera::kernels {
namespace {

struct V512 {
  using Float = __m512;
  using Pairs = __m512i;
  static constexpr int64_t kGroups = 2, kLanes = 16;
  static constexpr int kRows = 12, kVectors = 2;  // 24 sums of 32 registers
  static constexpr int kFewVectors = 2;

  TESSERA_KERNEL_INLINE __mmask16 Mask(int64_t count) {
    return static_cast<__mmask16>((1u << count) - 1);
  }
  TESSERA_KERNEL_INLINE Float Zero() { return _mm512_setzero_ps(); }
  TESSERA_KERNEL_INLINE Float Load(const float* p) { return _mm512_load_ps(p); }
  TESSERA_KERNEL_INLINE void Store(float* p, Float v) { _mm512_store_ps(p, v); }
  TESSERA_KERNEL_INLINE Float LoadPart(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(Mask(count), p);
  }
  TESSERA_KERNEL_INLINE void StorePart(float* p, Float v, int64_t count) {
    _mm512_mask_storeu_ps(p, Mask(count), v);
  }
  TESSERA_KERNEL_INLINE Float Add(Float a, Float b) { return _mm512_add_ps(a, b); }
  TESSERA_KERNEL_INLINE Float Broadcast(const std::byte* p) {
    return _mm512_castsi512_ps(BroadcastPair(reinterpret_cast<const uint16_t*>(p)));
  }
  TESSERA_KERNEL_INLINE Pairs BroadcastPair(const uint16_t* p) {
    int32_t v;
    std::memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
  }
  TESSERA_KERNEL_INLINE Pairs LoadPairs(const Lanes& lanes, int64_t at) {
    const __m512i low = _mm512_castsi256_si512(LoadBytes(lanes.first + at));
    return _mm512_inserti64x4(low, LoadBytes(lanes.second + at), 1);
  }
  TESSERA_KERNEL_INLINE void Prefetch(const Lanes& lanes, int64_t at) {
    _mm_prefetch(reinterpret_cast<const char*>(lanes.first + at), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(lanes.second + at), _MM_HINT_T0);
  }
};

}  // namespace
}  // namespace tessera::kernels
