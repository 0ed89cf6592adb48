// SPDX-License-Identifier: Apache-2.0
//
// A planar quantised tensor of a dataset (scales, codes and offsets in planes of their own) as rows
// of one dtype. Where a block format holds the same numbers, the planes become its blocks and no
// bit is lost; everything else becomes float32.
//
//   BlockScaledLayout    d*qs (+m)      int8 codes, f16 scales, no offset    -> Q8_0
//   BlockScaledI4Layout  d*qs (+m)      unsigned codes -> Q4_1, signed without offset -> Q4_0
//   SuperBlockOffsetScaled_4_6_Layout   -> Q4_K
//   BlockScaledFp4Layout d*fp4          blocks of 32, exponent scales        -> MXFP4
//   TensorScaledLayout   d*(qs-m)       int8 codes, f16 scale per tensor or row, no offset -> Q8_0
//
// Blocks longer than 32 that are multiples of 32 become several with the same scale.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

struct Planes {
  std::string layout_type;
  const json::Object* metadata = nullptr;  // layout_metadata; never null.
  tensor::Shape shape;                     // Of the whole tensor, unblocked.
  std::vector<std::pair<std::string, const ParameterEntry*>> entries;  // By plane: "d", "qs", ...

  const ParameterEntry* Find(std::string_view plane) const;
};

struct MadeRows {
  tensor::DType dtype = tensor::DType::kF32;
  std::shared_ptr<const RowMaker> rows;
};

/// kInvalidArgument when a plane is missing or of the wrong shape or dtype, kUnimplemented for a
/// layout that is not in the table above. The result keeps mappings alive, not the index.
Result<MadeRows> OpenPlanes(const ParameterIndex& index, const Planes& planes);

}  // namespace tessera::formats::irpa
