// SPDX-License-Identifier: Apache-2.0
//
// RowSource: the rows of one weight in the order of its recipe, in the weight's own format. Rows
// that need no conversion are pointers into the mapped source file.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bundle/program.h"
#include "compiler/module.h"
#include "formats/parameter_index.h"

namespace tessera::compiler {

class RowSource {
 public:
  /// kDataLoss when a source has fewer rows than the recipe wants (the graph was built from another
  /// index). Everything given must outlive the object.
  static Result<RowSource> Open(const bundle::Weight& weight, const Recipe& recipe,
                                const formats::ParameterIndex& index);

  /// Row `row` of the weight, from the recipe's first input on, valid until `scratch` changes; null
  /// for a row of zeros. `scratch` is used when the row must be converted.
  Result<const std::byte*> Row(int64_t row, std::vector<std::byte>* scratch) const;
  /// Of a whole row of the sources, in the weight's format.
  uint64_t row_bytes() const { return row_bytes_; }

  /// The sources of rows [begin, begin + count) have been read: they may leave resident memory.
  void DoneWith(int64_t begin, int64_t count) const;

  /// A vector weight: its elements as float32.
  Result<std::vector<float>> Elements() const;

 private:
  struct Source {
    const formats::ParameterEntry* entry = nullptr;
    tensor::DType dtype = tensor::DType::kF32;
    ByteSpan bytes;
    uint64_t row_bytes = 0;
    std::vector<std::byte> owned;                    // Of a vector that is no view.
    std::optional<formats::Splat> splat;             // Instead of bytes.
    std::shared_ptr<const formats::RowMaker> maker;  // Instead of bytes.
    int64_t columns = 0;
    uint64_t rows = 0;  // Elements of a vector.
  };

  RowSource(const bundle::Weight& weight, const Recipe& recipe,
            const formats::ParameterIndex& index)
      : weight_(weight), recipe_(recipe), index_(index) {}
  Status AddSource(const std::string& name);
  Status IndexRuns();
  static Result<ByteSpan> SourceRow(const Source& source, uint64_t at,
                                    std::vector<std::byte>* scratch);
  /// Of a source's inputs, padded as its rows; empty when all count alike.
  std::vector<float> ImportanceOf(int32_t source) const;
  bool IsVector() const { return weight_.layout == bundle::WeightLayout::kRows && weight_.n == 1; }

  const bundle::Weight& weight_;
  const Recipe& recipe_;
  const formats::ParameterIndex& index_;
  int64_t inputs_ = 0;
  uint64_t row_bytes_ = 0;
  uint64_t skipped_bytes_ = 0;  // Of a row, before the first input.
  std::vector<Source> sources_;
  std::vector<int64_t> run_begin_;  // First row of each run, ascending.
};

}  // namespace tessera::compiler
