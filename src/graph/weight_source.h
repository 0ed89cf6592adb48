// SPDX-License-Identifier: Apache-2.0
//
// WeightSource: where the interpreter reads weights. The layers below know no files, so whoever has
// some (model/index_weights.h) or makes some up (RandomWeights, for tests of passes) implements it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/shape.h"

namespace tessera::graph {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// All elements, row-major. The span is valid as long as the source. kNotFound, or
  /// kInvalidArgument when the stored shape is another; both name the weight.
  virtual Result<std::span<const float>> Load(const std::string& name,
                                              const tensor::Shape& shape) = 0;
};

/// Normal numbers that depend on seed, name and index only, of deviation 1 / sqrt(columns) so that
/// activations keep their size; vectors (norms, biases) are spread around 1.
class RandomWeights : public WeightSource {
 public:
  explicit RandomWeights(uint64_t seed) : seed_(seed) {}
  Result<std::span<const float>> Load(const std::string& name, const tensor::Shape& shape) override;

 private:
  uint64_t seed_;
  std::map<std::string, std::vector<float>> loaded_;
};

}  // namespace tessera::graph
