// SPDX-License-Identifier: Apache-2.0
#include "compiler/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/file.h"
#include "base/hash.h"
#include "model/weight_names.h"

namespace tessera::compiler {
namespace {

using model::kGgufNames;
using model::kHfNames;
using model::WeightNames;

constexpr std::array<std::string_view WeightNames::*, 7> kLayerMatrices = {
    &WeightNames::q,    &WeightNames::k,  &WeightNames::v,   &WeightNames::o,
    &WeightNames::gate, &WeightNames::up, &WeightNames::down};
constexpr std::array<std::string_view WeightNames::*, 2> kModelMatrices = {&WeightNames::embedding,
                                                                           &WeightNames::head};

/// Of the mean. An input that the measured text never used still counts a little: a group of such
/// inputs is fitted as if nothing were known of it, instead of being stored as one constant.
constexpr double kLeastImportance = 1e-4;

/// Values of any scale to values with mean 1 (but for the least): sums over rows stay far from
/// float's ends.
void Normalise(std::vector<float>* values) {
  const double sum = std::accumulate(values->begin(), values->end(), 0.0);
  const double scale = static_cast<double>(values->size()) / sum;  // The reader leaves no zeros.
  for (float& value : *values)
    value = static_cast<float>(std::max(value * scale, kLeastImportance));
}

}  // namespace

std::string GgufNameOf(std::string_view parameter) {
  for (const auto member : kModelMatrices)
    if (parameter == kHfNames.Weight(kHfNames.*member))
      return kGgufNames.Weight(kGgufNames.*member);
  std::string_view rest = parameter;
  if (!rest.starts_with(kHfNames.layer_prefix)) return std::string(parameter);
  rest.remove_prefix(kHfNames.layer_prefix.size());
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::string(parameter);
  const std::string_view layer = rest.substr(0, digits);
  for (const auto member : kLayerMatrices)
    if (rest.substr(digits) == fmt::format(".{}.weight", kHfNames.*member))
      return fmt::format("{}{}.{}.weight", kGgufNames.layer_prefix, layer, kGgufNames.*member);
  return std::string(parameter);
}

Result<std::shared_ptr<const Importance>> Importance::Open(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(path));
  auto importance = std::make_shared<Importance>();
  importance->path_ = path;
  TESSERA_ASSIGN_OR_RETURN(importance->by_name_, formats::imatrix::Parse(mapping->bytes(), path));
  importance->sha256_ = Sha256Hex(mapping->bytes());
  TESSERA_RETURN_IF_ERROR(mapping->CheckIntact());
  for (auto& [name, values] : importance->by_name_) Normalise(&values);
  return importance;
}

const std::vector<float>* Importance::Find(std::string_view parameter) const {
  const std::string gguf = GgufNameOf(parameter);
  for (const std::string_view name : {parameter, std::string_view(gguf)})
    if (const auto found = by_name_.find(name); found != by_name_.end()) return &found->second;
  if (gguf != kGgufNames.Weight(kGgufNames.embedding)) return nullptr;
  const auto head = by_name_.find(kGgufNames.Weight(kGgufNames.head));
  return head == by_name_.end() ? nullptr : &head->second;
}

}  // namespace tessera::compiler
