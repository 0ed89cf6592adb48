// SPDX-License-Identifier: Apache-2.0
//
// RowReader: the bytes of an entry row by row, wherever they come from: a mapped file, a splat, or
// a RowMaker. It keeps mappings and makers alive, so it may outlive the index; bytes that a caller
// owns (a file parsed from memory) must outlive it. Immutable, any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/parameter_index.h"

namespace tessera::formats {

class RowReader {
 public:
  /// The rows of the entry's shape.
  static Result<RowReader> Open(const ParameterIndex& index, const ParameterEntry& entry);
  /// The entry cut into `rows` equal pieces: a plane of a matrix with that many rows.
  /// kInvalidArgument when its bytes are no multiple of them, or its rows are made.
  static Result<RowReader> OpenPieces(const ParameterIndex& index, const ParameterEntry& entry,
                                      int64_t rows);

  tensor::DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  uint64_t row_bytes() const { return row_bytes_; }

  /// Rows [first, first + count) to `out`, which has count * row_bytes() bytes.
  Status Read(int64_t first, int64_t count, std::span<std::byte> out) const;
  /// One row: in place where it is stored, else made in `scratch` and valid until that changes.
  Result<ByteSpan> Row(int64_t row, std::vector<std::byte>* scratch) const;
  /// Rows that were read may leave resident memory (MappedFile::DoneWith).
  void DoneWith(int64_t first, int64_t count) const;

 private:
  RowReader() = default;

  tensor::DType dtype_ = tensor::DType::kU8;
  int64_t rows_ = 0;
  uint64_t row_bytes_ = 0;
  // One of the three.
  ByteSpan stored_;
  std::optional<Splat> splat_;
  std::shared_ptr<const RowMaker> maker_;
  std::shared_ptr<const MappedFile> mapping_;  // Of stored_; null for a caller's memory.
};

}  // namespace tessera::formats
