// SPDX-License-Identifier: Apache-2.0
//
// Limits of the engine. Each is tested at n-1, n and n+1. Bounds that depend on the model (context
// length, KV pages, rows of a step) come from runtime::ModelShape.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace tessera::engine {

/// Requests that may wait for a place in the batch, when the caller names no other bound.
inline constexpr int64_t kQueueLengthDefault = 256;
/// Sequences in one step, when the caller names no other bound.
inline constexpr int64_t kMaxRunningDefault = 16;
/// Time between two tokens of a reader that prompts of others may stretch a step to.
inline constexpr Duration kTargetItlDefault = std::chrono::milliseconds(100);
/// Rows of prompts in a step, however long it takes: prompts must get on.
inline constexpr int64_t kPromptRowsMin = 16;
/// A stage of the engine thread that takes longer is reported as stuck.
inline constexpr Duration kStuckAfterDefault = std::chrono::seconds(30);
/// Clients whose share is remembered while they have no request.
inline constexpr int64_t kClientsRemembered = 4096;
/// Positions for which KV memory is found ahead of its use, while nobody waits.
inline constexpr int64_t kBackedTokensAhead = 768;
/// Pages that the prefix cache may keep: as many as there are. Those in it can be had at any time.
inline constexpr int64_t kPrefixCachePagesDefault = INT64_MAX;
/// Pages that the prefix cache gave up and still knows by name, to say why a prompt missed them.
inline constexpr int64_t kEvictedPagesRemembered = 4096;
/// How long a step waits for masks of constrained output that are late; then those sequences sit a
/// step out.
inline constexpr Duration kMaskPatienceDefault = std::chrono::milliseconds(1);
/// Threads that compute masks.
inline constexpr int kMaskThreads = 2;
/// Alternatives reported per token; the largest number that any dialect asks for.
inline constexpr int kTopLogprobsMax = 20;
/// Prompt tokens of one step whose logits are all wanted: each is a row of the vocabulary.
inline constexpr int64_t kAllLogitsRowsMax = 64;
inline constexpr int kBeamsMax = 32;
inline constexpr int64_t kDryLastTokensMax = 1 << 20;
inline constexpr int64_t kStopTokenIdsMax = 64;
inline constexpr int64_t kLogitBiasMax = 1024;
inline constexpr int64_t kStopStringsMax = 16;
inline constexpr int64_t kStopStringBytesMax = 1024;

}  // namespace tessera::engine
