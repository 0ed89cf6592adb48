// SPDX-License-Identifier: Apache-2.0
#include "formats/dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/convert.h"

namespace tessera::formats {
namespace {

// Blocks never cross rows, so pieces are cut by blocks: rows may be longer than memory likes.
constexpr uint64_t kPieceElements = 64 * 1024;  // A multiple of every block size.
constexpr uint64_t kPieceBytes = 256 * 1024;    // A multiple of every pattern size.

// Yields the bytes [offset, offset + size) of an entry; of a splat from a repeated buffer.
class Source {
 public:
  Source(const ParameterIndex& index, const ParameterEntry& entry, uint64_t piece_bytes) {
    if (!entry.splat.has_value()) {
      bytes_ = index.View(entry).bytes;
      return;
    }
    repeated_.resize(std::min(piece_bytes, entry.bytes));
    for (size_t i = 0; i < repeated_.size(); ++i)
      repeated_[i] = entry.splat->pattern[i % entry.splat->pattern_bytes];
  }
  // `offset` must be a multiple of the piece size.
  ByteSpan Piece(uint64_t offset, uint64_t size) const {
    return repeated_.empty() ? bytes_.subspan(offset, size) : ByteSpan(repeated_).first(size);
  }

 private:
  ByteSpan bytes_;
  std::vector<std::byte> repeated_;
};

/// Row by row: what makes rows makes whole ones.
Status DumpMadeRows(const ParameterEntry& entry, const ByteSink& sink, bool as_floats) {
  TESSERA_ASSIGN_OR_RETURN(
      const uint64_t row_bytes,
      tensor::RowBytes(entry.dtype, static_cast<uint64_t>(entry.shape.columns())));
  std::vector<std::byte> row(row_bytes);
  std::vector<float> floats(as_floats ? static_cast<size_t>(entry.shape.columns()) : 0);
  for (int64_t i = 0; i < entry.shape.rows(); ++i) {
    TESSERA_RETURN_IF_ERROR(entry.rows->MakeRows(i, 1, row).WithContext(entry.name));
    if (as_floats) TESSERA_RETURN_IF_ERROR(tensor::ToFloat(entry.dtype, row, floats));
    TESSERA_RETURN_IF_ERROR(sink(as_floats ? std::as_bytes(std::span(floats)) : ByteSpan(row)));
  }
  return {};
}

}  // namespace

Status DumpFloats(const ParameterIndex& index, const ParameterEntry& entry, const ByteSink& sink) {
  if (!entry.is_tensor)
    return InvalidArgument(
        fmt::format("{} is a blob of {} bytes without a dtype", entry.name, entry.bytes));
  if (!tensor::CanConvertToFloat(entry.dtype))
    return Unimplemented(fmt::format("{}: {} cannot be converted to float32", entry.name,
                                     tensor::Name(entry.dtype)));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t piece_bytes,
                           tensor::RowBytes(entry.dtype, kPieceElements));
  if (entry.rows != nullptr) return DumpMadeRows(entry, sink, /*as_floats=*/true);
  const Source source(index, entry, piece_bytes);
  const auto elements = static_cast<uint64_t>(entry.shape.elements());
  std::vector<float> floats(std::min(elements, kPieceElements));
  for (uint64_t done = 0, offset = 0; done < elements; done += kPieceElements) {
    const std::span<float> out = std::span(floats).first(std::min(kPieceElements, elements - done));
    TESSERA_ASSIGN_OR_RETURN(const uint64_t size, tensor::RowBytes(entry.dtype, out.size()));
    TESSERA_RETURN_IF_ERROR(tensor::ToFloat(entry.dtype, source.Piece(offset, size), out));
    TESSERA_RETURN_IF_ERROR(sink(std::as_bytes(out)));
    offset += size;
  }
  return {};
}

Status DumpBytes(const ParameterIndex& index, const ParameterEntry& entry, const ByteSink& sink) {
  if (entry.rows != nullptr) return DumpMadeRows(entry, sink, /*as_floats=*/false);
  const Source source(index, entry, kPieceBytes);
  for (uint64_t offset = 0; offset < entry.bytes; offset += kPieceBytes)
    TESSERA_RETURN_IF_ERROR(
        sink(source.Piece(offset, std::min(kPieceBytes, entry.bytes - offset))));
  return {};
}

}  // namespace tessera::formats
