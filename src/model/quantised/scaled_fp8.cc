// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/scaled_fp8.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "formats/row_reader.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

using formats::ParameterEntry;
using tensor::DType;
using tensor::Shape;

/// Scale of element (row, column): values[row / rows][column / columns].
struct Grid {
  std::vector<float> values;
  int64_t rows = 1;  // Of a block.
  int64_t columns = 1;
  int64_t per_row = 1;  // Blocks beside each other.
};

class Rows : public formats::RowMaker {
 public:
  Rows(formats::RowReader numbers, Grid grid, DType dtype, int64_t columns)
      : numbers_(std::move(numbers)), grid_(std::move(grid)), dtype_(dtype), columns_(columns) {}

  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    std::vector<float> row(static_cast<size_t>(columns_));
    std::vector<std::byte> scratch;
    for (int64_t i = 0; i < count; ++i) {
      TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes, numbers_.Row(first + i, &scratch));
      TESSERA_RETURN_IF_ERROR(tensor::ToFloat(numbers_.dtype(), bytes, row));
      const int64_t begin = (first + i) / grid_.rows * grid_.per_row;
      for (int64_t c = 0; c < columns_; ++c)
        row[static_cast<size_t>(c)] *= grid_.values[static_cast<size_t>(begin + c / grid_.columns)];
      out = Put(row, out);
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override { numbers_.DoneWith(first, count); }

 private:
  std::span<std::byte> Put(std::span<const float> row, std::span<std::byte> out) const {
    if (dtype_ == DType::kF32) {
      std::memcpy(out.data(), row.data(), row.size_bytes());
      return out.subspan(row.size_bytes());
    }
    for (size_t c = 0; c < row.size(); ++c) {
      const uint16_t half = tensor::FloatToHalf(row[c]);
      std::memcpy(out.data() + 2 * c, &half, sizeof(half));
    }
    return out.subspan(2 * row.size());
  }

  formats::RowReader numbers_;
  Grid grid_;
  DType dtype_;
  int64_t columns_;
};

int64_t DivideUp(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

Result<Grid> ReadGrid(const formats::ParameterIndex& index, const ParameterEntry& scales,
                      const Shape& shape, const Quantisation& q) {
  Grid grid;
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  const bool in_blocks =
      q.block_rows > 0 &&
      scales.shape == Shape{DivideUp(rows, q.block_rows), DivideUp(columns, q.block_columns)};
  if (in_blocks) {
    grid.rows = q.block_rows;
    grid.columns = q.block_columns;
    grid.per_row = scales.shape[1];
  } else if (scales.shape.elements() == 1) {
    grid.rows = rows;
    grid.columns = columns;
  } else if (scales.shape == Shape{rows} || scales.shape == Shape{rows, 1}) {
    grid.columns = columns;
  } else {
    return Fail(InvalidArgument(fmt::format(
        "{} has shape {}, expected one value, one a row of {}, or blocks of {}x{}", scales.name,
        scales.shape.ToString(), shape.ToString(), q.block_rows, q.block_columns)));
  }
  if (scales.dtype != DType::kF32 && scales.dtype != DType::kF16 && scales.dtype != DType::kBF16)
    return Fail(InvalidArgument(fmt::format("{} has type {}, expected F32, F16 or BF16",
                                            scales.name, tensor::Name(scales.dtype))));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, index.Materialise(scales));
  grid.values.resize(static_cast<size_t>(scales.shape.elements()));
  TESSERA_RETURN_IF_ERROR(tensor::ToFloat(scales.dtype, bytes, grid.values));
  return grid;
}

}  // namespace

Result<ScaledRows> OpenScaledFp8(const formats::ParameterIndex& index, const ParameterEntry& weight,
                                 const Quantisation& q) {
  if (weight.shape.rank() != 2 || weight.shape.elements() < 1)
    return Fail(InvalidArgument(
        fmt::format("{} has shape {}, expected a matrix", weight.name, weight.shape.ToString())));
  const ParameterEntry* scales = index.Find(weight.name + "_scale");
  if (scales == nullptr) scales = index.Find(weight.name + "_scale_inv");
  if (scales == nullptr)
    return Fail(InvalidArgument(fmt::format(
        "{0} is FP8 and has no scales: expected {0}_scale or {0}_scale_inv", weight.name)));
  TESSERA_ASSIGN_OR_RETURN(Grid grid, ReadGrid(index, *scales, weight.shape, q));
  float largest = 0;
  for (const float scale : grid.values) {
    if (!std::isfinite(scale))
      return Fail(DataLoss(fmt::format("{} has the scale {}", scales->name, scale)));
    largest = std::max(largest, std::abs(scale));
  }
  constexpr float kLargestNumber = 448;  // Of e4m3.
  constexpr float kLargestHalf = 65504;
  ScaledRows result;
  if (largest * kLargestNumber > kLargestHalf) result.dtype = DType::kF32;
  TESSERA_ASSIGN_OR_RETURN(formats::RowReader reader, formats::RowReader::Open(index, weight));
  result.rows = std::make_shared<Rows>(std::move(reader), std::move(grid), result.dtype,
                                       weight.shape.columns());
  return result;
}

}  // namespace tessera::model
