// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/ref/ref.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels {

int64_t AttentionScratchBytes(int64_t head_dim, int64_t group) {
  // x86/attention_avx2.cc: K and V of one chunk in float32; per query q, scores, two accumulators,
  // two maxima and two sums.
  const int64_t queries = kAttentionRows * group;
  const int64_t floats =
      2 * kAttentionChunk * head_dim + queries * (kAttentionChunk + 3 * head_dim + 4);
  return (floats * 4 + 63) / 64 * 64;
}

namespace ref {
namespace {

/// Running softmax of one query: maximum, sum and weighted values.
struct State {
  float m = -std::numeric_limits<float>::infinity();
  float sum = 0;
  float o[kMaxHeadDim] = {};
};

const std::byte* PageOf(const AttentionArgs& a, int64_t position) {
  return a.pool + a.pages[position / a.layout.page_tokens] * a.layout.PageBytes();
}

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// An element without its scale.
float LoadKv(const KvLayout& layout, const std::byte* at) {
  return layout.type == KvType::kInt8 ? static_cast<float>(Load<int8_t>(at))
                                      : HalfToFloat(Load<uint16_t>(at));
}

float Score(const AttentionArgs& a, const float* q, int64_t head, int64_t position) {
  const KvLayout& layout = a.layout;
  const std::byte* page = PageOf(a, position);
  const int64_t slot = position % layout.page_tokens;
  float s = 0;
  for (int64_t d = 0; d < layout.head_dim; ++d) {
    s = std::fma(q[d], LoadKv(layout, page + layout.KElement(a.layer, head, slot, d)), s);
  }
  if (layout.type == KvType::kInt8) s = s * Load<float>(page + layout.KScale(a.layer, head, slot));
  s = s * a.scale;
  return a.softcap > 0 ? a.softcap * Tanh(s / a.softcap) : s;
}

/// Positions [begin, end) of the chunk that starts at `chunk`.
void AddChunk(const AttentionArgs& a, const float* q, int64_t head, int64_t chunk, int64_t begin,
              int64_t end, State* state) {
  float e[kAttentionChunk] = {};
  float m = state->m;
  for (int64_t p = begin; p < end; ++p) {
    e[p - chunk] = Score(a, q, head, p);
    m = std::max(m, e[p - chunk]);
  }
  const float f = Exp(state->m - m);
  float lanes[8] = {};
  for (int64_t i = 0; i < kAttentionChunk; ++i) {
    const bool in = chunk + i >= begin && chunk + i < end;
    e[i] = in ? Exp(e[i] - m) : 0.0f;
    lanes[i % 8] += e[i];
  }
  state->m = m;
  state->sum = std::fma(state->sum, f, Sum8(lanes));
  const KvLayout& layout = a.layout;
  for (int64_t d = 0; d < layout.head_dim; ++d) state->o[d] *= f;
  for (int64_t p = begin; p < end; ++p) {
    const std::byte* page = PageOf(a, p);
    const int64_t slot = p % layout.page_tokens;
    float weight = e[p - chunk];
    if (layout.type == KvType::kInt8) {
      weight = weight * Load<float>(page + layout.VScale(a.layer, head, slot));
    }
    for (int64_t d = 0; d < layout.head_dim; ++d) {
      const float v = LoadKv(layout, page + layout.VElement(a.layer, head, slot, d));
      state->o[d] = std::fma(weight, v, state->o[d]);
    }
  }
}

/// Appends the state of a later split.
void Merge(const State& later, int64_t head_dim, State* total) {
  const float m = std::max(total->m, later.m);
  const float fa = Exp(total->m - m);
  const float fb = Exp(later.m - m);
  total->m = m;
  total->sum = std::fma(later.sum, fb, total->sum * fa);
  for (int64_t d = 0; d < head_dim; ++d) {
    total->o[d] = std::fma(later.o[d], fb, total->o[d] * fa);
  }
}

void OneQuery(const AttentionArgs& a, const float* q, int64_t head, int64_t position, float* out) {
  const int64_t begin = a.window > 0 ? std::max<int64_t>(0, position + 1 - a.window) : 0;
  const int64_t end = position + 1;
  State total;
  bool first = true;
  int64_t split = begin / kAttentionSplit * kAttentionSplit;
  for (; split < end; split += kAttentionSplit) {
    State state;
    const int64_t split_end = std::min(end, split + kAttentionSplit);
    for (int64_t chunk = split; chunk < split_end; chunk += kAttentionChunk) {
      const int64_t from = std::max(begin, chunk);
      const int64_t to = std::min(split_end, chunk + kAttentionChunk);
      if (from < to) AddChunk(a, q, head, chunk, from, to, &state);
    }
    if (first) {
      total = state;
    } else {
      Merge(state, a.layout.head_dim, &total);
    }
    first = false;
  }
  for (int64_t d = 0; d < a.layout.head_dim; ++d) out[d] = total.o[d] / total.sum;
}

/// Codes of one head's row of K or V; element d goes to to[d * stride].
void WriteInt8(const float* x, int64_t head_dim, std::byte* to, int64_t stride, std::byte* scale) {
  float amax = 0;
  for (int64_t d = 0; d < head_dim; ++d) amax = std::max(amax, std::fabs(x[d]));
  const bool zero = !(amax >= kQuantiseMin);
  const float inverse = zero ? 0.0f : 127.0f / amax;
  for (int64_t d = 0; d < head_dim; ++d) {
    const float scaled = std::nearbyintf(x[d] * inverse);
    // The comparison is false for NaN too.
    Store(to + d * stride, static_cast<int8_t>(scaled >= -127 && scaled <= 127 ? scaled : -127.0f));
  }
  Store(scale, zero ? 0.0f : amax / 127.0f);
}

}  // namespace

void KvWrite(const KvWriteArgs& a) {
  const KvLayout& layout = a.layout;
  for (int64_t r = 0; r < a.rows; ++r) {
    const int64_t position = a.start + r;
    const int64_t slot = position % layout.page_tokens;
    std::byte* page = a.pool + a.pages[position / layout.page_tokens] * layout.PageBytes();
    for (int64_t h = a.head_begin; h < a.head_end; ++h) {
      const float* k = a.k + r * a.ldk + h * layout.head_dim;
      const float* v = a.v + r * a.ldv + h * layout.head_dim;
      std::byte* to_k = page + layout.KElement(a.layer, h, slot, 0);
      std::byte* to_v = page + layout.VElement(a.layer, h, slot, 0);
      if (layout.type == KvType::kInt8) {
        WriteInt8(k, layout.head_dim, to_k, kKvBlock, page + layout.KScale(a.layer, h, slot));
        WriteInt8(v, layout.head_dim, to_v, 1, page + layout.VScale(a.layer, h, slot));
        continue;
      }
      for (int64_t d = 0; d < layout.head_dim; ++d) {
        Store(to_k + 2 * d * kKvBlock, FloatToHalf(k[d]));
        Store(to_v + 2 * d, FloatToHalf(v[d]));
      }
    }
  }
}

void Attention(const AttentionArgs& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t h = a.head_begin; h < a.head_end; ++h) {
      for (int64_t g = 0; g < a.group; ++g) {
        const int64_t column = (h * a.group + g) * a.layout.head_dim;
        OneQuery(a, a.q + r * a.ldq + column, h, a.start + r, a.out + r * a.ld_out + column);
      }
    }
  }
}

}  // namespace ref
}  // namespace tessera::kernels
