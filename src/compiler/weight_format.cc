// SPDX-License-Identifier: Apache-2.0
#include "compiler/weight_format.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "kernels/pack.h"
#include "tensor/transcode.h"

namespace tessera::compiler {
namespace {

using tensor::DType;

constexpr std::array<std::pair<std::string_view, DType>, 3> kQuantizers = {
    {{"q8_0", DType::kQ8_0}, {"q4_0", DType::kQ4_0}, {"q4_1", DType::kQ4_1}}};

std::optional<DType> QuantizerOf(std::string_view name) {
  for (const auto& [known, dtype] : kQuantizers)
    if (known == name) return dtype;
  return std::nullopt;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

/// The nearest format with kernels, for one without.
std::optional<DType> Substitute(DType dtype) {
  if (const auto transcoding = tensor::TranscodingOf(dtype)) return transcoding->to;
  switch (dtype) {
    case DType::kF64:
      return DType::kF32;
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz:
      return DType::kF16;
    case DType::kQ2_K:
    case DType::kIQ1_M:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return DType::kF16;
    default:
      return std::nullopt;
  }
}

/// Matrices with fewer inputs than this hold BF16 as F32. Kernels round the activations of BF16
/// weights to bfloat16 (docs/design/0005); that pays where multiplying takes the time, and narrow
/// models, whose weights are small in any format, keep the precision of float32 instead.
constexpr int64_t kBFloat16Inputs = 512;

}  // namespace

Status CheckQuantize(const std::string& quantize) {
  if (quantize == "none" || QuantizerOf(quantize)) return {};
  return InvalidArgument(
      fmt::format("quantize \"{:.40}\" is not known; expected none, q8_0, q4_0 or q4_1", quantize));
}

Result<WeightFormat> ChooseMatrixFormat(DType source, int64_t k, const std::string& quantize) {
  const std::optional<DType> quantizer = QuantizerOf(quantize);
  if (quantizer && IsFloat(source) && kernels::CanPack(*quantizer, k))
    return WeightFormat{*quantizer, fmt::format("quantised from {}", tensor::Name(source))};
  if (source == DType::kBF16 && k < kBFloat16Inputs)
    return WeightFormat{DType::kF32, "converted from BF16"};
  if (kernels::CanPack(source, k)) return WeightFormat{source, ""};
  const std::optional<DType> substitute = Substitute(source);
  if (substitute && kernels::CanPack(*substitute, k))
    return WeightFormat{*substitute, fmt::format("converted from {}", tensor::Name(source))};
  return Fail(Unimplemented(
      fmt::format("the cpu target has no kernel for {} weights with {} inputs and knows no format "
                  "that holds them",
                  tensor::Name(source), k)));
}

Result<WeightFormat> MatrixFormatOf(const formats::ParameterIndex& index, const std::string& name,
                                    const std::string& quantize) {
  const formats::ParameterEntry* entry = index.Find(name);
  if (entry == nullptr) return Fail(NotFound(fmt::format("parameter {}", name)));
  Result<WeightFormat> format = ChooseMatrixFormat(entry->dtype, entry->shape.columns(), quantize);
  if (!format.has_value()) return Fail(format.error().WithContext(name));
  return format;
}

}  // namespace tessera::compiler
