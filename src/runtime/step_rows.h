// SPDX-License-Identifier: Apache-2.0
//
// StepRows: the rows of the current step as flat arrays, and the attention work split into items.
// Filled by the owner thread before the workers run, read-only for them. All memory is reserved
// when it is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "bundle/program.h"
#include "runtime/session.h"

namespace tessera::runtime {

/// Rows [row, row + rows) of the step are positions [start, start + rows) of one sequence.
struct RowRange {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t start = 0;
  const PageId* pages = nullptr;
};

/// Query heads [head, head + heads) of KV head `kv_head` for some rows of one sequence.
struct AttentionItem {
  RowRange range;
  int64_t kv_head = 0;
  int64_t head = 0;
  int64_t heads = 0;
  int64_t cost_before = 0;  // Of all items before this one.
};

class StepRows {
 public:
  StepRows(const bundle::Dims& dims, int64_t max_rows, int64_t page_count);

  /// Checks the chunks and fills everything. Errors as Session::Step documents. `workers` and
  /// `may_split_heads` shape the attention items only.
  Status Fill(std::span<const Chunk> chunks, int workers, bool may_split_heads);

  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t last_position() const { return last_position_; }
  const int32_t* tokens() const { return tokens_.data(); }        // [rows]
  const int32_t* positions() const { return positions_.data(); }  // [rows]
  std::span<const RowRange> ranges() const { return ranges_; }
  /// Rows whose logits are wanted, ascending.
  std::span<const int32_t> logit_rows() const { return logit_rows_; }
  /// The items of one worker: contiguous shares of about equal cost.
  std::span<const AttentionItem> ItemsOf(int worker, int workers) const;

 private:
  Status Check(std::span<const Chunk> chunks) const;
  Status CheckChunk(const Chunk& chunk) const;
  void AddItems(const RowRange& range, int64_t heads_per_item);

  const bundle::Dims dims_;
  const int64_t max_rows_;
  const int64_t page_count_;
  int64_t last_position_ = -1;
  int64_t total_cost_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  std::vector<RowRange> ranges_;
  std::vector<AttentionItem> items_;
};

}  // namespace tessera::runtime
