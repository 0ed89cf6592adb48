// SPDX-License-Identifier: Apache-2.0
//
// Blocks of ggml's formats <-> planes of sharktank's layouts, one row at a time. The bits are the
// same, only their places differ:
//   codes     sharktank packs consecutive elements into the nibbles of a byte; ggml elements j and
//             j + 16 (Q4_0, Q4_1, MXFP4), j and j + 32 (Q4_K) of a block.
//   Q4_0      signed nibbles there, an offset of 8 in ggml.
//   Q4_K      the eight 6-bit scales and minima stand there as low nibbles and high pairs of bits.
// Pure functions, any thread. A row of a plane is all its values of one row of the matrix.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace tessera::formats::irpa {

inline constexpr uint64_t kShortBlock = 32;
inline constexpr uint64_t kSuperBlock = 256;

/// Planes of a row -> `blocks` blocks in `out`; `repeat` of them share one value of the scale
/// planes.
/// False when the planes hold numbers that the format does not (Q5_K and Q6_K only, whose two
/// scales are found again in their products).
using BlockAssembler = bool (*)(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                                std::span<std::byte> out);
// Planes in this order:
bool AssembleQ8_0(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // d, qs
bool AssembleQ4_0(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // d, qs
bool AssembleQ4_1(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // d, qs, m; without m it is zero
bool AssembleQ4_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // all seven, in the order of kQ4KPlanes
bool AssembleMxfp4(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                   std::span<std::byte> out);  // d, qs
bool AssembleQ5_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // d, qs, m
bool AssembleQ6_K(std::span<const ByteSpan> planes, uint64_t blocks, uint64_t repeat,
                  std::span<std::byte> out);  // d, qs

/// In "layout_metadata" of a BlockScaledLayout: the block format that its planes were made of,
/// "Q5_K" or "Q6_K". Ours; sharktank does not look at it.
inline constexpr std::string_view kBlockFormatKey = "block_format";

/// One plane of a format. Its shape is the tensor's, but for the last dimension: there stand the
/// blocks of the layout (`sub_blocks` for each block of the format), then `inner`.
struct PlaneFormat {
  std::string_view name;
  tensor::DType dtype = tensor::DType::kU8;
  std::vector<int64_t> inner;  // {1}, {32}, {8, 16}.
  int64_t sub_blocks = 1;
  uint64_t bytes_per_block = 0;
  /// Appends the plane's part of `blocks` blocks at `in`.
  void (*extract)(const std::byte* in, uint64_t blocks, std::vector<std::byte>* out) = nullptr;
};

/// A dtype of ours as a layout of sharktank's, without loss: where a format multiplies two scales
/// (Q5_K, Q6_K), the plane holds their product, which float32 does exactly.
struct PlanarFormat {
  std::string_view layout_type;
  /// Of "layout_metadata": {"signed": ...}; nothing for layouts without.
  int is_signed = -1;
  std::vector<PlaneFormat> planes;  // In the order in which sharktank stores them.
};

/// Null for a dtype that no layout holds: plain types, and block formats that PlanarFormatOf's
/// table lacks.
const PlanarFormat* PlanarFormatOf(tensor::DType dtype);

}  // namespace tessera::formats::irpa
