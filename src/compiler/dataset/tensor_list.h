// SPDX-License-Identifier: Apache-2.0
//
// The tensors of the dataset that is made of a model: GGUF names in sharktank's order, each with
// the rows of the source that it consists of.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/module.h"
#include "formats/parameter_index.h"
#include "model/open.h"

namespace tessera::compiler {

struct DatasetTensor {
  std::string name;                                // "blk.0.attn_q.weight"
  const formats::ParameterEntry* entry = nullptr;  // Null: `made` holds it.
  /// Source rows (elements of a vector) in their new order; empty: as they are.
  RowRuns order;
  tensor::DType dtype = tensor::DType::kF32;  // As the source has it.
  tensor::Shape shape;
  std::vector<float> made;
};

/// A dataset's and a GGUF's tensors keep names and bytes. Those of a Hugging Face repository are
/// renamed, and the rows of q and k put in the order that GGUF has for the family (rotary pairs
/// side by side). Order: as in the source, members of one module together, as sharktank's nested
/// tables give it; for repositories by layers. kInvalidArgument for weights that do not fit the
/// config.
Result<std::vector<DatasetTensor>> ListDatasetTensors(const model::ModelSource& source);

}  // namespace tessera::compiler
