// SPDX-License-Identifier: Apache-2.0
//
// ModelConfig + ParameterIndex -> Graph. The parameter nodes carry the names of the index, so the
// graph and the index together are all that a compiler needs.
//
// Labels of the values, for traces, passes and tests (N = layer):
//   embedding, layerN.{attn_norm, q, k, v (projections, before heads are split), q_norm, k_norm,
//   q_rope, k_rope, attn (merged heads), attn_out (output projection), after_attn (residual),
//   ffn_norm, gate, up, ffn_act, ffn_out (down projection), output (residual)}, final_norm, logits
#pragma once

#include "formats/parameter_index.h"
#include "graph/ir.h"
#include "model/model_config.h"

namespace tessera::model {

/// The verified graph. kInvalidArgument lists by name every weight that is missing, has another
/// shape than the config says, or that the model does not use and that is not known to be
/// harmless (a computed table such as `rotary_emb.inv_freq`). Reads no weight bytes.
Result<graph::Graph> BuildGraph(const ModelConfig& config, const formats::ParameterIndex& index);

/// The same graph before any weights are there: for planning from config.json alone.
Result<graph::Graph> BuildGraph(const ModelConfig& config);

}  // namespace tessera::model
