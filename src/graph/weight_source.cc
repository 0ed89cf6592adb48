// SPDX-License-Identifier: Apache-2.0
#include "graph/weight_source.h"

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"

namespace tessera::graph {
namespace {

/// FNV-1a: spreads names over seeds; collisions would only repeat numbers.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

Result<std::span<const float>> RandomWeights::Load(const std::string& name,
                                                   const tensor::Shape& shape) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t elements, shape.Elements());
  std::vector<float>& values = loaded_[name];
  if (values.empty()) {
    Random random(seed_ ^ HashName(name));
    const double deviation = 1.0 / std::sqrt(static_cast<double>(shape.columns()));
    const double mean = shape.rank() < 2 ? 1.0 : 0.0;
    values.resize(static_cast<size_t>(elements));
    for (float& value : values) value = static_cast<float>(mean + deviation * random.Normal());
  }
  if (static_cast<int64_t>(values.size()) != elements) {
    return Fail(InvalidArgument(fmt::format("weight {} was made with {} elements, asked for {}",
                                            name, values.size(), shape.ToString())));
  }
  return std::span<const float>(values);
}

}  // namespace tessera::graph
