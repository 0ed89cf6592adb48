// SPDX-License-Identifier: Apache-2.0
//
// Packed weights, layout "P8": what the matmul kernels read and what a bundle stores.
//
// A weight matrix has n output rows of k inputs. Eight output rows form a *group*; groups follow
// each other, each GroupBytes long. Within a group the eight rows are interleaved so that lane j of
// a 256-bit vector belongs to row j. Quantised formats keep their blocks of 32 inputs and exactly
// their bytes (a lossless permutation of the GGUF blocks); the last group is filled up with rows
// of zero bytes, which are zero weights. layout.h gives every offset.
//
//   F32 F16             [k][8 rows]                                           any k >= 1
//   BF16                [ceil(k/2)][8 rows][2 inputs], an odd last input beside +0
//   Q4_0                per pair of blocks: 2 x 8 f16 d, 2 x 128 B nibbles    k % 32 == 0
//   Q4_1                per block: 8 f16 d, 8 f16 m, 128 B nibbles
//   Q8_0                per pair of blocks: 2 x 8 f16 d, 2 x 256 B int8
//   Q5_0                per pair of blocks: as Q4_0, then 2 x 32 B fifth bits
//   Q5_1                per block: as Q4_1, then 32 B fifth bits
//   Q4_K                per 256: 8 f16 d, 8 f16 dmin, 3 x 8 x 4 B scales, 8 x 128 B nibbles   k %
//   256
//   == 0 Q5_K                per 256: as Q4_K, then 8 x 32 B fifth bits Q6_K                per
//   256: 8 f16 d, 8 x 8 x 2 int8 scales, 8 x 128 B nibbles, 8 x 64 B upper bits
// (An odd last block of the "pair" formats stands alone.) Codes: byte 4j+i of 32-byte chunk c holds
// inputs 4c+i (low nibble) and 16+4c+i (high nibble) of row j.
//
// Functions here are pure, for any thread, and write only `packed` / `out`. Packing runs at compile
// time of a model; UnpackRow is the embedding lookup.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace tessera::kernels {

/// Output rows of one group.
inline constexpr int64_t kGroupRows = 8;

/// Groups of a matrix with n output rows.
constexpr int64_t GroupCount(int64_t n) {
  return (n + kGroupRows - 1) / kGroupRows;
}

/// Whether P8 exists for the type and row length.
bool CanPack(tensor::DType dtype, int64_t k);

/// What the matmul of this packed type reads: int8 activations, bfloat16 ones, or neither
/// (float32).
bool UsesQuantisedRows(tensor::DType dtype);
bool UsesBFloat16Rows(tensor::DType dtype);

/// Bytes of one group, and of a whole packed matrix. Requires CanPack(dtype, k).
int64_t GroupBytes(tensor::DType dtype, int64_t k);
int64_t PackedBytes(tensor::DType dtype, int64_t n, int64_t k);

/// Packs one group. rows[j] points at the source row (GGUF blocks or plain elements of k inputs,
/// any alignment); nullptr = a row of zeros. The caller chooses the rows, so permuted rope rows,
/// interleaved gate/up groups, joined q/k/v and K-slices (offset pointers) need nothing else.
void PackGroup(tensor::DType dtype, int64_t k, const std::array<const std::byte*, kGroupRows>& rows,
               std::byte* packed);

/// Packs groups [group_begin, group_end) of the matrix whose row i is source row `row_index[i]`
/// (i itself when row_index is null; -1 = zeros); rows at or beyond n are zeros. `packed` is the
/// start of the whole packed matrix.
void PackRows(tensor::DType dtype, int64_t n, int64_t k, const std::byte* source,
              int64_t source_row_bytes, const int64_t* row_index, int64_t group_begin,
              int64_t group_end, std::byte* packed);

/// Float32 values of packed row `row`; equal to tensor::RowToFloat of the source, bit for bit.
void UnpackRow(tensor::DType dtype, int64_t k, const std::byte* packed, int64_t row, float* out);

}  // namespace tessera::kernels
