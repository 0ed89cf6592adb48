// SPDX-License-Identifier: Apache-2.0
//
// ByteReader: a bounded little-endian cursor over bytes from outside. Every read is checked with
// overflow-safe arithmetic and names the offset and field on failure. It never allocates.
// ByteWriter: the matching builder of byte strings. Both are little-endian whatever the host is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little,
              "the readers copy little-endian integers as they are");

using ByteSpan = std::span<const std::byte>;

inline ByteSpan AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// True when a + b (a * b) does not fit 64 bits, as the compiler's builtins answer.
[[nodiscard]] inline bool AddOverflows(uint64_t a, uint64_t b, uint64_t* sum) {
  return __builtin_add_overflow(a, b, sum);
}
[[nodiscard]] inline bool MulOverflows(uint64_t a, uint64_t b, uint64_t* product) {
  return __builtin_mul_overflow(a, b, product);
}
/// Rounds up to a multiple of `alignment`, a power of two; false when the result does not fit.
[[nodiscard]] inline bool AlignUp(uint64_t value, uint64_t alignment, uint64_t* aligned) {
  if (AddOverflows(value, alignment - 1, aligned)) return false;
  *aligned &= ~(alignment - 1);
  return true;
}

class ByteReader {
 public:
  /// Views `bytes`, which must outlive the reader.
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  /// Reads an integer or float. kDataLoss "offset 12: magic: needs 4 bytes, 2 left" at the end.
  template <class T>
  requires std::is_arithmetic_v<T> Result<T> Read(std::string_view field) {
    TESSERA_ASSIGN_OR_RETURN(ByteSpan raw, ReadBytes(sizeof(T), field));
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  /// A view of the next `size` bytes, valid as long as the reader's bytes.
  Result<ByteSpan> ReadBytes(uint64_t size, std::string_view field);
  /// Moves to `offset`, which may be the end but not past it.
  Status Seek(uint64_t offset, std::string_view field);

 private:
  ByteSpan bytes_;
  uint64_t offset_ = 0;
};

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void Write(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    out_.append(raw, sizeof(T));
  }
  void WriteBytes(ByteSpan bytes) { out_.append(AsText(bytes)); }
  void WriteText(std::string_view text) { out_.append(text); }
  /// Zeros up to a multiple of `alignment`, any positive number.
  void PadTo(uint64_t alignment) {
    if (const uint64_t rest = out_.size() % alignment; rest != 0)
      out_.append(alignment - rest, '\0');
  }
  uint64_t size() const { return out_.size(); }
  const std::string& bytes() const { return out_; }
  std::string Take() && { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace tessera
