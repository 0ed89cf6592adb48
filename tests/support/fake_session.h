// SPDX-License-Identifier: Apache-2.0
//
// FakeSession: a deterministic language model over tokens, for tests of what drives a session. Its
// "KV" is the token written at each position of each page, and its logits are a function of the
// whole context read back through the page lists it is given. So a wrong page, position or order
// changes the tokens, as it would in the real runtime, and correct ones give the same tokens
// however the work was cut. It refuses what the Session contract forbids.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/session.h"

namespace tessera::testing {

struct FakeSessionOptions {
  runtime::ModelShape shape{.vocab_size = 260,
                            .hidden_size = 8,
                            .max_seq_len = 256,
                            .layers = 1,
                            .kv_bytes_per_token = 4,
                            .page_tokens = 16,
                            .page_count = 32,
                            .max_rows = 64};
  /// The token the model wants after `context`; without it, hashed logits decide.
  std::function<int32_t(std::span<const int32_t> context)> next;
  /// Called at the start of each step with its number (0 = first): may block, count or fail it.
  std::function<Status(int64_t step)> on_step;
  /// Then: sees what the step has to compute, e.g. to turn a clock by what it would take.
  std::function<void(std::span<const runtime::Chunk>)> on_chunks;
};

class FakeSession : public runtime::Session {
 public:
  explicit FakeSession(FakeSessionOptions options);
  const runtime::ModelShape& shape() const override { return options_.shape; }
  Result<std::span<const float>> Step(std::span<const runtime::Chunk> chunks) override;
  Status CopyPage(runtime::PageId from, runtime::PageId to) override;
  std::span<std::byte> PageBytes(runtime::PageId page) override;
  std::string kv_identity() const override { return "fake"; }

  void BackPage(runtime::PageId page) override { backed_.push_back(page); }
  const std::vector<runtime::PageId>& backed() const { return backed_; }

  /// The logits row after `context`: what Step gives for its last token.
  std::vector<float> Logits(std::span<const int32_t> context) const;
  /// The hidden states likewise.
  std::vector<float> Hidden(std::span<const int32_t> context) const;
  std::span<const float> hidden() const override { return hidden_; }

 private:
  Status Check(const runtime::Chunk& chunk) const;
  int32_t& Cell(const runtime::Chunk& chunk, int64_t position);

  FakeSessionOptions options_;
  std::vector<int32_t> cells_;  // [pages, page_tokens]
  std::vector<float> logits_;
  std::vector<float> hidden_;
  int64_t steps_ = 0;
  std::vector<runtime::PageId> backed_;
};

/// A `next` that writes `text` byte by byte (token id = byte) after the last `marker` token of the
/// context, then `end_id` for ever.
std::function<int32_t(std::span<const int32_t>)> Recite(std::string text, int32_t marker,
                                                        int32_t end_id);

}  // namespace tessera::testing
