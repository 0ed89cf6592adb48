// SPDX-License-Identifier: Apache-2.0
#include "runtime/kv_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/check.h"

namespace tessera::runtime {

Result<int64_t> KvPages(const KvWish& wish, const KvShape& shape, uint64_t available) {
  TESSERA_CHECK(shape.max_seq_len > 0 && shape.page_tokens > 0 && shape.page_bytes > 0);
  if (wish.tokens > 0) return (wish.tokens - 1) / shape.page_tokens + 1;
  const auto page_bytes = static_cast<uint64_t>(shape.page_bytes);
  const int64_t sequence_pages = (shape.max_seq_len - 1) / shape.page_tokens + 1;
  uint64_t sequence_bytes = 0;  // A hostile program's may be beyond 64 bits: then as many as fit.
  if (MulOverflows(static_cast<uint64_t>(sequence_pages), page_bytes, &sequence_bytes))
    sequence_bytes = std::numeric_limits<uint64_t>::max();
  if (wish.bytes > 0) {
    if (wish.bytes < page_bytes)
      return Fail(InvalidArgument(fmt::format(
          "{} bytes of KV memory are too few: one page of {} tokens needs {}, a sequence of all {} "
          "tokens {}",
          wish.bytes, shape.page_tokens, page_bytes, shape.max_seq_len, sequence_bytes)));
    return static_cast<int64_t>(
        std::min<uint64_t>(wish.bytes / page_bytes, std::numeric_limits<int64_t>::max()));
  }
  const uint64_t room = available / kKvMemoryDivisor / sequence_bytes;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(wish.max_sequences, 1));
  return sequence_pages * static_cast<int64_t>(std::clamp<uint64_t>(room, 1, most));
}

Status CheckKvFits(const KvWish& wish, int64_t pages, const KvShape& shape, uint64_t available) {
  TESSERA_CHECK(pages > 0 && shape.page_bytes > 0);
  if (wish.tokens == 0 && wish.bytes == 0) return {};
  const auto page_bytes = static_cast<uint64_t>(shape.page_bytes);
  if (static_cast<uint64_t>(pages) <= available / page_bytes) return {};
  uint64_t needed = 0;
  if (MulOverflows(static_cast<uint64_t>(pages), page_bytes, &needed))
    needed = std::numeric_limits<uint64_t>::max();
  return ResourceExhausted(fmt::format(
      "the KV cache would need {} bytes of memory, {} are available: give it less (--kv-memory), "
      "fewer or shorter sequences, or free memory",
      needed, available));
}

}  // namespace tessera::runtime
