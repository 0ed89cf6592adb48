// SPDX-License-Identifier: Apache-2.0
#include "gateway/route/route.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace tessera::gateway {

std::vector<uint64_t> PrefixHashes(std::string_view prompt) {
  constexpr size_t kFirst = 256, kCountMax = 16;
  std::vector<uint64_t> hashes;
  for (size_t bytes = kFirst; bytes < prompt.size() && hashes.size() + 1 < kCountMax; bytes *= 2)
    hashes.push_back(std::hash<std::string_view>()(prompt.substr(0, bytes)));
  if (prompt.size() >= kFirst) hashes.push_back(std::hash<std::string_view>()(prompt));
  return hashes;
}

void Route::Lease::Release() {
  if (const auto route = std::exchange(route_, nullptr); route != nullptr && worker_ != nullptr)
    route->Release(worker_->id);
  worker_ = nullptr;
}

Route::Lease& Route::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  route_ = std::move(other.route_);
  worker_ = std::move(other.worker_);
  return *this;
}

Route::Slot* Route::Choose(const Request& request) {
  Slot* least = nullptr;
  for (Slot& slot : slots_) {
    if (std::ranges::find(request.avoid, slot.worker->id) != request.avoid.end()) continue;
    if (limits_.open_per_worker_max > 0 && slot.open >= limits_.open_per_worker_max) continue;
    if (least == nullptr || slot.open < least->open) least = &slot;
  }
  if (least == nullptr) return nullptr;
  // The longest beginning that somebody knows says where.
  for (auto hash = request.prefix.rbegin(); hash != request.prefix.rend(); ++hash) {
    const auto known = affinity_of_.find(*hash);
    if (known == affinity_of_.end()) continue;
    for (Slot& slot : slots_) {
      const bool is_full =
          limits_.open_per_worker_max > 0 && slot.open >= limits_.open_per_worker_max;
      const bool is_avoided =
          std::ranges::find(request.avoid, slot.worker->id) != request.avoid.end();
      if (slot.worker->id == known->second->worker_id && !is_full && !is_avoided &&
          slot.open <= least->open + kAffinitySlack)
        return &slot;
    }
  }
  return least;
}

void Route::Remember(const std::vector<uint64_t>& prefix, const std::string& worker_id) {
  for (const uint64_t hash : prefix) {
    if (const auto known = affinity_of_.find(hash); known != affinity_of_.end()) {
      known->second->worker_id = worker_id;
      affinities_.splice(affinities_.begin(), affinities_, known->second);
      continue;
    }
    affinities_.push_front({hash, worker_id});
    affinity_of_[hash] = affinities_.begin();
    if (affinities_.size() <= kAffinityMax) continue;
    affinity_of_.erase(affinities_.back().hash);
    affinities_.pop_back();
  }
}

bool Route::TakeLocked(const Request& request, Lease* lease) {
  Slot* slot = Choose(request);
  if (slot == nullptr) return false;
  ++slot->open;
  Remember(request.prefix, slot->worker->id);
  *lease = Lease(shared_from_this(), slot->worker);
  return true;
}

uint64_t Route::Acquire(Request request, Then then) {
  Result<Lease> now = Fail(Status());
  uint64_t number = 0;  // Of a call that waits.
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
    Lease lease;
    if (!closed_.ok()) {
      now = Fail(closed_);
    } else if (waiting_.empty() && TakeLocked(request, &lease)) {
      now = std::move(lease);
    } else if (static_cast<int64_t>(waiting_.size()) >= limits_.waiting_max) {
      now = Fail(ResourceExhausted("too many calls wait for a worker of this endpoint"));
    } else {
      number = ++last_number_;
      waiting_.push_back({number, std::move(request), std::move(then)});
    }
  }
  number != 0 ? on_demand_() : then(std::move(now));
  return number;
}

bool Route::Withdraw(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(waiting_, [&](const Waiting& one) { return one.number == number; }) > 0;
}

void Route::ServeWaitingLocked(Ready* ready) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Lease lease;
    if (!TakeLocked(at->request, &lease)) {
      // Only a call that avoids some worker may be passed by others.
      if (at->request.avoid.empty()) return;
      ++at;
      continue;
    }
    ready->emplace_back(std::move(at->then), std::move(lease));
    at = waiting_.erase(at);
  }
}

void Route::Tell(Ready ready) {
  // A call may give its lease back at once, which serves the next one: behind this one then, not
  // deeper and deeper in the stack.
  thread_local Ready* telling = nullptr;
  if (telling != nullptr) {
    std::ranges::move(ready, std::back_inserter(*telling));
    return;
  }
  telling = &ready;
  for (size_t i = 0; i < ready.size(); ++i) {
    auto [then, lease] = std::move(ready[i]);
    then(std::move(lease));
  }
  telling = nullptr;
}

void Route::SetWorkers(std::vector<RouteWorker> workers) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Slot> before = std::exchange(slots_, {});
    for (RouteWorker& worker : workers) {
      const auto same = std::ranges::find_if(
          before, [&](const Slot& slot) { return slot.worker->id == worker.id; });
      if (same != before.end()) {
        slots_.push_back(std::move(*same));
        before.erase(same);
        continue;
      }
      int64_t open = 0;
      if (const auto left = leaving_.find(worker.id); left != leaving_.end()) {
        open = left->second;
        leaving_.erase(left);
      }
      slots_.push_back({std::make_shared<const RouteWorker>(std::move(worker)), open});
    }
    for (const Slot& slot : before)
      if (slot.open > 0) leaving_[slot.worker->id] += slot.open;
    ServeWaitingLocked(&ready);
  }
  Tell(std::move(ready));
}

TimePoint Route::ExpireWaiting(TimePoint now) {
  Ready late;
  TimePoint next = TimePoint::max();
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (at->request.deadline > now) {
        next = std::min(next, at->request.deadline);
        ++at;
        continue;
      }
      late.emplace_back(std::move(at->then),
                        Fail(DeadlineExceeded("no worker of the endpoint was ready in time")));
      at = waiting_.erase(at);
    }
  }
  Tell(std::move(late));
  return next;
}

void Route::Close(Status reason) {
  TESSERA_CHECK(!reason.ok());
  Ready refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = reason;
    for (Waiting& one : waiting_) refused.emplace_back(std::move(one.then), Fail(reason));
    waiting_.clear();
  }
  Tell(std::move(refused));
}

void Route::Release(const std::string& worker_id) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    const auto slot =
        std::ranges::find_if(slots_, [&](const Slot& one) { return one.worker->id == worker_id; });
    if (slot != slots_.end()) {
      --slot->open;
    } else if (const auto left = leaving_.find(worker_id);
               left != leaving_.end() && --left->second == 0) {
      leaving_.erase(left);
    }
    ServeWaitingLocked(&ready);
  }
  Tell(std::move(ready));
}

Route::Load Route::load() const {
  const std::lock_guard lock(mutex_);
  Load load{.open = 0, .waiting = static_cast<int64_t>(waiting_.size()), .calls = calls_};
  for (const Slot& slot : slots_) load.open += slot.open;
  for (const auto& [id, open] : leaving_) load.open += open;
  return load;
}

int64_t Route::OpenCalls(std::string_view worker_id) const {
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_)
    if (slot.worker->id == worker_id) return slot.open;
  const auto left = leaving_.find(std::string(worker_id));
  return left == leaving_.end() ? 0 : left->second;
}

}  // namespace tessera::gateway
