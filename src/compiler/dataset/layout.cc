// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/layout.h"

#include <fmt/format.h>

#include "compiler/dataset/shard_rules.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/logical_tensor.h"

namespace tessera::compiler {
namespace {

namespace irpa = formats::irpa;

class LayoutMaker {
 public:
  LayoutMaker(const std::vector<DatasetTensor>& tensors, const std::vector<StoredForm>& forms,
              const std::vector<ShardBytes>& bytes, int64_t ranks)
      : tensors_(tensors), forms_(forms), bytes_(bytes), ranks_(ranks) {
    files_.resize(ranks == 1 ? 1 : static_cast<size_t>(ranks) + 1);
  }

  Result<std::vector<DatasetFile>> Make(const json::Object& properties) && {
    for (size_t i = 0; i < tensors_.size(); ++i)
      TESSERA_RETURN_IF_ERROR(AddTensor(i).WithContext(tensors_[i].name));
    for (irpa::DatasetBlob& blob : irpa::MakeBlobs(properties, ranks_, descriptions_)) {
      files_[0].entries.push_back({std::move(blob.name), "", blob.text.size(), std::nullopt});
      files_[0].contents.push_back({0, 0, {}, std::move(blob.text)});
    }
    return std::move(files_);
  }

 private:
  Status AddTensor(size_t i) {
    const ShardRule rule = ranks_ == 1 ? ShardRule::kReplicated : ShardRuleOf(tensors_[i].name);
    if (rule == ShardRule::kDropped) return {};
    json::Object description;
    if (rule == ShardRule::kReplicated) {
      TESSERA_ASSIGN_OR_RETURN(description, AddWhole(i));
    } else {
      TESSERA_ASSIGN_OR_RETURN(description, AddShards(i, rule));
    }
    descriptions_[tensors_[i].name] = std::move(description);
    return {};
  }

  /// Stored once: in the only file, or in rank 0's.
  Result<json::Object> AddWhole(size_t i) {
    const tensor::Shape& shape = tensors_[i].shape;
    const TensorPart whole{0, shape.rows(), 0, shape.columns()};
    const bool planar = forms_[i].planar != nullptr;
    json::Object raw;
    TESSERA_RETURN_IF_ERROR(
        AddPart(i, whole, tensors_[i].name, "", files_[ranks_ == 1 ? 0 : 1], raw));
    json::Object description;
    description["type_name"] = ranks_ > 1 ? irpa::kReplicatedTensor
                               : planar   ? irpa::kPlanarQuantizedTensor
                                          : irpa::kPrimitiveTensor;
    description["raw_tensors"] = std::move(raw);
    if (ranks_ > 1) description["shard_count"] = ranks_;
    if (planar) {
      description["shape"] = ShapeJson(shape);
      AddLayout(i, description);
    }
    return description;
  }

  Result<json::Object> AddShards(size_t i, ShardRule rule) {
    const tensor::Shape& shape = tensors_[i].shape;
    if (shape.rank() < 1 || shape.rank() > 2)
      return Fail(InvalidArgument(fmt::format("shape {}, expected a matrix", shape.ToString())));
    // A vector (a bias) is split along its only dimension.
    const bool by_rows = rule == ShardRule::kRows && shape.rank() == 2;
    const int64_t whole = by_rows ? shape.rows() : shape.columns();
    const int64_t unit = by_rows ? 1 : tensor::Info(tensors_[i].dtype).block_elements;
    if (whole % (ranks_ * unit) != 0)
      return Fail(InvalidArgument(
          fmt::format("{} of {} cannot be split into {} parts of whole blocks of {}",
                      by_rows ? "rows" : "columns", shape.ToString(), ranks_, unit)));
    json::Object raw;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const int64_t share = whole / ranks_;
      const TensorPart part = by_rows ? TensorPart{rank * share, share, 0, shape.columns()}
                                      : TensorPart{0, shape.rows(), rank * share, share};
      TESSERA_RETURN_IF_ERROR(AddPart(i, part, fmt::format("{}.shard.{}", tensors_[i].name, rank),
                                      fmt::to_string(rank), files_[static_cast<size_t>(rank) + 1],
                                      raw));
    }
    json::Object description;
    description["type_name"] = irpa::kSplitTensor;
    description["raw_tensors"] = std::move(raw);
    description["shard_count"] = ranks_;
    description["shape"] = ShapeJson(shape);
    description["shard_dim"] = by_rows || shape.rank() == 1 ? 0 : 1;
    if (forms_[i].planar != nullptr) AddLayout(i, description);
    return description;
  }

  void AddLayout(size_t i, json::Object& description) const {
    description["layout_type"] = forms_[i].planar->layout_type;
    if (forms_[i].planar->is_signed >= 0)
      description["layout_metadata"] = json::Object{{"signed", forms_[i].planar->is_signed == 1}};
    const tensor::DType dtype = tensors_[i].dtype;
    if (dtype == tensor::DType::kQ5_K || dtype == tensor::DType::kQ6_K)
      description["layout_metadata"] = json::Object{{irpa::kBlockFormatKey, tensor::Name(dtype)}};
  }

  /// Entries of all planes of a part. `local` is the shard's key in raw_tensors, or empty.
  Status AddPart(size_t i, const TensorPart& part, const std::string& name,
                 const std::string& local, DatasetFile& file, json::Object& raw) const {
    for (int64_t plane = 0; plane < bytes_[i].planes(); ++plane) {
      std::string key = local;
      irpa::WriteEntry entry;
      entry.name = name;
      if (forms_[i].planar != nullptr) {
        const std::string_view suffix = forms_[i].planar->planes[static_cast<size_t>(plane)].name;
        key += fmt::format("{}{}", local.empty() ? "" : ":", suffix);
        entry.name += fmt::format(":{}", suffix);
      }
      TESSERA_ASSIGN_OR_RETURN(
          entry.metadata, irpa::MakeEntryMetadata(
                              irpa::MetadataStyle::kPytorch,
                              {bytes_[i].plane_dtype(plane), bytes_[i].plane_shape(plane, part)}));
      if (MulOverflows(bytes_[i].plane_row_bytes(plane, part), static_cast<uint64_t>(part.rows),
                       &entry.bytes))
        return InvalidArgument("too large");
      entry.splat = SplatOf(i);
      raw[key] = entry.name;
      file.entries.push_back(std::move(entry));
      file.contents.push_back({i, plane, part, ""});
    }
    return {};
  }

  /// A splat whose elements are all alike stays one, whatever part and order of it is wanted.
  std::optional<formats::Splat> SplatOf(size_t i) const {
    const formats::ParameterEntry* entry = tensors_[i].entry;
    if (entry == nullptr || !entry->splat || tensor::IsQuantised(entry->dtype)) return std::nullopt;
    if (tensor::Info(entry->dtype).block_bytes % entry->splat->pattern_bytes != 0)
      return std::nullopt;
    return entry->splat;
  }

  static json::Array ShapeJson(const tensor::Shape& shape) {
    json::Array dims;
    for (const int64_t dim : shape.dims()) dims.emplace_back(dim);
    return dims;
  }

  const std::vector<DatasetTensor>& tensors_;
  const std::vector<StoredForm>& forms_;
  const std::vector<ShardBytes>& bytes_;
  int64_t ranks_;
  std::vector<DatasetFile> files_;
  json::Object descriptions_;
};

}  // namespace

Result<std::vector<DatasetFile>> LayOutDataset(const std::vector<DatasetTensor>& tensors,
                                               const std::vector<StoredForm>& forms,
                                               const std::vector<ShardBytes>& bytes,
                                               const json::Object& properties, int64_t ranks) {
  return LayoutMaker(tensors, forms, bytes, ranks).Make(properties);
}

}  // namespace tessera::compiler
