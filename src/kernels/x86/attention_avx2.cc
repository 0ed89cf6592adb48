// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/attention_walk.h"
#include "kernels/x86/avx2.h"

namespace tessera::kernels::avx2 {
namespace {

/// One head's row of K and of V, and where they go.
struct KvRow {
  const float* k;
  const float* v;
  int64_t head_dim;
  std::byte* to_k;  // Element d is d * kKvBlock elements on.
  std::byte* to_v;
};

TESSERA_KERNEL_INLINE void WriteHalf(const KvRow& row) {
  auto* to_k = reinterpret_cast<uint16_t*>(row.to_k);
  auto* to_v = reinterpret_cast<uint16_t*>(row.to_v);
  for (int64_t d = 0; d < row.head_dim; d += 8) {
    alignas(16) uint16_t half[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(half), ToHalf8(_mm256_loadu_ps(row.k + d)));
    for (int i = 0; i < 8; ++i) to_k[(d + i) * kKvBlock] = half[i];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_v + d), ToHalf8(_mm256_loadu_ps(row.v + d)));
  }
}

/// The factor that makes codes of x; *scale undoes it.
TESSERA_KERNEL_INLINE __m256 CodesPerUnit(const float* x, int64_t head_dim, float* scale) {
  __m256 largest = _mm256_setzero_ps();
  for (int64_t d = 0; d < head_dim; d += 8) {  // In this order NaN is left out.
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(x + d));
    largest = _mm256_max_ps(magnitude, largest);
  }
  const float amax = Max8Avx2(largest);
  const bool zero = !(amax >= kQuantiseMin);
  *scale = zero ? 0.0f : amax / 127.0f;
  return _mm256_set1_ps(zero ? 0.0f : 127.0f / amax);
}

/// The codes of eight elements, in the low bytes.
TESSERA_KERNEL_INLINE __m128i Codes8(const float* x, __m256 per_unit) {
  const __m256i codes = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), per_unit));
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
  return _mm_max_epi8(_mm_packs_epi16(words, words), _mm_set1_epi8(-127));  // A NaN became -128.
}

TESSERA_KERNEL_INLINE void WriteInt8(const KvRow& row, float* k_scale, float* v_scale) {
  const __m256 k_unit = CodesPerUnit(row.k, row.head_dim, k_scale);
  const __m256 v_unit = CodesPerUnit(row.v, row.head_dim, v_scale);
  for (int64_t d = 0; d < row.head_dim; d += 8) {
    alignas(16) int8_t code[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(code), Codes8(row.k + d, k_unit));
    for (int i = 0; i < 8; ++i) row.to_k[(d + i) * kKvBlock] = static_cast<std::byte>(code[i]);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row.to_v + d), Codes8(row.v + d, v_unit));
  }
}

}  // namespace

void Attention(const AttentionArgs& a) {
  Attend<AttentionAvx2>(a);
}

void KvWrite(const KvWriteArgs& args) {
  const KvWriteArgs a = args;  // Byte stores may alias the arguments.
  const KvLayout& layout = a.layout;
  for (int64_t r = 0; r < a.rows; ++r) {
    const int64_t position = a.start + r, slot = position % layout.page_tokens;
    std::byte* page = a.pool + a.pages[position / layout.page_tokens] * layout.PageBytes();
    for (int64_t h = a.head_begin; h < a.head_end; ++h) {
      const KvRow row = {a.k + r * a.ldk + h * layout.head_dim,
                         a.v + r * a.ldv + h * layout.head_dim, layout.head_dim,
                         page + layout.KElement(a.layer, h, slot, 0),
                         page + layout.VElement(a.layer, h, slot, 0)};
      if (layout.type == KvType::kInt8) {
        WriteInt8(row, reinterpret_cast<float*>(page + layout.KScale(a.layer, h, slot)),
                  reinterpret_cast<float*>(page + layout.VScale(a.layer, h, slot)));
      } else {
        WriteHalf(row);
      }
    }
  }
}

}  // namespace tessera::kernels::avx2
