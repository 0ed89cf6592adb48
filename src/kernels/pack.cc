// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"

#include <cstring>

#include "base/check.h"
#include "kernels/layout.h"
#include "kernels/matmul.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels {
namespace {

using Rows = std::array<const std::byte*, kGroupRows>;

int64_t FloatBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    default:
      return 0;
  }
}

/// Bytes of one block of 32 inputs x 8 rows of the simple formats; 0 for others.
int64_t SimpleBytes(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return Format<DType::kQ4_0>::kBytes;
    case DType::kQ4_1:
      return Format<DType::kQ4_1>::kBytes;
    case DType::kQ5_0:
      return Format<DType::kQ5_0>::kBytes;
    case DType::kQ5_1:
      return Format<DType::kQ5_1>::kBytes;
    case DType::kQ8_0:
      return Format<DType::kQ8_0>::kBytes;
    default:
      return 0;
  }
}

void PackFloatGroup(int64_t size, int64_t k, const Rows& rows, std::byte* packed) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < kGroupRows; ++j, packed += size) {
      if (rows[j]) {
        std::memcpy(packed, rows[j] + i * size, size);
      } else {
        std::memset(packed, 0, size);
      }
    }
  }
}

/// Fifth bits of a GGUF block (bit i of 32 = input i) to ours (bit t of byte i = input 4t + i).
void PackFifthBits(uint32_t bits, std::byte* out) {
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int t = 0; t < 8; ++t) byte |= ((bits >> (4 * t + i)) & 1) << t;
    out[i] = static_cast<std::byte>(byte);
  }
}

/// GGUF block: d, [m], [4 bytes of fifth bits], codes.
template <class F>
void PackSimpleGroup(int64_t k, const Rows& rows, std::byte* packed) {
  constexpr int64_t kRowBytes = F::kBytes / kGroupRows;  // of a source block
  const int64_t blocks = k / kBlock;
  std::memset(packed, 0, blocks * F::kBytes);
  for (int64_t b = 0; b < blocks; ++b) {
    const BlockParts parts = PartsOf<F>(packed, blocks, b);
    const auto at = [&](const std::byte* part) { return packed + (part - packed); };
    for (int64_t j = 0; j < kGroupRows; ++j) {
      if (!rows[j]) continue;
      const std::byte* source = rows[j] + b * kRowBytes;
      std::memcpy(at(parts.d) + 2 * j, source, 2);
      source += 2;
      if constexpr (F::kHasMin) {
        std::memcpy(at(parts.m) + 2 * j, source, 2);
        source += 2;
      }
      if constexpr (F::kBits == 5) {
        uint32_t bits;
        std::memcpy(&bits, source, 4);
        PackFifthBits(bits, at(parts.high) + 4 * j);
        source += 4;
      }
      for (int64_t c = 0; c < F::kCodeBytes / 32; ++c) {
        std::memcpy(at(parts.codes) + c * 32 + j * 4, source + 4 * c, 4);
      }
    }
  }
}

/// Stores code (4 low bits) of input t of sub-block i, row j.
void PutNibble(std::byte* codes, int i, int64_t j, int t, unsigned code) {
  std::byte& byte = codes[i * 128 + ((t % 16) / 4) * 32 + j * 4 + t % 4];
  byte |= static_cast<std::byte>(t < 16 ? code & 15 : (code & 15) << 4);
}

/// One super-block of one row of Q4_K or Q5_K: d, dmin, 12 B scales, [32 B fifth bits], 128 B
/// nibbles: per 64 inputs 32 bytes, low nibbles first half.
template <DType dtype>
void PackQ45KRow(const std::byte* source, int64_t j, std::byte* super) {
  constexpr bool kFive = dtype == DType::kQ5_K;
  std::memcpy(super + 2 * j, source, 2);
  std::memcpy(super + 16 + 2 * j, source + 2, 2);
  for (int w = 0; w < 3; ++w) std::memcpy(super + 32 + 32 * w + 4 * j, source + 4 + 4 * w, 4);
  const std::byte* high = source + 16;
  const std::byte* low = source + (kFive ? 48 : 16);
  for (int i = 0; i < 8; ++i) {
    uint32_t fifth = 0;
    for (int t = 0; t < kBlock; ++t) {
      const auto byte = static_cast<unsigned>(low[(i / 2) * 32 + t]);
      PutNibble(super + 128, i, j, t, i % 2 ? byte >> 4 : byte & 15);
      if (kFive) fifth |= ((static_cast<unsigned>(high[t]) >> i) & 1) << t;
    }
    if (kFive) PackFifthBits(fifth, super + 128 + 1024 + i * 32 + j * 4);
  }
}

/// One super-block of one row of Q6_K: 128 B low, 64 B high, 16 int8 scales, d. Per 128 inputs: low
/// byte l and l+32 hold inputs l, l+32 (low nibbles) and l+64, l+96; high byte l their upper bits.
void PackQ6KRow(const std::byte* source, int64_t j, std::byte* super) {
  std::memcpy(super + 2 * j, source + 208, 2);
  for (int s = 0; s < 16; ++s) super[16 + (s / 2) * 16 + 2 * j + s % 2] = source[192 + s];
  for (int i = 0; i < 8; ++i) {
    const int half = i / 4, quarter = i % 4;
    for (int t = 0; t < kBlock; ++t) {
      const auto low = static_cast<unsigned>(source[half * 64 + (quarter % 2) * 32 + t]);
      const auto high = static_cast<unsigned>(source[128 + half * 32 + t]);
      PutNibble(super + 144, i, j, t, quarter < 2 ? low & 15 : low >> 4);
      const unsigned two = (high >> (2 * quarter)) & 3;
      super[144 + 1024 + i * 64 + (t / 16) * 32 + j * 4 + t % 4] |=
          static_cast<std::byte>(two << (2 * ((t % 16) / 4)));
    }
  }
}

void PackSuperGroup(DType dtype, int64_t k, const Rows& rows, std::byte* packed) {
  const int64_t source_bytes = SuperBytes(dtype) / kGroupRows;
  std::memset(packed, 0, k / kSuperBlock * SuperBytes(dtype));
  for (int64_t s = 0; s < k / kSuperBlock; ++s) {
    std::byte* super = packed + s * SuperBytes(dtype);
    for (int64_t j = 0; j < kGroupRows; ++j) {
      if (!rows[j]) continue;
      const std::byte* source = rows[j] + s * source_bytes;
      if (dtype == DType::kQ4_K) PackQ45KRow<DType::kQ4_K>(source, j, super);
      if (dtype == DType::kQ5_K) PackQ45KRow<DType::kQ5_K>(source, j, super);
      if (dtype == DType::kQ6_K) PackQ6KRow(source, j, super);
    }
  }
}

void UnpackFloatRow(DType dtype, int64_t k, const std::byte* group, int64_t j, float* out) {
  for (int64_t i = 0; i < k; ++i) {
    const int64_t at = i * kGroupRows + j;
    if (dtype == DType::kF32) std::memcpy(out + i, group + 4 * at, 4);
    if (dtype == DType::kF16) out[i] = ref::HalfAt(group, at);
    if (dtype == DType::kBF16) out[i] = ref::BFloat16ToFloat(ref::LoadU16(group + 2 * at));
  }
}

template <class F>
void UnpackSimpleRow(int64_t k, const std::byte* group, int64_t j, float* out) {
  for (int64_t b = 0; b < k / kBlock; ++b, out += kBlock) {
    const BlockParts parts = PartsOf<F>(group, k / kBlock, b);
    const float d = ref::HalfAt(parts.d, j);
    for (int t = 0; t < kBlock; ++t) {
      out[t] = static_cast<float>(ref::Code<F>(parts, j, t)) * d;
      if constexpr (F::kHasMin) out[t] += ref::HalfAt(parts.m, j);
    }
  }
}

template <DType dtype>
void UnpackSuperRow(int64_t k, const std::byte* group, int64_t j, float* out) {
  for (int64_t b = 0; b < k / kBlock; ++b, out += kBlock) {
    const SuperParts parts = SuperPartsOf<dtype>(group, b / 8);
    const int i = static_cast<int>(b % 8);
    const float d = ref::HalfAt(parts.d, j);
    for (int t = 0; t < kBlock; ++t) {
      const int code = ref::SuperCode<dtype>(parts, i, j, t);
      if constexpr (dtype == DType::kQ6_K) {
        const auto scale = static_cast<int8_t>(parts.scales[i * 16 + 2 * j + t / 16]);
        out[t] = d * static_cast<float>(scale) * static_cast<float>(code - 32);
      } else {
        int scale = 0, min = 0;
        ref::ScaleMin(parts.scales, j, i, &scale, &min);
        out[t] = d * static_cast<float>(scale) * static_cast<float>(code) -
                 ref::HalfAt(parts.dmin, j) * static_cast<float>(min);
      }
    }
  }
}

}  // namespace

bool CanPack(DType dtype, int64_t k) {
  if (k < 1) return false;
  if (FloatBytes(dtype)) return true;
  if (SimpleBytes(dtype)) return k % kBlock == 0;
  return SuperBytes(dtype) != 0 && k % kSuperBlock == 0;
}

bool UsesQuantisedRows(DType dtype) {
  return FloatBytes(dtype) == 0;
}

int64_t GroupBytes(DType dtype, int64_t k) {
  TESSERA_DCHECK(CanPack(dtype, k));
  if (FloatBytes(dtype)) return k * kGroupRows * FloatBytes(dtype);
  if (SimpleBytes(dtype)) return k / kBlock * SimpleBytes(dtype);
  return k / kSuperBlock * SuperBytes(dtype);
}

int64_t PackedBytes(DType dtype, int64_t n, int64_t k) {
  return GroupCount(n) * GroupBytes(dtype, k);
}

void PackGroup(DType dtype, int64_t k, const Rows& rows, std::byte* packed) {
  switch (dtype) {
    case DType::kQ4_0:
      return PackSimpleGroup<Format<DType::kQ4_0>>(k, rows, packed);
    case DType::kQ4_1:
      return PackSimpleGroup<Format<DType::kQ4_1>>(k, rows, packed);
    case DType::kQ5_0:
      return PackSimpleGroup<Format<DType::kQ5_0>>(k, rows, packed);
    case DType::kQ5_1:
      return PackSimpleGroup<Format<DType::kQ5_1>>(k, rows, packed);
    case DType::kQ8_0:
      return PackSimpleGroup<Format<DType::kQ8_0>>(k, rows, packed);
    default:
      break;
  }
  TESSERA_CHECK(CanPack(dtype, k));
  if (FloatBytes(dtype)) return PackFloatGroup(FloatBytes(dtype), k, rows, packed);
  PackSuperGroup(dtype, k, rows, packed);
}

void PackRows(DType dtype, int64_t n, int64_t k, const std::byte* source, int64_t source_row_bytes,
              const int64_t* row_index, int64_t group_begin, int64_t group_end, std::byte* packed) {
  const int64_t group_bytes = GroupBytes(dtype, k);
  for (int64_t g = group_begin; g < group_end; ++g) {
    Rows rows = {};
    for (int64_t j = 0; j < kGroupRows && g * kGroupRows + j < n; ++j) {
      const int64_t i = g * kGroupRows + j;
      const int64_t from = row_index ? row_index[i] : i;
      rows[j] = from < 0 ? nullptr : source + from * source_row_bytes;
    }
    PackGroup(dtype, k, rows, packed + g * group_bytes);
  }
}

void UnpackRow(DType dtype, int64_t k, const std::byte* packed, int64_t row, float* out) {
  const std::byte* group = packed + row / kGroupRows * GroupBytes(dtype, k);
  const int64_t j = row % kGroupRows;
  switch (dtype) {
    case DType::kQ4_0:
      return UnpackSimpleRow<Format<DType::kQ4_0>>(k, group, j, out);
    case DType::kQ4_1:
      return UnpackSimpleRow<Format<DType::kQ4_1>>(k, group, j, out);
    case DType::kQ5_0:
      return UnpackSimpleRow<Format<DType::kQ5_0>>(k, group, j, out);
    case DType::kQ5_1:
      return UnpackSimpleRow<Format<DType::kQ5_1>>(k, group, j, out);
    case DType::kQ8_0:
      return UnpackSimpleRow<Format<DType::kQ8_0>>(k, group, j, out);
    case DType::kQ4_K:
      return UnpackSuperRow<DType::kQ4_K>(k, group, j, out);
    case DType::kQ5_K:
      return UnpackSuperRow<DType::kQ5_K>(k, group, j, out);
    case DType::kQ6_K:
      return UnpackSuperRow<DType::kQ6_K>(k, group, j, out);
    default:
      return UnpackFloatRow(dtype, k, group, j, out);
  }
}

}  // namespace tessera::kernels
