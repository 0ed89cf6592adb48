// SPDX-License-Identifier: Apache-2.0
#include "model/index_weights.h"

#include <fmt/format.h>

#include "tensor/convert.h"

namespace tessera::model {

Result<std::span<const float>> IndexWeights::Load(const std::string& name,
                                                  const tensor::Shape& shape) {
  const auto found = loaded_.find(name);
  const formats::ParameterEntry* entry = index_.Find(name);
  if (entry == nullptr) return Fail(NotFound(fmt::format("no weight {}", name)));
  if (!tensor::SameButForLeadingOnes(entry->shape, shape)) {
    return Fail(InvalidArgument(fmt::format("weight {} has shape {}, expected {}", name,
                                            entry->shape.ToString(), shape.ToString())));
  }
  if (found != loaded_.end()) return std::span<const float>(found->second);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  if (entry->splat || entry->rows != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, index_.Materialise(*entry));
    TESSERA_RETURN_IF_ERROR(tensor::ToFloat(entry->dtype, bytes, values).WithContext(name));
  } else {
    const tensor::TensorView view = index_.View(*entry);
    TESSERA_RETURN_IF_ERROR(tensor::ToFloat(view.dtype, view.bytes, values).WithContext(name));
  }
  return std::span<const float>(loaded_.emplace(name, std::move(values)).first->second);
}

}  // namespace tessera::model
