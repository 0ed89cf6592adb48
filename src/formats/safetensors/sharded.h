// SPDX-License-Identifier: Apache-2.0
//
// Sharded safetensors: `model.safetensors.index.json` holds `weight_map`, tensor name -> shard file
// in the same folder. The map is checked against what the shards really hold, both ways.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/parameter_index.h"

namespace tessera::formats::safetensors {

struct ShardMap {
  struct Row {
    std::string tensor;
    std::string shard;
  };
  std::vector<Row> rows;            // In the order of the index file.
  std::vector<std::string> shards;  // Distinct, in ascending order.
};

/// Parses the text of an index file. kInvalidArgument also for shard names that are no plain file
/// names: an index must not reach outside its folder.
Result<ShardMap> ParseShardMap(std::string_view text, std::string_view where);

/// Opens all shards that the index file names, as one ParameterIndex.
/// kNotFound for a missing shard; kDataLoss when map and shards disagree, naming tensor and shard.
Result<ParameterIndex> OpenSharded(const std::filesystem::path& index_file);

}  // namespace tessera::formats::safetensors
