// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/describe_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/irpa/logical_tensor.h"
#include "formats/printable.h"

namespace tessera::formats::irpa {
namespace {

constexpr size_t kTextBytes = 100;
constexpr size_t kMaxNameColumn = 48;

json::Value Shortened(const json::Value& value, size_t items) {
  const json::Array* array = value.if_array();
  if (array == nullptr || array->size() <= items) return value;
  json::Array first(array->begin(), array->begin() + static_cast<int64_t>(items));
  return json::Object{{"count", array->size()}, {"first", std::move(first)}};
}

json::Array ShapeJson(const tensor::Shape& shape) {
  json::Array dims;
  for (const int64_t dim : shape.dims()) dims.emplace_back(dim);
  return dims;
}

json::Object TensorJson(const LogicalTensor& tensor) {
  json::Object out;
  out["name"] = ValidUtf8(tensor.name);
  out["type_name"] = ValidUtf8(tensor.type_name);
  out["shape"] = ShapeJson(tensor.shape);
  if (!tensor.layout_type.empty()) out["layout_type"] = ValidUtf8(tensor.layout_type);
  if (!tensor.layout_metadata.empty()) out["layout_metadata"] = tensor.layout_metadata;
  if (tensor.shard_count > 1) out["shard_count"] = tensor.shard_count;
  if (tensor.shard_dim >= 0) out["shard_dim"] = tensor.shard_dim;
  json::Object parts;
  for (const auto& [local, entry] : tensor.parts)
    parts[ValidUtf8(local)] = json::Object{{"entry", ValidUtf8(entry->name)},
                                           {"dtype", tensor::Name(entry->dtype)},
                                           {"shape", ShapeJson(entry->shape)}};
  out["parts"] = std::move(parts);
  return out;
}

std::string PropertyText(const json::Value& value) {
  const json::Array* array = value.if_array();
  if (array != nullptr && array->size() > 8) return fmt::format("[... {} items]", array->size());
  return Printable(json::Serialize(value), kTextBytes);
}

/// "dim 0 of 2", "2 copies", "sum of 2", or nothing.
std::string SplitText(const LogicalTensor& tensor) {
  if (tensor.type_name == kSplitTensor)
    return fmt::format("dim {} in {}", tensor.shard_dim, tensor.shard_count);
  if (tensor.type_name == kReplicatedTensor) return fmt::format("once for {}", tensor.shard_count);
  if (tensor.type_name == kUnreducedTensor) return fmt::format("sum of {}", tensor.shard_count);
  return "";
}

/// "d F16, qs U8": the parts of one tensor or of its first shard.
std::string PartsText(const LogicalTensor& tensor) {
  std::string out;
  for (const auto& [local, entry] : tensor.parts) {
    if (tensor.type_name == kSplitTensor && !local.starts_with('0')) continue;
    const std::string name =
        local.empty() || local == "0" ? "" : Printable(local, kTextBytes) + " ";
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", name, tensor::Name(entry->dtype));
  }
  return out;
}

}  // namespace

Result<std::string> DescribeDatasetText(const ParameterIndex& index, const Dataset& dataset) {
  TESSERA_ASSIGN_OR_RETURN(const auto tensors, ReadLogicalTensors(index, dataset));
  std::string out =
      fmt::format("\ndataset ({} keys), {} rank{}\n", Keys(dataset.generation).properties,
                  std::max<size_t>(dataset.ranks.size(), 1), dataset.ranks.size() > 1 ? "s" : "");
  for (const auto& [key, value] : dataset.properties)
    out += fmt::format("  {:<44}  {}\n", Printable(std::string_view(key), kTextBytes),
                       PropertyText(value));
  size_t width = 14;
  for (const LogicalTensor& tensor : tensors)
    width = std::max(width, std::min(tensor.name.size(), kMaxNameColumn));
  out += fmt::format("\n{:<{}}  {:<12}  {:<22}  {:<34}  {:<14}  parts\n", "logical tensor", width,
                     "shape", "type", "layout", "split");
  for (const LogicalTensor& tensor : tensors)
    out += fmt::format("{:<{}}  {:<12}  {:<22}  {:<34}  {:<14}  {}\n",
                       Printable(tensor.name, kTextBytes), width, tensor.shape.ToString(),
                       Printable(tensor.type_name, kTextBytes),
                       tensor.layout_type.empty() ? "-" : Printable(tensor.layout_type, kTextBytes),
                       SplitText(tensor), PartsText(tensor));
  return out;
}

Result<json::Value> DescribeDatasetJson(const ParameterIndex& index, const Dataset& dataset,
                                        size_t array_items) {
  TESSERA_ASSIGN_OR_RETURN(const auto tensors, ReadLogicalTensors(index, dataset));
  json::Object properties;
  for (const auto& [key, value] : dataset.properties)
    properties[key] = Shortened(value, array_items);
  json::Array list;
  for (const LogicalTensor& tensor : tensors) list.push_back(TensorJson(tensor));
  return json::Object{
      {"generation", dataset.generation == KeyGeneration::kShark ? "SHARK" : "AMD_SHARK"},
      {"ranks", std::max<size_t>(dataset.ranks.size(), 1)},
      {"properties", std::move(properties)},
      {"tensors", std::move(list)}};
}

}  // namespace tessera::formats::irpa
