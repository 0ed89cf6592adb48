// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::runtime {

StepRows::StepRows(const bundle::Dims& dims, int64_t max_rows, int64_t page_count,
                   const StripPolicy& strips)
    : dims_(dims),
      max_rows_(max_rows),
      page_count_(page_count),
      all_(dims, max_rows, strips),
      wanted_(dims, max_rows, strips) {
  const auto rows = static_cast<size_t>(max_rows);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  logit_rows_.reserve(rows);
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
  wants_hidden_ = false;
  all_.Clear();
  wanted_.Clear();
  last_position_ = 0;
  for (const Chunk& chunk : chunks) {
    const auto first = static_cast<int32_t>(tokens_.size());
    const auto rows = static_cast<int32_t>(chunk.tokens.size());
    tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    for (int32_t i = 0; i < rows; ++i) positions_.push_back(static_cast<int32_t>(chunk.start) + i);
    all_.Add({.source = first, .rows = rows, .start = chunk.start, .pages = chunk.pages.data()});
    last_position_ = std::max(last_position_, chunk.start + rows - 1);
    if (chunk.logits == Chunk::Logits::kNone) continue;
    wants_hidden_ |= chunk.hidden;
    const int32_t skipped = chunk.logits == Chunk::Logits::kLast ? rows - 1 : 0;
    for (int32_t i = skipped; i < rows; ++i) logit_rows_.push_back(first + i);
    wanted_.Add({.source = first + skipped,
                 .rows = rows - skipped,
                 .start = chunk.start + skipped,
                 .pages = chunk.pages.data()});
  }
  all_.Plan(workers, may_split_heads);
  if (wanted_.rows() < all_.rows()) wanted_.Plan(workers, may_split_heads);
  return {};
}

}  // namespace tessera::runtime
