// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/logical_index.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/irpa/logical_tensor.h"
#include "formats/irpa/planar_rows.h"
#include "formats/row_reader.h"
#include "tensor/convert.h"

namespace tessera::formats::irpa {
namespace {

using tensor::DType;
using tensor::Shape;

/// Shards one below the other.
class StackedRows : public RowMaker {
 public:
  explicit StackedRows(std::vector<RowReader> shards) : shards_(std::move(shards)) {}
  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    for (const RowReader& shard : shards_) {
      if (count == 0) return {};
      if (first >= shard.rows()) {
        first -= shard.rows();
        continue;
      }
      const int64_t here = std::min(count, shard.rows() - first);
      const uint64_t bytes = static_cast<uint64_t>(here) * shard.row_bytes();
      TESSERA_RETURN_IF_ERROR(shard.Read(first, here, out.first(bytes)));
      out = out.subspan(bytes);
      count -= here;
      first = 0;
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override {
    for (const RowReader& shard : shards_) {
      const int64_t here = std::clamp<int64_t>(shard.rows() - first, 0, count);
      if (here > 0) shard.DoneWith(first, here);
      first = std::max<int64_t>(first - shard.rows(), 0);
      count -= here;
    }
  }

 private:
  std::vector<RowReader> shards_;
};

/// Shards beside each other: every row in parts.
class JoinedRows : public RowMaker {
 public:
  explicit JoinedRows(std::vector<RowReader> shards) : shards_(std::move(shards)) {}
  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    for (int64_t i = 0; i < count; ++i) {
      for (const RowReader& shard : shards_) {
        TESSERA_RETURN_IF_ERROR(shard.Read(first + i, 1, out.first(shard.row_bytes())));
        out = out.subspan(shard.row_bytes());
      }
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override {
    for (const RowReader& shard : shards_) shard.DoneWith(first, count);
  }

 private:
  std::vector<RowReader> shards_;
};

/// Shards on top of each other, added in the order of the ranks.
class SummedRows : public RowMaker {
 public:
  SummedRows(std::vector<RowReader> shards, uint64_t columns)
      : shards_(std::move(shards)), columns_(columns) {}
  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    std::vector<float> sum(columns_), term(columns_);
    std::vector<std::byte> scratch;
    for (int64_t i = 0; i < count; ++i) {
      std::ranges::fill(sum, 0.0F);
      for (const RowReader& shard : shards_) {
        TESSERA_ASSIGN_OR_RETURN(const ByteSpan row, shard.Row(first + i, &scratch));
        TESSERA_RETURN_IF_ERROR(tensor::ToFloat(shard.dtype(), row, term));
        for (uint64_t c = 0; c < columns_; ++c) sum[c] += term[c];
      }
      const auto bytes = std::as_bytes(std::span(sum));
      std::memcpy(out.data(), bytes.data(), bytes.size());
      out = out.subspan(bytes.size());
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override {
    for (const RowReader& shard : shards_) shard.DoneWith(first, count);
  }

 private:
  std::vector<RowReader> shards_;
  uint64_t columns_;
};

class LogicalOpener {
 public:
  explicit LogicalOpener(const ParameterIndex& archive) : archive_(archive) {}

  Result<ParameterEntry> Open(const LogicalTensor& tensor) const {
    if (tensor.type_name == kPrimitiveTensor || tensor.type_name == kReplicatedTensor)
      return Whole(tensor);
    if (tensor.type_name == kPlanarQuantizedTensor) return Planar(tensor, tensor.shape, "");
    if (tensor.type_name == kSplitTensor || tensor.type_name == kUnreducedTensor)
      return Sharded(tensor);
    return Fail(Unimplemented(fmt::format("type {:.80}", tensor.type_name)));
  }

 private:
  Result<ParameterEntry> Whole(const LogicalTensor& tensor) const {
    // A replicated tensor of ours may be planar.
    if (!tensor.layout_type.empty()) return Planar(tensor, tensor.shape, "");
    const ParameterEntry* part = tensor.Part("");
    if (part == nullptr)
      return Fail(InvalidArgument("raw_tensors has no \"\", which names the tensor's bytes"));
    ParameterEntry entry = *part;
    entry.name = tensor.name;
    entry.note.clear();
    return entry;
  }

  /// The planes "<prefix>d", "<prefix>qs", ... as an entry of `shape`.
  Result<ParameterEntry> Planar(const LogicalTensor& tensor, const Shape& shape,
                                std::string_view prefix) const {
    Planes planes{tensor.layout_type, &tensor.layout_metadata, shape, {}};
    for (const auto& [local, entry] : tensor.parts)
      if (local.starts_with(prefix))
        planes.entries.emplace_back(local.substr(prefix.size()), entry);
    TESSERA_ASSIGN_OR_RETURN(MadeRows made, OpenPlanes(archive_, planes));
    return Made(tensor.name, shape, made.dtype, std::move(made.rows));
  }

  static Result<ParameterEntry> Made(const std::string& name, const Shape& shape, DType dtype,
                                     std::shared_ptr<const RowMaker> rows) {
    if (shape.elements() < 1)
      return Fail(InvalidArgument(fmt::format("shape {} has no elements", shape.ToString())));
    ParameterEntry entry;
    entry.name = name;
    entry.dtype = dtype;
    entry.shape = shape;
    TESSERA_ASSIGN_OR_RETURN(const uint64_t row_bytes,
                             tensor::RowBytes(dtype, static_cast<uint64_t>(shape.columns())));
    if (MulOverflows(row_bytes, static_cast<uint64_t>(shape.rows()), &entry.bytes))
      return Fail(InvalidArgument(
          fmt::format("{} of {} overflows", shape.ToString(), tensor::Name(dtype))));
    entry.rows = std::move(rows);
    return entry;
  }

  /// Shard i: one entry "i", or planes "i:d", "i:qs", ... of the shard's part of the shape.
  Result<ParameterEntry> Shard(const LogicalTensor& tensor, int64_t i) const {
    if (!tensor.layout_type.empty()) {
      std::vector<int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
      if (tensor.type_name == kSplitTensor) {
        int64_t& dim = dims[static_cast<size_t>(tensor.shard_dim)];
        if (dim % tensor.shard_count != 0)
          return Fail(InvalidArgument(fmt::format("{} shards do not divide dimension {} of {}",
                                                  tensor.shard_count, tensor.shard_dim,
                                                  tensor.shape.ToString())));
        dim /= tensor.shard_count;
      }
      return Planar(tensor, Shape(std::move(dims)), fmt::format("{}:", i));
    }
    const ParameterEntry* part = tensor.Part(fmt::to_string(i));
    if (part == nullptr)
      return Fail(InvalidArgument(
          fmt::format("raw_tensors lacks shard \"{}\" of {}", i, tensor.shard_count)));
    return *part;
  }

  Result<ParameterEntry> Sharded(const LogicalTensor& tensor) const {
    const bool split = tensor.type_name == kSplitTensor;
    const int rank = tensor.shape.rank();
    if (rank < 1 || rank > 2 || (split && (tensor.shard_dim < 0 || tensor.shard_dim >= rank)))
      return Fail(
          Unimplemented(fmt::format("shape {} with shard_dim {}; expected a matrix or a "
                                    "vector, split along one of its dimensions",
                                    tensor.shape.ToString(), tensor.shard_dim)));
    std::vector<RowReader> shards;
    int64_t along = 0;
    for (int64_t i = 0; i < tensor.shard_count; ++i) {
      TESSERA_ASSIGN_OR_RETURN(const ParameterEntry shard, Shard(tensor, i));
      TESSERA_RETURN_IF_ERROR(CheckShard(tensor, shard));
      if (split) {
        const int dim = static_cast<int>(tensor.shard_dim);
        if (shard.shape[dim] > tensor.shape[dim] - along) return Fail(WrongSum(tensor));
        along += shard.shape[dim];
      }
      TESSERA_ASSIGN_OR_RETURN(RowReader reader, RowReader::Open(archive_, shard));
      if (i > 0 && reader.dtype() != shards[0].dtype())
        return Fail(InvalidArgument(fmt::format("shard {} is {}, shard 0 {}", i,
                                                tensor::Name(reader.dtype()),
                                                tensor::Name(shards[0].dtype()))));
      shards.push_back(std::move(reader));
    }
    if (!split) {
      const auto columns = static_cast<uint64_t>(tensor.shape.columns());
      return Made(tensor.name, tensor.shape, DType::kF32,
                  std::make_shared<SummedRows>(std::move(shards), columns));
    }
    if (along != tensor.shape[static_cast<int>(tensor.shard_dim)]) return Fail(WrongSum(tensor));
    const DType dtype = shards[0].dtype();
    // Of a vector the only dimension is the innermost.
    if (tensor.shard_dim == rank - 1)
      return Made(tensor.name, tensor.shape, dtype,
                  std::make_shared<JoinedRows>(std::move(shards)));
    return Made(tensor.name, tensor.shape, dtype, std::make_shared<StackedRows>(std::move(shards)));
  }

  static Status WrongSum(const LogicalTensor& tensor) {
    return InvalidArgument(fmt::format("the {} shards do not add up to dimension {} of {}",
                                       tensor.shard_count, tensor.shard_dim,
                                       tensor.shape.ToString()));
  }

  /// The tensor's shape but for the dimension that is split, if one is; what it has there is added
  /// up above.
  static Status CheckShard(const LogicalTensor& tensor, const ParameterEntry& shard) {
    const int64_t split = tensor.type_name == kSplitTensor ? tensor.shard_dim : -1;
    bool fits = shard.shape.rank() == tensor.shape.rank();
    for (int dim = 0; fits && dim < tensor.shape.rank(); ++dim)
      fits = shard.shape[dim] == tensor.shape[dim] ||
             (dim == split && shard.shape[dim] <= tensor.shape[dim]);
    if (fits) return {};
    return InvalidArgument(fmt::format("shard {} has shape {}, which is no part of {}", shard.name,
                                       shard.shape.ToString(), tensor.shape.ToString()));
  }

  const ParameterIndex& archive_;
};

}  // namespace

Result<ParameterIndex> OpenLogical(const ParameterIndex& archive, const Dataset& dataset,
                                   Metadata metadata) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<LogicalTensor> tensors,
                           ReadLogicalTensors(archive, dataset));
  ParameterIndex index;
  for (const SourceFile& file : archive.files()) {
    SourceFile copy = file;
    if (index.files().empty()) copy.metadata = std::move(metadata);
    index.AddFile(std::move(copy));
  }
  const LogicalOpener opener(archive);
  for (const LogicalTensor& tensor : tensors) {
    Result<ParameterEntry> entry = opener.Open(tensor);
    if (!entry.has_value())
      return Fail(std::move(entry).error().WithContext(
          fmt::format("inference tensor {:.200}", tensor.name)));
    TESSERA_RETURN_IF_ERROR(index.Add(*std::move(entry)));
  }
  return index;
}

}  // namespace tessera::formats::irpa
