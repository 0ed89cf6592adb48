// SPDX-License-Identifier: Apache-2.0
//
// Reconcile: from what is wanted of one endpoint and what is seen of its workers to what has to be
// done. A pure function: no clock, no I/O, no memory of its own. The controller carries out the
// actions and comes back with what it sees then, so that a lost action is simply decided again.
//
// What holds after every history (reconcile_test.cc plays thousands of them):
//   1. At most max_workers + kSurge processes, those that are ending included.
//   2. Once `workers` were ready, an update takes none away before its replacement is ready.
//   3. A worker that nobody wants is drained, then stopped; none is forgotten before it has exited.
//   4. READY with workers > 0 means that one of them answered a real token step.
//   5. A worker that cannot start is tried again ever more slowly, never in a tight loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace tessera::gateway {

inline constexpr int64_t kSurge = 1;
/// After so many starts in a row that failed the endpoint counts as failed; it is still tried.
inline constexpr int kFailuresMax = 3;
inline constexpr std::chrono::seconds kBackoffFirst{1};
inline constexpr std::chrono::seconds kBackoffMax{60};

enum class WorkerState : uint8_t {
  kStarting,  // The process runs (or is being made); it has not answered yet.
  kReady,     // It answered a token step.
  kDraining,  // It gets no new calls and ends when its open ones have.
  kStopping,  // It was killed.
  kExited,
};
/// "starting", "ready", ...: as the API writes it.
std::string_view WorkerStateName(WorkerState state);

struct ObservedWorker {
  std::string id;
  int64_t generation = 1;
  WorkerState state = WorkerState::kStarting;
  TimePoint since{};  // In this state.
  int64_t open_calls = 0;
};

struct Desired {
  int64_t generation = 1;
  int64_t workers = 0;  // As scaling has it, within [min_workers, max_workers].
  int64_t max_workers = 1;
  bool is_deleting = false;
};

/// What is remembered of starts; the controller keeps it, RecordStart and RecordFailure change it.
struct StartHistory {
  int64_t generation = 0;  // It is of this one; another begins afresh.
  int failures = 0;        // In a row.
  TimePoint not_before{};  // No start earlier.
  std::string reason{};    // Of the last failure.
  bool was_ready = false;  // A worker of this generation has been.
};
/// A worker of `generation` ended without having been asked to, or never became ready.
void RecordFailure(int64_t generation, std::string reason, TimePoint now, StartHistory* history);
/// A worker of `generation` answered.
void RecordReady(int64_t generation, StartHistory* history);

struct Patience {
  Duration start = std::chrono::minutes(30);  // Download and compilation included.
  Duration drain = std::chrono::seconds(60);
  Duration stop = std::chrono::seconds(10);  // After SIGKILL: a process that does not go.
};

struct Action {
  enum class Kind : uint8_t { kStart, kDrain, kKill, kForget, kRemoveEndpoint };
  Kind kind = Kind::kStart;
  std::string worker{};  // Of all but kStart and kRemoveEndpoint.
  std::string why{};
};

/// As the API names them.
enum class EndpointStatus : uint8_t {
  kUpdatePending,
  kUpdateInProgress,
  kReady,
  kUpdateFailed,
  kDeleteInProgress,
};
std::string_view EndpointStatusName(EndpointStatus status);

struct Verdict {
  std::vector<Action> actions;
  EndpointStatus status = EndpointStatus::kUpdatePending;
  std::string reason;  // One sentence; never empty.
  /// Whether a call now is answered: by a worker, or, with none wanted, by one that it brings.
  bool is_ready = false;
};

Verdict Reconcile(const Desired& desired, const std::vector<ObservedWorker>& workers,
                  const StartHistory& history, const Patience& patience, TimePoint now);

}  // namespace tessera::gateway
