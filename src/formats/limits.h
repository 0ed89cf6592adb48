// SPDX-License-Identifier: Apache-2.0
//
// Limits of the readers. Parameter files come from strangers: every count and length in them is
// checked against one of these and against the bytes that are really there, before memory is taken.
#pragma once

#include <cstdint>

namespace tessera::formats {

/// Bytes of a tensor's name, in every format.
inline constexpr uint64_t kMaxTensorNameBytes = 4096;
/// Tensors of one file. Llama 405B has about 1,100, a large mixture of experts 100,000.
inline constexpr uint64_t kMaxTensors = 1u << 20;
/// Dimensions of a tensor; GGUF itself stops at kMaxGgufDims.
inline constexpr int kMaxRank = 8;

inline constexpr int kMaxGgufDims = 4;
/// Bytes of a metadata key, as the GGUF specification has it.
inline constexpr uint64_t kMaxGgufKeyBytes = 65535;
inline constexpr uint64_t kMaxGgufMetadata = 1u << 16;
/// Arrays in arrays: an array of numbers has depth 1.
inline constexpr int kMaxGgufArrayDepth = 4;
inline constexpr uint64_t kMaxGgufAlignment = 1u << 20;
/// Files of one GGUF split.
inline constexpr uint64_t kMaxGgufSplits = 1024;

/// Bytes of a safetensors header, as the reference library has it.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr uint32_t kMaxSafetensorsJsonDepth = 8;
/// Bytes of a model.safetensors.index.json.
inline constexpr uint64_t kMaxSafetensorsIndexBytes = 64u << 20;
/// Files that one safetensors index may name.
inline constexpr uint64_t kMaxSafetensorsShards = 4096;

/// Bytes of the metadata text of one IRPA entry that is parsed for dtype and shape.
inline constexpr uint64_t kMaxIrpaMetadataBytes = 64u << 10;
/// Bytes that Materialise() makes of one splat.
inline constexpr uint64_t kMaxSplatBytes = 256u << 20;
/// Ranks of a sharded dataset.
inline constexpr uint64_t kMaxIrpaRanks = 1024;
/// Bytes of a dataset's JSON blobs (a GGUF import carries a whole tokenizer).
inline constexpr uint64_t kMaxIrpaJsonBytes = 64u << 20;

}  // namespace tessera::formats
