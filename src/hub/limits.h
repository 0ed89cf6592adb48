// SPDX-License-Identifier: Apache-2.0
//
// Limits of what a hub, a mirror or a cache on disk may make us read, write or allocate.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::hub {

/// An answer of the hub's API, or a stored listing: a repository of 20,000 files has about 5 MB.
inline constexpr uint64_t kMaxListingBytes = 32ull << 20;
inline constexpr size_t kMaxListedFiles = 20'000;
/// Of one answer, status line included.
inline constexpr size_t kMaxResponseHeaderBytes = 64 << 10;
/// What is kept of the body of an error.
inline constexpr size_t kMaxErrorBodyBytes = 4 << 10;
inline constexpr int kMaxRedirects = 8;
inline constexpr size_t kMaxUrlBytes = 8 << 10;
/// "org" and "repo" each, as the hub has it.
inline constexpr size_t kMaxNamePartBytes = 96;
inline constexpr size_t kMaxRevisionBytes = 250;
/// A file's name with its folders, and one part of it (the limit of common file systems).
inline constexpr size_t kMaxFileNameBytes = 512;
inline constexpr size_t kMaxFileNamePartBytes = 200;
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 44;
/// model.safetensors.index.json: 405B has 150 KB.
inline constexpr uint64_t kMaxIndexBytes = 64ull << 20;
/// The state of one download: 30 bytes a written stretch.
inline constexpr uint64_t kMaxJournalBytes = 16ull << 20;
/// What a weight file may have before its tensors (formats/limits.h allows as much).
inline constexpr uint64_t kMaxWeightHeaderBytes = 256ull << 20;
inline constexpr uint64_t kMaxTokenBytes = 4 << 10;

}  // namespace tessera::hub
