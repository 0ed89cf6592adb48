// SPDX-License-Identifier: Apache-2.0
#include "hub/header_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

// The first lengths of every format, and enough for most safetensors.
constexpr uint64_t kLeastBytes = 64;
constexpr uint32_t kGguf = 0x46554747;
constexpr uint32_t kIrpa = 0x41505249;

/// Follows lengths through bytes of which only the beginning is there.
class Cursor {
 public:
  explicit Cursor(ByteSpan bytes) : bytes_(bytes) {}

  /// 0 once anything lacks.
  template <class T>
  T Read() {
    T value = 0;
    if (!Skip(sizeof(T)) || at_ > bytes_.size()) return 0;
    std::memcpy(&value, bytes_.data() + at_ - sizeof(T), sizeof(T));
    return value;
  }
  /// False when the limit is passed, or the position already lies behind what is there.
  bool Skip(uint64_t bytes) {
    if (is_too_long_ || at_ > bytes_.size()) return false;
    if (bytes > kMaxWeightHeaderBytes - at_) {
      is_too_long_ = true;
      return false;
    }
    at_ += bytes;
    return true;
  }
  bool can_go_on() const { return !is_too_long_ && at_ <= bytes_.size(); }
  bool is_too_long() const { return is_too_long_; }
  uint64_t at() const { return at_; }

 private:
  ByteSpan bytes_;
  uint64_t at_ = 0;
  bool is_too_long_ = false;
};

Status TooLong() {
  return ResourceExhausted(
      fmt::format("the header of a weight file has more than the limit of {} "
                  "bytes",
                  kMaxWeightHeaderBytes));
}

Status NoHeader(std::string_view what) {
  return InvalidArgument(
      fmt::format("the beginning of a weight file cannot be followed: {}", what));
}

/// Bytes of a GGUF value type; 0 for strings, arrays and unknown ones.
uint64_t GgufScalarBytes(uint32_t type) {
  switch (type) {
    case 0:
    case 1:
    case 7:
      return 1;
    case 2:
    case 3:
      return 2;
    case 4:
    case 5:
    case 6:
      return 4;
    case 10:
    case 11:
    case 12:
      return 8;
    default:
      return 0;
  }
}

constexpr uint32_t kGgufString = 8;
constexpr uint32_t kGgufArray = 9;

Status SkipGgufValue(Cursor& cursor) {
  uint32_t type = cursor.Read<uint32_t>();
  uint64_t count = 1;
  if (cursor.can_go_on() && type == kGgufArray) {
    type = cursor.Read<uint32_t>();
    count = cursor.Read<uint64_t>();
  }
  if (!cursor.can_go_on()) return {};
  if (type == kGgufString) {
    for (uint64_t i = 0; i < count && cursor.can_go_on(); ++i)
      (void)cursor.Skip(cursor.Read<uint64_t>());
    return {};
  }
  const uint64_t bytes = GgufScalarBytes(type);
  if (bytes == 0) return NoHeader(fmt::format("a GGUF value has the type {}", type));
  uint64_t total = 0;
  if (MulOverflows(bytes, count, &total)) total = ~uint64_t{0};
  (void)cursor.Skip(total);
  return {};
}

Status SkipGguf(Cursor& cursor) {
  const uint32_t version = cursor.Read<uint32_t>();
  if (cursor.can_go_on() && version != 2 && version != 3)
    return NoHeader(fmt::format("it is GGUF version {}", version));
  const uint64_t tensors = cursor.Read<uint64_t>();
  const uint64_t values = cursor.Read<uint64_t>();
  for (uint64_t i = 0; i < values && cursor.can_go_on(); ++i) {
    (void)cursor.Skip(cursor.Read<uint64_t>());
    TESSERA_RETURN_IF_ERROR(SkipGgufValue(cursor));
  }
  for (uint64_t i = 0; i < tensors && cursor.can_go_on(); ++i) {
    (void)cursor.Skip(cursor.Read<uint64_t>());
    const uint32_t dimensions = cursor.Read<uint32_t>();
    (void)cursor.Skip(uint64_t{8} * dimensions + 4 + 8);
  }
  return {};
}

/// Three segments (entries, metadata, storage), each an offset and a length, after 40 bytes.
Status SkipIrpa(Cursor& cursor) {
  (void)cursor.Skip(36);
  const uint64_t entries = cursor.Read<uint64_t>();
  const uint64_t entry_bytes = cursor.Read<uint64_t>();
  const uint64_t metadata = cursor.Read<uint64_t>();
  const uint64_t metadata_bytes = cursor.Read<uint64_t>();
  if (!cursor.can_go_on()) return {};
  uint64_t entries_end = 0;
  uint64_t metadata_end = 0;
  if (AddOverflows(entries, entry_bytes, &entries_end) ||
      AddOverflows(metadata, metadata_bytes, &metadata_end))
    return NoHeader("the segments of an IRPA archive overflow");
  const uint64_t end = std::max(entries_end, metadata_end);
  (void)cursor.Skip(std::max<uint64_t>(end, 88) - cursor.at());
  return {};
}

Status SkipHeader(Cursor& cursor, uint32_t magic) {
  if (magic == kGguf) {
    (void)cursor.Skip(4);
    return SkipGguf(cursor);
  }
  if (magic == kIrpa) {
    (void)cursor.Skip(4);
    return SkipIrpa(cursor);
  }
  (void)cursor.Skip(cursor.Read<uint64_t>());  // safetensors: the length of the JSON that follows.
  return {};
}

}  // namespace

Result<uint64_t> HeaderBytesNeeded(ByteSpan prefix) {
  if (prefix.size() < sizeof(uint64_t)) return kLeastBytes;
  uint32_t magic = 0;
  std::memcpy(&magic, prefix.data(), sizeof(magic));
  Cursor cursor(prefix);
  TESSERA_RETURN_IF_ERROR(SkipHeader(cursor, magic));
  if (cursor.is_too_long()) return Fail(TooLong());
  if (cursor.can_go_on()) return cursor.at();
  // A step behind the end says the least that is missing; tables of short entries go on for long.
  const uint64_t grown = std::min<uint64_t>(uint64_t{2} * prefix.size(), kMaxWeightHeaderBytes);
  return std::max(cursor.at(), grown);
}

}  // namespace tessera::hub
