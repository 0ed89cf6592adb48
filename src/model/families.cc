// SPDX-License-Identifier: Apache-2.0
#include "model/families.h"

#include <algorithm>
#include <array>

#include "model/families/all.h"

namespace tessera::model {
namespace {

constexpr std::array<const Family*, 4> kFamilies = {&kLlama, &kMistral, &kQwen2, &kQwen3};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Family* const> Families() {
  return kFamilies;
}

const Family* FindFamily(std::string_view name) {
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

const Family* FindFamilyByModelType(std::string_view model_type) {
  for (const Family* family : kFamilies) {
    if (Contains(family->model_types, model_type)) return family;
  }
  return nullptr;
}

const Family* FindFamilyByGgufArchitecture(std::string_view architecture) {
  for (const Family* family : kFamilies) {
    if (Contains(family->gguf_architectures, architecture)) return family;
  }
  return nullptr;
}

std::string FamilyNames() {
  std::string names;
  for (const Family* family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family->name;
  }
  return names;
}

void UseNamesOf(const formats::ParameterIndex& index, ModelConfig& config) {
  const Family* family = FindFamily(config.family);
  const auto has = [&](const WeightNames& names) {
    return index.Find(names.Weight(names.embedding)) != nullptr;
  };
  if (family == nullptr || has(*family->hf_names) || !has(*family->gguf_names)) return;
  config.naming = Naming::kGguf;
  config.rope.style = family->gguf_rope_style;
}

}  // namespace tessera::model
