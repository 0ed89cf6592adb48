// SPDX-License-Identifier: Apache-2.0
//
// The IREE parameter archive on disk, version 0.0: sizes and numbers shared by reader and writer.
//
//   header (88 bytes) | entry table, each entry at a multiple of 16 | names and metadata | storage
//
// All integers are little-endian and unaligned. Offsets of segments are relative to the header,
// which begins the file; references into a segment are relative to the segment.
#pragma once

#include <cstdint>

namespace tessera::formats::irpa {

inline constexpr uint32_t kMagic = 0x41505249;  // "IRPA"
inline constexpr uint64_t kHeaderBytes = 88;
inline constexpr uint64_t kEntryAlignment = 16;
inline constexpr uint64_t kFileAlignment = 4096;
/// What every writer of IREE declares as a DATA entry's minimum alignment, whatever it then does.
inline constexpr uint64_t kDeclaredDataAlignment = 64;

enum class EntryType : uint32_t { kSkip = 0, kSplat = 1, kData = 2, kExternal = 3 };

// Bytes of an entry by type, without the padding to the next.
inline constexpr uint64_t kCommonEntryBytes = 60;
inline constexpr uint64_t kSplatEntryBytes = 85;
inline constexpr uint64_t kDataEntryBytes = 76;
inline constexpr uint64_t kExternalEntryBytes = 92;

}  // namespace tessera::formats::irpa
