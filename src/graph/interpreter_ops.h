// SPDX-License-Identifier: Apache-2.0
//
// The meaning of each op that computes, as pure functions over row-major float64. Sizes must agree
// as the type rules say; they are CHECKed only where cheap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir.h"

namespace tessera::graph::ops {

using Values = std::vector<double>;
using In = std::span<const double>;
using Weight = std::span<const float>;

/// table [V,width], ids in range -> [tokens,width]
Values Embed(Weight table, int64_t width, std::span<const int32_t> ids);
/// x [rows,weight.size()] -> same
Values RmsNorm(In x, Weight weight, double eps);
/// x [tokens,columns], weight [rows,columns], bias [rows] or empty -> [tokens,rows]
Values Linear(In x, Weight weight, Weight bias, int64_t columns);
/// x [tokens,heads,head_dim], token t at position first_position + t -> same
Values Rope(In x, const RopeTable& table, int64_t heads, int64_t head_dim, int64_t first_position);
/// q [tokens,heads,head_dim], keys and values [positions,kv_heads,head_dim] with the last `tokens`
/// positions being those of q -> [tokens,heads*head_dim]
Values Attention(In q, In keys, In values, const AttentionAttrs& attrs);
Values Add(In a, In b);
Values Mul(In a, In b);
Values Silu(In x);
Values GeluTanh(In x);
Values Scale(In x, double factor);
Values Softcap(In x, double cap);

}  // namespace tessera::graph::ops
