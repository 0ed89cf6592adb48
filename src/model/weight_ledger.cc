// SPDX-License-Identifier: Apache-2.0
#include "model/weight_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/weight_names.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

/// Tensors that some writers store although nothing reads them, or that the config was made from.
bool IsHarmless(const std::string& name, const ModelConfig& config) {
  if (config.naming == Naming::kGguf) return name == kGgufRopeFreqs;
  // Inverse frequencies as a buffer (old Llama conversions): computed from the config here.
  if (name.ends_with("rotary_emb.inv_freq")) return true;
  // Tied models use the embedding table whatever a stored head says.
  return config.embedding.tied && name == kHfNames.Weight(kHfNames.head);
}

/// "missing: a, b and 3 more", for a part of the message.
void AddPart(std::string& message, std::string_view title, const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kShown);
  message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", title,
                         fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (names.size() > shown) message += fmt::format(" and {} more", names.size() - shown);
}

}  // namespace

graph::ValueId WeightLedger::Want(const std::string& name, const tensor::Shape& shape) {
  const graph::ValueId id = builder_.Parameter(name, shape);
  if (!wanted_.insert(name).second || index_ == nullptr) return id;
  const formats::ParameterEntry* entry = index_->Find(name);
  if (entry == nullptr) {
    missing_.push_back(name);
  } else if (!tensor::SameButForLeadingOnes(entry->shape, shape)) {
    misfits_.push_back(fmt::format("{} has shape {}, expected {}", name, entry->shape.ToString(),
                                   shape.ToString()));
  } else if (!tensor::CanConvertToFloat(entry->dtype)) {
    misfits_.push_back(
        fmt::format("{} has type {}, which has no numbers", name, tensor::Name(entry->dtype)));
  }
  return id;
}

Status WeightLedger::Finish(const ModelConfig& config) const {
  if (index_ == nullptr) return {};
  std::vector<std::string> unknown;
  for (const formats::ParameterEntry& entry : index_->entries()) {
    if (wanted_.contains(entry.name) || IsHarmless(entry.name, config)) continue;
    unknown.push_back(entry.name);
  }
  std::string message;
  AddPart(message, "missing weights", missing_);
  AddPart(message, "weights that do not fit", misfits_);
  AddPart(message, "weights that the model does not use", unknown);
  if (message.empty()) return {};
  return InvalidArgument(fmt::format("the weights do not fit a {} of {} layers: {}", config.family,
                                     config.layers, message));
}

}  // namespace tessera::model
