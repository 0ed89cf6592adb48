// SPDX-License-Identifier: Apache-2.0
//
// RowView: rows that fused steps are about, without gaps: all rows of a step, or those that want
// logits. With it come two ways of sharing them: attention items of about equal cost, and strips.
//
// A strip is a run of rows that one worker carries through everything between two attentions:
// output projection, gated FFN, the next layer's norm, projections and KV write. Rows meet only in
// attention, so with strips a layer has one barrier instead of seven, and what the worker computes
// stays in its cache. It streams all weights where otherwise it would stream its columns', so
// strips are for many rows and layers that the last cache holds. Which worker runs a strip is left
// to chance.
//
// Filled by the owner thread before the workers run, read-only for them. Memory is reserved when it
// is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bundle/program.h"
#include "runtime/session.h"

namespace tessera::runtime {

/// Rows [row, row + rows) of the view are positions [start, start + rows) of one sequence, and rows
/// from `source` on of the step.
struct RowRange {
  int64_t row = 0;
  int64_t source = 0;
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

/// Rows [row, row + rows) of the view, dealt to `owner`.
struct Strip {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t cost = 0;
  int owner = 0;
};

/// Whether a program may be run in strips, and what its matmuls cost.
struct StripPolicy {
  bool allowed = false;
  int64_t macs_per_row = 0;  // Of the matmuls of a layer.
};

class RowView {
 public:
  RowView(const bundle::Dims& dims, int64_t max_rows, const StripPolicy& policy);

  void Clear();
  /// Appends a range; its `row` is what comes next.
  void Add(RowRange range);
  /// Plans items and strips of what was added. With `may_split_heads` an item may be less than a
  /// group of query heads.
  void Plan(int workers, bool may_split_heads);

  int64_t rows() const { return rows_; }
  std::span<const RowRange> ranges() const { return ranges_; }
  /// The part of ranges() that rows from `row` on lie in.
  std::span<const RowRange> RangesFrom(int64_t row) const;
  /// The items of one worker: contiguous shares of about equal cost.
  std::span<const AttentionItem> ItemsOf(int worker, int workers) const;

  /// Whether the rows are worth strips: enough for every worker, and evenly dealt.
  bool has_strips() const { return !strips_.empty(); }
  /// An owner's strips, the most expensive first.
  std::span<const Strip> StripsOf(int owner) const;

 private:
  void PlanItems(int workers, bool may_split_heads);
  void AddItems(const RowRange& range, int64_t heads_per_item);
  void PlanStrips(int workers);
  int64_t CostOf(int64_t row, int64_t rows) const;
  bool Deal(int workers);

  const bundle::Dims dims_;
  const StripPolicy policy_;
  int64_t rows_ = 0;
  int64_t items_cost_ = 0;
  std::vector<RowRange> ranges_;
  std::vector<AttentionItem> items_;
  std::vector<Strip> strips_;    // By owner.
  std::vector<int64_t> loads_;   // Cost dealt to each owner.
  std::vector<size_t> offsets_;  // Of each owner's strips; one more at the end.
};

}  // namespace tessera::runtime
