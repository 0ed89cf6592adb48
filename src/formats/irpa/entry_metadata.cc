// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/entry_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "formats/limits.h"
#include "tensor/known_dtypes.h"

namespace tessera::formats::irpa {
namespace {

constexpr std::string_view kPytorchPrefix = "PYTORCH:";
constexpr std::string_view kTensorV0Prefix = "TENSORv0:";
constexpr uint32_t kMaxJsonDepth = 8;

Result<tensor::DType> ReadDType(const json::Object& object) {
  TESSERA_ASSIGN_OR_RETURN(const std::string name, json::NeedString(object, "dtype"));
  if (const auto dtype = tensor::FindByTorchName(name); dtype.has_value()) return *dtype;
  return Fail(Unimplemented(fmt::format("unknown dtype {}, expected one of {}", name.substr(0, 40),
                                        tensor::KnownTorchNames())));
}

Result<tensor::Shape> ReadShape(const json::Object& object) {
  const json::Value* value = json::Find(object, "shape");
  if (value == nullptr || !value->is_array())
    return Fail(InvalidArgument(fmt::format(
        "shape is {}, expected an array", value == nullptr ? "missing" : json::KindName(*value))));
  const json::Array& array = value->as_array();
  if (array.size() > kMaxRank)
    return Fail(InvalidArgument(
        fmt::format("shape has {} dimensions, expected at most {}", array.size(), kMaxRank)));
  std::vector<int64_t> dims;
  for (const json::Value& dim : array) {
    if (!dim.is_int64())
      return Fail(InvalidArgument(
          fmt::format("shape has {}, expected integers", json::Serialize(dim).substr(0, 40))));
    dims.push_back(dim.get_int64());
  }
  tensor::Shape shape(std::move(dims));
  TESSERA_RETURN_IF_ERROR(StatusOf(shape.Elements()));
  return shape;
}

enum class Kind : uint8_t { kUnsigned, kSigned, kFloat, kComplex };

Kind KindOf(tensor::DType dtype) {
  using tensor::DType;
  switch (dtype) {
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return Kind::kSigned;
    case DType::kBool:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return Kind::kUnsigned;
    case DType::kComplex64:
    case DType::kComplex128:
      return Kind::kComplex;
    default:
      return Kind::kFloat;
  }
}

// numpy's class of a dtype: "float16" -> "Float16DType", "uint8" -> "UInt8DType".
std::string NumpyClass(std::string_view torch_name) {
  std::string name(torch_name);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  if (name.starts_with("Uint")) name[1] = 'I';
  return name + "DType";
}

}  // namespace

Result<std::optional<TensorType>> ParseEntryMetadata(std::string_view text) {
  for (const std::string_view prefix : {kPytorchPrefix, kTensorV0Prefix}) {
    if (!text.starts_with(prefix)) continue;
    if (text.size() > kMaxIrpaMetadataBytes)
      return Fail(ResourceExhausted(fmt::format("metadata has {} bytes, more than the limit of {}",
                                                text.size(), kMaxIrpaMetadataBytes)));
    json::Limits limits;
    limits.max_bytes = kMaxIrpaMetadataBytes;
    limits.max_depth = kMaxJsonDepth;
    TESSERA_ASSIGN_OR_RETURN(const json::Value value,
                             json::Parse(text.substr(prefix.size()), limits, "metadata"));
    if (!value.is_object())
      return Fail(InvalidArgument(
          fmt::format("metadata is {}, expected an object", json::KindName(value))));
    const json::Object& object = value.as_object();
    TESSERA_ASSIGN_OR_RETURN(const std::string type, json::NeedString(object, "type"));
    if (type != "Tensor")
      return Fail(InvalidArgument(
          fmt::format("metadata: type is {}, expected Tensor", type.substr(0, 40))));
    TensorType result;
    TESSERA_ASSIGN_OR_RETURN(result.dtype, ReadDType(object));
    TESSERA_ASSIGN_OR_RETURN(result.shape, ReadShape(object));
    return result;
  }
  return std::nullopt;
}

Result<std::string> MakeEntryMetadata(MetadataStyle style, const TensorType& type) {
  const tensor::DTypeInfo& info = tensor::Info(type.dtype);
  if (info.torch.empty())
    return Fail(Unimplemented(
        fmt::format("{} has no name in IRPA metadata; store its planes or a blob", info.name)));
  const Kind kind = KindOf(type.dtype);
  const bool is_pytorch = style == MetadataStyle::kPytorch;
  // torch calls floats and complex numbers signed, numpy does not.
  const bool is_signed =
      kind == Kind::kSigned || (is_pytorch && (kind == Kind::kFloat || kind == Kind::kComplex));
  return fmt::format(
      R"({}{{"type": "Tensor", "dtype": "{}", "shape": [{}], "dtype_desc": {{"class_name": "{}", )"
      R"("is_complex": {}, "is_floating_point": {}, "is_signed": {}, "itemsize": {}}}}})",
      is_pytorch ? kPytorchPrefix : kTensorV0Prefix, info.torch, fmt::join(type.shape.dims(), ", "),
      is_pytorch ? "dtype" : NumpyClass(info.torch), kind == Kind::kComplex, kind == Kind::kFloat,
      is_signed, info.block_bytes);
}

}  // namespace tessera::formats::irpa
