// SPDX-License-Identifier: Apache-2.0
#include "compiler/weight_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "kernels/pack.h"
#include "tensor/convert.h"
#include "tensor/transcode.h"

namespace tessera::compiler {
namespace {

using tensor::DType;

struct Quantisation {
  std::string_view name;
  DType base;
  DType ends;       // Head and table.
  DType sensitive;  // Some value and down projections.
};
constexpr std::array<Quantisation, 5> kQuantisations = {{
    {"q8_0", DType::kQ8_0, DType::kQ8_0, DType::kQ8_0},
    {"q6_k", DType::kQ6_K, DType::kQ6_K, DType::kQ6_K},
    {"q4_1", DType::kQ4_1, DType::kQ6_K, DType::kQ4_1},
    {"q4_k", DType::kQ4_K, DType::kQ6_K, DType::kQ6_K},
    {"q4_0", DType::kQ4_0, DType::kQ6_K, DType::kQ4_0},
}};
constexpr std::array<std::string_view, kQuantisations.size()> kNames = [] {
  std::array<std::string_view, kQuantisations.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kQuantisations[i].name;
  return names;
}();

const Quantisation* FindQuantisation(std::string_view name) {
  const auto found = std::ranges::find(kQuantisations, name, &Quantisation::name);
  return found == kQuantisations.end() ? nullptr : &*found;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

/// The layers whose errors all later ones inherit, those that no later one can mend, and some
/// between: the choice that llama.cpp's users measured.
bool IsSensitive(const MatrixRole& role) {
  if (role.kind != MatrixRole::Kind::kValue && role.kind != MatrixRole::Kind::kDown) return false;
  const int64_t eighth = role.layers / 8;
  return role.layer < eighth || role.layer >= role.layers - eighth ||
         (role.layer - eighth) % 3 == 2;
}

DType TypeFor(const Quantisation& quantisation, const MatrixRole& role) {
  if (role.kind == MatrixRole::Kind::kTable || role.kind == MatrixRole::Kind::kHead)
    return quantisation.ends;
  return IsSensitive(role) ? quantisation.sensitive : quantisation.base;
}

/// The nearest format with kernels, for one without.
std::optional<tensor::Transcoding> Substitute(DType dtype) {
  if (const auto transcoding = tensor::TranscodingOf(dtype)) return transcoding;
  switch (dtype) {
    case DType::kF64:
      return tensor::Transcoding{DType::kF32, true};
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz:
      return tensor::Transcoding{DType::kF16, true};
    case DType::kQ2_K:
    case DType::kIQ1_M:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return tensor::Transcoding{DType::kF16, false};
    default:
      return std::nullopt;
  }
}

/// Matrices with fewer inputs than this hold BF16 as F32. Kernels round the activations of BF16
/// weights to bfloat16 (docs/design/0005); that pays where multiplying takes the time, and narrow
/// models, whose weights are small in any format, keep the precision of float32 instead.
constexpr int64_t kBFloat16Inputs = 512;

WeightFormat Quantised(DType source, DType to) {
  return {to, fmt::format("quantised from {}", tensor::Name(source)), true, false};
}

}  // namespace

std::optional<DType> QuantisedType(std::string_view quantize, const MatrixRole& role, int64_t k) {
  const Quantisation* quantisation = FindQuantisation(quantize);
  if (quantisation == nullptr) return std::nullopt;
  DType type = TypeFor(*quantisation, role);
  if (!kernels::CanPack(type, k)) {
    if (type == DType::kQ4_K) type = DType::kQ5_0;
    if (type == DType::kQ6_K) type = DType::kQ8_0;
  }
  if (!kernels::CanPack(type, k)) return std::nullopt;
  return type;
}

std::span<const std::string_view> Quantisations() {
  return kNames;
}

Status CheckQuantize(std::string_view quantize) {
  if (quantize == "none" || FindQuantisation(quantize) != nullptr) return {};
  return InvalidArgument(fmt::format("quantize \"{:.40}\" is not known; expected none, auto, {}",
                                     quantize, fmt::join(kNames, ", ")));
}

Result<WeightFormat> ChooseMatrixFormat(DType source, int64_t k, std::string_view quantize,
                                        const MatrixRole& role) {
  if (IsFloat(source))
    if (const auto type = QuantisedType(quantize, role, k)) return Quantised(source, *type);
  if (source == DType::kBF16 && k < kBFloat16Inputs)
    return WeightFormat{DType::kF32, "converted from BF16", false, true,
                        "rows this short gain little from bfloat16 arithmetic, which rounds more"};
  if (kernels::CanPack(source, k)) return WeightFormat{source, ""};
  std::optional<tensor::Transcoding> substitute = Substitute(source);
  if (substitute && !substitute->exact && quantize == kExactFormats)
    substitute = {DType::kF32, true};
  if (substitute && kernels::CanPack(substitute->to, k))
    return WeightFormat{substitute->to, fmt::format("converted from {}", tensor::Name(source)),
                        false, substitute->exact,
                        substitute->exact
                            ? "no kernel computes with it; every value is kept"
                            : "no kernel computes with it; each weight is rounded once"};
  return Fail(Unimplemented(
      fmt::format("the cpu target has no kernel for {} weights with {} inputs and knows no format "
                  "that holds them: store them as BF16, F16 or F32",
                  tensor::Name(source), k)));
}

Result<WeightFormat> ChooseTableFormat(DType source, int64_t k, std::string_view quantize) {
  if (!tensor::CanConvertToFloat(source))
    return Fail(Unimplemented(fmt::format("of type {}", tensor::Name(source))));
  if (IsFloat(source))
    if (const auto type = QuantisedType(quantize, {.kind = MatrixRole::Kind::kTable}, k))
      return Quantised(source, *type);
  return WeightFormat{source, ""};
}

}  // namespace tessera::compiler
