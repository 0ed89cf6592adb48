// SPDX-License-Identifier: Apache-2.0
//
// What a model needs, from headers alone: parameters, bytes of weights as stored, KV cache. For the
// `plan` verb and for sizing pools.
#pragma once

#include <cstdint>

#include "formats/parameter_index.h"
#include "graph/ir.h"
#include "model/model_config.h"

namespace tessera::model {

struct Footprint {
  int64_t parameters = 0;            // Elements of all weights the graph uses, shared ones once.
  int64_t embedding_parameters = 0;  // Of these, the embedding table and an untied head.
  // Bytes in the file, by group.
  uint64_t embedding_bytes = 0;
  uint64_t head_bytes = 0;       // 0 when tied.
  uint64_t attention_bytes = 0;  // q, k, v and output projections with biases.
  uint64_t ffn_bytes = 0;
  uint64_t other_bytes = 0;  // Norms.
  uint64_t weight_bytes() const {
    return embedding_bytes + head_bytes + attention_bytes + ffn_bytes + other_bytes;
  }
  /// Weights that one token's step reads: all but the embedding table, of which a step reads one
  /// row a token, unless the table is the head too.
  uint64_t bytes_read_per_step = 0;
  int64_t kv_elements_per_token = 0;  // Keys and values over all layers.
};

/// `graph` as BuildGraph made it from `config` and `index`.
Footprint ComputeFootprint(const ModelConfig& config, const formats::ParameterIndex& index,
                           const graph::Graph& graph);

/// Of one position over all layers; `element_bytes` 2 for f16.
uint64_t KvBytesPerToken(const ModelConfig& config, uint64_t element_bytes);

/// Bytes of KV that a sequence of `tokens` needs, counting that layers with a window keep no more
/// than the window.
uint64_t KvBytes(const ModelConfig& config, int64_t tokens, uint64_t element_bytes);

}  // namespace tessera::model
