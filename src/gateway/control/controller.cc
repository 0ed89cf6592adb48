// SPDX-License-Identifier: Apache-2.0
#include "gateway/control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "gateway/control/controller_impl.h"
#include "gateway/control/worker_arguments.h"

namespace tessera::gateway {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);

/// 256 random bits in hexadecimal digits.
std::string NewKey() {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", SystemRandom64(), SystemRandom64(),
                     SystemRandom64(), SystemRandom64());
}

}  // namespace

Endpoint& Controller::Impl::AddLocked(EndpointRecord record) {
  auto endpoint = std::make_unique<Endpoint>(std::move(record), clock_.Now());
  endpoint->route = std::make_shared<Route>(Route::Limits{.waiting_max = options_.waiting_max},
                                            [this] { Wake(); });
  Endpoint& added = *endpoint;
  endpoints_[added.record.spec.name] = std::move(endpoint);
  return added;
}

Status Controller::Impl::Begin() {
  TESSERA_ASSIGN_OR_RETURN(std::vector<EndpointRecord> records, store_.LoadEndpoints());
  TESSERA_ASSIGN_OR_RETURN(const std::vector<WorkerRecord> workers, store_.LoadWorkers());
  std::map<std::string, std::string, std::less<>> name_of;
  for (EndpointRecord& record : records) {
    name_of[record.id] = record.spec.name;
    AddLocked(std::move(record));
  }
  for (const WorkerRecord& record : workers) {
    if (!launcher_.Adopt(record)) {
      TESSERA_RETURN_IF_ERROR(store_.RemoveWorker(record.id));
      continue;
    }
    const auto name = name_of.find(record.endpoint_id);
    if (name == name_of.end()) {
      launcher_.Kill(record.id);
      continue;
    }
    Endpoint* endpoint = FindLocked(name->second);
    endpoint->workers[record.id] = {.record = record,
                                    .state = WorkerState::kStarting,
                                    .since = clock_.Now(),
                                    .since_unix = record.started_at};
    endpoint_of_worker_[record.id] = name->second;
    Watch(record);
  }
  TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("controller", [this] { Loop(); }));
  return {};
}

void Controller::Impl::Watch(const WorkerRecord& record) {
  if (record.port == 0) return;  // TakeNews comes back to it.
  prober_->Watch(record, [this, id = record.id] {
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(id);
    }
    Wake();
  });
}

// ---- the thread -----------------------------------------------------------------------------

void Controller::Impl::Loop() {
  while (true) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_.wait_for(lock, kLookEvery, [&] { return is_woken_ || is_ending_; });
      if (is_ending_) return;
      is_woken_ = false;
    }
    TakeExits();
    TakeNews();
    TakeReady();
    for (Deed& deed : Decide()) CarryOut(std::move(deed));
  }
}

void Controller::Impl::SetState(Endpoint* endpoint, Worker* worker, WorkerState state) {
  worker->state = state;
  worker->since = clock_.Now();
  worker->since_unix = clock_.UnixSeconds();
  std::vector<RouteWorker> ready;
  for (const auto& [id, other] : endpoint->workers)
    if (other.state == WorkerState::kReady)
      ready.push_back({.id = id,
                       .host = other.record.host,
                       .port = static_cast<uint16_t>(other.record.port),
                       .key = other.record.key});
  endpoint->route->SetWorkers(std::move(ready));
}

void Controller::Impl::Tell(const std::string& endpoint_id, std::string kind, std::string text) {
  log::info("gateway: {}: {}", endpoint_id, text);
  const auto told = store_.AppendEvent({.sequence = 0,
                                        .endpoint_id = endpoint_id,
                                        .at = clock_.UnixSeconds(),
                                        .kind = std::move(kind),
                                        .text = std::move(text),
                                        .actor = ""});
  // An event is a help to people; what it tells of goes on without.
  if (!told.has_value()) log::warn("gateway: {}", told.error().ToString());
}

void Controller::Impl::TakeExits() {
  for (const WorkerExit& exit : launcher_.TakeExits()) {
    std::string endpoint_id;
    {
      const std::lock_guard lock(mutex_);
      const auto name = endpoint_of_worker_.find(exit.worker_id);
      Endpoint* endpoint = name == endpoint_of_worker_.end() ? nullptr : FindLocked(name->second);
      if (endpoint == nullptr) continue;
      Worker& worker = endpoint->workers.at(exit.worker_id);
      const bool was_asked =
          worker.state == WorkerState::kDraining || worker.state == WorkerState::kStopping;
      if (!was_asked)
        RecordFailure(worker.record.generation, exit.reason, clock_.Now(), &endpoint->history);
      SetState(endpoint, &worker, WorkerState::kExited);
      endpoint_id = endpoint->record.id;
    }
    prober_->Forget(exit.worker_id);
    Tell(endpoint_id, "worker_exited",
         fmt::format("worker {} has ended: {}", exit.worker_id, exit.reason));
  }
}

void Controller::Impl::TakeNews() {
  for (const WorkerNews& news : launcher_.TakeNews()) {
    std::string endpoint_id;
    WorkerRecord found;
    {
      const std::lock_guard lock(mutex_);
      const auto name = endpoint_of_worker_.find(news.worker_id);
      Endpoint* endpoint = name == endpoint_of_worker_.end() ? nullptr : FindLocked(name->second);
      if (endpoint == nullptr) continue;
      endpoint_id = endpoint->record.id;
      Worker& worker = endpoint->workers.at(news.worker_id);
      if (news.port > 0) {
        worker.record.host = news.host;
        worker.record.port = news.port;
        worker.record.pod = news.pod;
        if (worker.state == WorkerState::kStarting) found = worker.record;
      }
    }
    Watch(found);
    if (!news.text.empty())
      Tell(endpoint_id, "worker_waiting",
           fmt::format("worker {} waits: {}", news.worker_id, news.text));
  }
}

void Controller::Impl::TakeReady() {
  std::vector<std::pair<std::string, std::string>> told;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& id : std::exchange(ready_, {})) {
      const auto name = endpoint_of_worker_.find(id);
      Endpoint* endpoint = name == endpoint_of_worker_.end() ? nullptr : FindLocked(name->second);
      if (endpoint == nullptr) continue;
      Worker& worker = endpoint->workers.at(id);
      if (worker.state != WorkerState::kStarting) continue;  // It was drained meanwhile.
      RecordReady(worker.record.generation, &endpoint->history);
      SetState(endpoint, &worker, WorkerState::kReady);
      told.emplace_back(endpoint->record.id, id);
    }
  }
  for (const auto& [endpoint_id, id] : told)
    Tell(endpoint_id, "worker_ready", fmt::format("worker {} serves", id));
}

std::vector<Controller::Impl::Deed> Controller::Impl::Decide() {
  std::vector<Deed> deeds;
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  for (auto& [name, endpoint] : endpoints_) {
    endpoint->route->ExpireWaiting(now);
    DecideOne(endpoint.get(), &deeds);
  }
  return deeds;
}

void Controller::Impl::DecideOne(Endpoint* endpoint, std::vector<Deed>* deeds) {
  const TimePoint now = clock_.Now();
  const EndpointSpec& spec = endpoint->record.spec;
  const Route::Load load = endpoint->route->load();
  const bool had_calls = load.calls != std::exchange(endpoint->calls_seen, load.calls);
  const int64_t wanted = endpoint->scaler.Look({.min_workers = spec.min_workers,
                                                .max_workers = spec.max_workers,
                                                .per_worker = spec.per_worker,
                                                .window = options_.window,
                                                .idle = options_.idle},
                                               load.open + load.waiting, had_calls, now);
  std::vector<ObservedWorker> workers;
  for (const auto& [id, worker] : endpoint->workers)
    workers.push_back({.id = id,
                       .generation = worker.record.generation,
                       .state = worker.state,
                       .since = worker.since,
                       .open_calls = endpoint->route->OpenCalls(id)});
  const Verdict verdict = Reconcile({.generation = endpoint->record.generation,
                                     .workers = wanted,
                                     .max_workers = spec.max_workers,
                                     .is_deleting = endpoint->record.is_deleting},
                                    workers, endpoint->history, options_.patience, now);
  Judge(endpoint, verdict);
  for (const Action& action : verdict.actions) {
    Deed deed{
        .action = action, .endpoint = spec.name, .order = {}, .endpoint_id = endpoint->record.id};
    if (action.kind == Action::Kind::kStart) {
      if (is_stopping_) continue;
      auto arguments = WorkerArguments(spec, models_, options_.template_dir);
      if (!arguments.has_value()) {
        RecordFailure(endpoint->record.generation, arguments.error().ToString(), now,
                      &endpoint->history);
        continue;
      }
      deed.order = {.worker_id = NewId("wrk_"),
                    .endpoint_id = endpoint->record.id,
                    .endpoint_name = spec.name,
                    .generation = endpoint->record.generation,
                    .key = NewKey(),
                    .arguments = *std::move(arguments)};
      deed.order.arguments.insert(deed.order.arguments.end(), options_.serve_arguments.begin(),
                                  options_.serve_arguments.end());
      // Counted from now on: the next look must not start it again.
      endpoint->workers[deed.order.worker_id] = {.record = {.id = deed.order.worker_id,
                                                            .endpoint_id = endpoint->record.id,
                                                            .generation = deed.order.generation,
                                                            .key = deed.order.key},
                                                 .state = WorkerState::kStarting,
                                                 .since = now,
                                                 .since_unix = clock_.UnixSeconds()};
      endpoint_of_worker_[deed.order.worker_id] = spec.name;
    }
    deeds->push_back(std::move(deed));
  }
}

void Controller::Impl::Judge(Endpoint* endpoint, const Verdict& verdict) {
  endpoint->status = verdict.status;
  endpoint->reason = verdict.reason;
  endpoint->is_ready = verdict.is_ready;
}

void Controller::Impl::CarryOut(Deed deed) {
  switch (deed.action.kind) {
    case Action::Kind::kStart:
      return StartWorker(deed);
    case Action::Kind::kDrain:
    case Action::Kind::kKill:
      return EndWorker(deed);
    case Action::Kind::kForget:
      return ForgetWorker(deed);
    case Action::Kind::kRemoveEndpoint:
      return RemoveEndpoint(deed);
  }
}

/// Stored before it runs: a gateway that dies in between leaves no worker that nobody knows.
Result<WorkerRecord> Controller::Impl::Launch(const WorkerOrder& order) {
  TESSERA_ASSIGN_OR_RETURN(WorkerRecord record, launcher_.Prepare(order));
  TESSERA_RETURN_IF_ERROR(store_.PutWorker(record));
  TESSERA_RETURN_IF_ERROR(launcher_.Run(record.id));
  return record;
}

void Controller::Impl::StartWorker(const Deed& deed) {
  const auto started = Launch(deed.order);
  {
    const std::lock_guard lock(mutex_);
    Endpoint* endpoint = FindLocked(deed.endpoint);
    TESSERA_CHECK(endpoint != nullptr);  // Removed by this thread alone.
    Worker& worker = endpoint->workers.at(deed.order.worker_id);
    if (started.has_value()) {
      worker.record = *started;
    } else {
      RecordFailure(deed.order.generation, started.error().ToString(), clock_.Now(),
                    &endpoint->history);
      SetState(endpoint, &worker, WorkerState::kExited);
    }
  }
  if (!started.has_value())
    return Tell(deed.endpoint_id, "worker_failed",
                "a worker could not be started: " + started.error().ToString());
  Watch(*started);
  Tell(deed.endpoint_id, "worker_started",
       fmt::format("worker {} was started: {}", started->id, deed.action.why));
}

void Controller::Impl::EndWorker(const Deed& deed) {
  const bool is_kill = deed.action.kind == Action::Kind::kKill;
  {
    const std::lock_guard lock(mutex_);
    Endpoint* endpoint = FindLocked(deed.endpoint);
    TESSERA_CHECK(endpoint != nullptr);
    Worker& worker = endpoint->workers.at(deed.action.worker);
    if (worker.state == WorkerState::kStarting && is_kill)
      RecordFailure(worker.record.generation, deed.action.why, clock_.Now(), &endpoint->history);
    SetState(endpoint, &worker, is_kill ? WorkerState::kStopping : WorkerState::kDraining);
  }
  prober_->Forget(deed.action.worker);
  is_kill ? launcher_.Kill(deed.action.worker) : launcher_.Drain(deed.action.worker);
  Tell(deed.endpoint_id, is_kill ? "worker_killed" : "worker_draining",
       fmt::format("worker {} is {}: {}", deed.action.worker, is_kill ? "killed" : "drained",
                   deed.action.why));
}

void Controller::Impl::ForgetWorker(const Deed& deed) {
  if (const Status removed = store_.RemoveWorker(deed.action.worker); !removed.ok())
    return log::warn("gateway: {}", removed.ToString());  // Decided again at the next look.
  {
    const std::lock_guard lock(mutex_);
    endpoint_of_worker_.erase(deed.action.worker);
    FindLocked(deed.endpoint)->workers.erase(deed.action.worker);
  }
  forgotten_.notify_all();
}

void Controller::Impl::RemoveEndpoint(const Deed& deed) {
  // Not while somebody changes its record.
  const std::lock_guard change(changes_);
  if (const Status removed = store_.RemoveEndpoint(deed.endpoint_id); !removed.ok())
    return log::warn("gateway: {}", removed.ToString());
  const std::lock_guard lock(mutex_);
  endpoints_.erase(deed.endpoint);
}

void Controller::Impl::StopWorkers(Duration timeout) {
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  const TimePoint end = clock_.Now() + timeout;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, endpoint] : endpoints_) {
      for (auto& [id, worker] : endpoint->workers)
        if (worker.state == WorkerState::kStarting || worker.state == WorkerState::kReady) {
          SetState(endpoint.get(), &worker, WorkerState::kDraining);
          ids.push_back(id);
        }
    }
  }
  for (const std::string& id : ids) launcher_.Drain(id);
  std::unique_lock lock(mutex_);
  forgotten_.wait_until(lock, end, [&] {
    return std::ranges::all_of(endpoints_,
                               [](const auto& entry) { return entry.second->workers.empty(); });
  });
}

// ---- the outside ----------------------------------------------------------------------------

Controller::Controller(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Controller::~Controller() = default;

Result<std::unique_ptr<Controller>> Controller::Start(ControllerOptions options, Store* store,
                                                      Launcher* launcher, const ModelTable* models,
                                                      std::unique_ptr<Prober> prober,
                                                      const Clock& clock) {
  auto impl =
      std::make_unique<Impl>(std::move(options), store, launcher, models, std::move(prober), clock);
  TESSERA_RETURN_IF_ERROR(impl->Begin());
  return std::unique_ptr<Controller>(new Controller(std::move(impl)));
}

void Controller::StopWorkers(Duration timeout) {
  impl_->StopWorkers(timeout);
}

}  // namespace tessera::gateway
