// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/attention_walk.h"
#include "kernels/x86/avx2.h"

namespace tessera::kernels::avx2 {

void Attention(const AttentionArgs& a) {
  Attend<AttentionAvx2>(a);
}

void KvWrite(const KvWriteArgs& a) {
  const KvLayout& layout = a.layout;
  for (int64_t r = 0; r < a.rows; ++r) {
    const int64_t position = a.start + r, slot = position % layout.page_tokens;
    uint16_t* page = a.pool + a.pages[position / layout.page_tokens] * layout.PageElements();
    for (int64_t h = a.head_begin; h < a.head_end; ++h) {
      const float* k = a.k + r * a.ldk + h * layout.head_dim;
      const float* v = a.v + r * a.ldv + h * layout.head_dim;
      uint16_t* to_k = page + layout.KElement(a.layer, h, slot, 0);
      uint16_t* to_v = page + layout.VElement(a.layer, h, slot, 0);
      for (int64_t d = 0; d < layout.head_dim; d += 8) {
        alignas(16) uint16_t half[8];
        _mm_store_si128(reinterpret_cast<__m128i*>(half), ToHalf8(_mm256_loadu_ps(k + d)));
        for (int i = 0; i < 8; ++i) to_k[(d + i) * kKvBlock] = half[i];
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to_v + d), ToHalf8(_mm256_loadu_ps(v + d)));
      }
    }
  }
}

}  // namespace tessera::kernels::avx2
