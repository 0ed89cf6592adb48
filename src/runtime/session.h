// SPDX-License-Identifier: Apache-2.0
//
// Session: a program bound to its parameters, threads and KV pages: tokens in, logits out.
// The contract between runtime and engine. One thread owns a session and calls it; inside a step it
// uses the pinned pool. No allocation in steady state.
//
// KV memory is a pool of pages of `page_tokens` positions each; the caller (engine) decides which
// page holds which positions of which sequence, the session only reads and writes them.
//
// Determinism: the logits of a row depend on its tokens and positions only, bit for bit, not on the
// other chunks of the step, the chunking of its own prompt, the page numbers or the thread count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::runtime {

using PageId = int32_t;

struct ModelShape {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;  // 0: the session gives no hidden states.
  int64_t max_seq_len = 0;  // Context length the program was compiled for.
  int64_t layers = 0;
  int64_t kv_bytes_per_token = 0;
  int64_t page_tokens = 0;  // Positions of one page.
  int64_t page_count = 0;   // Pages of the pool.
  int64_t max_rows = 0;     // Tokens that one step may take, over all chunks.
};

/// Consecutive tokens of one sequence in one step.
struct Chunk {
  std::span<const int32_t> tokens;  // [rows]
  int64_t start = 0;                // Position of tokens[0]; KV of [0, start) is in `pages`.
  std::span<const PageId> pages;    // Page i holds positions [i, i + 1) * page_tokens.
  enum class Logits : uint8_t { kNone, kLast, kAll } logits = Logits::kLast;
  /// The rows with logits give their last hidden states, too.
  bool hidden = false;
};

/// Counters since the session was made, for tests, benchmarks and metrics.
struct SessionStats {
  uint64_t steps = 0;
  uint64_t barriers = 0;        // Passed by all workers together.
  uint64_t weight_bytes = 0;    // Packed weights streamed by matmuls, all workers together.
  uint64_t kv_bytes = 0;        // Keys and values read by attention, once a kernel call.
  uint64_t matmul_macs = 0;     // Multiply-accumulates of matmuls,
  uint64_t attention_macs = 0;  // and of attention: scores and weighted sums of visible positions.
  uint64_t scratch_bytes = 0;   // Reserved for activations and logits.
};

/// Memory that a session holds as long as it lives, by what it is for.
struct HeldMemory {
  std::string_view purpose;  // "weights", "kv", "arena".
  std::span<const std::byte> bytes;
  bool is_file = false;  // A mapped file.
};

class Session {
 public:
  virtual ~Session() = default;
  virtual const ModelShape& shape() const = 0;

  /// Runs the model over all chunks. Logits rows come in chunk order, row-major
  /// [rows with logits, vocab_size], float32; the span is valid until the next call.
  /// kInvalidArgument for a token id, position or page outside its range, kResourceExhausted for
  /// more than max_rows rows. A failed step changes no KV that a caller relies on.
  virtual Result<std::span<const float>> Step(std::span<const Chunk> chunks) = 0;

  /// Of the rows that the last Step gave: the greatest logit of every 32 (kernels/logits.h),
  /// [rows, ceil(vocab_size / 32)], valid as long as they. Empty where an implementation has none.
  virtual std::span<const float> block_max() const { return {}; }

  /// The last hidden states (normalised, what the output matrix is multiplied with), one row for
  /// each row of logits, [rows with logits, hidden_size], valid as long as they. Rows of chunks
  /// that did not ask for them hold anything. Empty where no chunk asked.
  virtual std::span<const float> hidden() const { return {}; }

  /// Between steps the workers can do other things, such as choosing tokens: calls task(i, worker)
  /// for every i in [0, count), each on some worker in [0, workers()), and returns when all are
  /// done. Tasks must not block.
  virtual int workers() const { return 1; }
  virtual void ForEach(int64_t count, const std::function<void(int64_t i, int worker)>& task) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
  }

  /// Copies a page's contents (copy-on-write of a partial page).
  virtual Status CopyPage(PageId from, PageId to) = 0;

  /// Has the system find memory for a page that was never used, which can take longer than filling
  /// it: for times when nobody waits. Contents stay as they are; no effect where it cannot be done.
  virtual void BackPage(PageId page) { (void)page; }

  /// The memory of a page, page_tokens * kv_bytes_per_token bytes, to be read or written between
  /// steps: a whole page is the same bytes in every session of the same kv_identity(). Empty where
  /// an implementation cannot give it.
  virtual std::span<std::byte> PageBytes(PageId /*page*/) { return {}; }
  /// One line that says what decides the bytes of a page beside the tokens, but for the program and
  /// its parameters: layout, types, numeric contract.
  virtual std::string kv_identity() const { return {}; }

  /// Of a session whose rank is not 0 in a group of processes (LoadOptions::transport): does what
  /// rank 0's session does, until that one ends. Nothing else may be called on it.
  virtual Status Follow() { return FailedPrecondition("the session follows nobody"); }

  /// Zeros where an implementation does not count.
  virtual SessionStats stats() const { return {}; }

  /// Its large ranges of addresses, resident or not, in whole pages.
  virtual std::vector<HeldMemory> memory() const { return {}; }
};

}  // namespace tessera::runtime
