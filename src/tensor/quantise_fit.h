// SPDX-License-Identifier: Apache-2.0
//
// float32 to block formats with the least error that a search finds: scales (and minima) are fitted
// by weighted least squares to the codes they lead to, over a range of candidates, and compared by
// the error of what is stored, the rounding of f16 scales and 6-bit sub-scales included. The plain
// way, one scale from the block's extreme, is tensor/quantise.h.
//
// The weight of an element's squared error is its column's importance (1 without) times
// (mean |x| of its group + |x|): errors of large weights move outputs more. docs/design/0012 has
// the search and what was measured.
//
// Deterministic: the same bytes on every machine. One definition (quantise_fit_search.h) is
// compiled twice, for one lane with baseline instructions and for eight with AVX2; lanes do not
// mix. Pure functions: any thread.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::tensor {

/// Q8_0, Q6_K, Q5_0, Q4_K, Q4_1, Q4_0.
bool CanFit(DType dtype);

/// The largest magnitude taken: that of an f16, which holds every format's scale and minimum.
inline constexpr float kMaxFitMagnitude = 65504.0F;

enum class FitPath : uint8_t {
  kFastest,   // What this machine has.
  kPortable,  // The definition, one lane at a time: for tests, and machines without AVX2.
};

/// Encodes one row into `out`. `importance` has one finite value >= 0 for each element (of any
/// scale: only their ratios within a block count), or is empty.
/// Requires CanFit, whole blocks, `out` of RowBytes. kInvalidArgument "element 17 is nan, ..." for
/// a value that is not finite or beyond kMaxFitMagnitude; `out` is untouched then.
Status QuantiseFit(DType dtype, std::span<const float> row, std::span<const float> importance,
                   std::span<std::byte> out, FitPath path = FitPath::kFastest);

/// What the search minimises, for a row and its encoding: the sum of weighted squared errors.
double FitError(DType dtype, std::span<const float> row, std::span<const float> importance,
                std::span<const std::byte> encoded);

}  // namespace tessera::tensor
