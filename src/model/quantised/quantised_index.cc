// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/quantised_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/quantised/packed_matrix.h"
#include "model/quantised/packed_rows.h"
#include "model/quantised/scaled_fp8.h"
#include "model/weight_names.h"

namespace tessera::model {
namespace {

using formats::ParameterEntry;
using formats::ParameterIndex;
using tensor::DType;

constexpr std::string_view kActivationScales[] = {".input_scale",       ".input_scale_ub",
                                                  ".output_scale",      ".q_scale",
                                                  ".k_scale",           ".v_scale",
                                                  ".prob_output_scale", ".input_zero_point",
                                                  ".activation_scale",  ".input_global_scale",
                                                  ".kv_scale"};

std::string_view WithoutSuffix(std::string_view name, std::string_view suffix) {
  return name.substr(0, name.size() - suffix.size());
}

class Opener {
 public:
  Opener(const ParameterIndex& stored, const Quantisation& quantisation, const ModelConfig& config)
      : stored_(stored), q_(quantisation), config_(config) {}

  Result<ParameterIndex> Open(std::vector<std::string>& warnings) && {
    for (const formats::SourceFile& file : stored_.files()) index_.AddFile(file);
    for (const ParameterEntry& entry : stored_.entries()) TESSERA_RETURN_IF_ERROR(Take(entry));
    Report(warnings);
    return std::move(index_);
  }

 private:
  Status Take(const ParameterEntry& entry) {
    const std::string_view name = entry.name;
    for (const std::string_view suffix : kActivationScales)
      if (name.ends_with(suffix)) {
        ++activation_scales_;
        return {};
      }
    if (q_.method == QuantisationMethod::kFp8) return TakeFp8(entry);
    if (name.ends_with(CodesSuffix(q_.method))) return AddPacked(entry);
    for (const std::string_view suffix : PackedSuffixes(q_.method))
      if (name.ends_with(suffix)) return NeedCodes(name, suffix);
    if (name.ends_with(".bias") && IsAddedBias(entry)) return {};
    return index_.Add(entry);
  }

  /// A part of a packed matrix must have one.
  Status NeedCodes(std::string_view name, std::string_view suffix) const {
    const std::string codes =
        std::string(WithoutSuffix(name, suffix)) + std::string(CodesSuffix(q_.method));
    if (stored_.Find(codes) != nullptr) return {};
    return InvalidArgument(fmt::format("{} is missing, but {} is there", codes, name));
  }

  Status AddPacked(const ParameterEntry& codes) {
    const std::string prefix(WithoutSuffix(codes.name, CodesSuffix(q_.method)));
    TESSERA_ASSIGN_OR_RETURN(auto matrix, OpenPackedMatrix(stored_, prefix, q_));
    const tensor::Shape shape{matrix->rows(), matrix->columns()};
    PackedRows made = MakePackedRows(std::move(matrix), q_);
    if (!made.reason.empty()) {
      ++reasons_[made.reason];
    }
    return AddMade(prefix + ".weight", codes.file, shape, made.dtype, std::move(made.rows));
  }

  Status TakeFp8(const ParameterEntry& entry) {
    const std::string_view name = entry.name;
    if (name.ends_with(".weight") && entry.dtype == DType::kF8E4M3) {
      TESSERA_ASSIGN_OR_RETURN(ScaledRows made, OpenScaledFp8(stored_, entry, q_));
      return AddMade(entry.name, entry.file, entry.shape, made.dtype, std::move(made.rows));
    }
    for (const std::string_view suffix : {"_scale", "_scale_inv"})
      if (name.ends_with(fmt::format(".weight{}", suffix))) {
        if (stored_.Find(WithoutSuffix(name, suffix)) != nullptr) return {};
        return InvalidArgument(
            fmt::format("{} is missing, but {} is there", WithoutSuffix(name, suffix), name));
      }
    return index_.Add(entry);
  }

  Status AddMade(std::string name, uint32_t file, const tensor::Shape& shape, DType dtype,
                 std::shared_ptr<const formats::RowMaker> rows) {
    ParameterEntry entry;
    entry.name = std::move(name);
    entry.dtype = dtype;
    entry.shape = shape;
    entry.file = file;
    TESSERA_ASSIGN_OR_RETURN(const uint64_t row_bytes,
                             tensor::RowBytes(dtype, static_cast<uint64_t>(shape.columns())));
    entry.bytes = row_bytes * static_cast<uint64_t>(shape.rows());
    entry.rows = std::move(rows);
    ++made_[std::string(tensor::Name(dtype))];
    return index_.Add(std::move(entry));
  }

  /// GPTQ writers give every layer a bias; where the model has none, they are zeros.
  bool IsAddedBias(const ParameterEntry& entry) const {
    const std::string_view module = WithoutSuffix(entry.name, ".bias");
    if (stored_.Find(std::string(module) + std::string(CodesSuffix(q_.method))) == nullptr)
      return false;
    const bool is_qkv = module.ends_with(kHfNames.q) || module.ends_with(kHfNames.k) ||
                        module.ends_with(kHfNames.v);
    const bool is_wanted = is_qkv                         ? config_.attention.qkv_bias
                           : module.ends_with(kHfNames.o) ? config_.attention.output_bias
                                                          : config_.ffn.bias;
    if (is_wanted) return false;
    const auto bytes = stored_.Materialise(entry);
    return bytes.has_value() &&
           std::ranges::all_of(*bytes, [](std::byte byte) { return byte == std::byte{0}; });
  }

  void Report(std::vector<std::string>& warnings) const {
    std::vector<std::string> formats;
    for (const auto& [format, count] : made_)
      formats.push_back(fmt::format("{} {}", count, format));
    warnings.push_back(fmt::format(
        "weights quantised by {}: {} matrices{}", q_.name, fmt::join(formats, ", "),
        reasons_.empty() && q_.method != QuantisationMethod::kFp8 ? ", no bit lost" : ""));
    if (q_.method == QuantisationMethod::kFp8)
      warnings.push_back("FP8 weights times their scales are rounded to F16");
    for (const auto& [reason, count] : reasons_)
      warnings.push_back(fmt::format("of these {} rounded to float: {}", count, reason));
    if (activation_scales_ > 0)
      warnings.push_back(
          fmt::format("{} scales of activations and caches are not used: those stay float",
                      activation_scales_));
  }

  const ParameterIndex& stored_;
  const Quantisation& q_;
  const ModelConfig& config_;
  ParameterIndex index_;
  std::map<std::string, int64_t> made_;     // By format.
  std::map<std::string, int64_t> reasons_;  // Why codes were not kept.
  int64_t activation_scales_ = 0;
};

}  // namespace

Result<ParameterIndex> OpenQuantised(const ParameterIndex& stored, const Quantisation& quantisation,
                                     const ModelConfig& config,
                                     std::vector<std::string>& warnings) {
  return Opener(stored, quantisation, config).Open(warnings);
}

}  // namespace tessera::model
