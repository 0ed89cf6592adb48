// SPDX-License-Identifier: Apache-2.0
//
// Looks at every matrix of the model once: where it stands, what the source has, what was asked
// for.
#include <fmt/format.h>

#include <map>

#include "compiler/importance.h"
#include "compiler/passes/passes.h"
#include "compiler/weight_format.h"

namespace tessera::compiler {
namespace {

using Kind = MatrixRole::Kind;

class Chooser {
 public:
  explicit Chooser(Module* module) : m_(*module) {}

  Status Run() {
    const MatchedModel& model = m_.matched;
    const auto layers = std::ssize(model.layers);
    for (int64_t i = 0; i < layers; ++i) {
      const MatchedLayer& layer = model.layers[static_cast<size_t>(i)];
      for (const MatchedLinear* linear :
           {&layer.q, &layer.k, &layer.output, &layer.gate, &layer.up})
        TESSERA_RETURN_IF_ERROR(Choose(linear->weight, {Kind::kOther, i, layers}));
      TESSERA_RETURN_IF_ERROR(Choose(layer.v.weight, {Kind::kValue, i, layers}));
      TESSERA_RETURN_IF_ERROR(Choose(layer.down.weight, {Kind::kDown, i, layers}));
    }
    TESSERA_RETURN_IF_ERROR(Choose(model.head.weight, {Kind::kHead, 0, layers}));
    if (model.embedding != model.head.weight)
      TESSERA_RETURN_IF_ERROR(Choose(model.embedding, {Kind::kTable, 0, layers}));
    return Report();
  }

 private:
  Status Choose(const std::string& name, const MatrixRole& role) {
    const formats::ParameterEntry* entry = m_.index->Find(name);
    if (entry == nullptr) return NotFound(fmt::format("parameter {}", name));
    const int64_t k = entry->shape.columns();
    const std::string& quantize = m_.options.quantize;
    Result<WeightFormat> format = role.kind == Kind::kTable
                                      ? ChooseTableFormat(entry->dtype, k, quantize)
                                      : ChooseMatrixFormat(entry->dtype, k, quantize, role);
    if (!format.has_value()) return format.error().WithContext(name);
    if (format->is_quantised) {
      TESSERA_RETURN_IF_ERROR(CheckImportance(name, k));
      ++quantised_[std::string(tensor::Name(format->dtype))];
    } else {
      ++kept_[std::string(tensor::Name(entry->dtype))];
    }
    m_.formats.insert_or_assign(name, *std::move(format));
    return {};
  }

  Status CheckImportance(const std::string& name, int64_t k) {
    if (m_.options.importance == nullptr) return {};
    const Importance& importance = *m_.options.importance;
    const std::vector<float>* values = importance.Find(name);
    if (values == nullptr) {
      unweighted_.push_back(name);
      return {};
    }
    ++weighted_;
    if (std::ssize(*values) == k) return {};
    return InvalidArgument(
        fmt::format("{} has {} inputs for {}, the model has {}: it was made of another model",
                    importance.path().string(), values->size(), name, k));
  }

  Status ReportImportance() {
    if (m_.options.importance == nullptr) return {};
    const std::string path = m_.options.importance->path().string();
    if (weighted_ == 0 && !unweighted_.empty())
      return InvalidArgument(
          fmt::format("{} has nothing for any of the {} matrices to quantise, {} the first: it was "
                      "made of another model",
                      path, unweighted_.size(), unweighted_.front()));
    if (!unweighted_.empty())
      m_.notes.push_back(fmt::format(
          "{} has nothing for {} of {} matrices, {} the first: their inputs count alike", path,
          unweighted_.size(), std::ssize(unweighted_) + weighted_, unweighted_.front()));
    return {};
  }

  static std::string List(const std::map<std::string, int64_t>& counts) {
    std::string text;
    for (const auto& [type, count] : counts)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
    return text;
  }

  /// What a quantisation by name came to: it mixes formats, and passes over what is no float.
  Status Report() {
    const std::string& quantize = m_.options.quantize;
    if (quantize == "none" || quantize == kExactFormats) return {};
    TESSERA_RETURN_IF_ERROR(ReportImportance());
    if (!quantised_.empty())
      m_.notes.push_back(fmt::format("{}: matrices quantised: {}", quantize, List(quantised_)));
    if (!kept_.empty())
      m_.notes.push_back(fmt::format(
          "{}: matrices left as they are, being quantised already or with rows that are no "
          "multiple of 32: {}",
          quantize, List(kept_)));
    return {};
  }

  Module& m_;
  int64_t weighted_ = 0;
  std::vector<std::string> unweighted_;              // Without importances.
  std::map<std::string, int64_t> quantised_, kept_;  // Matrices by type.
};

}  // namespace

Status ChooseFormats(Module* module) {
  return Chooser(module).Run();
}

}  // namespace tessera::compiler
