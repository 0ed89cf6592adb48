// SPDX-License-Identifier: Apache-2.0
//
// The text form of a graph: one node a line, doubles with the fewest digits that give the same
// value back. ParseGraph(PrintGraph(g)) == g and printing that again gives the same bytes.
#pragma once

#include <string>

#include "graph/ir.h"

namespace tessera::graph {

std::string PrintGraph(const Graph& graph);
/// One line without its end: "%2 = embed(%1, %0) : f32[T,64] @embedding".
std::string PrintNode(const Graph& graph, ValueId id);

}  // namespace tessera::graph
