// SPDX-License-Identifier: Apache-2.0
//
// PageStore: a second, slower place for whole KV pages that the prefix cache gives up: a disk, say
// (disk_page_store.h). The contract between the engine thread, which never waits for it, and
// whoever does the slow work on a thread of its own.
//
// A store may lose anything at any time. What it gives back is what was put under that name, or
// nothing: checking that is the store's duty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/page_hash.h"

namespace tessera::engine {

/// The bytes of one page.
struct PageBuffer {
  explicit PageBuffer(size_t bytes)
      : data(std::make_unique_for_overwrite<std::byte[]>(bytes)), size(bytes) {}
  std::unique_ptr<std::byte[]> data;
  size_t size;
};

/// A page on its way. Whoever drops it no longer wants it.
class PageRead {
 public:
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }
  /// When ready: the page, or nothing when it could not be had.
  ByteSpan bytes() const {
    return buffer_ == nullptr ? ByteSpan() : ByteSpan(buffer_->data.get(), buffer_->size);
  }
  /// For the store, once.
  void Finish(std::shared_ptr<const PageBuffer> buffer) {
    buffer_ = std::move(buffer);
    is_ready_.store(true, std::memory_order_release);
  }

 private:
  std::shared_ptr<const PageBuffer> buffer_;
  std::atomic<bool> is_ready_{false};
};

/// As of one moment; counters since the start.
struct PageStoreStats {
  // Gauges.
  int64_t pages = 0;
  int64_t bytes = 0;  // Of the files.
  bool is_writable = true;
  // Counters.
  int64_t written = 0;    // Pages,
  int64_t read = 0;       // and
  int64_t corrupt = 0;    // found damaged or gone, and deleted,
  int64_t dropped = 0;    // not taken: the queue was full, or nothing can be written,
  int64_t evictions = 0;  // deleted to keep to the quota.
  double write_seconds = 0;
  double read_seconds = 0;
};

class PageStore {
 public:
  virtual ~PageStore() = default;

  // All for the engine thread; none of them waits for a disk.

  /// The name of the empty context: says what computes the pages (page_hash.h).
  virtual const PageHash& root() const = 0;
  /// Called on any thread, at once, when a read has become ready; empty: nobody. On return the one
  /// before is not called any more.
  virtual void SetOnReady(std::function<void()> on_ready) = 0;
  /// Whether the page is thought to be there.
  virtual bool Contains(const PageHash& hash) const = 0;
  /// Takes a copy, to be stored when there is time. False: dropped and counted. What is there
  /// already is only marked as used. Waits for room in the queue no longer than `patience`.
  virtual bool Put(const PageHash& hash, ByteSpan bytes, Duration patience = {}) = 0;
  /// Begins to fetch the page. Null: so many are on their way that this one has to be asked for
  /// again later, when one of those is ready.
  virtual std::shared_ptr<const PageRead> Get(const PageHash& hash) = 0;
  /// How long so many more reads should take, by those that were measured; 0 while none was.
  virtual Duration ReadTime(int64_t pages) const = 0;
  /// Waits until all that was taken is stored, or `patience` has passed.
  virtual void Flush(Duration patience) = 0;
  virtual PageStoreStats stats() const = 0;
};

}  // namespace tessera::engine
