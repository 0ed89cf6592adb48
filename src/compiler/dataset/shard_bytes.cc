// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/shard_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/convert.h"

namespace tessera::compiler {
namespace {

using formats::irpa::PlaneFormat;
using tensor::DType;

}  // namespace

Result<StoredForm> ChooseStoredForm(const DatasetTensor& tensor) {
  if (!tensor::IsQuantised(tensor.dtype)) return StoredForm{tensor.dtype, nullptr, ""};
  if (const auto* planar = formats::irpa::PlanarFormatOf(tensor.dtype))
    return StoredForm{tensor.dtype, planar, ""};
  if (!tensor::CanConvertToFloat(tensor.dtype))
    return Fail(Unimplemented(
        fmt::format("{} of type {} in a dataset", tensor.name, tensor::Name(tensor.dtype))));
  return StoredForm{DType::kF32, nullptr,
                    fmt::format("{}: {} has no layout in datasets, stored as F32", tensor.name,
                                tensor::Name(tensor.dtype))};
}

Result<ShardBytes> ShardBytes::Open(const DatasetTensor& tensor,
                                    const formats::ParameterIndex& index, const StoredForm& form) {
  ShardBytes bytes(tensor, form);
  if (tensor.entry == nullptr) {
    const auto made = std::as_bytes(std::span(tensor.made));
    bytes.owned_.assign(made.begin(), made.end());
    return bytes;
  }
  if (tensor.shape.rows() == 1 && !tensor.order.empty()) {
    TESSERA_ASSIGN_OR_RETURN(bytes.owned_, index.Materialise(*tensor.entry));
    TESSERA_RETURN_IF_ERROR(bytes.ReorderVector());
    return bytes;
  }
  TESSERA_ASSIGN_OR_RETURN(bytes.reader_, formats::RowReader::Open(index, *tensor.entry));
  int64_t row = 0;
  for (const RowRun& run : tensor.order) {
    bytes.run_begin_.push_back(row);
    row += run.count;
  }
  TESSERA_CHECK(tensor.order.empty() || row == tensor.shape.rows());
  return bytes;
}

Status ShardBytes::ReorderVector() {
  const tensor::DTypeInfo& info = tensor::Info(tensor_.dtype);
  if (info.block_elements != 1)
    return Unimplemented(fmt::format("{} of type {}", tensor_.name, info.name));
  std::vector<std::byte> ordered;
  ordered.reserve(owned_.size());
  for (const RowRun& run : tensor_.order)
    for (int64_t i = 0; i < run.count; ++i) {
      const auto at = static_cast<uint64_t>(run.first + i * run.step) * info.block_bytes;
      TESSERA_CHECK(at + info.block_bytes <= owned_.size());
      ordered.insert(ordered.end(), owned_.begin() + static_cast<int64_t>(at),
                     owned_.begin() + static_cast<int64_t>(at + info.block_bytes));
    }
  owned_ = std::move(ordered);
  return {};
}

Result<ByteSpan> ShardBytes::Row(int64_t row, std::vector<std::byte>* scratch) const {
  if (!reader_) return ByteSpan(owned_);  // Vectors: one row.
  if (run_begin_.empty()) return reader_->Row(row, scratch);
  const auto next = std::upper_bound(run_begin_.begin(), run_begin_.end(), row);
  const auto index = static_cast<size_t>(next - run_begin_.begin() - 1);
  const RowRun& run = tensor_.order[index];
  return reader_->Row(run.first + (row - run_begin_[index]) * run.step, scratch);
}

int64_t ShardBytes::planes() const {
  return form_.planar == nullptr ? 1 : std::ssize(form_.planar->planes);
}

DType ShardBytes::plane_dtype(int64_t plane) const {
  return form_.planar == nullptr ? form_.dtype
                                 : form_.planar->planes[static_cast<size_t>(plane)].dtype;
}

tensor::Shape ShardBytes::plane_shape(int64_t plane, const TensorPart& part) const {
  std::vector<int64_t> dims(tensor_.shape.dims().begin(), tensor_.shape.dims().end());
  if (part.rows != tensor_.shape.rows()) {
    TESSERA_CHECK(dims.size() == 2);
    dims[0] = part.rows;
  }
  if (!dims.empty()) dims.back() = part.columns;
  if (form_.planar == nullptr) return tensor::Shape(std::move(dims));
  const PlaneFormat& format = form_.planar->planes[static_cast<size_t>(plane)];
  dims.back() = part.columns / tensor::Info(form_.dtype).block_elements * format.sub_blocks;
  dims.insert(dims.end(), format.inner.begin(), format.inner.end());
  return tensor::Shape(std::move(dims));
}

uint64_t ShardBytes::plane_row_bytes(int64_t plane, const TensorPart& part) const {
  const tensor::DTypeInfo& info = tensor::Info(form_.dtype);
  const auto blocks = static_cast<uint64_t>(part.columns) / info.block_elements;
  if (form_.planar == nullptr) return blocks * info.block_bytes;
  return blocks * form_.planar->planes[static_cast<size_t>(plane)].bytes_per_block;
}

Status ShardBytes::Append(int64_t plane, const TensorPart& part, int64_t first, int64_t count,
                          std::vector<std::byte>* out) const {
  const tensor::DTypeInfo& source = tensor::Info(tensor_.dtype);
  const auto begin = static_cast<uint64_t>(part.column) / source.block_elements;
  const auto blocks = static_cast<uint64_t>(part.columns) / source.block_elements;
  std::vector<std::byte> scratch;
  for (int64_t row = part.row + first; row < part.row + first + count; ++row) {
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan whole, Row(row, &scratch));
    const ByteSpan bytes = whole.subspan(begin * source.block_bytes, blocks * source.block_bytes);
    if (form_.planar != nullptr) {
      form_.planar->planes[static_cast<size_t>(plane)].extract(bytes.data(), blocks, out);
    } else if (form_.dtype == tensor_.dtype) {
      out->insert(out->end(), bytes.begin(), bytes.end());
    } else {
      std::vector<float> values(static_cast<size_t>(part.columns));
      TESSERA_RETURN_IF_ERROR(
          tensor::ToFloat(tensor_.dtype, bytes, values).WithContext(tensor_.name));
      const auto converted = std::as_bytes(std::span(values));
      out->insert(out->end(), converted.begin(), converted.end());
    }
  }
  return {};
}

void ShardBytes::DoneWith(const TensorPart& part, int64_t first, int64_t count) const {
  // Reordered rows are those of the same heads: near enough for a hint.
  if (reader_) reader_->DoneWith(part.row + first, count);
}

}  // namespace tessera::compiler
