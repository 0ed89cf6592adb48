// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a quantised repository as weights of the model: each group of packed tensors
// becomes one NAME.weight whose rows are made when they are read (packed_rows.h, scaled_fp8.h).
#pragma once

#include <string>
#include <vector>

#include "formats/parameter_index.h"
#include "model/model_config.h"
#include "model/quantised/quantisation_config.h"

namespace tessera::model {

/// `stored` as the files have it; the result keeps its files. Dropped: what belongs to packed
/// matrices, scales of activations (with a warning), and biases of zeros that GPTQ writers add
/// where the model has none. Warnings say which formats came out, and why where codes were not
/// kept. kInvalidArgument names a tensor that is missing or does not fit its neighbours.
Result<formats::ParameterIndex> OpenQuantised(const formats::ParameterIndex& stored,
                                              const Quantisation& quantisation,
                                              const ModelConfig& config,
                                              std::vector<std::string>& warnings);

}  // namespace tessera::model
