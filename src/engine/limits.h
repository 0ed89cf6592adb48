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
/// Pages of a page store, whatever their size: each costs memory for its name.
inline constexpr int64_t kStorePagesMax = int64_t{1} << 22;
/// Pages given up that wait to be written, and pages read that wait to be taken up. At least one
/// of each, at most the number.
inline constexpr int64_t kStoreWriteBytesMax = int64_t{32} << 20;
inline constexpr int64_t kStoreReadBytesMax = int64_t{64} << 20;
inline constexpr int64_t kStorePagesOnTheWayMax = 1024;
/// Waiting sequences, the first in order, for which pages are read from the store; more when they
/// want the same pages.
inline constexpr int64_t kReadAheadSequences = 8;
/// Pages of one of them that are on their way at a time.
inline constexpr int64_t kReadAheadPages = 16;
/// Bytes of pages that a step takes up from the store while others wait for their next token.
inline constexpr int64_t kStoreBytesPerStep = int64_t{8} << 20;
/// How long a sequence waits for pages of the store while nothing is known of a step's cost.
inline constexpr Duration kStorePatienceDefault = std::chrono::seconds(1);
/// How long the end of the engine may take to store what is only in memory.
inline constexpr Duration kStoreFlushMax = std::chrono::seconds(10);
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
