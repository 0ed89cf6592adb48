// SPDX-License-Identifier: Apache-2.0
//
// What a dataset (formats/irpa/dataset.h) says about its model. sharktank writes the keys of GGUF
// ("general.architecture", "llama.block_count", a whole tokenizer when the source was a GGUF), or
// config.json of a repository as it was. GGUF keys become formats::Metadata, so that everything
// that reads GGUF files reads datasets.
#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "formats/metadata.h"
#include "model/model_config.h"

namespace tessera::model {

/// Ours: the divisors of rope_freqs.weight in sets whose tensors are sharded, which by sharktank's
/// rules lack that tensor.
inline constexpr std::string_view kRopeDivisorsKey = "tessera.rope_freqs";

/// Behind the architecture and a dot: whether rotary pairs are neighbours.
inline constexpr std::string_view kInterleaveKey = "rope.interleave_emb";

struct DatasetProperties {
  /// GGUF keys; empty when `hf_config` is set.
  formats::Metadata metadata;
  /// Properties that are a config.json; points into them.
  const json::Object* hf_config = nullptr;
  /// Whether rotary pairs are neighbours, where the properties say so.
  std::optional<bool> interleaved;
  std::vector<double> rope_divisors;  // Of kRopeDivisorsKey.
};

/// `properties` must outlive the result. Where sharktank's defaults differ from GGUF's and nothing
/// says "schema": "GGUF", they are filled in: the head is as wide as its rotary part, the rope base
/// is 500000, pairs are not neighbours. Null members count as absent; members without a counterpart
/// in GGUF (pipeline maps) are left out. kInvalidArgument names a key of the wrong kind.
Result<DatasetProperties> ReadDatasetProperties(const json::Object& properties);

/// What the config of GGUF keys does not say: pairs and divisors.
void ApplyDatasetRope(const DatasetProperties& properties, ModelConfig& config);

}  // namespace tessera::model
