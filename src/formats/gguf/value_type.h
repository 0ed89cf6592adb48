// SPDX-License-Identifier: Apache-2.0
//
// GGUF's metadata value types and their numbers on disk; shared by reader and writer.
#pragma once

#include <cstdint>

namespace tessera::formats::gguf {

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kText = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

}  // namespace tessera::formats::gguf
