// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/thread.h"
#include "engine/engine_core.h"

namespace tessera::engine {
namespace {

struct AddCommand {
  RequestId id;
  Request request;
};
struct EndCommand {
  RequestId id;
  FinishReason reason;
  int64_t kept_tokens;
};
struct EndAllCommand {
  std::string why;
};
using Command = std::variant<AddCommand, EndCommand, EndAllCommand>;

/// One token at position 0 of page 0: shows that the model runs before anyone depends on it.
Status ProveSession(runtime::Session* session) {
  const TokenId token = 0;
  const runtime::PageId page = 0;
  const runtime::Chunk chunk{.tokens = {&token, 1},
                             .start = 0,
                             .pages = {&page, 1},
                             .logits = runtime::Chunk::Logits::kLast};
  return StatusOf(session->Step({&chunk, 1})).WithContext("first step of the model");
}

}  // namespace

class Engine::Impl {
 public:
  Impl(std::unique_ptr<runtime::Session> session, const EngineOptions& options, const Clock& clock)
      : session_(std::move(session)), options_(options), clock_(clock), shape_(session_->shape()) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_draining_ = true;
      is_stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  Status Start() {
    if (options_.stuck_after > Duration::zero()) {
      TESSERA_ASSIGN_OR_RETURN(watchdog_,
                               Watchdog::Start(&stage_, &clock_, options_.stuck_after,
                                               options_.on_stuck ? options_.on_stuck : LogStuck));
    }
    std::promise<Status> proven;
    std::future<Status> outcome = proven.get_future();
    TESSERA_ASSIGN_OR_RETURN(
        thread_, StartThread("the engine", [this, promise = std::move(proven)]() mutable {
          Run(std::move(promise));
        }));
    return outcome.get();
  }

  Result<std::vector<RequestId>> SubmitAll(std::vector<Request> requests) {
    for (const Request& request : requests) TESSERA_RETURN_IF_ERROR(CheckRequest(request, shape_));
    const auto count = static_cast<int64_t>(requests.size());
    std::vector<RequestId> ids;
    ids.reserve(requests.size());
    {
      const std::lock_guard lock(mutex_);
      if (is_draining_) return Fail(Unavailable("the server is shutting down"));
      if (count > options_.queue_length)
        return Fail(InvalidArgument(
            fmt::format("{} answers are asked for at once, and the queue takes at most {}; ask for "
                        "fewer, or start the server with a greater --queue-length",
                        count, options_.queue_length)));
      if (stats_.waiting + count > options_.queue_length) {
        stats_.rejected_queue_full = ++rejected_queue_full_;
        retry_after_ = TimeUntilRoom(stats_.waiting + count - options_.queue_length);
        return Fail(ResourceExhausted(
            fmt::format("the queue has no room: {} requests wait, {} came, {} is the limit; try "
                        "again in {} s",
                        stats_.waiting, count, options_.queue_length, retry_after_.count())));
      }
      stats_.waiting += count;
      for (Request& request : requests) {
        ids.push_back(last_id_ + 1);
        last_id_ += request.beams.has_value() ? static_cast<RequestId>(request.beams->width) : 1;
        unfinished_ += 1;
        if (request.beams.has_value()) unfinished_ += std::ssize(request.beams->more_sinks);
        commands_.push_back(AddCommand{ids.back(), std::move(request)});
      }
    }
    wake_.notify_one();
    return ids;
  }

  void Post(Command command) {
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(command));
    }
    wake_.notify_one();
  }

  Status Drain(Duration patience) {
    std::unique_lock lock(mutex_);
    is_draining_ = true;
    const auto finished = [this] { return unfinished_ == 0; };
    if (idle_.wait_for(lock, patience, finished)) return {};
    const int64_t cut = unfinished_;
    commands_.push_back(EndAllCommand{"the server is shutting down"});
    wake_.notify_one();
    idle_.wait(lock, finished);
    return DeadlineExceeded(fmt::format("{} requests did not finish within {:.1f} s and were cut",
                                        cut, Seconds(patience)));
  }

  bool draining() const {
    const std::lock_guard lock(mutex_);
    return is_draining_;
  }
  std::chrono::seconds retry_after() const {
    const std::lock_guard lock(mutex_);
    return retry_after_;
  }
  Stats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  const runtime::ModelShape& shape() const { return shape_; }
  StageMarker::View stage() const { return stage_.Look(); }
  Duration step_age() const {
    const int64_t started = step_started_ns_.load();
    if (started == 0) return Duration::zero();
    return clock_.Now().time_since_epoch() - Duration(started);
  }

 private:
  void Run(std::promise<Status> proven) {
    // With the lock taken, the engine thread cannot miss it between looking and waiting.
    const auto wake = [this] {
      { const std::lock_guard lock(mutex_); }
      wake_.notify_one();
    };
    EngineCore core(session_.get(),
                    {.max_running = options_.max_running,
                     .prefix_cache_pages = options_.prefix_cache_pages,
                     .target_itl = options_.target_itl,
                     .speculation = options_.speculation,
                     .on_mask_ready = wake,
                     .stage = &stage_,
                     .store = options_.page_store.get()},
                    &clock_);
    if (options_.page_store != nullptr) options_.page_store->SetOnReady(wake);
    Status status = options_.prove_session ? ProveSession(session_.get()) : Status();
    const bool works = status.ok();
    {
      const std::lock_guard lock(mutex_);
      stats_ = core.stats();
    }
    proven.set_value(std::move(status));
    if (!works) {
      if (options_.page_store != nullptr) options_.page_store->SetOnReady({});
      return;
    }
    while (TakeCommands(&core)) {             // Its waiting for something to do is idle.
      if (core.has_events()) Publish(&core);  // Who was cancelled waits for no step.
      if (core.has_work() && !core.is_stalled()) {
        step_started_ns_ = clock_.Now().time_since_epoch().count();
        core.Step();
        step_started_ns_ = 0;
      }
      stage_.Enter(Stage::kDeliver, clock_.Now());
      Publish(&core);
      stage_.Enter(Stage::kIdle, clock_.Now());
    }
    core.EndAll(FinishReason::kCancelled, Cancelled("the engine was stopped"));
    Publish(&core);
    if (options_.page_store == nullptr) return;
    options_.page_store->SetOnReady({});
    core.SpillAll(kStoreFlushMax);
  }

  /// Until so many requests have left the queue. Under mutex_.
  std::chrono::seconds TimeUntilRoom(int64_t requests) const {
    constexpr std::chrono::seconds kLeast(1), kMost(3600);
    if (stats_.admissions_per_second <= 0) return kLeast;
    const double seconds = static_cast<double>(requests) / stats_.admissions_per_second;
    if (seconds >= static_cast<double>(kMost.count())) return kMost;
    return std::max(kLeast, std::chrono::seconds(static_cast<int64_t>(std::ceil(seconds))));
  }

  /// Waits for something to do and applies the commands. False when the thread shall end.
  bool TakeCommands(EngineCore* core) {
    std::deque<Command> commands;
    bool is_stopping = false;
    {
      std::unique_lock lock(mutex_);
      const auto has_cause = [&] {
        return is_stopping_ || !commands_.empty() || (core->has_work() && !core->is_stalled());
      };
      while (!has_cause() && !core->has_work() && core->can_back()) {
        lock.unlock();
        core->BackNextPage();
        lock.lock();
      }
      if (const auto wake_at = core->wake_at(); wake_at.has_value()) {
        wake_.wait_for(lock, *wake_at - clock_.Now(), has_cause);
      } else {
        wake_.wait(lock, has_cause);
      }
      commands.swap(commands_);
      is_stopping = is_stopping_;
    }
    stage_.Enter(Stage::kCommands, clock_.Now());
    for (Command& command : commands) Apply(std::move(command), core);
    return !is_stopping;
  }

  static void Apply(Command command, EngineCore* core) {
    if (auto* add = std::get_if<AddCommand>(&command)) {
      core->Add(add->id, std::move(add->request));
    } else if (auto* end = std::get_if<EndCommand>(&command)) {
      Status status =
          end->reason == FinishReason::kCancelled ? Cancelled("the client went away") : Status();
      core->End(end->id, end->reason, std::move(status), end->kept_tokens);
    } else {
      core->EndAll(FinishReason::kCancelled, Cancelled(std::get<EndAllCommand>(command).why));
    }
  }

  /// Statistics first, then the events, then those who wait for the end: whoever sees a request
  /// finish finds it counted.
  void Publish(EngineCore* core) {
    {
      const std::lock_guard lock(mutex_);
      stats_ = core->stats();
      stats_.rejected_queue_full = rejected_queue_full_;
      for (const Command& command : commands_)
        if (std::holds_alternative<AddCommand>(command)) ++stats_.waiting;
    }
    const int64_t finished = core->Deliver();
    if (finished == 0) return;
    {
      const std::lock_guard lock(mutex_);
      unfinished_ -= finished;
      TESSERA_CHECK(unfinished_ >= 0);
    }
    idle_.notify_all();
  }

  const std::unique_ptr<runtime::Session> session_;
  const EngineOptions options_;
  const Clock& clock_;
  const runtime::ModelShape shape_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // For the engine thread.
  std::condition_variable idle_;  // For Drain.
  std::deque<Command> commands_;  // Under mutex_, as all to the next blank line.
  Stats stats_;
  RequestId last_id_ = 0;
  int64_t unfinished_ = 0;  // Sinks submitted whose OnFinish has not been called.
  int64_t rejected_queue_full_ = 0;
  std::chrono::seconds retry_after_{1};
  bool is_draining_ = false;
  bool is_stopping_ = false;

  std::atomic<int64_t> step_started_ns_{0};
  StageMarker stage_;
  std::unique_ptr<Watchdog> watchdog_;
  std::thread thread_;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Start(std::unique_ptr<runtime::Session> session,
                                              const EngineOptions& options, const Clock& clock) {
  TESSERA_CHECK(session != nullptr);
  if (options.max_running < 1 || options.queue_length < 1)
    return Fail(InvalidArgument("max_running and queue_length must be at least 1"));
  if (options.prefix_cache_pages < 0)
    return Fail(InvalidArgument("prefix_cache_pages must not be negative"));
  if (MaxSequenceTokens(session->shape()) < 2)
    return Fail(InvalidArgument("the KV pool is too small for a prompt and one token"));
  auto impl = std::make_unique<Impl>(std::move(session), options, clock);
  TESSERA_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Result<RequestId> Engine::Submit(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<RequestId> ids, SubmitAll(std::move(requests)));
  return ids.front();
}
Result<std::vector<RequestId>> Engine::SubmitAll(std::vector<Request> requests) {
  return impl_->SubmitAll(std::move(requests));
}
void Engine::Cancel(RequestId id) {
  impl_->Post(EndCommand{id, FinishReason::kCancelled, -1});
}
void Engine::Stop(RequestId id, int64_t kept_tokens) {
  impl_->Post(EndCommand{id, FinishReason::kStop, kept_tokens});
}
Status Engine::Drain(Duration patience) {
  return impl_->Drain(patience);
}
std::chrono::seconds Engine::retry_after() const {
  return impl_->retry_after();
}
bool Engine::draining() const {
  return impl_->draining();
}
Stats Engine::stats() const {
  return impl_->stats();
}
const runtime::ModelShape& Engine::shape() const {
  return impl_->shape();
}
int64_t Engine::max_sequence_tokens() const {
  return MaxSequenceTokens(impl_->shape());
}
StageMarker::View Engine::stage() const {
  return impl_->stage();
}
Duration Engine::step_age() const {
  return impl_->step_age();
}

}  // namespace tessera::engine
