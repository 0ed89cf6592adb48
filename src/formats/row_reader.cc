// SPDX-License-Identifier: Apache-2.0
#include "formats/row_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace tessera::formats {

Result<RowReader> RowReader::Open(const ParameterIndex& index, const ParameterEntry& entry) {
  RowReader reader;
  reader.dtype_ = entry.dtype;
  reader.rows_ = entry.shape.rows();
  TESSERA_ASSIGN_OR_RETURN(
      reader.row_bytes_,
      tensor::RowBytes(entry.dtype, static_cast<uint64_t>(entry.shape.columns())));
  reader.splat_ = entry.splat;
  reader.maker_ = entry.rows;
  if (!entry.splat && entry.rows == nullptr) {
    reader.stored_ = index.View(entry).bytes;
    reader.mapping_ = index.files()[entry.file].mapping;
  }
  return reader;
}

Result<RowReader> RowReader::OpenPieces(const ParameterIndex& index, const ParameterEntry& entry,
                                        int64_t rows) {
  if (entry.rows != nullptr || rows < 1 || entry.bytes % static_cast<uint64_t>(rows) != 0)
    return Fail(InvalidArgument(fmt::format("{} has {} bytes, expected a multiple of {} rows",
                                            entry.name, entry.bytes, rows)));
  TESSERA_ASSIGN_OR_RETURN(RowReader reader, Open(index, entry));
  reader.rows_ = rows;
  reader.row_bytes_ = entry.bytes / static_cast<uint64_t>(rows);
  return reader;
}

Status RowReader::Read(int64_t first, int64_t count, std::span<std::byte> out) const {
  TESSERA_CHECK(first >= 0 && count >= 0 && first <= rows_ && count <= rows_ - first);
  TESSERA_CHECK(out.size() == static_cast<uint64_t>(count) * row_bytes_);
  if (out.empty()) return {};
  if (maker_ != nullptr) return maker_->MakeRows(first, count, out);
  const uint64_t offset = static_cast<uint64_t>(first) * row_bytes_;
  if (splat_) {
    for (uint64_t i = 0; i < out.size(); ++i)
      out[i] = splat_->pattern[(offset + i) % splat_->pattern_bytes];
    return {};
  }
  std::memcpy(out.data(), stored_.data() + offset, out.size());
  return {};
}

Result<ByteSpan> RowReader::Row(int64_t row, std::vector<std::byte>* scratch) const {
  TESSERA_CHECK(row >= 0 && row < rows_);
  if (maker_ == nullptr && !splat_)
    return stored_.subspan(static_cast<uint64_t>(row) * row_bytes_, row_bytes_);
  scratch->resize(row_bytes_);
  TESSERA_RETURN_IF_ERROR(Read(row, 1, *scratch));
  return ByteSpan(*scratch);
}

void RowReader::DoneWith(int64_t first, int64_t count) const {
  if (maker_ != nullptr) return maker_->DoneWith(first, count);
  if (mapping_ == nullptr || splat_) return;
  const auto begin = static_cast<uint64_t>(stored_.data() - mapping_->bytes().data());
  mapping_->DoneWith(begin + static_cast<uint64_t>(first) * row_bytes_,
                     static_cast<uint64_t>(count) * row_bytes_);
}

}  // namespace tessera::formats
