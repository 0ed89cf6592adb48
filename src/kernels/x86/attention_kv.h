// SPDX-License-Identifier: Apache-2.0
//
// One chunk of 64 positions of K and V as the inner loops of attention read it. T is what they
// load: uint16_t (f16) or int8_t in their page, converted on load, or float (converted before); the
// arithmetic is the same.
#pragma once

#include <type_traits>

#include "kernels/attention.h"
#include "kernels/x86/vec_avx2.h"

namespace tessera::kernels {
namespace {

/// Whether what a page stores as T has scales beside it.
template <class T>
inline constexpr bool kScaled = std::is_same_v<T, int8_t>;

inline constexpr int64_t kBlocksPerChunk = kAttentionChunk / kKvBlock;

/// Where the 16-position blocks of a chunk are: K as [head_dim][16], V as [16][head_dim].
template <class T>
struct ChunkKv {
  const T* k[kBlocksPerChunk];
  const T* v[kBlocksPerChunk];
  // [16] each, of int8 and what was converted from it; else null.
  const float* k_scale[kBlocksPerChunk];
  const float* v_scale[kBlocksPerChunk];
};

template <class T>
TESSERA_KERNEL_INLINE __m256 LoadKv8(const T* p) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm256_loadu_ps(p);
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  } else {
    return LoadHalf8(p);
  }
}

/// Asks for the line at `p` of the next chunk while this chunk's is used: a layer's part of a page
/// lies too far from the one before for the hardware to foresee it, and a chunk ahead is far enough
/// to hide the memory's latency. What was converted is in the cache already.
template <class T>
TESSERA_KERNEL_INLINE void FetchAhead(const T* p) {
  if constexpr (!std::is_same_v<T, float>) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }
}

/// Elements of a line, and the dims of a K block in it.
template <class T>
inline constexpr int64_t kLineElements = 64 / static_cast<int64_t>(sizeof(T));
template <class T>
inline constexpr int64_t kLineDims = kLineElements<T> / kKvBlock;

/// Calls f.template operator()<G>(block) for runs of G blocks of [first, last).
template <class F>
TESSERA_KERNEL_INLINE void ForBlocks(int64_t first, int64_t last, const F& f) {
  int64_t b = first;
  if (last - b == 4) return f.template operator()<4>(b);
  if (last - b >= 2) {
    f.template operator()<2>(b);
    b += 2;
  }
  if (last - b >= 1) f.template operator()<1>(b);
}

/// Calls f.template operator()<N>(first) for runs of N <= 6 queries.
template <class F>
TESSERA_KERNEL_INLINE void ForQueries(int64_t count, const F& f) {
  int64_t i = 0;
  for (; i + 6 <= count; i += 6) f.template operator()<6>(i);
  switch (count - i) {
    case 1:
      return f.template operator()<1>(i);
    case 2:
      return f.template operator()<2>(i);
    case 3:
      return f.template operator()<3>(i);
    case 4:
      return f.template operator()<4>(i);
    case 5:
      return f.template operator()<5>(i);
    default:
      return;
  }
}

/// What softmax does to the scores of one query: positions [from, to) of the chunk count.
struct SoftmaxArgs {
  float scale;
  float softcap;  // 0 = none
  int64_t from;
  int64_t to;
  int64_t head_dim;
  const float* const* k_scale;  // Of the chunk's blocks; read when kScaled.
  const float* const* v_scale;
};

}  // namespace
}  // namespace tessera::kernels
