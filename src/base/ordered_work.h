// SPDX-License-Identifier: Apache-2.0
//
// A stream made by several threads and used by one: pieces are made in any order, beside each
// other, and taken in theirs. Memory: kPiecesAhead pieces a thread, whatever the count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace tessera {

inline constexpr int64_t kPiecesAhead = 3;

/// Calls make(i, &bytes) for i in [0, count) on up to `threads` threads of its own, and
/// take(i, bytes) for each in ascending order on the caller's. `bytes` comes with the capacity, not
/// the contents, of an earlier piece. The first error of either, in the order of the pieces, ends
/// it: threads are joined and the error is returned. Where fewer threads can be
/// started than asked for, the log has a warning and fewer do the same; with none (or threads = 0)
/// the caller makes the pieces itself. The callbacks must not throw; `make` must be safe to call
/// from several threads at once.
Status MakeInOrder(int64_t count, int threads,
                   const std::function<Status(int64_t, std::vector<std::byte>*)>& make,
                   const std::function<Status(int64_t, ByteSpan)>& take);

}  // namespace tessera
