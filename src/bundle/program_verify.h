// SPDX-License-Identifier: Apache-2.0
//
// The verifier of programs: run after lowering and on every program that is loaded. What it accepts
// the runtime executes without further checks, except that weights have the bytes they claim, which
// is proven when they are bound (it needs the packed layouts of kernels/).
#pragma once

#include "base/status.h"
#include "bundle/program.h"
#include "formats/parameter_index.h"

namespace tessera::bundle {

/// Success when all of these hold, else kInvalidArgument naming step or weight and what was
/// expected:
///  1. dims fit each other: kv_heads divides heads, head_dim is a multiple of 8 and at most 256,
///     page_tokens a multiple of 16;
///  2. every index points into its table; ropes have rotary_dim / 2 finite frequencies;
///  3. weights: whole segments, of whole blocks; vectors are F32 rows; buffers of kind q8 or
///     bf16 have whole blocks of 32 columns;
///  4. the steps are: embed, then qkv, attention, project, gated, project for layers 0, 1, ... in
///     order, then head;
///  5. shapes agree along every step, and a buffer has the kind its reader's weight needs.
Status VerifyProgram(const Program& program);

/// Every weight's entry is in the archive once, with its bytes, in the file's bounds (the index has
/// checked those) and aligned to 64, or as a splat of so many bytes. kDataLoss naming the entry.
Status VerifyArchive(const Program& program, const formats::ParameterIndex& archive);

/// What the matmul of this format reads: int8 codes, bfloat16 or float32. Equal to the kernels' own
/// rule.
BufferKind InputKind(tensor::DType dtype);

}  // namespace tessera::bundle
