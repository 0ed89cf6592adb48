// SPDX-License-Identifier: Apache-2.0
//
// Which tensors of a dataset are split over ranks, and how: sharktank's rules for Llama. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "model/model_config.h"

namespace tessera::compiler {

enum class ShardRule : uint8_t {
  kReplicated,  // Stored once, in rank 0.
  kRows,        // Split along dimension 0: output features.
  kColumns,     // Split along dimension 1: input features; results are added up.
  kDropped,     // Not in sharded sets: recomputed.
};

/// By GGUF name. Biases follow the rows of their weight and are whole where it is split by columns.
ShardRule ShardRuleOf(std::string_view name);

/// kInvalidArgument unless the heads and the feed-forward width divide by `ranks`; names the
/// numbers of ranks that work.
Status CheckRanks(const model::ModelConfig& config, int64_t ranks);

}  // namespace tessera::compiler
