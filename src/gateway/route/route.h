// SPDX-License-Identifier: Apache-2.0
//
// Route: the way from a call to a worker of one endpoint. Calls that find no worker wait here,
// first come first served, until one is ready or their deadline passes: that is how an endpoint
// without workers serves. Thread-safe; callbacks run on the thread that causes them, without locks
// of this class held.
//
// Choice of a worker: prompts that begin alike go where their beginning is already computed, unless
// that worker is much busier than the least busy one; else the least busy. Which beginning went
// where is remembered for kAffinityMax prompts, by hash.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::gateway {

/// A worker as calls see it. Immutable but for its counter.
struct RouteWorker {
  std::string id;
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::string key;  // Secret: what the worker asks callers for.
};

class Route : public std::enable_shared_from_this<Route> {
 public:
  /// A call's hold on a worker. Counted as open until it dies. Movable.
  class Lease {
   public:
    Lease() = default;
    Lease(std::shared_ptr<Route> route, std::shared_ptr<const RouteWorker> worker)
        : route_(std::move(route)), worker_(std::move(worker)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { Release(); }

    const RouteWorker& worker() const { return *worker_; }
    explicit operator bool() const { return worker_ != nullptr; }
    void Release();

   private:
    std::shared_ptr<Route> route_;
    std::shared_ptr<const RouteWorker> worker_;
  };

  struct Limits {
    int64_t waiting_max = 1024;       // Calls held; beyond it kResourceExhausted.
    int64_t open_per_worker_max = 0;  // 0: any. Calls beyond it wait.
  };

  /// `on_demand` is called when a call begins to wait: somebody should look whether a worker is
  /// needed. It must not block.
  Route(Limits limits, std::function<void()> on_demand)
      : limits_(limits), on_demand_(std::move(on_demand)) {}

  struct Request {
    /// Hashes of the prompt's beginning, of growing length; see PrefixHashes. May be empty.
    std::vector<uint64_t> prefix{};
    TimePoint deadline = TimePoint::max();
    /// Workers that have failed this call.
    std::vector<std::string> avoid{};
  };
  using Then = std::function<void(Result<Lease> lease)>;
  /// Calls `then` once: with a lease at once or later, kDeadlineExceeded, kResourceExhausted (too
  /// many wait), kUnavailable (the endpoint ended), kCancelled.
  /// Returns a number for Withdraw; 0 when `then` was called already.
  uint64_t Acquire(Request request, Then then);
  /// The caller is gone: `then` is dropped without being called. False: too late.
  bool Withdraw(uint64_t number);

  /// The workers from now on; a call that holds another one keeps it.
  void SetWorkers(std::vector<RouteWorker> workers);
  /// Fails those whose deadline has passed. The time of the next one, or max.
  TimePoint ExpireWaiting(TimePoint now);
  /// Fails all who wait, now and later, with this.
  void Close(Status reason);

  struct Load {
    int64_t open = 0;  // Calls that hold a worker.
    int64_t waiting = 0;
    uint64_t calls = 0;  // Acquire calls since the beginning.
  };
  Load load() const;
  int64_t OpenCalls(std::string_view worker_id) const;

 private:
  struct Slot {
    std::shared_ptr<const RouteWorker> worker;
    int64_t open = 0;
  };
  struct Waiting {
    uint64_t number;
    Request request;
    Then then;
  };
  using Ready = std::vector<std::pair<Then, Result<Lease>>>;

  Slot* Choose(const Request& request);
  void Remember(const std::vector<uint64_t>& prefix, const std::string& worker_id);
  bool TakeLocked(const Request& request, Lease* lease);
  void ServeWaitingLocked(Ready* ready);
  void Release(const std::string& worker_id);
  static void Tell(Ready ready);

  const Limits limits_;
  const std::function<void()> on_demand_;

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, int64_t> leaving_;  // Open calls of workers that are no slot now.
  std::deque<Waiting> waiting_;
  uint64_t last_number_ = 0;
  uint64_t calls_ = 0;
  Status closed_;
  // Prefix -> worker, newest use first.
  struct Affinity {
    uint64_t hash;
    std::string worker_id;
  };
  std::list<Affinity> affinities_;
  std::unordered_map<uint64_t, std::list<Affinity>::iterator> affinity_of_;
};

inline constexpr size_t kAffinityMax = 16384;
/// A worker with the prompt's beginning is preferred while it has at most so many calls more.
inline constexpr int64_t kAffinitySlack = 4;

/// Hashes of the first 256, 512, 1024, ... bytes of a prompt and of all of it, shortest first; at
/// most 16. Prompts that share 256 bytes share the first.
std::vector<uint64_t> PrefixHashes(std::string_view prompt);

}  // namespace tessera::gateway
