// SPDX-License-Identifier: Apache-2.0
#include "base/ordered_work.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace tessera {
namespace {

using Make = std::function<Status(int64_t, std::vector<std::byte>*)>;
using Take = std::function<Status(int64_t, ByteSpan)>;

/// A ring of pieces: piece i lies in slot i % slots from the moment it is begun until it is taken.
class Ring {
 public:
  Ring(int64_t count, int64_t slots) : count_(count), slots_(static_cast<size_t>(slots)) {}

  /// A maker's thread: until there is nothing left to begin.
  void MakePieces(const Make& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [&] { return stopped_ || begun_ == count_ || begun_ < taken_ + Capacity(); });
      if (stopped_ || begun_ == count_) return;
      const int64_t item = begun_++;
      Slot& slot = At(item);
      lock.unlock();
      slot.bytes.clear();
      Status status = make(item, &slot.bytes);
      lock.lock();
      slot.status = std::move(status);
      slot.is_made = true;
      changed_.notify_all();
    }
  }

  /// The caller's side.
  Status TakePieces(const Take& take) {
    for (int64_t item = 0; item < count_; ++item) {
      Slot& slot = At(item);
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return slot.is_made; });
        TESSERA_RETURN_IF_ERROR(slot.status);
      }
      TESSERA_RETURN_IF_ERROR(take(item, slot.bytes));
      const std::lock_guard lock(mutex_);
      slot.is_made = false;
      taken_ = item + 1;
      changed_.notify_all();
    }
    return {};
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  struct Slot {
    std::vector<std::byte> bytes;
    Status status;
    bool is_made = false;
  };
  int64_t Capacity() const { return static_cast<int64_t>(slots_.size()); }
  Slot& At(int64_t item) { return slots_[static_cast<size_t>(item % Capacity())]; }

  const int64_t count_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t begun_ = 0;
  int64_t taken_ = 0;
  bool stopped_ = false;
};

Status MakeAlone(int64_t count, const Make& make, const Take& take) {
  std::vector<std::byte> bytes;
  for (int64_t item = 0; item < count; ++item) {
    bytes.clear();
    TESSERA_RETURN_IF_ERROR(make(item, &bytes));
    TESSERA_RETURN_IF_ERROR(take(item, bytes));
  }
  return {};
}

}  // namespace

Status MakeInOrder(int64_t count, int threads, const Make& make, const Take& take) {
  const auto wanted = static_cast<int>(std::min<int64_t>(threads, count));
  Ring ring(count, std::max(1, wanted) * kPiecesAhead);
  std::vector<std::thread> makers;
  for (int i = 0; i < wanted; ++i) {
    auto thread = StartThread("a thread that makes pieces", [&] { ring.MakePieces(make); });
    if (!thread.has_value()) break;
    makers.push_back(*std::move(thread));
  }
  if (std::ssize(makers) < wanted)
    log::warn("{} of {} threads could be started: the work goes on with fewer, slower",
              makers.size(), wanted);
  if (makers.empty()) return MakeAlone(count, make, take);
  Status status = ring.TakePieces(take);
  ring.Stop();
  for (std::thread& maker : makers) maker.join();
  return status;
}

}  // namespace tessera
