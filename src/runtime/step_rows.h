// SPDX-License-Identifier: Apache-2.0
//
// StepRows: the rows of the current step as flat arrays, and views of all of them and of those that
// want logits.
// Filled by the owner thread before the workers run, read-only for them. All memory is reserved
// when it is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "bundle/program.h"
#include "runtime/row_view.h"
#include "runtime/session.h"

namespace tessera::runtime {

class StepRows {
 public:
  StepRows(const bundle::Dims& dims, int64_t max_rows, int64_t page_count,
           const StripPolicy& strips = {});

  /// Checks the chunks and fills everything. Errors as Session::Step documents. `workers` and
  /// `may_split_heads` shape items and strips only.
  Status Fill(std::span<const Chunk> chunks, int workers, bool may_split_heads);

  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t last_position() const { return last_position_; }
  const int32_t* tokens() const { return tokens_.data(); }        // [rows]
  const int32_t* positions() const { return positions_.data(); }  // [rows]
  /// Rows whose logits are wanted, ascending.
  std::span<const int32_t> logit_rows() const { return logit_rows_; }
  /// Whether any chunk wants hidden states of its rows with logits.
  bool wants_hidden() const { return wants_hidden_; }
  const RowView& all() const { return all_; }
  /// The rows of logit_rows(), in their order. Not planned when they are all rows: nothing is to be
  /// gained then.
  const RowView& wanted() const { return wanted_; }

 private:
  Status Check(std::span<const Chunk> chunks) const;
  Status CheckChunk(const Chunk& chunk) const;

  const bundle::Dims dims_;
  const int64_t max_rows_;
  const int64_t page_count_;
  int64_t last_position_ = -1;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  bool wants_hidden_ = false;
  RowView all_;
  RowView wanted_;
};

}  // namespace tessera::runtime
