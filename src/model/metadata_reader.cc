// SPDX-License-Identifier: Apache-2.0
#include "model/metadata_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::model {

std::string MetadataReader::Full(std::string_view key) {
  std::string full = prefix_ + std::string(key);
  asked_.insert(full);
  return full;
}

bool MetadataReader::Has(std::string_view key) {
  return metadata_.Find(Full(key)) != nullptr;
}

Result<int64_t> MetadataReader::NeedInt(std::string_view key) {
  return metadata_.Int(Full(key));
}

Result<int64_t> MetadataReader::Int(std::string_view key, int64_t fallback) {
  if (!Has(key)) return fallback;
  return NeedInt(key);
}

Result<double> MetadataReader::NeedNumber(std::string_view key) {
  return metadata_.Number(Full(key));
}

Result<double> MetadataReader::Number(std::string_view key, double fallback) {
  if (!Has(key)) return fallback;
  return NeedNumber(key);
}

Result<std::string> MetadataReader::Text(std::string_view key, std::string_view fallback) {
  if (!Has(key)) return std::string(fallback);
  return metadata_.Text(Full(key));
}

Status MetadataReader::MustEqual(std::string_view key, double value, std::string_view why) {
  TESSERA_ASSIGN_OR_RETURN(const double got, Number(key, value));
  if (got == value) return {};
  return Unimplemented(
      fmt::format("'{}{}' is {}; only {} is supported: {}", prefix_, key, got, value, why));
}

Status MetadataReader::RefuseOthers(std::span<const std::string_view> harmless) const {
  std::string unknown;
  for (const auto& [key, value] : metadata_.items()) {
    if (!key.starts_with(prefix_) || asked_.contains(key)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix_.size());
    if (std::find(harmless.begin(), harmless.end(), rest) != harmless.end()) continue;
    if (!unknown.empty()) unknown += ", ";
    unknown += fmt::format("'{}'", key);
  }
  if (unknown.empty()) return {};
  return Unimplemented(fmt::format(
      "unknown key {}: it may change what the model computes, so it is not ignored", unknown));
}

}  // namespace tessera::model
