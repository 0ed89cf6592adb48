// SPDX-License-Identifier: Apache-2.0
//
// Archive: the contents of an IRPA file as they stand in it, before names become parameters. For
// reader.h and for tools that show the file itself. Views into the caller's bytes.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/irpa/layout.h"
#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

struct Segment {
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct Header {
  uint16_t version_major = 0;
  uint16_t version_minor = 0;
  uint64_t header_size = kHeaderBytes;
  uint64_t next_header_offset = 0;
  uint64_t flags = 0;
  uint64_t entry_count = 0;
  Segment entries;
  Segment metadata;
  Segment storage;
};

/// Which fields mean something depends on the type: a SKIP entry has none but `offset` and `size`.
struct Entry {
  EntryType type = EntryType::kSkip;
  uint64_t offset = 0;  // Of the entry itself, in the file.
  uint64_t size = 0;    // Of the entry itself, without padding.
  std::string_view name;
  std::string_view metadata;
  /// As declared. Neither trust nor enforce it: IREE's tools write 64 whatever they do.
  uint64_t minimum_alignment = 0;
  uint64_t length = 0;       // DATA and SPLAT: bytes of the parameter.
  uint64_t data_offset = 0;  // DATA: absolute in the file.
  Splat splat;               // SPLAT.
};

struct Archive {
  Header header;
  std::vector<Entry> entries;  // In table order, SKIP entries included.
};

/// Reads header and table; checks every segment against the file and every reference against its
/// segment. Data ranges may overlap: the format allows entries to share bytes.
/// kDataLoss, kInvalidArgument or kResourceExhausted for damage, naming offset and field;
/// kUnimplemented for another version, linked headers and EXTERNAL entries. Those name other files
/// to be read, which we do not do on behalf of a file from outside; IREE refuses them too.
Result<Archive> ReadArchive(ByteSpan bytes);

}  // namespace tessera::formats::irpa
