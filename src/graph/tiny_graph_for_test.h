// SPDX-License-Identifier: Apache-2.0
//
// A small graph that has every op, for the tests of this layer and of passes.
#pragma once

#include "graph/ir.h"

namespace tessera::graph {

/// Two layers, hidden 8, vocabulary 16; every op, bias, q/k norm, both rope styles, a window and a
/// soft cap occur. Labels: embedding, layer0.attn_norm, layer0.q_rope, layer0.after_attn, scaled,
/// logits and others.
Graph TinyGraph();

}  // namespace tessera::graph
