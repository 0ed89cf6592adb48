// SPDX-License-Identifier: Apache-2.0
#include "graph/interpreter_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tessera::graph::ops {
namespace {

constexpr size_t kLanes = 8;

/// Sum of a[i] * b[i] in float64, in eight interleaved partial sums so that the loop vectorises.
double Dot(const double* a, const double* b, size_t n) {
  std::array<double, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[i % kLanes] += a[i] * b[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class F>
Values Map(In x, F f) {
  Values out(x.size());
  std::transform(x.begin(), x.end(), out.begin(), f);
  return out;
}

/// In place: exp(x - max) / sum.
void Softmax(std::span<double> x) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - max);
  for (double& value : x) value /= sum;
}

/// One query head over positions [first, first + count) of one KV head. `stride` = elements from
/// one position to the next.
void AttendHead(const double* query, const double* keys, const double* values, size_t stride,
                size_t count, const AttentionAttrs& attrs, double* out) {
  const auto dim = static_cast<size_t>(attrs.head_dim);
  std::vector<double> scores(count);
  for (size_t i = 0; i < count; ++i) {
    scores[i] = Dot(query, keys + i * stride, dim) * attrs.scale;
    if (attrs.softcap) scores[i] = *attrs.softcap * std::tanh(scores[i] / *attrs.softcap);
  }
  Softmax(scores);
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < dim; ++d) out[d] += scores[i] * values[i * stride + d];
  }
}

}  // namespace

Values Embed(Weight table, int64_t width, std::span<const int32_t> ids) {
  Values out;
  out.reserve(ids.size() * static_cast<size_t>(width));
  for (const int32_t id : ids) {
    const Weight row = table.subspan(static_cast<size_t>(id) * static_cast<size_t>(width),
                                     static_cast<size_t>(width));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

Values RmsNorm(In x, Weight weight, double eps) {
  const size_t n = weight.size();
  Values out(x.size());
  for (size_t row = 0; row < x.size(); row += n) {
    const double mean = Dot(&x[row], &x[row], n) / static_cast<double>(n);
    const double factor = 1.0 / std::sqrt(mean + eps);
    for (size_t i = 0; i < n; ++i) out[row + i] = x[row + i] * factor * weight[i];
  }
  return out;
}

Values Linear(In x, Weight weight, Weight bias, int64_t columns) {
  const auto width = static_cast<size_t>(columns);
  const size_t rows = weight.size() / width;
  const size_t tokens = x.size() / width;
  TESSERA_CHECK(rows * width == weight.size() && tokens * width == x.size());
  Values out(tokens * rows);
  std::vector<double> row(width);
  for (size_t n = 0; n < rows; ++n) {
    // Widened once for all tokens.
    std::copy_n(&weight[n * width], width, row.begin());
    const double start = bias.empty() ? 0.0 : bias[n];
    for (size_t t = 0; t < tokens; ++t) {
      out[t * rows + n] = start + Dot(&x[t * width], row.data(), width);
    }
  }
  return out;
}

Values Rope(In x, const RopeTable& table, int64_t heads, int64_t head_dim, int64_t first_position) {
  const auto dim = static_cast<size_t>(head_dim);
  const size_t pairs = table.inverse_frequency.size();
  const size_t row = static_cast<size_t>(heads) * dim;
  const bool half = table.style == RopeStyle::kHalf;
  Values out(x.begin(), x.end());
  for (size_t t = 0; t * row < x.size(); ++t) {
    const double position = static_cast<double>(first_position) + static_cast<double>(t);
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = position * table.inverse_frequency[i];
      const double cosine = std::cos(angle) * table.attention_factor;
      const double sine = std::sin(angle) * table.attention_factor;
      const size_t a = half ? i : 2 * i;
      const size_t b = half ? i + pairs : 2 * i + 1;
      for (size_t head = t * row; head < (t + 1) * row; head += dim) {
        out[head + a] = x[head + a] * cosine - x[head + b] * sine;
        out[head + b] = x[head + a] * sine + x[head + b] * cosine;
      }
    }
  }
  return out;
}

Values Attention(In q, In keys, In values, const AttentionAttrs& attrs) {
  const auto dim = static_cast<size_t>(attrs.head_dim);
  const auto heads = static_cast<size_t>(attrs.heads);
  const auto kv_heads = static_cast<size_t>(attrs.kv_heads);
  const size_t stride = kv_heads * dim;
  const size_t positions = keys.size() / stride;
  const size_t tokens = q.size() / (heads * dim);
  TESSERA_CHECK(keys.size() == values.size() && tokens <= positions);
  Values out(q.size());
  for (size_t t = 0; t < tokens; ++t) {
    const size_t end = positions - tokens + t + 1;  // One past this token's own position.
    const size_t seen = attrs.window ? std::min(end, static_cast<size_t>(*attrs.window)) : end;
    const size_t first = end - seen;
    for (size_t h = 0; h < heads; ++h) {
      const size_t kv = first * stride + h / (heads / kv_heads) * dim;
      const size_t row = (t * heads + h) * dim;
      AttendHead(&q[row], &keys[kv], &values[kv], stride, seen, attrs, &out[row]);
    }
  }
  return out;
}

Values Add(In a, In b) {
  TESSERA_CHECK(a.size() == b.size());
  Values out(a.size());
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), std::plus<>());
  return out;
}

Values Mul(In a, In b) {
  TESSERA_CHECK(a.size() == b.size());
  Values out(a.size());
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), std::multiplies<>());
  return out;
}

Values Silu(In x) {
  return Map(x, [](double v) { return v / (1.0 + std::exp(-v)); });
}

Values GeluTanh(In x) {
  const double c = std::sqrt(2.0 / std::numbers::pi);
  return Map(x,
             [c](double v) { return 0.5 * v * (1.0 + std::tanh(c * (v + 0.044715 * v * v * v))); });
}

Values Scale(In x, double factor) {
  return Map(x, [factor](double v) { return v * factor; });
}

Values Softcap(In x, double cap) {
  return Map(x, [cap](double v) { return cap * std::tanh(v / cap); });
}

}  // namespace tessera::graph::ops
