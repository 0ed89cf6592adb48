// SPDX-License-Identifier: Apache-2.0
#include "support/fake_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"

namespace tessera::testing {
namespace {

constexpr int32_t kEmptyCell = -1;

}  // namespace

FakeSession::FakeSession(FakeSessionOptions options)
    : options_(std::move(options)),
      cells_(static_cast<size_t>(options_.shape.page_count * options_.shape.page_tokens),
             kEmptyCell) {}

Status FakeSession::Check(const runtime::Chunk& chunk) const {
  const runtime::ModelShape& shape = options_.shape;
  const int64_t end = chunk.start + static_cast<int64_t>(chunk.tokens.size());
  if (chunk.tokens.empty() || chunk.start < 0 || end > shape.max_seq_len)
    return InvalidArgument("chunk out of range");
  if (static_cast<int64_t>(chunk.pages.size()) * shape.page_tokens < end)
    return InvalidArgument("pages do not cover the chunk");
  for (const runtime::PageId page : chunk.pages)
    if (page < 0 || page >= shape.page_count) return InvalidArgument("page out of range");
  for (const int32_t token : chunk.tokens)
    if (token < 0 || token >= shape.vocab_size) return InvalidArgument("token out of range");
  return {};
}

int32_t& FakeSession::Cell(const runtime::Chunk& chunk, int64_t position) {
  const int64_t page_tokens = options_.shape.page_tokens;
  const auto page = chunk.pages[static_cast<size_t>(position / page_tokens)];
  return cells_[static_cast<size_t>(page * page_tokens + position % page_tokens)];
}

Result<std::span<const float>> FakeSession::Step(std::span<const runtime::Chunk> chunks) {
  const int64_t step = steps_++;
  if (options_.on_step) TESSERA_RETURN_IF_ERROR(options_.on_step(step));
  if (options_.on_chunks) options_.on_chunks(chunks);
  int64_t rows = 0;
  for (const runtime::Chunk& chunk : chunks) {
    TESSERA_RETURN_IF_ERROR(Check(chunk));
    rows += static_cast<int64_t>(chunk.tokens.size());
  }
  if (rows > options_.shape.max_rows) return Fail(ResourceExhausted("more than max_rows rows"));
  logits_.clear();
  hidden_.clear();
  for (const runtime::Chunk& chunk : chunks) {
    const auto count = static_cast<int64_t>(chunk.tokens.size());
    for (int64_t i = 0; i < count; ++i)
      Cell(chunk, chunk.start + i) = chunk.tokens[static_cast<size_t>(i)];
    for (int64_t i = 0; i < count; ++i) {
      const bool wanted = chunk.logits == runtime::Chunk::Logits::kAll ||
                          (chunk.logits == runtime::Chunk::Logits::kLast && i == count - 1);
      if (!wanted) continue;
      std::vector<int32_t> context;
      for (int64_t position = 0; position <= chunk.start + i; ++position)
        context.push_back(Cell(chunk, position));
      const std::vector<float> row = Logits(context);
      logits_.insert(logits_.end(), row.begin(), row.end());
      // Of chunks that did not ask there is something else.
      const std::vector<float> hidden =
          chunk.hidden ? Hidden(context)
                       : std::vector<float>(static_cast<size_t>(options_.shape.hidden_size), -1e9f);
      hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
    }
  }
  return std::span<const float>(logits_);
}

std::vector<float> FakeSession::Logits(std::span<const int32_t> context) const {
  uint64_t hash = 0x9E3779B97F4A7C15;
  for (const int32_t token : context)
    hash = (hash ^ static_cast<uint64_t>(token + 2)) * 0x100000001B3 + (hash >> 29);
  Random random(hash);
  std::vector<float> logits(static_cast<size_t>(options_.shape.vocab_size));
  for (float& value : logits) value = static_cast<float>(random.Uniform() * 4 - 2);
  if (options_.next) logits[static_cast<size_t>(options_.next(context))] = 10;
  return logits;
}

std::vector<float> FakeSession::Hidden(std::span<const int32_t> context) const {
  const std::vector<float> logits = Logits(context);
  return {logits.begin(), logits.begin() + options_.shape.hidden_size};
}

Status FakeSession::CopyPage(runtime::PageId from, runtime::PageId to) {
  const int64_t page_tokens = options_.shape.page_tokens;
  std::copy_n(cells_.begin() + from * page_tokens, page_tokens, cells_.begin() + to * page_tokens);
  return {};
}

std::span<std::byte> FakeSession::PageBytes(runtime::PageId page) {
  const auto page_tokens = static_cast<size_t>(options_.shape.page_tokens);
  return std::as_writable_bytes(
      std::span(cells_).subspan(static_cast<size_t>(page) * page_tokens, page_tokens));
}

std::function<int32_t(std::span<const int32_t>)> Recite(std::string text, int32_t marker,
                                                        int32_t end_id) {
  return [text = std::move(text), marker, end_id](std::span<const int32_t> context) {
    size_t after = 0;
    while (after < context.size() && context[context.size() - 1 - after] != marker) ++after;
    if (after >= text.size()) return end_id;
    return static_cast<int32_t>(static_cast<unsigned char>(text[after]));
  };
}

}  // namespace tessera::testing
