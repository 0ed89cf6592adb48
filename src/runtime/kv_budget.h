// SPDX-License-Identifier: Apache-2.0
//
// KvBudget: how many pages of KV memory a session gets. A pure function; the reservation itself is
// kv_memory.h, and a page uses memory only when it is first written.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tessera::runtime {

/// What the caller wants; the first member that is not 0 decides.
struct KvWish {
  int64_t tokens = 0;         // Positions over all sequences, rounded up to pages.
  uint64_t bytes = 0;         // Memory, rounded down to pages.
  int64_t max_sequences = 1;  // Full sequences: as many as memory has room for, at least one.
};

struct KvShape {
  int64_t max_seq_len = 0;
  int64_t page_tokens = 0;
  int64_t page_bytes = 0;
};

/// Of `available` bytes of memory, sequences beyond the first may take this share.
inline constexpr uint64_t kKvMemoryDivisor = 4;

/// At least 1. kInvalidArgument with both numbers when `bytes` is less than one page.
Result<int64_t> KvPages(const KvWish& wish, const KvShape& shape, uint64_t available);

/// kResourceExhausted with both sizes when `pages` that the wish names (not those of a default) are
/// more than the `available` bytes of memory: the process would be killed once they fill.
Status CheckKvFits(const KvWish& wish, int64_t pages, const KvShape& shape, uint64_t available);

}  // namespace tessera::runtime
