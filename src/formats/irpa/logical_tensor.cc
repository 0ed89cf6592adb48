// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/logical_tensor.h"

#include <fmt/format.h>

#include "formats/limits.h"

namespace tessera::formats::irpa {
namespace {

Result<tensor::Shape> ReadShape(const json::Value& value) {
  if (!value.is_array())
    return Fail(
        InvalidArgument(fmt::format("shape is {}, expected an array", json::KindName(value))));
  if (value.as_array().size() > kMaxRank)
    return Fail(InvalidArgument(fmt::format("shape has {} dimensions, expected at most {}",
                                            value.as_array().size(), kMaxRank)));
  std::vector<int64_t> dims;
  for (const json::Value& dim : value.as_array()) {
    if (!dim.is_int64()) return Fail(InvalidArgument("shape has something else than integers"));
    dims.push_back(dim.get_int64());
  }
  tensor::Shape shape(std::move(dims));
  TESSERA_RETURN_IF_ERROR(StatusOf(shape.Elements()));
  return shape;
}

Result<const json::Object*> NeedObject(const json::Object& object, std::string_view key) {
  const json::Value* value = json::Find(object, key);
  if (value == nullptr || !value->is_object())
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an object", key,
                                    value == nullptr ? "missing" : json::KindName(*value))));
  return &value->get_object();
}

Status ReadParts(const ParameterIndex& index, const json::Object& raw_tensors,
                 LogicalTensor& tensor) {
  for (const auto& [local, global] : raw_tensors) {
    if (!global.is_string())
      return InvalidArgument(fmt::format("raw_tensors: \"{:.40}\" is {}, expected a name",
                                         std::string_view(local), json::KindName(global)));
    const std::string_view name = global.get_string();
    const ParameterEntry* entry = index.Find(name);
    if (entry == nullptr)
      return InvalidArgument(fmt::format("the archive has no entry {:.200}", name));
    if (!entry->is_tensor)
      return InvalidArgument(fmt::format("entry {:.200} has no dtype and shape", name));
    tensor.parts.emplace_back(local, entry);
  }
  return {};
}

Result<LogicalTensor> ReadOne(const ParameterIndex& index, const json::Object& description) {
  LogicalTensor tensor;
  TESSERA_ASSIGN_OR_RETURN(tensor.type_name, json::NeedString(description, "type_name"));
  TESSERA_ASSIGN_OR_RETURN(const json::Object* raw, NeedObject(description, "raw_tensors"));
  TESSERA_RETURN_IF_ERROR(ReadParts(index, *raw, tensor));
  TESSERA_ASSIGN_OR_RETURN(tensor.layout_type, json::GetString(description, "layout_type", ""));
  if (json::Find(description, "layout_metadata") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(const json::Object* metadata,
                             NeedObject(description, "layout_metadata"));
    tensor.layout_metadata = *metadata;
  }
  TESSERA_ASSIGN_OR_RETURN(tensor.shard_count, json::GetInt(description, "shard_count", 1));
  if (tensor.shard_count < 1 || tensor.shard_count > static_cast<int64_t>(kMaxIrpaRanks))
    return Fail(InvalidArgument(
        fmt::format("shard_count is {}, expected 1 to {}", tensor.shard_count, kMaxIrpaRanks)));
  TESSERA_ASSIGN_OR_RETURN(tensor.shard_dim, json::GetInt(description, "shard_dim", -1));
  if (const json::Value* shape = json::Find(description, "shape")) {
    TESSERA_ASSIGN_OR_RETURN(tensor.shape, ReadShape(*shape));
  } else if (const ParameterEntry* whole = tensor.Part("")) {
    tensor.shape = whole->shape;
  }
  return tensor;
}

}  // namespace

const ParameterEntry* LogicalTensor::Part(std::string_view local) const {
  for (const auto& [part, entry] : parts)
    if (part == local) return entry;
  return nullptr;
}

Result<std::vector<LogicalTensor>> ReadLogicalTensors(const ParameterIndex& index,
                                                      const Dataset& dataset) {
  if (dataset.inference_tensors.size() > kMaxTensors)
    return Fail(ResourceExhausted(fmt::format("{} inference tensors, more than the limit of {}",
                                              dataset.inference_tensors.size(), kMaxTensors)));
  std::vector<LogicalTensor> tensors;
  for (const auto& [key, description] : dataset.inference_tensors) {
    const std::string_view name = key;
    const std::string where = fmt::format("inference tensor {:.200}", name);
    if (name.size() > kMaxTensorNameBytes)
      return Fail(ResourceExhausted(fmt::format("{}: the name has {} bytes, more than {}", where,
                                                name.size(), kMaxTensorNameBytes)));
    if (!description.is_object())
      return Fail(InvalidArgument(
          fmt::format("{} is {}, expected an object", where, json::KindName(description))));
    Result<LogicalTensor> tensor = ReadOne(index, description.get_object());
    if (!tensor.has_value()) return Fail(std::move(tensor).error().WithContext(where));
    tensor->name = name;
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace tessera::formats::irpa
