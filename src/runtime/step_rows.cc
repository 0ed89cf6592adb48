// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/attention.h"

namespace tessera::runtime {

StepRows::StepRows(const bundle::Dims& dims, int64_t max_rows, int64_t page_count)
    : dims_(dims), max_rows_(max_rows), page_count_(page_count) {
  const auto rows = static_cast<size_t>(max_rows);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  logit_rows_.reserve(rows);
  ranges_.reserve(rows);
  // At most one range a row; heads are split only where there are few items.
  items_.reserve(rows * static_cast<size_t>(dims.heads));
}

Status StepRows::CheckChunk(const Chunk& chunk) const {
  const auto rows = static_cast<int64_t>(chunk.tokens.size());
  if (rows == 0) return InvalidArgument("no tokens");
  if (chunk.start < 0 || chunk.start > dims_.max_seq_len - rows)
    return InvalidArgument(fmt::format("{} positions from {} exceed the context of {}", rows,
                                       chunk.start, dims_.max_seq_len));
  for (const int32_t token : chunk.tokens)
    if (token < 0 || token >= dims_.vocab_size)
      return InvalidArgument(
          fmt::format("token {} is not in the vocabulary of {}", token, dims_.vocab_size));
  const int64_t end = chunk.start + rows;
  const int64_t pages = (end + dims_.page_tokens - 1) / dims_.page_tokens;
  if (std::ssize(chunk.pages) < pages)
    return InvalidArgument(fmt::format("{} pages, but positions up to {} need {}",
                                       chunk.pages.size(), end - 1, pages));
  for (const PageId page : chunk.pages.first(static_cast<size_t>(pages)))
    if (page < 0 || page >= page_count_)
      return InvalidArgument(fmt::format("page {} of {}", page, page_count_));
  return {};
}

Status StepRows::Check(std::span<const Chunk> chunks) const {
  int64_t rows = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(CheckChunk(chunks[i]).WithContext(fmt::format("chunk {}", i)));
    rows += std::ssize(chunks[i].tokens);
    if (rows > max_rows_)
      return ResourceExhausted(
          fmt::format("the step has more than {} tokens; split the prompt", max_rows_));
  }
  if (rows == 0) return InvalidArgument("a step needs at least one chunk");
  return {};
}

Status StepRows::Fill(std::span<const Chunk> chunks, int workers, bool may_split_heads) {
  TESSERA_RETURN_IF_ERROR(Check(chunks));
  tokens_.clear();
  positions_.clear();
  logit_rows_.clear();
  ranges_.clear();
  last_position_ = 0;
  for (const Chunk& chunk : chunks) {
    const auto first = static_cast<int32_t>(tokens_.size());
    const auto rows = static_cast<int32_t>(chunk.tokens.size());
    tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    for (int32_t i = 0; i < rows; ++i) positions_.push_back(static_cast<int32_t>(chunk.start) + i);
    if (chunk.logits == Chunk::Logits::kLast) logit_rows_.push_back(first + rows - 1);
    if (chunk.logits == Chunk::Logits::kAll)
      for (int32_t i = 0; i < rows; ++i) logit_rows_.push_back(first + i);
    ranges_.push_back({first, rows, chunk.start, chunk.pages.data()});
    last_position_ = std::max(last_position_, chunk.start + rows - 1);
  }
  items_.clear();
  total_cost_ = 0;
  int64_t tiles = 0;
  for (const RowRange& range : ranges_)
    tiles += (range.rows + kernels::kAttentionRows - 1) / kernels::kAttentionRows;
  const int64_t group = dims_.heads / dims_.kv_heads;
  // Query heads of a group share the reads of K and V; with too few items for even shares,
  // balance is worth more.
  const bool split = may_split_heads && workers > 1 && tiles * dims_.kv_heads < 4 * workers;
  for (const RowRange& range : ranges_) AddItems(range, split ? 1 : group);
  return {};
}

void StepRows::AddItems(const RowRange& range, int64_t heads_per_item) {
  const int64_t group = dims_.heads / dims_.kv_heads;
  for (int64_t row = 0; row < range.rows; row += kernels::kAttentionRows) {
    const RowRange tile = {range.row + row, std::min(kernels::kAttentionRows, range.rows - row),
                           range.start + row, range.pages};
    for (int64_t kv_head = 0; kv_head < dims_.kv_heads; ++kv_head) {
      for (int64_t head = 0; head < group; head += heads_per_item) {
        const int64_t heads = std::min(heads_per_item, group - head);
        items_.push_back({tile, kv_head, head, heads, total_cost_});
        total_cost_ += tile.rows * (tile.start + tile.rows) * heads;
      }
    }
  }
  TESSERA_DCHECK(items_.size() <= items_.capacity());
}

std::span<const AttentionItem> StepRows::ItemsOf(int worker, int workers) const {
  // An item belongs to the worker in whose share of the cost it begins.
  const auto begin_of = [&](int w) {
    const int64_t share = (total_cost_ * w + workers - 1) / workers;
    return std::lower_bound(
        items_.begin(), items_.end(), share,
        [](const AttentionItem& item, int64_t cost) { return item.cost_before < cost; });
  };
  const auto begin = begin_of(worker);
  const auto end = worker + 1 == workers ? items_.end() : begin_of(worker + 1);
  return {begin, end};
}

}  // namespace tessera::runtime
