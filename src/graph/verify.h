// SPDX-License-Identifier: Apache-2.0
//
// The verifier: run after every pass and on everything that comes from outside.
#pragma once

#include "graph/ir.h"

namespace tessera::graph {

/// Success when all of these hold; otherwise kInvalidArgument naming the node ("%7 linear
/// @layer0.q: weight has ...") and what was expected:
///  1. sizes are within limits.h, names and labels use their alphabet, labels are unique;
///  2. every input is an earlier node, every node's attributes and type follow InferType();
///  3. tokens and positions occur at most once, a parameter name once;
///  4. attention layers are 0, 1, 2, ... in node order;
///  5. the last node, and only it, is the output; every other node is used.
Status Verify(const Graph& graph);

/// "%7 linear @layer0.q": how messages name a node.
std::string Describe(const Graph& graph, ValueId id);

}  // namespace tessera::graph
