// SPDX-License-Identifier: Apache-2.0
#include "runtime/row_view.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/attention.h"
#include "runtime/limits.h"

namespace tessera::runtime {
namespace {

/// A multiply-accumulate of attention takes about as long as so many of a 4-bit matmul (float32
/// beside int8 dot products, softmax included).
constexpr int64_t kAttentionCost = 4;

/// Strips have a multiple of so many rows, which is what the matmul kernels take at once.
constexpr int64_t kStripUnit = 4;

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

RowView::RowView(const bundle::Dims& dims, int64_t max_rows, const StripPolicy& policy)
    : dims_(dims), policy_(policy) {
  const auto rows = static_cast<size_t>(max_rows);
  ranges_.reserve(rows);
  // At most one range a row; heads are split only where there are few items.
  items_.reserve(rows * static_cast<size_t>(dims.heads));
  if (!policy.allowed) return;
  strips_.reserve(rows / kStripRows + 1 + kMaxThreads);
  loads_.reserve(kMaxThreads);
  offsets_.reserve(kMaxThreads + 1);
}

void RowView::Clear() {
  rows_ = 0;
  ranges_.clear();
  items_.clear();
  strips_.clear();
}

void RowView::Add(RowRange range) {
  range.row = rows_;
  rows_ += range.rows;
  ranges_.push_back(range);
}

void RowView::Plan(int workers, bool may_split_heads) {
  PlanItems(workers, may_split_heads);
  PlanStrips(workers);
}

void RowView::PlanItems(int workers, bool may_split_heads) {
  items_.clear();
  items_cost_ = 0;
  int64_t tiles = 0;
  for (const RowRange& range : ranges_) tiles += CeilDiv(range.rows, kernels::kAttentionRows);
  const int64_t group = dims_.heads / dims_.kv_heads;
  // Query heads of a group share the reads of K and V; with too few items for even shares,
  // balance is worth more.
  const bool split = may_split_heads && workers > 1 && tiles * dims_.kv_heads < 4 * workers;
  for (const RowRange& range : ranges_) AddItems(range, split ? 1 : group);
}

void RowView::AddItems(const RowRange& range, int64_t heads_per_item) {
  const int64_t group = dims_.heads / dims_.kv_heads;
  for (int64_t row = 0; row < range.rows; row += kernels::kAttentionRows) {
    const RowRange tile = {range.row + row, range.source + row,
                           std::min(kernels::kAttentionRows, range.rows - row), range.start + row,
                           range.pages};
    for (int64_t kv_head = 0; kv_head < dims_.kv_heads; ++kv_head) {
      for (int64_t head = 0; head < group; head += heads_per_item) {
        const int64_t heads = std::min(heads_per_item, group - head);
        items_.push_back({tile, kv_head, head, heads, items_cost_});
        items_cost_ += tile.rows * (tile.start + tile.rows) * heads;
      }
    }
  }
  TESSERA_DCHECK(items_.size() <= items_.capacity());
}

std::span<const AttentionItem> RowView::ItemsOf(int worker, int workers) const {
  // An item belongs to the worker in whose share of the cost it begins.
  const auto begin_of = [&](int w) {
    const int64_t share = (items_cost_ * w + workers - 1) / workers;
    return std::lower_bound(
        items_.begin(), items_.end(), share,
        [](const AttentionItem& item, int64_t cost) { return item.cost_before < cost; });
  };
  const auto begin = begin_of(worker);
  const auto end = worker + 1 == workers ? items_.end() : begin_of(worker + 1);
  return {begin, end};
}

std::span<const RowRange> RowView::RangesFrom(int64_t row) const {
  const auto first =
      std::partition_point(ranges_.begin(), ranges_.end(),
                           [row](const RowRange& range) { return range.row + range.rows <= row; });
  return {first, ranges_.end()};
}

std::span<const Strip> RowView::StripsOf(int owner) const {
  const size_t begin = offsets_[static_cast<size_t>(owner)];
  return std::span(strips_).subspan(begin, offsets_[static_cast<size_t>(owner) + 1] - begin);
}

int64_t RowView::CostOf(int64_t row, int64_t rows) const {
  int64_t seen = 0;  // Positions, over the rows.
  for (const RowRange& range : RangesFrom(row)) {
    const int64_t begin = std::max(row, range.row);
    const int64_t end = std::min(row + rows, range.row + range.rows);
    if (begin >= end) break;
    const int64_t first = range.start + (begin - range.row), last = range.start + (end - range.row);
    seen += (first + 1 + last) * (end - begin) / 2;
  }
  return rows * policy_.macs_per_row + seen * kAttentionCost * 2 * dims_.heads * dims_.head_dim;
}

/// Gives every strip to the owner with the least so far, the most expensive first (Graham, 1969).
/// False when that comes out uneven.
bool RowView::Deal(int workers) {
  std::sort(strips_.begin(), strips_.end(), [](const Strip& a, const Strip& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.row < b.row;
  });
  loads_.assign(static_cast<size_t>(workers), 0);
  int64_t total = 0;
  for (Strip& strip : strips_) {
    const auto least = std::min_element(loads_.begin(), loads_.end());
    strip.owner = static_cast<int>(least - loads_.begin());
    *least += strip.cost;
    total += strip.cost;
  }
  const int64_t most = *std::max_element(loads_.begin(), loads_.end());
  return 100 * most * workers <= (100 + kStripSlackPercent) * total;
}

void RowView::PlanStrips(int workers) {
  strips_.clear();
  if (!policy_.allowed || rows_ < workers * kLeastStripRows) return;
  const int64_t wanted = CeilDiv(CeilDiv(rows_, kStripRows), workers) * workers;
  const int64_t size = CeilDiv(CeilDiv(rows_, wanted), kStripUnit) * kStripUnit;
  TESSERA_DCHECK(size <= kStripRows);
  for (int64_t row = 0; row < rows_; row += size) {
    const int64_t rows = std::min(size, rows_ - row);
    strips_.push_back({row, rows, CostOf(row, rows), 0});
  }
  if (!Deal(workers)) {
    strips_.clear();
    return;
  }
  std::sort(strips_.begin(), strips_.end(), [](const Strip& a, const Strip& b) {
    if (a.owner != b.owner) return a.owner < b.owner;
    return a.cost != b.cost ? a.cost > b.cost : a.row < b.row;
  });
  offsets_.assign(static_cast<size_t>(workers) + 1, strips_.size());
  for (size_t i = strips_.size(); i-- > 0;) offsets_[static_cast<size_t>(strips_[i].owner)] = i;
  for (size_t owner = static_cast<size_t>(workers); owner-- > 0;)
    offsets_[owner] = std::min(offsets_[owner], offsets_[owner + 1]);  // Of one without strips.
}

}  // namespace tessera::runtime
