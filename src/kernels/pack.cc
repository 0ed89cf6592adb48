// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/layout.h"
#include "kernels/matmul.h"
#include "kernels/pack_super.h"
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

/// Inputs of one row that lie side by side in a group of a float format.
int64_t FloatRun(DType dtype) {
  return dtype == DType::kBF16 ? 2 : 1;
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

/// `kBytes` of every row in turn, until `row_bytes` of each are there; what is missing is zero.
template <int64_t kBytes>
void PackFloatGroup(int64_t row_bytes, const Rows& rows, std::byte* packed) {
  const bool is_full = std::ranges::find(rows, nullptr) == rows.end();
  int64_t at = 0;
  if (is_full) {  // Nearly always; without branches it is four times as fast.
    for (; at + kBytes <= row_bytes; at += kBytes, packed += kGroupRows * kBytes)
      for (int64_t j = 0; j < kGroupRows; ++j)
        std::memcpy(packed + j * kBytes, rows[j] + at, kBytes);
  }
  for (; at < row_bytes; at += kBytes, packed += kGroupRows * kBytes) {
    const int64_t count = std::min(kBytes, row_bytes - at);
    std::memset(packed, 0, kGroupRows * kBytes);
    for (int64_t j = 0; j < kGroupRows; ++j)
      if (rows[j]) std::memcpy(packed + j * kBytes, rows[j] + at, count);
  }
}

/// GGUF block: d, [m], [4 bytes of fifth bits], codes.
template <class F>
void PackSimpleGroup(int64_t k, const Rows& rows, std::byte* packed) {
  constexpr int64_t kRowBytes = F::kBytes / kGroupRows;  // of a source block
  const int64_t blocks = k / kBlock;
  const bool is_full = std::ranges::find(rows, nullptr) == rows.end();
  if (!is_full) std::memset(packed, 0, blocks * F::kBytes);
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
        bits = ShuffleFifthBits(bits);
        std::memcpy(at(parts.high) + 4 * j, &bits, 4);
        source += 4;
      }
      for (int64_t c = 0; c < F::kCodeBytes / 32; ++c) {
        std::memcpy(at(parts.codes) + c * 32 + j * 4, source + 4 * c, 4);
      }
    }
  }
}

void UnpackFloatRow(DType dtype, int64_t k, const std::byte* group, int64_t j, float* out) {
  for (int64_t i = 0; i < k; ++i) {
    const int64_t run = FloatRun(dtype);
    const int64_t at = (i / run * kGroupRows + j) * run + i % run;
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

bool UsesBFloat16Rows(DType dtype) {
  return dtype == DType::kBF16;
}

int64_t GroupBytes(DType dtype, int64_t k) {
  TESSERA_DCHECK(CanPack(dtype, k));
  if (FloatBytes(dtype)) {
    const int64_t run = FloatRun(dtype);
    return (k + run - 1) / run * run * kGroupRows * FloatBytes(dtype);
  }
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
  if (FloatBytes(dtype)) {
    const int64_t row_bytes = k * FloatBytes(dtype);
    if (dtype == DType::kF16) return PackFloatGroup<2>(row_bytes, rows, packed);
    return PackFloatGroup<4>(row_bytes, rows, packed);  // One F32, or two BF16.
  }
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
