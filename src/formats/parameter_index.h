// SPDX-License-Identifier: Apache-2.0
//
// ParameterIndex: what every parameter file becomes: name -> dtype, shape, range of a mapped file,
// plus the file's own metadata. Formats (gguf/, safetensors/, irpa/) each have one parse function
// into it and know nothing of models. No tensor byte is copied: views point into mappings that the
// index keeps alive. Immutable after opening, so any thread may read it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "formats/metadata.h"
#include "tensor/tensor_view.h"

namespace tessera::formats {

enum class Format : uint8_t { kGguf, kSafetensors, kIrpa };
/// "GGUF", "safetensors", "IRPA".
std::string_view FormatName(Format format);

/// A repeated pattern instead of bytes (IRPA); View() cannot show it, Materialise() can.
struct Splat {
  std::array<std::byte, 16> pattern{};
  uint8_t pattern_bytes = 1;  // 1, 2, 4, 8 or 16
};

/// Makes the rows of an entry whose bytes stand in no file: planes of a dataset, shards, packed
/// codes of a quantised repository. Immutable; any thread may call it. It keeps what it reads
/// alive.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Writes rows [first, first + count) of the entry, one after the other, in its dtype. `out` has
  /// exactly their bytes; rows lie within the entry's shape.
  virtual Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const = 0;
  /// What these rows were made of may leave resident memory. Only a hint: it may do nothing.
  virtual void DoneWith(int64_t /*first*/, int64_t /*count*/) const {}
};

struct ParameterEntry {
  std::string name;
  tensor::DType dtype = tensor::DType::kU8;
  tensor::Shape shape;  // Outermost first.
  uint32_t file = 0;    // Index into files().
  uint64_t offset = 0;  // Absolute in the file; 0 for a splat and for made rows.
  uint64_t bytes = 0;
  std::optional<Splat> splat;
  /// Set for rows that are made when they are read; `bytes` is what all of them would take. View()
  /// cannot show them, Materialise() and MakeRows() can.
  std::shared_ptr<const RowMaker> rows;
  /// What the format attaches to one entry: IRPA's per-entry metadata, otherwise empty.
  std::string note;
  /// False for bytes without type (an IRPA blob, such as a JSON document): dtype U8, shape [bytes].
  bool is_tensor = true;
};

struct SourceFile {
  std::filesystem::path path;
  Format format = Format::kGguf;
  /// Null when the file was parsed from memory that the caller owns.
  std::shared_ptr<const MappedFile> mapping;
  ByteSpan bytes;          // The whole file: mapping->bytes(), or the caller's memory.
  Metadata metadata;       // GGUF key-values, safetensors __metadata__; empty for IRPA.
  uint32_t version = 0;    // GGUF version; 0 where the format has none.
  uint64_t alignment = 0;  // GGUF data alignment; 0 where the format has none.
};

class ParameterIndex {
 public:
  std::span<const SourceFile> files() const { return files_; }
  /// In file order.
  std::span<const ParameterEntry> entries() const { return entries_; }
  /// Null when there is none. With duplicate names (IRPA allows them) the first, as IREE does.
  const ParameterEntry* Find(std::string_view name) const;
  /// Metadata of the first file; empty when there is no file.
  const Metadata& metadata() const;
  /// Bytes in place; valid as long as the index. CHECKs that the entry's bytes are stored:
  /// neither a splat nor made rows.
  tensor::TensorView View(const ParameterEntry& entry) const;
  /// Part of an entry's bytes has been read: they may leave this process's resident memory
  /// (MappedFile::DoneWith).
  void DoneWith(const ParameterEntry& entry, uint64_t offset, uint64_t size) const;
  /// The bytes of an entry, splats repeated, rows made: for small entries and tests.
  /// kResourceExhausted past kMaxSplatBytes, since a splat's size costs its file nothing.
  Result<std::vector<std::byte>> Materialise(const ParameterEntry& entry) const;
  /// Sum over the entries, splats included (2^64 - 1 when they claim more).
  uint64_t total_bytes() const;
  /// kDataLoss naming a file that lost pages while it was mapped (base/mapping_guard.h).
  Status CheckIntact() const;

  // For the parsers and for joining shards. kAlreadyExists for a name that is there
  // (unless `allow_duplicates`); ranges must have been checked against the file.
  uint32_t AddFile(SourceFile file);
  Status Add(ParameterEntry entry, bool allow_duplicates = false);
  /// Moves the other index's files and entries in. kAlreadyExists names the entry and both files;
  /// duplicates within `other` stay.
  Status Join(ParameterIndex other);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  std::vector<SourceFile> files_;
  std::vector<ParameterEntry> entries_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> by_name_;
};

}  // namespace tessera::formats
