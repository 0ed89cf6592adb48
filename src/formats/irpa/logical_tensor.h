// SPDX-License-Identifier: Apache-2.0
//
// The logical tensors of a dataset: what its __SHARK_INFERENCE_TENSORS__ says about each, checked
// against the entries that it names. How they become rows: logical_index.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/irpa/dataset.h"
#include "tensor/shape.h"

namespace tessera::formats::irpa {

// Values of "type_name".
inline constexpr std::string_view kPrimitiveTensor = "PrimitiveTensor";
inline constexpr std::string_view kPlanarQuantizedTensor = "PlanarQuantizedTensor";
inline constexpr std::string_view kSplitTensor = "SplitPrimitiveTensor";
inline constexpr std::string_view kReplicatedTensor = "ReplicatedTensor";
inline constexpr std::string_view kUnreducedTensor = "UnreducedTensor";

struct LogicalTensor {
  std::string name;
  std::string type_name;
  /// As stated, or that of the one entry where the description has none. Empty for types that are
  /// no tensors (quantizers).
  tensor::Shape shape;
  std::string layout_type;  // Of planar tensors; empty otherwise.
  json::Object layout_metadata;
  int64_t shard_count = 1;
  int64_t shard_dim = -1;  // Of split tensors.
  /// Local name ("", "qs", "0", "0:qs" for planes of a shard) and the entry it stands for.
  std::vector<std::pair<std::string, const ParameterEntry*>> parts;

  /// Null when there is none.
  const ParameterEntry* Part(std::string_view local) const;
};

/// In the order of the description. Entries point into `index`. kInvalidArgument names the tensor
/// and what is missing or of the wrong kind; limits: kMaxTensors, kMaxRank, kMaxIrpaRanks.
Result<std::vector<LogicalTensor>> ReadLogicalTensors(const ParameterIndex& index,
                                                      const Dataset& dataset);

}  // namespace tessera::formats::irpa
