// SPDX-License-Identifier: Apache-2.0
#include "gateway/reconcile/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::gateway {
namespace {

/// Workers by what they are to the desired generation. Pointers into the observed ones.
struct Census {
  std::vector<const ObservedWorker*> starting, ready;          // Of the desired generation.
  std::vector<const ObservedWorker*> old_starting, old_ready;  // Of all others.
  int64_t ending = 0;                                          // Draining or stopping.

  int64_t current() const { return static_cast<int64_t>(starting.size() + ready.size()); }
  int64_t ready_total() const { return static_cast<int64_t>(ready.size() + old_ready.size()); }
  int64_t processes() const {
    return current() + static_cast<int64_t>(old_starting.size() + old_ready.size()) + ending;
  }
};

Census Count(const Desired& desired, const std::vector<ObservedWorker>& workers) {
  Census census;
  for (const ObservedWorker& worker : workers) {
    const bool is_current = worker.generation == desired.generation;
    switch (worker.state) {
      case WorkerState::kStarting:
        (is_current ? census.starting : census.old_starting).push_back(&worker);
        break;
      case WorkerState::kReady:
        (is_current ? census.ready : census.old_ready).push_back(&worker);
        break;
      case WorkerState::kDraining:
      case WorkerState::kStopping:
        ++census.ending;
        break;
      case WorkerState::kExited:
        break;
    }
  }
  // The least busy and, among those, the youngest goes first.
  const auto goes_first = [](const ObservedWorker* a, const ObservedWorker* b) {
    if (a->open_calls != b->open_calls) return a->open_calls < b->open_calls;
    return std::pair(b->since, std::string_view(b->id)) <
           std::pair(a->since, std::string_view(a->id));
  };
  for (auto* group : {&census.starting, &census.ready, &census.old_starting, &census.old_ready})
    std::ranges::sort(*group, goes_first);
  return census;
}

void EndWhatIsOver(const std::vector<ObservedWorker>& workers, const Patience& patience,
                   TimePoint now, Verdict* verdict) {
  using Kind = Action::Kind;
  for (const ObservedWorker& worker : workers) {
    const Duration age = now - worker.since;
    if (worker.state == WorkerState::kExited)
      verdict->actions.push_back({Kind::kForget, worker.id, "it has ended"});
    else if (worker.state == WorkerState::kStarting && age > patience.start)
      verdict->actions.push_back({Kind::kKill, worker.id, "it did not become ready in time"});
    else if (worker.state == WorkerState::kDraining && age > patience.drain)
      verdict->actions.push_back({Kind::kKill, worker.id, "its calls did not end in time"});
    else if (worker.state == WorkerState::kStopping && age > patience.stop)
      verdict->actions.push_back({Kind::kKill, worker.id, "it is still there"});
  }
}

void DrainAll(const Census& census, std::string_view why, Verdict* verdict) {
  for (const auto* group :
       {&census.starting, &census.ready, &census.old_starting, &census.old_ready})
    for (const ObservedWorker* worker : *group)
      verdict->actions.push_back({Action::Kind::kDrain, worker->id, std::string(why)});
}

void StartMissing(const Desired& desired, const Census& census, const StartHistory& history,
                  TimePoint now, Verdict* verdict) {
  const bool must_wait = history.generation == desired.generation && now < history.not_before;
  if (must_wait) return;
  int64_t missing = desired.workers - census.current();
  int64_t room = desired.max_workers + kSurge - census.processes();
  // While starts fail, one at a time: the others would fail alike.
  if (history.generation == desired.generation && history.failures > 0)
    missing = std::min(missing, int64_t{1} - static_cast<int64_t>(census.starting.size()));
  for (; missing > 0 && room > 0; --missing, --room)
    verdict->actions.push_back({Action::Kind::kStart, "", "a worker is missing"});
}

void DrainSurplus(const Desired& desired, const Census& census, Verdict* verdict) {
  const auto drain = [&](const ObservedWorker* worker, std::string_view why) {
    verdict->actions.push_back({Action::Kind::kDrain, worker->id, std::string(why)});
  };
  // A start for what is no longer wanted serves nobody.
  for (const ObservedWorker* worker : census.old_starting) drain(worker, "it is of an old version");
  int64_t surplus = census.current() - desired.workers;
  for (const ObservedWorker* worker : census.starting)
    if (surplus > 0) {
      drain(worker, "fewer workers are wanted");
      --surplus;
    }
  int64_t ready_left = census.ready_total();
  for (const ObservedWorker* worker : census.ready)
    if (surplus > 0) {
      drain(worker, "fewer workers are wanted");
      --surplus;
      --ready_left;
    }
  // An old one goes once there are as many as wanted without it.
  for (const ObservedWorker* worker : census.old_ready)
    if (ready_left > desired.workers) {
      drain(worker, "a worker of the new version took its place");
      --ready_left;
    }
}

std::string Counted(int64_t count) {
  return count == 1 ? "1 worker" : fmt::format("{} workers", count);
}

void Judge(const Desired& desired, const Census& census, const StartHistory& history,
           Verdict* verdict) {
  const auto ready = static_cast<int64_t>(census.ready.size());
  const auto say = [&](EndpointStatus status, std::string reason) {
    verdict->status = status;
    verdict->reason = std::move(reason);
  };
  const bool is_of_this = history.generation == desired.generation;
  verdict->is_ready = desired.workers == 0 ? desired.max_workers > 0 : census.ready_total() > 0;
  if (is_of_this && history.failures >= kFailuresMax && ready == 0)
    return say(EndpointStatus::kUpdateFailed, history.reason);
  if (desired.max_workers == 0)
    return say(EndpointStatus::kReady, "switched off: max_workers is 0");
  if (desired.workers == 0)
    return say(EndpointStatus::kReady, "no worker runs; the next call starts one");
  if (ready >= desired.workers && census.old_ready.empty())
    return say(EndpointStatus::kReady, Counted(ready) + " ready");
  const bool was_ready = is_of_this && history.was_ready;
  std::string reason = fmt::format("{} of {} ready", ready, Counted(desired.workers));
  if (is_of_this && history.failures > 0 && !history.reason.empty())
    reason += "; the last start failed: " + history.reason;
  if (!census.old_ready.empty())
    reason += fmt::format("; {} of the old version still serve", census.old_ready.size());
  // Scaling is no update: who waited for READY may go on.
  const bool is_scaling = was_ready && ready > 0 && census.old_ready.empty();
  say(is_scaling ? EndpointStatus::kReady : EndpointStatus::kUpdateInProgress, std::move(reason));
}

}  // namespace

std::string_view WorkerStateName(WorkerState state) {
  switch (state) {
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kReady:
      return "ready";
    case WorkerState::kDraining:
      return "draining";
    case WorkerState::kStopping:
      return "stopping";
    case WorkerState::kExited:
      return "exited";
  }
  return {};
}

std::string_view EndpointStatusName(EndpointStatus status) {
  switch (status) {
    case EndpointStatus::kUpdatePending:
      return "UPDATE_PENDING";
    case EndpointStatus::kUpdateInProgress:
      return "UPDATE_IN_PROGRESS";
    case EndpointStatus::kReady:
      return "READY";
    case EndpointStatus::kUpdateFailed:
      return "UPDATE_FAILED";
    case EndpointStatus::kDeleteInProgress:
      return "DELETE_IN_PROGRESS";
  }
  return {};
}

void RecordFailure(int64_t generation, std::string reason, TimePoint now, StartHistory* history) {
  if (history->generation != generation) *history = {.generation = generation};
  const int doublings = std::min(history->failures, 6);
  ++history->failures;
  history->reason = std::move(reason);
  history->not_before = now + std::min<Duration>(kBackoffFirst * (1 << doublings), kBackoffMax);
}

void RecordReady(int64_t generation, StartHistory* history) {
  if (history->generation != generation) *history = {.generation = generation};
  history->failures = 0;
  history->was_ready = true;
}

Verdict Reconcile(const Desired& desired, const std::vector<ObservedWorker>& workers,
                  const StartHistory& history, const Patience& patience, TimePoint now) {
  Verdict verdict;
  const Census census = Count(desired, workers);
  EndWhatIsOver(workers, patience, now, &verdict);
  if (desired.is_deleting) {
    DrainAll(census, "the endpoint is deleted", &verdict);
    verdict.status = EndpointStatus::kDeleteInProgress;
    verdict.reason = census.processes() == 0 ? "all workers have ended"
                                             : Counted(census.processes()) + " to end";
    if (workers.empty()) verdict.actions.push_back({Action::Kind::kRemoveEndpoint, "", ""});
    return verdict;
  }
  if (desired.max_workers == 0)
    DrainAll(census, "the endpoint is switched off", &verdict);
  else
    DrainSurplus(desired, census, &verdict);
  StartMissing(desired, census, history, now, &verdict);
  Judge(desired, census, history, &verdict);
  return verdict;
}

}  // namespace tessera::gateway
