// SPDX-License-Identifier: Apache-2.0
//
// A matrix of float8 e4m3 numbers with scales of a tensor, of rows, or of blocks: weight = number *
// scale. Rows become F16, each product rounded once (at most 2^-11 of it, as the kernels of other
// engines do it in bfloat16); F32 where F16 would overflow.
#pragma once

#include <memory>
#include <string>

#include "formats/parameter_index.h"
#include "model/quantised/quantisation_config.h"

namespace tessera::model {

struct ScaledRows {
  tensor::DType dtype = tensor::DType::kF16;
  std::shared_ptr<const formats::RowMaker> rows;
};

/// `weight` is NAME.weight; its scales are NAME.weight_scale or NAME.weight_scale_inv, which
/// despite its name is multiplied, too. kInvalidArgument when there are none, or of another shape
/// than one value, a value a row, or a value a block of the config's size.
Result<ScaledRows> OpenScaledFp8(const formats::ParameterIndex& index,
                                 const formats::ParameterEntry& weight,
                                 const Quantisation& quantisation);

}  // namespace tessera::model
