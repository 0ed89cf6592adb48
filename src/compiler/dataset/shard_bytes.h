// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one tensor of a dataset, or of one rank's part of it, plane by plane and row by row.
#pragma once

#include <string>
#include <vector>

#include "compiler/dataset/tensor_list.h"
#include "formats/irpa/plane_blocks.h"
#include "formats/row_reader.h"

namespace tessera::compiler {

/// Part of a tensor: rows [row, row + rows), columns [column, column + columns).
struct TensorPart {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
};

/// How a tensor is stored: in planes of a layout, or as plain elements.
struct StoredForm {
  tensor::DType dtype = tensor::DType::kF32;  // Of plain elements.
  const formats::irpa::PlanarFormat* planar = nullptr;
  std::string note;  // What was converted; empty when the source's numbers are kept as they are.
};

/// Plain dtypes stay, block formats get their layout; those that no layout holds become float32.
Result<StoredForm> ChooseStoredForm(const DatasetTensor& tensor);

class ShardBytes {
 public:
  /// `tensor` and `index` must outlive the object.
  static Result<ShardBytes> Open(const DatasetTensor& tensor, const formats::ParameterIndex& index,
                                 const StoredForm& form);

  int64_t planes() const;
  /// Of plane `plane` of a part: what its metadata says and what it takes.
  tensor::DType plane_dtype(int64_t plane) const;
  tensor::Shape plane_shape(int64_t plane, const TensorPart& part) const;
  uint64_t plane_row_bytes(int64_t plane, const TensorPart& part) const;
  /// Appends rows [first, first + count) of the part. Any thread.
  Status Append(int64_t plane, const TensorPart& part, int64_t first, int64_t count,
                std::vector<std::byte>* out) const;
  /// The source of these rows may leave resident memory; another plane brings it back.
  void DoneWith(const TensorPart& part, int64_t first, int64_t count) const;

 private:
  ShardBytes(const DatasetTensor& tensor, const StoredForm& form) : tensor_(tensor), form_(form) {}
  Status ReorderVector();
  Result<ByteSpan> Row(int64_t row, std::vector<std::byte>* scratch) const;

  const DatasetTensor& tensor_;
  const StoredForm& form_;
  std::optional<formats::RowReader> reader_;  // Without it `owned_` holds all bytes.
  std::vector<std::byte> owned_;
  std::vector<int64_t> run_begin_;  // First row of each run of tensor_.order.
};

}  // namespace tessera::compiler
