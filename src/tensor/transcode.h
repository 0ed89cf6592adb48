// SPDX-License-Identifier: Apache-2.0
//
// From block formats without kernels to ones with kernels, keeping the codes: the values of a block
// are small integers times a scale in both, so nothing is rounded but, where the source's scale has
// more digits than an f16, that scale. Pure functions: any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::tensor {

struct Transcoding {
  DType to;
  bool exact;  // Else each weight is off by at most 2^-11 of itself: an f16 scale, rounded once.
};

/// Q3_K -> Q6_K (exact); IQ4_NL, MXFP4, TQ1_0, TQ2_0 -> Q8_0 (exact, but an MXFP4 scale outside
/// 2^-24 .. 2^15 saturates or vanishes); IQ4_XS, IQ3_XXS, IQ3_S, IQ2_XXS, IQ1_S -> Q8_0. Nothing
/// for others, among them those with two scales for 32 weights (Q2_K, IQ2_XS, IQ2_S, IQ1_M).
std::optional<Transcoding> TranscodingOf(DType from);

/// Whole rows laid end to end, in TranscodingOf(from)->to. kInvalidArgument for bytes that are no
/// whole blocks, kUnimplemented (naming the type) without a transcoding.
Result<std::vector<std::byte>> Transcode(DType from, ByteSpan bytes);

}  // namespace tessera::tensor
