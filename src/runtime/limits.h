// SPDX-License-Identifier: Apache-2.0
//
// Limits of a session, and the sizes that shape its scratch memory.
#pragma once

#include <cstdint>

namespace tessera::runtime {

inline constexpr int kMaxThreads = 512;
inline constexpr int64_t kMaxRows = 8192;
/// Page ids are int32_t.
inline constexpr int64_t kMaxPages = int64_t{1} << 30;

/// Up to so many rows every worker normalises all of them itself, which costs less than a barrier.
inline constexpr int64_t kRedundantRows = 8;
/// Rows that go through one matmul call: their int8 activations (576 to 4096 inputs) and the
/// output tile stay in L2 while the weights of the worker's columns stream through.
inline constexpr int64_t kTileRows = 128;
/// Rows of a strip at the most (row_view.h): a tile of the widest matmul kernel.
inline constexpr int64_t kStripRows = 64;
static_assert(kStripRows <= kTileRows);
/// Rows that a step must have for each worker to run in strips: shorter ones reuse weights too
/// little.
inline constexpr int64_t kLeastStripRows = 32;
/// By how much the busiest worker's strips may exceed the average; more, and barriers cost less.
inline constexpr int64_t kStripSlackPercent = 5;
/// Weights of a layer up to which strips pay: each worker streams all of them for every strip.
inline constexpr int64_t kStripWeightBytes = int64_t{8} << 20;
/// Floats of a worker's output tile: 128 KiB, a quarter of a 512 KiB L2.
inline constexpr int64_t kTileFloats = 32 * 1024;

/// Embedding tables from this size on give pages back (lookup_tables.h), after so many rows: those
/// of one prompt or of some seconds of answers.
inline constexpr uint64_t kLeastTableBytes = uint64_t{16} << 20;
inline constexpr int64_t kRowsUntilGivenBack = 64;

/// Sums of up to so many floats, all segments together, travel whole between processes.
inline constexpr int64_t kWholeExchangeFloats = 16 * 1024;
/// Of a message in which rank 0 says what a step is about: pages of 64 sequences of a million
/// tokens are a tenth of it.
inline constexpr int64_t kMaxStepBytes = int64_t{256} << 20;

}  // namespace tessera::runtime
