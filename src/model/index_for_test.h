// SPDX-License-Identifier: Apache-2.0
//
// Parameter indices without files, for tests of what reads names, shapes and metadata only.
#pragma once

#include "formats/parameter_index.h"
#include "graph/ir.h"

namespace tessera::testing {

/// An index with every parameter of the graph, as F32 without bytes.
formats::ParameterIndex IndexOf(const graph::Graph& graph, formats::Metadata metadata = {});

/// An entry without bytes.
formats::ParameterEntry EntryOf(std::string name, tensor::Shape shape);

/// An index with one file that has this metadata and these entries.
formats::ParameterIndex MakeIndex(formats::Metadata metadata,
                                  std::vector<formats::ParameterEntry> entries);

}  // namespace tessera::testing
