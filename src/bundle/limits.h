// SPDX-License-Identifier: Apache-2.0
//
// Limits of what a bundle from outside may make us read or allocate.
#pragma once

#include <cstdint>

namespace tessera::bundle {

/// manifest.json, config.json, program.json: a 405B model of 126 layers needs about 2 MB.
inline constexpr uint64_t kMaxDocumentBytes = 64ull << 20;
/// KV pages in config.json.
inline constexpr int64_t kMaxDeviceBlocks = int64_t{1} << 30;
inline constexpr uint64_t kMaxManifestFiles = 4096;
/// What a document may say of the size of a file, a weight or a plan.
inline constexpr int64_t kMaxBytes = int64_t{1} << 50;
inline constexpr uint64_t kMaxLayers = 1024;
inline constexpr uint64_t kMaxSteps = 16384;
inline constexpr uint64_t kMaxWeights = 65536;
inline constexpr uint64_t kMaxWeightParts = 1024;
inline constexpr uint64_t kMaxBuffers = 64;
inline constexpr uint64_t kMaxRopes = 64;
inline constexpr uint64_t kMaxSegments = 64;
/// Rows, columns, vocabulary: one dimension of a weight.
inline constexpr int64_t kMaxDimension = int64_t{1} << 24;
inline constexpr int64_t kMaxContext = int64_t{1} << 24;
inline constexpr int64_t kMaxHeads = 4096;
inline constexpr int64_t kMaxHeadDim = 1024;
inline constexpr int64_t kMaxPageTokens = 4096;

}  // namespace tessera::bundle
