// SPDX-License-Identifier: Apache-2.0
//
// Weights bound for a machine: pointers into the mapped archive, and the kernels that read them.
// Immutable after binding; any worker may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/topology.h"
#include "bundle/program.h"
#include "formats/parameter_index.h"
#include "kernels/matmul.h"
#include "runtime/arena.h"

namespace tessera::runtime {

struct BoundWeight {
  const std::byte* data = nullptr;  // In the mapping, aligned to 64.
  bundle::WeightLayout layout = bundle::WeightLayout::kPacked8;
  tensor::DType dtype = tensor::DType::kF32;
  int64_t n = 0;
  int64_t k = 0;
  int64_t segments = 1;
  int64_t group_bytes = 0;    // Packed: bytes of eight output rows.
  int64_t segment_bytes = 0;  // Layout kSegments: of one of `segments` packed matrices.
  // Packed: what activations it reads.
  bundle::BufferKind input = bundle::BufferKind::kFloat;
  kernels::MatmulFn one = nullptr;   // Packed: for one row,
  kernels::MatmulFn many = nullptr;  // and for more.

  const float* vector() const { return reinterpret_cast<const float*>(data); }
};

/// One per weight of the program, in its order. The program and the archive have been verified
/// against each other; this checks what only the kernels know: kDataLoss when a packed size is not
/// that of the format, kUnimplemented when no kernel computes a format.
/// Splats are given bytes of their own in `splats` (arena.h), which must live as long.
Result<std::vector<BoundWeight>> BindWeights(const bundle::Program& program,
                                             const formats::ParameterIndex& archive, const Isa& isa,
                                             std::vector<Mapping>* splats);

/// Bytes that the splats of a program take when they are bound; those of zeros take none.
uint64_t SplatBytes(const bundle::Program& program, const formats::ParameterIndex& archive);

}  // namespace tessera::runtime
