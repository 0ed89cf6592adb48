// SPDX-License-Identifier: Apache-2.0
//
// WeightLedger: which weights a model wants and which a file has. Building a graph asks for each
// weight here; at the end everything that does not fit is reported at once, by name.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "formats/parameter_index.h"
#include "graph/builder.h"
#include "model/model_config.h"

namespace tessera::model {

class WeightLedger {
 public:
  /// Both must outlive the ledger. Without index nothing is checked.
  WeightLedger(const formats::ParameterIndex* index, graph::Builder& builder)
      : index_(index), builder_(builder) {}

  /// A parameter node for the weight; notes whether the file has it with this shape and a type that
  /// converts to numbers.
  graph::ValueId Want(const std::string& name, const tensor::Shape& shape);

  /// kInvalidArgument with what is missing, misshapen, of an unusable type, or wanted by nobody.
  Status Finish(const ModelConfig& config) const;

 private:
  const formats::ParameterIndex* index_;
  graph::Builder& builder_;
  std::unordered_set<std::string> wanted_;
  std::vector<std::string> missing_;
  std::vector<std::string> misfits_;
};

}  // namespace tessera::model
