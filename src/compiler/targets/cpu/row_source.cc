// SPDX-License-Identifier: Apache-2.0
#include "compiler/targets/cpu/row_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "tensor/convert.h"
#include "tensor/quantise.h"
#include "tensor/quantise_fit.h"
#include "tensor/transcode.h"

namespace tessera::compiler {
namespace {

uint64_t ElementsOf(tensor::DType dtype, ByteSpan bytes) {
  const tensor::DTypeInfo& info = tensor::Info(dtype);
  return bytes.size() / info.block_bytes * info.block_elements;
}

}  // namespace

Result<RowSource> RowSource::Open(const bundle::Weight& weight, const Recipe& recipe,
                                  const formats::ParameterIndex& index) {
  RowSource source(weight, recipe, index);
  source.inputs_ = recipe.inputs > 0 ? recipe.inputs : weight.k;
  TESSERA_ASSIGN_OR_RETURN(source.row_bytes_,
                           tensor::RowBytes(weight.dtype, static_cast<uint64_t>(source.inputs_)));
  TESSERA_ASSIGN_OR_RETURN(
      source.skipped_bytes_,
      tensor::RowBytes(weight.dtype, static_cast<uint64_t>(recipe.first_input)));
  for (const std::string& name : recipe.sources) TESSERA_RETURN_IF_ERROR(source.AddSource(name));
  TESSERA_RETURN_IF_ERROR(source.IndexRuns());
  return source;
}

Status RowSource::AddSource(const std::string& name) {
  Source source;
  if (!name.empty()) {  // Empty: stands for zeros, no run reads it.
    const formats::ParameterEntry* entry = index_.Find(name);
    if (entry == nullptr) return NotFound(fmt::format("parameter {}", name));
    source.entry = entry;
    source.dtype = entry->dtype;
    if (entry->splat && !IsVector()) {
      source.splat = entry->splat;  // Rows are made one by one: a splat may be of any size.
    } else if (entry->splat || (entry->rows != nullptr && IsVector())) {
      TESSERA_ASSIGN_OR_RETURN(source.owned, index_.Materialise(*entry));
      source.bytes = source.owned;  // Moving a vector keeps its bytes in place.
    } else if (entry->rows != nullptr) {
      source.maker = entry->rows;
    } else {
      source.bytes = index_.View(*entry).bytes;
    }
    TESSERA_ASSIGN_OR_RETURN(
        source.row_bytes,
        tensor::RowBytes(source.dtype, static_cast<uint64_t>(entry->shape.columns())));
    source.columns = entry->shape.columns();
    source.rows = static_cast<uint64_t>(IsVector() ? entry->shape.elements() : entry->shape.rows());
  }
  sources_.push_back(std::move(source));
  return {};
}

Status RowSource::IndexRuns() {
  int64_t row = 0;
  for (const RowRun& run : recipe_.runs) {
    run_begin_.push_back(row);
    row += run.count;
    if (run.source == RowRun::kZeros) continue;
    const Source& source = sources_[static_cast<size_t>(run.source)];
    const auto last = static_cast<uint64_t>(run.first + (run.count - 1) * run.step);
    if (last >= source.rows)
      return DataLoss(fmt::format("weight {}: row {} of a source with {} rows", weight_.entry, last,
                                  source.rows));
  }
  return {};
}

Result<ByteSpan> RowSource::SourceRow(const Source& source, uint64_t at,
                                      std::vector<std::byte>* scratch) {
  if (source.splat) {
    scratch->resize(source.row_bytes);
    for (size_t i = 0; i < scratch->size(); ++i)
      (*scratch)[i] =
          source.splat->pattern[(at * source.row_bytes + i) % source.splat->pattern_bytes];
    return ByteSpan(*scratch);
  }
  if (source.maker == nullptr) return source.bytes.subspan(at * source.row_bytes, source.row_bytes);
  scratch->resize(source.row_bytes);
  TESSERA_RETURN_IF_ERROR(source.maker->MakeRows(static_cast<int64_t>(at), 1, *scratch));
  return ByteSpan(*scratch);
}

Result<const std::byte*> RowSource::Row(int64_t row, std::vector<std::byte>* scratch) const {
  const auto next = std::upper_bound(run_begin_.begin(), run_begin_.end(), row);
  TESSERA_CHECK(next != run_begin_.begin());
  const auto index = static_cast<size_t>(next - run_begin_.begin() - 1);
  const RowRun& run = recipe_.runs[index];
  if (run.source == RowRun::kZeros) return nullptr;
  const Source& source = sources_[static_cast<size_t>(run.source)];
  const auto at = static_cast<uint64_t>(run.first + (row - run_begin_[index]) * run.step);
  const bool padded = source.columns < inputs_;  // With zeros.
  if (source.dtype == weight_.dtype && !padded) {
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes, SourceRow(source, at, scratch));
    return bytes.data() + skipped_bytes_;
  }
  std::vector<std::byte> made;
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes, SourceRow(source, at, &made));
  const auto transcoding = tensor::TranscodingOf(source.dtype);
  if (transcoding && transcoding->to == weight_.dtype && !padded) {
    TESSERA_ASSIGN_OR_RETURN(*scratch, tensor::Transcode(source.dtype, bytes));
    TESSERA_CHECK(scratch->size() == row_bytes_);
    return scratch->data() + skipped_bytes_;
  }
  std::vector<float> values(static_cast<size_t>(inputs_));
  const auto stored = static_cast<size_t>(std::min(source.columns, inputs_));
  TESSERA_RETURN_IF_ERROR(tensor::ToFloat(source.dtype, bytes, std::span(values).first(stored))
                              .WithContext(weight_.entry));
  if (tensor::CanFit(weight_.dtype)) {
    scratch->resize(row_bytes_);
    const std::vector<float> importance = ImportanceOf(run.source);
    TESSERA_RETURN_IF_ERROR(
        tensor::QuantiseFit(weight_.dtype, values, importance, *scratch)
            .WithContext(
                fmt::format("row {} of {}", at, recipe_.sources[static_cast<size_t>(run.source)])));
    return scratch->data() + skipped_bytes_;
  }
  TESSERA_ASSIGN_OR_RETURN(*scratch, tensor::Quantise(weight_.dtype, values));
  TESSERA_CHECK(scratch->size() == row_bytes_);
  return scratch->data() + skipped_bytes_;
}

std::vector<float> RowSource::ImportanceOf(int32_t source) const {
  const auto index = static_cast<size_t>(source);
  if (index >= recipe_.importances.size() || recipe_.importances[index] == nullptr) return {};
  std::vector<float> importance = *recipe_.importances[index];
  importance.resize(static_cast<size_t>(inputs_));  // Padding is zero and counts for nothing.
  return importance;
}

void RowSource::DoneWith(int64_t begin, int64_t count) const {
  const int64_t end = begin + count;
  auto next = std::upper_bound(run_begin_.begin(), run_begin_.end(), begin);
  TESSERA_CHECK(next != run_begin_.begin());
  for (--next; next != run_begin_.end() && *next < end; ++next) {
    const RowRun& run = recipe_.runs[static_cast<size_t>(next - run_begin_.begin())];
    if (run.source == RowRun::kZeros) continue;
    const int64_t first = std::max(begin, *next) - *next;
    const int64_t last = std::min(end - *next, run.count) - 1;
    const Source& source = sources_[static_cast<size_t>(run.source)];
    if (source.maker != nullptr) {
      source.maker->DoneWith(run.first + first * run.step, (last - first) * run.step + 1);
      continue;
    }
    if (source.splat) continue;
    index_.DoneWith(*source.entry,
                    static_cast<uint64_t>(run.first + first * run.step) * source.row_bytes,
                    static_cast<uint64_t>((last - first) * run.step + 1) * source.row_bytes);
  }
}

Result<std::vector<float>> RowSource::Elements() const {
  TESSERA_CHECK(IsVector());
  std::vector<std::vector<float>> values;
  for (const Source& source : sources_) {
    std::vector<float> floats(ElementsOf(source.dtype, source.bytes));
    TESSERA_RETURN_IF_ERROR(
        tensor::ToFloat(source.dtype, source.bytes, floats).WithContext(weight_.entry));
    values.push_back(std::move(floats));
  }
  std::vector<float> out;
  out.reserve(static_cast<size_t>(weight_.k));
  for (const RowRun& run : recipe_.runs) {
    for (int64_t i = 0; i < run.count; ++i) {
      const auto at = static_cast<size_t>(run.first + i * run.step);
      const bool zero = run.source == RowRun::kZeros;
      out.push_back(zero ? 0.0F : values[static_cast<size_t>(run.source)][at]);
    }
  }
  return out;
}

}  // namespace tessera::compiler
