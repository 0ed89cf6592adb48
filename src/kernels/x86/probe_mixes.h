// SPDX-License-Identifier: Apache-2.0
//
// The mixes of kernels/probe.h over one vector width. `V` brings the width's instructions; an
// operand made opaque before each use keeps the compiler from computing equal products once.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {
namespace {

/// Accumulators: two instructions a cycle of latency four or five, with room for operands in 16
/// registers.
constexpr int kFloatChains = 12;
constexpr int kByteChains = 8;
constexpr int kDpbusdChains = 10;

template <class T>
TESSERA_KERNEL_INLINE uint64_t FirstWord(const T& vector) {
  uint64_t word;
  std::memcpy(&word, &vector, sizeof(word));
  return word;
}

template <class V>
uint64_t RunFma(int64_t iterations) {
  typename V::Float sum[kFloatChains];
  TESSERA_UNROLL
  for (int i = 0; i < kFloatChains; ++i) sum[i] = V::Set(1.0f + 0.125f * static_cast<float>(i));
  typename V::Float x = V::Set(0.5f);
  const typename V::Float y = V::Set(0.75f);
  for (int64_t n = 0; n < iterations; ++n) {
    V::Opaque(x);
    TESSERA_UNROLL
    for (int i = 0; i < kFloatChains; ++i) sum[i] = V::Fma(sum[i], x, y);
  }
  uint64_t words = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kFloatChains; ++i) words += FirstWord(sum[i]);
  return words;
}

/// `kAdds` products of bytes are added in int16, then widened once.
template <class V, int kAdds>
uint64_t RunMaddubs(int64_t iterations) {
  typename V::Bytes sum[kByteChains];
  TESSERA_UNROLL
  for (int i = 0; i < kByteChains; ++i) sum[i] = V::Zero();
  typename V::Bytes codes = V::SetBytes(3), x = V::SetBytes(5);
  const typename V::Bytes ones = V::SetWords(1);
  for (int64_t n = 0; n < iterations; ++n) {
    TESSERA_UNROLL
    for (int i = 0; i < kByteChains; ++i) {
      V::Opaque(codes);
      typename V::Bytes words = V::Maddubs(codes, x);
      TESSERA_UNROLL
      for (int j = 1; j < kAdds; ++j) {
        V::Opaque(codes);
        words = V::AddWords(words, V::Maddubs(codes, x));
      }
      sum[i] = V::AddLanes(sum[i], V::Madd(words, ones));
    }
  }
  uint64_t words = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kByteChains; ++i) words += FirstWord(sum[i]);
  return words;
}

template <class V>
uint64_t RunDpbusd(int64_t iterations) {
  typename V::Bytes sum[kDpbusdChains];
  TESSERA_UNROLL
  for (int i = 0; i < kDpbusdChains; ++i) sum[i] = V::Zero();
  typename V::Bytes codes = V::SetBytes(3);
  const typename V::Bytes x = V::SetBytes(5);
  for (int64_t n = 0; n < iterations; ++n) {
    V::Opaque(codes);
    TESSERA_UNROLL
    for (int i = 0; i < kDpbusdChains; ++i) sum[i] = V::Dpbusd(sum[i], codes, x);
  }
  uint64_t words = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kDpbusdChains; ++i) words += FirstWord(sum[i]);
  return words;
}

template <class V>
uint64_t RunRead(const std::byte* data, int64_t bytes) {
  constexpr int kChains = 4;
  typename V::Bytes sum[kChains];
  TESSERA_UNROLL
  for (int i = 0; i < kChains; ++i) sum[i] = V::Zero();
  for (int64_t at = 0; at < bytes; at += kChains * V::kWidth) {
    TESSERA_UNROLL
    for (int i = 0; i < kChains; ++i)
      sum[i] = V::AddLanes(sum[i], V::Load(data + at + i * V::kWidth));
  }
  uint64_t words = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kChains; ++i) words += FirstWord(sum[i]);
  return words;
}

}  // namespace
}  // namespace tessera::kernels
