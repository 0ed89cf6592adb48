// SPDX-License-Identifier: Apache-2.0
//
// A matrix of integer codes with a scale and a zero point for each group of inputs:
//   weight[row][column] = scale[row][group] * (code[row][column] - zero[row][group])
// in the three packings that repositories have. `bits` codes lie in each 32-bit word, the first in
// the lowest bits; R rows (outputs), K columns (inputs), G groups, P = 32 / bits:
//   GPTQ   qweight [K/P, R] words along K; qzeros [G, R/P] words along R; scales [G, R]; g_idx [K]
//   AWQ    qweight [K, R/8], qzeros [G, R/8]: words along R in the order 0 2 4 6 1 3 5 7; scales
//          [G, R]
//   compressed-tensors   weight_packed [R, K/P], weight_zero_point [R/P, G] words along R, both
//          shifted by half the range to be unsigned; weight_scale [R, G]; weight_shape (R, K)
// Immutable after opening; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/parameter_index.h"
#include "model/quantised/quantisation_config.h"

namespace tessera::model {

class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t groups() const { return groups_; }
  /// Group of each column; empty when they follow each other, columns() / groups() at a time.
  const std::vector<int32_t>& group_of() const { return group_of_; }
  /// Type of the stored scales: F16, BF16 or F32.
  tensor::DType scale_dtype() const { return scale_dtype_; }

  /// All of one row; spans have columns() and groups() elements.
  virtual void Codes(int64_t row, std::span<uint8_t> out) const = 0;
  virtual void Scales(int64_t row, std::span<float> out) const = 0;
  virtual void Zeros(int64_t row, std::span<int32_t> out) const = 0;

 protected:
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t groups_ = 0;
  std::vector<int32_t> group_of_;
  tensor::DType scale_dtype_ = tensor::DType::kF16;
};

/// The matrix whose tensors are `prefix` + ".qweight" (or ".weight_packed") and so on.
/// kInvalidArgument names a tensor that is missing or of another shape or type than its neighbours
/// and the config want, or a group index out of range.
Result<std::shared_ptr<const PackedMatrix>> OpenPackedMatrix(const formats::ParameterIndex& index,
                                                             const std::string& prefix,
                                                             const Quantisation& quantisation);

/// What the format calls the codes: ".qweight", ".weight_packed".
std::string_view CodesSuffix(QuantisationMethod method);
/// All tensors of a matrix by suffix, the codes included.
std::span<const std::string_view> PackedSuffixes(QuantisationMethod method);

}  // namespace tessera::model
