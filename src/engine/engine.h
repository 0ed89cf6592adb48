// SPDX-License-Identifier: Apache-2.0
//
// Engine: requests -> tokens. It owns the session and one thread; all generation state lives on
// that thread (engine_core.h), so the logic has no locks. Other threads talk to it through a
// bounded queue of commands in, and through each request's Sink out.
//
// Blast radii: a bad request fails alone (Submit returns a Status); a failed step fails the
// requests in its batch and the engine goes on; a broken invariant of ours ends the process.
//
//   auto engine = Engine::Start(std::move(session), {}, Clock::Real());
//   RequestId id = *(*engine)->Submit(std::move(request));   // Tokens arrive at request.sink.
//   (*engine)->Cancel(id);                                   // Pages are free within one step.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/draft_policy.h"
#include "engine/limits.h"
#include "engine/page_store.h"
#include "engine/request.h"
#include "engine/stage.h"
#include "engine/stats.h"
#include "engine/watchdog.h"
#include "runtime/session.h"

namespace tessera::engine {

struct EngineOptions {
  int64_t max_running = kMaxRunningDefault;    // Sequences in one step.
  int64_t queue_length = kQueueLengthDefault;  // Requests that may wait.
  /// Pages that the prefix cache may keep while nobody uses them; 0: no prefix is cached.
  int64_t prefix_cache_pages = kPrefixCachePagesDefault;
  /// Takes whole pages that the prefix cache gives up, and gives them back; null: they are gone.
  /// Used by the engine's thread alone, and by none when the engine is gone.
  std::shared_ptr<PageStore> page_store = {};
  /// Time between two tokens of a reader that prompts of others may stretch a step to; 0: any.
  Duration target_itl = kTargetItlDefault;
  Speculation speculation = Speculation::kOff;
  /// A stage of the engine thread that takes longer is reported, to the log if nobody else asks;
  /// 0: nobody watches.
  Duration stuck_after = kStuckAfterDefault;
  Watchdog::Report on_stuck = {};
  /// Start() runs one step, so that who says "ready" knows it. Off where the first request follows
  /// at once and shows the same: the step costs as much as a token, and more on a cold file.
  bool prove_session = true;
};

class Engine {
 public:
  /// Starts the thread and proves the session, unless told otherwise, with one real step (a token
  /// at position 0), whose error it returns. `clock` must outlive the engine.
  static Result<std::unique_ptr<Engine>> Start(std::unique_ptr<runtime::Session> session,
                                               const EngineOptions& options, const Clock& clock);
  /// Cancels what is left (every sink gets its OnFinish) and joins the thread.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // All calls below: any thread.

  /// Queues a request. kInvalidArgument for a prompt or parameter that can never run (too long:
  /// both numbers), kResourceExhausted with the queue's length when it is full (see retry_after),
  /// kUnavailable when draining.
  Result<RequestId> Submit(Request request);
  /// All or none, e.g. the n choices of one call.
  Result<std::vector<RequestId>> SubmitAll(std::vector<Request> requests);

  /// The client went away: the sink gets kCancelled. No effect on an unknown or finished id.
  void Cancel(RequestId id);
  /// The consumer found a stop string after `kept_tokens` tokens: ends with kStop, counted as such.
  void Stop(RequestId id, int64_t kept_tokens);

  /// Refuses new requests from now on, waits until all are finished or `patience` has passed, then
  /// cancels the rest. kDeadlineExceeded tells how many were cut.
  Status Drain(Duration patience);
  bool draining() const;

  /// When there should be room again for what was refused last, by the rate at which requests leave
  /// the queue. At least a second, at most an hour.
  std::chrono::seconds retry_after() const;

  /// A consistent copy, as of the last step or command.
  Stats stats() const;
  const runtime::ModelShape& shape() const;
  /// Tokens that prompt and completion together may have: context length or KV pool, the smaller.
  int64_t max_sequence_tokens() const;
  /// What the engine thread is doing, and since when.
  StageMarker::View stage() const;
  /// How long the running step has taken so far; 0 when none runs. For watchdogs.
  Duration step_age() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::engine
