// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fmt/format.h>

namespace tessera {

Result<ByteSpan> ByteReader::ReadBytes(uint64_t size, std::string_view field) {
  if (size > remaining())
    return Fail(DataLoss(fmt::format("offset {}: {}: needs {} bytes, but only {} are left", offset_,
                                     field, size, remaining())));
  ByteSpan view = bytes_.subspan(offset_, size);
  offset_ += size;
  return view;
}

Status ByteReader::Seek(uint64_t offset, std::string_view field) {
  if (offset > bytes_.size())
    return DataLoss(
        fmt::format("{} is at offset {}, past the end at {}", field, offset, bytes_.size()));
  offset_ = offset;
  return {};
}

}  // namespace tessera
