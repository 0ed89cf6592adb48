// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/packed_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

using tensor::DType;

constexpr int64_t kBlock = 32;

void PutHalf(float value, std::byte* out) {
  const uint16_t half = tensor::FloatToHalf(value);
  std::memcpy(out, &half, sizeof(half));
}

// 32 differences code - zero to one block; the layouts are ggml's (tensor/convert_legacy.cc).

void PutQ4_0(float scale, std::span<const int32_t> q, std::byte* block) {
  PutHalf(scale, block);
  for (size_t j = 0; j < 16; ++j)
    block[2 + j] = static_cast<std::byte>((q[j] + 8) | (q[j + 16] + 8) << 4);
}

void PutQ5_0(float scale, std::span<const int32_t> q, std::byte* block) {
  PutHalf(scale, block);
  uint32_t fifth = 0;
  for (size_t j = 0; j < 32; ++j) fifth |= static_cast<uint32_t>((q[j] + 16) >> 4 & 1) << j;
  std::memcpy(block + 2, &fifth, sizeof(fifth));
  for (size_t j = 0; j < 16; ++j)
    block[6 + j] = static_cast<std::byte>(((q[j] + 16) & 0xf) | ((q[j + 16] + 16) & 0xf) << 4);
}

void PutQ8_0(float scale, std::span<const int32_t> q, std::byte* block) {
  PutHalf(scale, block);
  for (size_t j = 0; j < 32; ++j) block[2 + j] = static_cast<std::byte>(static_cast<int8_t>(q[j]));
}

class Rows : public formats::RowMaker {
 public:
  Rows(std::shared_ptr<const PackedMatrix> matrix, DType dtype, bool symmetric, int64_t bits)
      : matrix_(std::move(matrix)),
        dtype_(dtype),
        middle_(symmetric ? std::optional<int32_t>(1 << (bits - 1)) : std::nullopt) {}

  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    Row row(*matrix_);
    const size_t row_bytes = count == 0 ? 0 : out.size() / static_cast<size_t>(count);
    for (int64_t i = 0; i < count; ++i) {
      TESSERA_RETURN_IF_ERROR(row.Read(*matrix_, first + i, middle_));
      Put(row, out.subspan(static_cast<size_t>(i) * row_bytes, row_bytes));
    }
    return {};
  }

 private:
  /// One row unpacked: differences code - zero, and scales.
  struct Row {
    explicit Row(const PackedMatrix& m)
        : codes(static_cast<size_t>(m.columns())),
          differences(static_cast<size_t>(m.columns())),
          scales(static_cast<size_t>(m.groups())),
          zeros(static_cast<size_t>(m.groups())) {}

    Status Read(const PackedMatrix& m, int64_t at, std::optional<int32_t> middle) {
      m.Codes(at, codes);
      m.Scales(at, scales);
      m.Zeros(at, zeros);
      for (size_t g = 0; g < scales.size(); ++g) {
        if (!std::isfinite(scales[g]))
          return DataLoss(fmt::format("row {}: the scale of group {} is {}", at, g, scales[g]));
        if (middle && zeros[g] != *middle)
          return DataLoss(
              fmt::format("row {}: the zero point of group {} is {}, but the config says "
                          "symmetric, which means "
                          "{}; a file of format gptq_v2 must say so in checkpoint_format",
                          at, g, zeros[g], *middle));
      }
      const size_t size = codes.size() / scales.size();
      for (size_t k = 0; k < codes.size(); ++k) {
        const size_t g = m.group_of().empty() ? k / size : static_cast<size_t>(m.group_of()[k]);
        differences[k] = static_cast<int32_t>(codes[k]) - zeros[g];
      }
      return {};
    }

    std::vector<uint8_t> codes;
    std::vector<int32_t> differences;
    std::vector<float> scales;
    std::vector<int32_t> zeros;
  };

  void Put(const Row& row, std::span<std::byte> out) const {
    if (!tensor::IsQuantised(dtype_)) return PutFloats(row, out);
    const size_t block_bytes = tensor::Info(dtype_).block_bytes;
    const size_t blocks = row.differences.size() / kBlock;
    const size_t per_group = blocks / row.scales.size();
    for (size_t b = 0; b < blocks; ++b) {
      const float scale = row.scales[b / per_group];
      const std::span<const int32_t> q = std::span(row.differences).subspan(b * kBlock, kBlock);
      std::byte* block = out.data() + b * block_bytes;
      if (dtype_ == DType::kQ4_0) PutQ4_0(scale, q, block);
      if (dtype_ == DType::kQ5_0) PutQ5_0(scale, q, block);
      if (dtype_ == DType::kQ8_0) PutQ8_0(scale, q, block);
    }
  }

  void PutFloats(const Row& row, std::span<std::byte> out) const {
    const size_t size = row.differences.size() / row.scales.size();
    for (size_t k = 0; k < row.differences.size(); ++k) {
      const std::vector<int32_t>& group_of = matrix_->group_of();
      const size_t g = group_of.empty() ? k / size : static_cast<size_t>(group_of[k]);
      const float value = row.scales[g] * static_cast<float>(row.differences[k]);
      if (dtype_ == DType::kF16) {
        PutHalf(value, out.data() + 2 * k);
      } else {
        std::memcpy(out.data() + 4 * k, &value, sizeof(value));
      }
    }
  }

  std::shared_ptr<const PackedMatrix> matrix_;
  DType dtype_;
  std::optional<int32_t> middle_;  // What every zero point must be.
};

struct ScaleFacts {
  bool fit_half = true;
  float largest = 0;
};

/// F16 scales are what they are; others are looked at.
ScaleFacts LookAtScales(const PackedMatrix& matrix) {
  ScaleFacts facts;
  std::vector<float> scales(static_cast<size_t>(matrix.groups()));
  if (matrix.scale_dtype() == DType::kF16) return facts;
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    matrix.Scales(row, scales);
    for (const float scale : scales) {
      facts.fit_half = facts.fit_half && tensor::HalfToFloat(tensor::FloatToHalf(scale)) == scale;
      facts.largest = std::max(facts.largest, std::abs(scale));
    }
  }
  return facts;
}

/// The block format that holds the codes, or why there is none.
std::optional<DType> BlocksFor(const PackedMatrix& matrix, const Quantisation& q,
                               const ScaleFacts& scales, std::string* reason) {
  if (!matrix.group_of().empty()) {
    *reason = "its columns are in the order of their activations";
  } else if (matrix.columns() / matrix.groups() % kBlock != 0) {
    *reason = fmt::format("its groups of {} are no whole blocks of {}",
                          matrix.columns() / matrix.groups(), kBlock);
  } else if (!scales.fit_half) {
    *reason = "its scales do not fit F16";
  } else if (q.bits == 4) {
    return q.symmetric ? DType::kQ4_0 : DType::kQ5_0;
  } else if (q.symmetric) {
    return DType::kQ8_0;
  } else {
    *reason = "8-bit codes with zero points do not fit int8";
  }
  return std::nullopt;
}

}  // namespace

PackedRows MakePackedRows(std::shared_ptr<const PackedMatrix> matrix, const Quantisation& q) {
  PackedRows result;
  const ScaleFacts scales = LookAtScales(*matrix);
  const std::optional<DType> blocks = BlocksFor(*matrix, q, scales, &result.reason);
  const float most = scales.largest * static_cast<float>(1 << q.bits);
  constexpr float kLargestHalf = 65504;
  // F16 scales near their own limit could overflow, too, but no weight is that large.
  result.dtype = blocks.value_or(most <= kLargestHalf ? DType::kF16 : DType::kF32);
  result.rows = std::make_shared<Rows>(std::move(matrix), result.dtype, q.symmetric, q.bits);
  return result;
}

}  // namespace tessera::model
