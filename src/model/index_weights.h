// SPDX-License-Identifier: Apache-2.0
//
// IndexWeights: the weights of a ParameterIndex as float32 for the reference interpreter. Each is
// converted at its first use and kept, so memory grows to 4 bytes a parameter: for tests and small
// models, not for serving.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "formats/parameter_index.h"
#include "graph/weight_source.h"

namespace tessera::model {

class IndexWeights : public graph::WeightSource {
 public:
  /// `index` must outlive this object.
  explicit IndexWeights(const formats::ParameterIndex& index) : index_(index) {}
  Result<std::span<const float>> Load(const std::string& name, const tensor::Shape& shape) override;

 private:
  const formats::ParameterIndex& index_;
  std::unordered_map<std::string, std::vector<float>> loaded_;
};

}  // namespace tessera::model
