// SPDX-License-Identifier: Apache-2.0
#include "model/index_for_test.h"

#include <gtest/gtest.h>

namespace tessera::testing {

formats::ParameterEntry EntryOf(std::string name, tensor::Shape shape) {
  formats::ParameterEntry entry;
  entry.name = std::move(name);
  entry.dtype = tensor::DType::kF32;
  entry.bytes = static_cast<uint64_t>(shape.elements()) * 4;
  entry.shape = std::move(shape);
  return entry;
}

formats::ParameterIndex MakeIndex(formats::Metadata metadata,
                                  std::vector<formats::ParameterEntry> entries) {
  formats::ParameterIndex index;
  formats::SourceFile file;
  file.path = "made-in-a-test";
  file.metadata = std::move(metadata);
  index.AddFile(std::move(file));
  for (formats::ParameterEntry& entry : entries) {
    const Status status = index.Add(std::move(entry));
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  return index;
}

formats::ParameterIndex IndexOf(const graph::Graph& graph, formats::Metadata metadata) {
  std::vector<formats::ParameterEntry> entries;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::kParameter) continue;
    entries.push_back(EntryOf(node.As<graph::ParameterAttrs>().name, node.type.dims));
  }
  return MakeIndex(std::move(metadata), std::move(entries));
}

}  // namespace tessera::testing
