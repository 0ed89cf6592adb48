// SPDX-License-Identifier: Apache-2.0
#include "model/footprint.h"

#include <algorithm>

#include "base/check.h"
#include "model/families.h"

namespace tessera::model {
namespace {

/// Elements of keys and values of one position in one layer.
uint64_t KvElementsPerLayer(const ModelConfig& config) {
  return 2 * static_cast<uint64_t>(config.attention.kv_heads) *
         static_cast<uint64_t>(config.attention.head_dim);
}

bool IsProjection(std::string_view parameter, std::initializer_list<std::string_view> names) {
  // Per-layer names end in ".q_proj.weight" and the like; the dot before keeps attn_k apart from
  // attn_k_norm, the one behind attn_q from attn_q_norm.
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    const size_t at = parameter.rfind(name);
    return at != std::string_view::npos && at > 0 && parameter[at - 1] == '.' &&
           at + name.size() < parameter.size() && parameter[at + name.size()] == '.';
  });
}

}  // namespace

Footprint ComputeFootprint(const ModelConfig& config, const formats::ParameterIndex& index,
                           const graph::Graph& graph) {
  const Family* family = FindFamily(config.family);
  TESSERA_CHECK(family != nullptr);
  const WeightNames& n = config.naming == Naming::kGguf ? *family->gguf_names : *family->hf_names;
  Footprint f;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::kParameter) continue;
    const std::string& name = node.As<graph::ParameterAttrs>().name;
    const formats::ParameterEntry* entry = index.Find(name);
    TESSERA_CHECK(entry != nullptr);
    const int64_t elements = node.type.dims.elements();
    f.parameters += elements;
    if (name == n.Weight(n.embedding)) {
      f.embedding_bytes += entry->bytes;
      f.embedding_parameters += elements;
    } else if (name == n.Weight(n.head)) {
      f.head_bytes += entry->bytes;
      f.embedding_parameters += elements;
    } else if (IsProjection(name, {n.q, n.k, n.v, n.o})) {
      f.attention_bytes += entry->bytes;
    } else if (IsProjection(name, {n.gate, n.up, n.down})) {
      f.ffn_bytes += entry->bytes;
    } else {
      f.other_bytes += entry->bytes;
    }
  }
  f.bytes_read_per_step = f.weight_bytes() - (config.embedding.tied ? 0 : f.embedding_bytes);
  f.kv_elements_per_token = config.layers * static_cast<int64_t>(KvElementsPerLayer(config));
  return f;
}

uint64_t KvBytesPerToken(const ModelConfig& config, uint64_t element_bytes) {
  return static_cast<uint64_t>(config.layers) * KvElementsPerLayer(config) * element_bytes;
}

uint64_t KvBytes(const ModelConfig& config, int64_t tokens, uint64_t element_bytes) {
  const AttentionConfig& a = config.attention;
  uint64_t positions = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const bool windowed = a.window && a.window_layers[static_cast<size_t>(layer)];
    positions += static_cast<uint64_t>(windowed ? std::min(tokens, *a.window) : tokens);
  }
  return positions * KvElementsPerLayer(config) * element_bytes;
}

}  // namespace tessera::model
