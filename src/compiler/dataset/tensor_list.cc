// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "compiler/dataset/gguf_properties.h"
#include "model/build.h"
#include "model/families.h"

namespace tessera::compiler {
namespace {

using model::WeightNames;

/// A table of tables by the parts of names between dots, which remembers in which order they came.
struct NameTree {
  std::vector<std::pair<std::string, std::unique_ptr<NameTree>>> children;
  std::vector<size_t> tensors;  // Indices of those that end here.

  void Add(std::string_view rest, size_t tensor) {
    if (rest.empty()) {
      tensors.push_back(tensor);
      return;
    }
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const std::string_view more =
        dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    auto at = std::ranges::find(children, part, [](const auto& child) { return child.first; });
    if (at == children.end()) {
      children.emplace_back(part, std::make_unique<NameTree>());
      at = children.end() - 1;
    }
    at->second->Add(more, tensor);
  }
  void Collect(std::vector<size_t>* order) const {
    order->insert(order->end(), tensors.begin(), tensors.end());
    for (const auto& [part, child] : children) child->Collect(order);
  }
};

std::vector<DatasetTensor> ListAsTheyAre(const formats::ParameterIndex& index) {
  std::vector<DatasetTensor> tensors;
  NameTree tree;
  for (const formats::ParameterEntry& entry : index.entries()) {
    if (!entry.is_tensor) continue;
    tree.Add(entry.name, tensors.size());
    tensors.push_back({entry.name, &entry, {}, entry.dtype, entry.shape, {}});
  }
  std::vector<size_t> order;
  tree.Collect(&order);
  std::vector<DatasetTensor> sorted;
  sorted.reserve(tensors.size());
  for (const size_t i : order) sorted.push_back(std::move(tensors[i]));
  return sorted;
}

/// Element i of the first half goes to 2i, of the second to 2i + 1, head by head; the inverse of
/// the pass that unifies rope styles.
RowRuns InterleavedOrder(int64_t heads, int64_t head_dim, int64_t rotary_dim) {
  RowRuns runs;
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * head_dim;
    for (int64_t i = 0; i < rotary_dim / 2; ++i) runs.push_back({0, first + i, 2, rotary_dim / 2});
    if (head_dim > rotary_dim) runs.push_back({0, first + rotary_dim, head_dim - rotary_dim, 1});
  }
  return runs;
}

/// Renames the tensors of a repository.
class Renamer {
 public:
  Renamer(const model::ModelSource& source, const model::Family& family)
      : index_(source.index),
        config_(source.config),
        hf_(*family.hf_names),
        gguf_(*family.gguf_names),
        interleave_(family.gguf_rope_style == graph::RopeStyle::kInterleaved) {}

  std::vector<DatasetTensor> List() && {
    Add(hf_.Weight(hf_.embedding), gguf_.Weight(gguf_.embedding), {});
    for (int64_t layer = 0; layer < config_.layers; ++layer) AddLayer(layer);
    if (!config_.embedding.tied) Add(hf_.Weight(hf_.head), gguf_.Weight(gguf_.head), {});
    Add(hf_.Weight(hf_.final_norm), gguf_.Weight(gguf_.final_norm), {});
    AddDivisors();
    return std::move(tensors_);
  }

 private:
  void Add(const std::string& from, const std::string& to, const RowRuns& order) {
    const formats::ParameterEntry* entry = index_.Find(from);
    if (entry == nullptr) return;  // An optional one: BuildGraph has seen that none is missing.
    tensors_.push_back({to, entry, order, entry->dtype, entry->shape, {}});
  }

  void AddBoth(int64_t layer, std::string_view from, std::string_view to, const RowRuns& order) {
    Add(hf_.LayerWeight(layer, from), gguf_.LayerWeight(layer, to), order);
    Add(hf_.LayerBias(layer, from), gguf_.LayerBias(layer, to), order);
  }

  RowRuns HeadOrder(int64_t heads) const {
    if (!interleave_) return {};
    return InterleavedOrder(heads, config_.attention.head_dim, config_.rope.rotary_dim);
  }

  void AddLayer(int64_t layer) {
    AddBoth(layer, hf_.q, gguf_.q, HeadOrder(config_.attention.heads));
    AddBoth(layer, hf_.k, gguf_.k, HeadOrder(config_.attention.kv_heads));
    AddBoth(layer, hf_.v, gguf_.v, {});
    AddBoth(layer, hf_.o, gguf_.o, {});
    AddBoth(layer, hf_.q_norm, gguf_.q_norm, HeadOrder(1));
    AddBoth(layer, hf_.k_norm, gguf_.k_norm, HeadOrder(1));
    AddBoth(layer, hf_.attn_norm, gguf_.attn_norm, {});
    AddBoth(layer, hf_.ffn_norm, gguf_.ffn_norm, {});
    AddBoth(layer, hf_.gate, gguf_.gate, {});
    AddBoth(layer, hf_.up, gguf_.up, {});
    AddBoth(layer, hf_.down, gguf_.down, {});
  }

  void AddDivisors() {
    std::vector<float> divisors = RopeDivisorsOf(config_);
    if (divisors.empty()) return;
    const auto count = std::ssize(divisors);
    tensors_.push_back({std::string(model::kGgufRopeFreqs),
                        nullptr,
                        {},
                        tensor::DType::kF32,
                        tensor::Shape{count},
                        std::move(divisors)});
  }

  const formats::ParameterIndex& index_;
  const model::ModelConfig& config_;
  const WeightNames& hf_;
  const WeightNames& gguf_;
  bool interleave_;
  std::vector<DatasetTensor> tensors_;
};

}  // namespace

Result<std::vector<DatasetTensor>> ListDatasetTensors(const model::ModelSource& source) {
  // What the model does not use or lacks is found here, before anything is written.
  TESSERA_RETURN_IF_ERROR(StatusOf(model::BuildGraph(source.config, source.index)));
  if (source.config.naming == model::Naming::kGguf) return ListAsTheyAre(source.index);
  const model::Family* family = model::FindFamily(source.config.family);
  return Renamer(source, *family).List();
}

}  // namespace tessera::compiler
