// SPDX-License-Identifier: Apache-2.0
//
// PageFetch: the pages of one waiting sequence that come from the page store. Plain data;
// engine_core_store.cc moves it along.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "engine/page_store.h"
#include "engine/request.h"

namespace tessera::engine {

struct PageFetch {
  // Whole pages [next, end) of its tokens are in the store and still to come, in order.
  int64_t next = 0;
  int64_t end = 0;
  std::deque<std::shared_ptr<const PageRead>> reads;  // Of [next, next + size).
  /// Until then the sequence waits for them: computing them would take as long.
  TimePoint patience{};
  bool is_asked = false;  // It had its turn to read.
  bool is_lost = false;   // Page `end` was there and is gone.

  bool IsAwaited(TimePoint now) const { return next < end && now < patience; }
  bool HasNews() const { return !reads.empty() && reads.front()->is_ready(); }
  /// Why page `next` does not come in time.
  CacheMiss::Reason Miss() const {
    if (next < end) return CacheMiss::Reason::kSlowStore;
    return is_lost ? CacheMiss::Reason::kLostInStore : CacheMiss::Reason::kNone;
  }
};

}  // namespace tessera::engine
