// SPDX-License-Identifier: Apache-2.0
//
// A dataset's logical tensors as parameters: planes become rows of a block format (planar_rows.h),
// shards are joined along their dimension, unreduced shards are added up in float32, a replicated
// tensor is its one copy. Names are those of the logical tensors.
#pragma once

#include "formats/irpa/dataset.h"
#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

/// `archive` with its rank files. Entries that stand in a file stay views of it; the others have
/// RowMakers. files() are those of `archive`, with `metadata` as the metadata of the first.
/// kInvalidArgument names the tensor and what does not fit, kUnimplemented a type or layout that
/// has no meaning as a weight.
Result<ParameterIndex> OpenLogical(const ParameterIndex& archive, const Dataset& dataset,
                                   Metadata metadata);

}  // namespace tessera::formats::irpa
