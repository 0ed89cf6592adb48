// SPDX-License-Identifier: Apache-2.0
//
// IRPA writer. The table stands before the data, so all entries with their sizes are given first;
// then the data streams through in order: an archive of any size needs memory for its table only.
// With the default options the bytes are those that IREE's own tools write for the same entries.
//
//   auto writer = ArchiveWriter::Create("model.irpa", entries, {});
//   for each DATA entry: writer->Append(bytes)   // in pieces or at once
//   writer->Finish();
//
// Not thread-safe. The file is complete only after Finish(); publish it by renaming.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

struct WriteEntry {
  std::string name;
  std::string metadata;  // See entry_metadata.h; empty for a blob.
  uint64_t bytes = 0;
  std::optional<Splat> splat;  // Without, it is a DATA entry.
};

struct WriteOptions {
  /// Of every blob and of the storage segment, in the file: a power of two up to 4096, so that
  /// padding the file keeps it. 64 is IREE's; 4096 suits O_DIRECT and huge mappings.
  uint64_t data_alignment = 64;
};

/// Where everything goes: for planning, and the first half of writing.
struct ArchivePlan {
  std::string head;                    // Header, table, metadata: all before the storage segment.
  std::vector<uint64_t> data_offsets;  // Per entry, absolute; 0 for splats.
  uint64_t storage_end = 0;            // Absolute end of the last blob.
  uint64_t file_bytes = 0;             // With the padding to 4096.
};

/// kInvalidArgument for a bad alignment, a bad pattern, or sizes that overflow 64 bits.
Result<ArchivePlan> PlanArchive(std::span<const WriteEntry> entries, const WriteOptions& options);

/// `iree-create-parameters` writes splats before data: this reorders so, stably.
void SplatsFirst(std::vector<WriteEntry>& entries);

class ArchiveWriter {
 public:
  /// Creates the file and writes everything before the data.
  static Result<std::unique_ptr<ArchiveWriter>> Create(const std::filesystem::path& path,
                                                       std::span<const WriteEntry> entries,
                                                       const WriteOptions& options);

  /// Bytes of the current DATA entry; when it is complete, the next one's follow. A call must not
  /// cross from one entry into the next: kInvalidArgument then, as for bytes after the last.
  Status Append(ByteSpan bytes);
  /// Pads, syncs and closes. kFailedPrecondition when entries lack bytes.
  Status Finish();
  /// Bytes that the file will have.
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Blob {
    std::string name;
    uint64_t offset;
    uint64_t bytes;
  };
  ArchiveWriter() = default;
  void SkipEmptyBlobs();

  std::unique_ptr<FileWriter> file_;
  std::vector<Blob> blobs_;
  size_t current_ = 0;    // Index into blobs_.
  uint64_t written_ = 0;  // Bytes of the current blob.
  uint64_t file_bytes_ = 0;
};

}  // namespace tessera::formats::irpa
