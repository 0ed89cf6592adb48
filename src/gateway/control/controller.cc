// SPDX-License-Identifier: Apache-2.0
#include "gateway/control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "gateway/control/worker_arguments.h"
#include "gateway/limits.h"
#include "gateway/scale/autoscale.h"

namespace tessera::gateway {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);

/// 256 random bits in hexadecimal digits.
std::string NewKey() {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", SystemRandom64(), SystemRandom64(),
                     SystemRandom64(), SystemRandom64());
}

ApiError Refuse(int status, std::string text) {
  return {.status = status, .text = std::move(text)};
}

ApiError NoEndpoint(std::string_view name) {
  // The text that clients of this API know, two blanks included.
  return Refuse(404, fmt::format("Model Endpoint {}  was not found.", name.substr(0, 200)));
}

ApiError NotStored(const Status& status) {
  log::error("gateway: {}", status.ToString());
  return Refuse(503, "The change could not be stored and was not made: " + status.message());
}

struct Worker {
  WorkerRecord record;
  WorkerState state = WorkerState::kStarting;
  TimePoint since{};
  int64_t since_unix = 0;
};

struct Endpoint {
  explicit Endpoint(EndpointRecord of, TimePoint now) : record(std::move(of)), scaler(now) {}

  EndpointRecord record;
  std::shared_ptr<Route> route;
  std::map<std::string, Worker> workers;
  StartHistory history;
  Autoscaler scaler;
  uint64_t calls_seen = 0;
  EndpointStatus status = EndpointStatus::kUpdatePending;
  std::string reason = "accepted";
  bool is_ready = false;
};

}  // namespace

class Controller::Impl {
 public:
  Impl(ControllerOptions options, Store* store, Launcher* launcher, const ModelTable* models,
       std::unique_ptr<Prober> prober, const Clock& clock)
      : options_(std::move(options)),
        store_(*store),
        launcher_(*launcher),
        models_(*models),
        prober_(std::move(prober)),
        clock_(clock) {}
  ~Impl() {
    {
      const std::lock_guard lock(wake_mutex_);
      is_ending_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    prober_.reset();  // Its calls come here.
    for (auto& [name, endpoint] : endpoints_)
      endpoint->route->Close(Unavailable("the gateway ends"));
  }

  Status Begin();
  ApiResult<std::string> Create(const AskedSpec& asked, const std::string& owner);
  ApiResult<std::string> Change(std::string_view name, const std::string& user, std::string kind,
                                const std::function<ApiResult<void>(EndpointRecord*)>& change);
  std::vector<EndpointView> List(std::string_view user) const;
  std::optional<EndpointView> Find(std::string_view name, std::string_view user) const;
  WayTo FindRoute(std::string_view name, std::string_view user) const;
  void StopWorkers(Duration timeout);

 private:
  /// An action with all that carrying it out needs, so that no lock is held meanwhile.
  struct Deed {
    Action action;
    std::string endpoint;  // Its name.
    WorkerOrder order;     // Of a start.
    std::string endpoint_id;
  };

  Endpoint* FindLocked(std::string_view name) const {
    const auto found = endpoints_.find(name);
    return found == endpoints_.end() ? nullptr : found->second.get();
  }
  static bool MaySee(const Endpoint& endpoint, std::string_view user) {
    return endpoint.record.owner == user || endpoint.record.spec.public_inference;
  }
  EndpointView ViewOf(const Endpoint& endpoint) const;
  Endpoint& AddLocked(EndpointRecord record);
  /// From anywhere: its lock is held while nothing else is taken.
  void Wake() {
    {
      const std::lock_guard lock(wake_mutex_);
      is_woken_ = true;
    }
    wake_.notify_one();
  }

  void Loop();
  void TakeExits();
  void TakeReady();
  std::vector<Deed> Decide();
  void DecideOne(Endpoint* endpoint, std::vector<Deed>* deeds);
  void Judge(Endpoint* endpoint, const Verdict& verdict);
  void CarryOut(Deed deed);
  Result<WorkerRecord> Launch(const WorkerOrder& order);
  void StartWorker(const Deed& deed);
  void EndWorker(const Deed& deed);
  void ForgetWorker(const Deed& deed);
  void RemoveEndpoint(const Deed& deed);
  void SetState(Endpoint* endpoint, Worker* worker, WorkerState state);
  void Watch(const WorkerRecord& record);
  void Tell(const std::string& endpoint_id, std::string kind, std::string text);

  const ControllerOptions options_;
  Store& store_;
  Launcher& launcher_;
  const ModelTable& models_;
  std::unique_ptr<Prober> prober_;
  const Clock& clock_;

  std::mutex changes_;  // Held while a record is changed and stored: one change at a time.
  mutable std::mutex mutex_;
  std::condition_variable forgotten_;  // A worker has ended and is no longer known.
  std::map<std::string, std::unique_ptr<Endpoint>, std::less<>> endpoints_;  // By name.
  std::map<std::string, std::string, std::less<>> endpoint_of_worker_;       // Id -> name.
  std::vector<std::string> ready_;  // Workers that answered, not yet taken note of.
  bool is_stopping_ = false;        // No worker is started any more.

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool is_woken_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

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
  prober_->Watch(record, [this, id = record.id] {
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(id);
    }
    Wake();
  });
}

// ---- changes by callers ---------------------------------------------------------------------

ApiResult<std::string> Controller::Impl::Create(const AskedSpec& asked, const std::string& owner) {
  if (const auto arguments = WorkerArguments(asked.spec, models_, options_.template_dir);
      !arguments.has_value())
    return std::unexpected(Refuse(400, arguments.error().ToString()));
  const std::lock_guard change(changes_);
  {
    const std::lock_guard lock(mutex_);
    if (FindLocked(asked.spec.name) != nullptr)
      return std::unexpected(Refuse(400, "The specified model endpoint already exists."));
    if (static_cast<int64_t>(endpoints_.size()) >= kEndpointsMax)
      return std::unexpected(Refuse(
          400, fmt::format("There are {} endpoints already; delete some", endpoints_.size())));
  }
  EndpointRecord record{.id = NewId("end_"), .owner = owner, .spec = asked.spec};
  record.warnings = asked.warnings;
  for (std::string& wish : UnmetWishes(asked.spec)) record.warnings.push_back(std::move(wish));
  record.created_at = record.updated_at = clock_.UnixSeconds();
  const EventRecord event{.sequence = 0,
                          .endpoint_id = record.id,
                          .at = record.created_at,
                          .kind = "created",
                          .text = fmt::format("created with model {}", record.spec.model_name),
                          .actor = owner};
  if (const Status stored = store_.InsertEndpoint(record, event); !stored.ok())
    return std::unexpected(NotStored(stored));
  std::string id = record.id;
  {
    const std::lock_guard lock(mutex_);
    AddLocked(std::move(record));
  }
  Wake();
  return id;
}

ApiResult<std::string> Controller::Impl::Change(
    std::string_view name, const std::string& user, std::string kind,
    const std::function<ApiResult<void>(EndpointRecord*)>& change) {
  const std::lock_guard one_at_a_time(changes_);
  EndpointRecord record;
  {
    const std::lock_guard lock(mutex_);
    const Endpoint* endpoint = FindLocked(name);
    if (endpoint == nullptr || endpoint->record.owner != user)
      return std::unexpected(NoEndpoint(name));
    record = endpoint->record;
  }
  const int64_t revision = record.revision++;
  if (auto changed = change(&record); !changed.has_value())
    return std::unexpected(std::move(changed).error());
  record.updated_at = clock_.UnixSeconds();
  const EventRecord event{.sequence = 0,
                          .endpoint_id = record.id,
                          .at = record.updated_at,
                          .kind = kind,
                          .text = fmt::format("{}; this is change {}", kind, record.revision),
                          .actor = user};
  if (const Status stored = store_.UpdateEndpoint(record, revision, event); !stored.ok())
    return std::unexpected(NotStored(stored));
  {
    const std::lock_guard lock(mutex_);
    Endpoint* endpoint = FindLocked(name);
    TESSERA_CHECK(endpoint != nullptr);  // Only a deletion removes it, and that is a change.
    endpoint->record = record;
    endpoint->status =
        record.is_deleting ? EndpointStatus::kDeleteInProgress : EndpointStatus::kUpdatePending;
    if (record.is_deleting) endpoint->route->Close(NotFound("the endpoint is deleted"));
  }
  Wake();
  return record.id;
}

// ---- reading --------------------------------------------------------------------------------

EndpointView Controller::Impl::ViewOf(const Endpoint& endpoint) const {
  EndpointView view{.record = endpoint.record,
                    .status = endpoint.status,
                    .reason = endpoint.reason,
                    .is_ready = endpoint.is_ready};
  for (const auto& [id, worker] : endpoint.workers)
    view.workers.push_back({.record = worker.record,
                            .state = worker.state,
                            .since = worker.since_unix,
                            .open_calls = endpoint.route->OpenCalls(id)});
  const Route::Load load = endpoint.route->load();
  view.open_calls = load.open;
  view.waiting_calls = load.waiting;
  return view;
}

std::vector<EndpointView> Controller::Impl::List(std::string_view user) const {
  std::vector<EndpointView> views;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, endpoint] : endpoints_)
      if (MaySee(*endpoint, user)) views.push_back(ViewOf(*endpoint));
  }
  std::ranges::sort(views, {}, [](const EndpointView& view) { return view.record.id; });
  return views;
}

std::optional<EndpointView> Controller::Impl::Find(std::string_view name,
                                                   std::string_view user) const {
  const std::lock_guard lock(mutex_);
  const Endpoint* endpoint = FindLocked(name);
  if (endpoint == nullptr || !MaySee(*endpoint, user)) return std::nullopt;
  return ViewOf(*endpoint);
}

WayTo Controller::Impl::FindRoute(std::string_view name, std::string_view user) const {
  const std::lock_guard lock(mutex_);
  const Endpoint* endpoint = FindLocked(name);
  if (endpoint == nullptr || !MaySee(*endpoint, user) || endpoint->record.is_deleting) return {};
  return {endpoint->route, endpoint->record.spec.max_workers == 0};
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
      ready.push_back(
          {.id = id, .port = static_cast<uint16_t>(other.record.port), .key = other.record.key});
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

ApiResult<std::string> Controller::Create(const AskedSpec& asked, const std::string& owner) {
  return impl_->Create(asked, owner);
}

ApiResult<std::string> Controller::Update(std::string_view name, const json::Object& body,
                                          const std::string& user) {
  return impl_->Change(name, user, "updated", [&](EndpointRecord* record) -> ApiResult<void> {
    if (record->is_deleting) return std::unexpected(NoEndpoint(name));
    auto asked = ReadUpdate(record->spec, body);
    if (!asked.has_value()) return std::unexpected(std::move(asked).error());
    if (NeedsNewWorkers(record->spec, asked->spec)) ++record->generation;
    record->spec = std::move(asked->spec);
    record->warnings = std::move(asked->warnings);
    for (std::string& wish : UnmetWishes(record->spec)) record->warnings.push_back(std::move(wish));
    return {};
  });
}

ApiResult<void> Controller::Delete(std::string_view name, const std::string& user) {
  const auto done = impl_->Change(name, user, "deleted", [&](EndpointRecord* record) {
    record->is_deleting = true;
    return ApiResult<void>();
  });
  if (!done.has_value()) return std::unexpected(done.error());
  return {};
}

ApiResult<void> Controller::Restart(std::string_view name, const std::string& user) {
  const auto done = impl_->Change(name, user, "restarted", [&](EndpointRecord* record) {
    ++record->generation;
    return ApiResult<void>();
  });
  if (!done.has_value()) return std::unexpected(done.error());
  return {};
}

std::vector<EndpointView> Controller::List(std::string_view user) const {
  return impl_->List(user);
}
std::optional<EndpointView> Controller::Find(std::string_view name, std::string_view user) const {
  return impl_->Find(name, user);
}
WayTo Controller::FindRoute(std::string_view name, std::string_view user) const {
  return impl_->FindRoute(name, user);
}
void Controller::StopWorkers(Duration timeout) {
  impl_->StopWorkers(timeout);
}

}  // namespace tessera::gateway
