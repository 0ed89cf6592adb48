// SPDX-License-Identifier: Apache-2.0
//
// A packed matrix as rows of a dtype that kernels have. Codes minus zero points are small integers,
// and a block format with one f16 scale holds them exactly:
//   4 bits, zero points in the middle -> Q4_0;  4 bits, any zero points -> Q5_0 (q - z + 16 fits);
//   8 bits, zero points in the middle -> Q8_0
// with each group's scale repeated in its blocks of 32. That needs groups of whole blocks in the
// order of the columns, and scales that f16 holds. Else weights become F16, each rounded once as
// the packers' own code does (F32 where F16 would overflow).
#pragma once

#include <memory>

#include "formats/parameter_index.h"
#include "model/quantised/packed_matrix.h"

namespace tessera::model {

struct PackedRows {
  tensor::DType dtype = tensor::DType::kF16;
  std::shared_ptr<const formats::RowMaker> rows;
  std::string reason;  // Why codes could not be kept; empty when they were.
};

/// MakeRows gives kDataLoss for a zero point that contradicts `symmetric`, or a scale that is not
/// finite. kResourceExhausted never: a row at a time.
PackedRows MakePackedRows(std::shared_ptr<const PackedMatrix> matrix,
                          const Quantisation& quantisation);

}  // namespace tessera::model
