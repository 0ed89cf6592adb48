// SPDX-License-Identifier: Apache-2.0
#include "gateway/reconcile/reconcile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/random.h"

namespace tessera::gateway {
namespace {

using Kind = Action::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStartOfTime{};

ObservedWorker Worker(std::string id, WorkerState state, int64_t generation = 1,
                      int64_t open_calls = 0) {
  return {.id = std::move(id),
          .generation = generation,
          .state = state,
          .since = kStartOfTime,
          .open_calls = open_calls};
}

Verdict Decide(const Desired& desired, const std::vector<ObservedWorker>& workers,
               const StartHistory& history = {}, TimePoint now = kStartOfTime) {
  return Reconcile(desired, workers, history, {}, now);
}

int64_t CountOf(const Verdict& verdict, Kind kind) {
  return std::ranges::count(verdict.actions, kind, &Action::kind);
}
std::vector<std::string> WorkersOf(const Verdict& verdict, Kind kind) {
  std::vector<std::string> ids;
  for (const Action& action : verdict.actions)
    if (action.kind == kind) ids.push_back(action.worker);
  return ids;
}

TEST(Reconcile, StartsWhatIsMissingAtOnce) {
  const Verdict verdict = Decide({.workers = 3, .max_workers = 4}, {});
  EXPECT_EQ(CountOf(verdict, Kind::kStart), 3);
  EXPECT_EQ(verdict.status, EndpointStatus::kUpdateInProgress);
  EXPECT_FALSE(verdict.is_ready);
}

TEST(Reconcile, ReadyNeedsAWorkerThatAnswered) {
  const Desired desired{.workers = 1, .max_workers = 1};
  EXPECT_EQ(Decide(desired, {Worker("a", WorkerState::kStarting)}).status,
            EndpointStatus::kUpdateInProgress);
  const Verdict verdict = Decide(desired, {Worker("a", WorkerState::kReady)});
  EXPECT_EQ(verdict.status, EndpointStatus::kReady);
  EXPECT_TRUE(verdict.is_ready);
  EXPECT_TRUE(verdict.actions.empty());
}

TEST(Reconcile, NoWorkerIsReadyWhenTheNextCallBringsOne) {
  const Verdict idle = Decide({.workers = 0, .max_workers = 2}, {});
  EXPECT_EQ(idle.status, EndpointStatus::kReady);
  EXPECT_TRUE(idle.is_ready);
  const Verdict off = Decide({.workers = 0, .max_workers = 0}, {Worker("a", WorkerState::kReady)});
  EXPECT_FALSE(off.is_ready);
  EXPECT_EQ(WorkersOf(off, Kind::kDrain), std::vector<std::string>{"a"});
}

TEST(Reconcile, UpdatesBringTheNewBeforeTheOldGoes) {
  const Desired desired{.generation = 2, .workers = 1, .max_workers = 1};
  const ObservedWorker old = Worker("old", WorkerState::kReady, 1);
  const Verdict begin = Decide(desired, {old});
  EXPECT_EQ(CountOf(begin, Kind::kStart), 1);
  EXPECT_EQ(CountOf(begin, Kind::kDrain), 0);
  EXPECT_TRUE(begin.is_ready) << "the old one serves";
  const Verdict amid = Decide(desired, {old, Worker("new", WorkerState::kStarting, 2)});
  EXPECT_TRUE(amid.actions.empty());
  const Verdict end = Decide(desired, {old, Worker("new", WorkerState::kReady, 2)});
  EXPECT_EQ(WorkersOf(end, Kind::kDrain), std::vector<std::string>{"old"});
}

TEST(Reconcile, TheLeastBusyGoesFirst) {
  const Verdict verdict =
      Decide({.workers = 1, .max_workers = 3},
             {Worker("a", WorkerState::kReady, 1, 5), Worker("b", WorkerState::kReady, 1, 2),
              Worker("c", WorkerState::kReady, 1, 9)});
  EXPECT_EQ(WorkersOf(verdict, Kind::kDrain), (std::vector<std::string>{"b", "a"}));
}

TEST(Reconcile, FailedStartsAreTriedEverMoreSlowly) {
  StartHistory history;
  const Desired desired{.workers = 2, .max_workers = 2};
  TimePoint now = kStartOfTime;
  Duration last{};
  for (int failure = 1; failure <= 12; ++failure) {
    RecordFailure(1, "no such model", now, &history);
    EXPECT_EQ(CountOf(Decide(desired, {}, history, now), Kind::kStart), 0);
    const Duration wait = history.not_before - now;
    EXPECT_GE(wait, last);
    EXPECT_LE(wait, kBackoffMax);
    last = wait;
    now = history.not_before;
    const Verdict verdict = Decide(desired, {}, history, now);
    EXPECT_EQ(CountOf(verdict, Kind::kStart), 1) << "one at a time";
    EXPECT_EQ(verdict.status == EndpointStatus::kUpdateFailed, failure >= kFailuresMax);
    EXPECT_NE(verdict.reason.find("no such model"), std::string::npos);
  }
  EXPECT_EQ(last, Duration(kBackoffMax));
  // Another version begins afresh.
  EXPECT_EQ(
      CountOf(Decide({.generation = 2, .workers = 2, .max_workers = 2}, {}, history, kStartOfTime),
              Kind::kStart),
      2);
}

TEST(Reconcile, DeletionDrainsThenRemoves) {
  const Desired desired{.workers = 1, .max_workers = 1, .is_deleting = true};
  const Verdict begin = Decide(desired, {Worker("a", WorkerState::kReady)});
  EXPECT_EQ(CountOf(begin, Kind::kDrain), 1);
  EXPECT_EQ(CountOf(begin, Kind::kRemoveEndpoint), 0);
  EXPECT_EQ(begin.status, EndpointStatus::kDeleteInProgress);
  const Verdict gone = Decide(desired, {Worker("a", WorkerState::kExited)});
  EXPECT_EQ(CountOf(gone, Kind::kForget), 1);
  EXPECT_EQ(CountOf(gone, Kind::kRemoveEndpoint), 0) << "not before it is forgotten";
  EXPECT_EQ(CountOf(Decide(desired, {}), Kind::kRemoveEndpoint), 1);
}

TEST(Reconcile, PatienceEnds) {
  const Desired desired{.workers = 1, .max_workers = 1};
  const Patience patience;
  const auto at = [&](WorkerState state, Duration age) {
    return Decide(desired, {Worker("a", state)}, {}, kStartOfTime + age);
  };
  EXPECT_EQ(CountOf(at(WorkerState::kStarting, patience.start), Kind::kKill), 0);
  EXPECT_EQ(CountOf(at(WorkerState::kStarting, patience.start + seconds(1)), Kind::kKill), 1);
  EXPECT_EQ(CountOf(at(WorkerState::kDraining, patience.drain + seconds(1)), Kind::kKill), 1);
  EXPECT_EQ(CountOf(at(WorkerState::kReady, std::chrono::hours(1000)), Kind::kKill), 0);
}

// ---- histories ------------------------------------------------------------------------------

/// A world on virtual time: workers become ready, hang, crash or refuse to end as a seed says, the
/// desired state changes under way. Acts on every verdict and checks what must hold after each.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    desired_.max_workers = 1 + static_cast<int64_t>(random_.Below(4));
    desired_.workers =
        static_cast<int64_t>(random_.Below(static_cast<uint64_t>(desired_.max_workers) + 1));
    crash_chance_ = random_.Below(3) == 0 ? 0.05 : 0.005;
    start_fails_chance_ = random_.Below(4) == 0 ? 0.6 : 0.05;
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !is_removed_; ++step) {
      if (random_.Uniform() < 0.02) Change();
      Live();
      Look();
      if (::testing::Test::HasFailure()) return;
      // The clock of a machine that slept jumps.
      now_ +=
          random_.Uniform() < 0.002 ? Duration(std::chrono::hours(2)) : Duration(milliseconds(500));
    }
  }

  /// Nothing changes and nothing breaks any more: it comes to rest as desired.
  void Settle() {
    crash_chance_ = start_fails_chance_ = 0;
    for (int step = 0; step < 4000 && !is_removed_; ++step) {
      Live();
      Look();
      now_ += milliseconds(500);
    }
    if (is_removed_) {
      EXPECT_TRUE(workers_.empty());
      return;
    }
    EXPECT_FALSE(desired_.is_deleting) << "a deletion ends";
    EXPECT_EQ(static_cast<int64_t>(workers_.size()), desired_.workers);
    for (const auto& [id, worker] : workers_) {
      EXPECT_EQ(worker.generation, desired_.generation);
      EXPECT_EQ(worker.state, WorkerState::kReady);
    }
    EXPECT_EQ(last_.status, EndpointStatus::kReady);
  }

 private:
  struct Fate {
    TimePoint ready_at;
    bool fails_to_start = false;
    bool ignores_drain = false;
  };

  void Change() {
    switch (random_.Below(8)) {
      case 0:
        desired_.is_deleting = random_.Uniform() < 0.1;
        break;
      case 1:
      case 2:
        ++desired_.generation;
        break;
      default:
        desired_.max_workers = static_cast<int64_t>(random_.Below(5));
        desired_.workers =
            static_cast<int64_t>(random_.Below(static_cast<uint64_t>(desired_.max_workers) + 1));
    }
  }

  void Become(ObservedWorker* worker, WorkerState state) {
    worker->state = state;
    worker->since = now_;
  }

  void Live() {
    for (auto& [id, worker] : workers_) {
      const Fate& fate = fates_[id];
      const bool crashes = random_.Uniform() < crash_chance_;
      if (worker.state == WorkerState::kStarting && now_ >= fate.ready_at) {
        if (fate.fails_to_start || crashes) {
          RecordFailure(worker.generation, "boom", now_, &history_);
          Become(&worker, WorkerState::kExited);
        } else {
          RecordReady(worker.generation, &history_);
          Become(&worker, WorkerState::kReady);
        }
      } else if (worker.state == WorkerState::kReady && crashes) {
        RecordFailure(worker.generation, "crash", now_, &history_);
        Become(&worker, WorkerState::kExited);
      } else if (worker.state == WorkerState::kDraining && !fate.ignores_drain &&
                 now_ - worker.since > seconds(2)) {
        Become(&worker, WorkerState::kExited);
      } else if (worker.state == WorkerState::kStopping) {
        Become(&worker, WorkerState::kExited);
      }
    }
  }

  int64_t Ready() const {
    return std::ranges::count_if(
        workers_, [](const auto& entry) { return entry.second.state == WorkerState::kReady; });
  }
  int64_t Processes() const {
    return std::ranges::count_if(
        workers_, [](const auto& entry) { return entry.second.state != WorkerState::kExited; });
  }

  void Look() {
    std::vector<ObservedWorker> seen;
    for (const auto& [id, worker] : workers_) seen.push_back(worker);
    const int64_t ready_before = Ready();
    last_ = Reconcile(desired_, seen, history_, patience_, now_);
    EXPECT_FALSE(last_.reason.empty());
    if (last_.status == EndpointStatus::kReady && desired_.workers > 0) {
      EXPECT_GE(ready_before, 1) << "READY without a worker";
    }
    for (const Action& action : last_.actions) Act(action);
    if (!desired_.is_deleting) {
      EXPECT_GE(Ready(), std::min(ready_before, desired_.workers))
          << "drained below what is wanted";
    }
  }

  void Act(const Action& action) {
    switch (action.kind) {
      case Kind::kStart: {
        EXPECT_LT(Processes(), desired_.max_workers + kSurge);
        const bool is_held =
            history_.generation == desired_.generation && now_ < history_.not_before;
        EXPECT_FALSE(is_held) << "started within the backoff";
        const std::string id = "w" + std::to_string(++last_id_);
        workers_[id] = {.id = id,
                        .generation = desired_.generation,
                        .state = WorkerState::kStarting,
                        .since = now_,
                        .open_calls = 0};
        fates_[id] = {.ready_at = now_ + milliseconds(100 + random_.Below(20000)),
                      .fails_to_start = random_.Uniform() < start_fails_chance_,
                      .ignores_drain = random_.Uniform() < 0.1};
        return;
      }
      case Kind::kDrain: {
        ObservedWorker& worker = workers_.at(action.worker);
        EXPECT_TRUE(worker.state == WorkerState::kStarting || worker.state == WorkerState::kReady);
        return Become(&worker, WorkerState::kDraining);
      }
      case Kind::kKill: {
        ObservedWorker& worker = workers_.at(action.worker);
        if (worker.state == WorkerState::kStarting)
          RecordFailure(worker.generation, "too slow", now_, &history_);
        return Become(&worker, WorkerState::kStopping);
      }
      case Kind::kForget:
        EXPECT_EQ(workers_.at(action.worker).state, WorkerState::kExited);
        workers_.erase(action.worker);
        return;
      case Kind::kRemoveEndpoint:
        EXPECT_TRUE(workers_.empty()) << "a worker leaked";
        is_removed_ = true;
        return;
    }
  }

  Random random_;
  double crash_chance_, start_fails_chance_;
  Desired desired_;
  StartHistory history_;
  Patience patience_;
  TimePoint now_{};
  std::map<std::string, ObservedWorker> workers_;
  std::map<std::string, Fate> fates_;
  Verdict last_;
  int last_id_ = 0;
  bool is_removed_ = false;
};

TEST(Reconcile, ThousandsOfHistoriesKeepWhatMustHold) {
  for (uint64_t seed = 0; seed < 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.Run(400);
    if (!HasFailure() && seed % 10 == 0) world.Settle();
  }
}

}  // namespace
}  // namespace tessera::gateway
