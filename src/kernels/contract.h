// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract as a number: raised with every change after which the same program,
// parameters and tokens may give other bits (an order of sums, a rounding, an approximation), in
// any kernel or fused step. What was computed under another number must not be mixed with what is
// computed under this one: stored KV pages carry it.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr int64_t kNumericContract = 1;

}  // namespace tessera::kernels
