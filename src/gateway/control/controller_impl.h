// SPDX-License-Identifier: Apache-2.0
//
// Controller::Impl: the state of a controller. Private to control/. Its parts: controller.cc (the
// thread), controller_changes.cc (what callers change), controller_views.cc (what they read).
//
// Locks: `changes_` (one change of a record at a time, held while it is stored) before `mutex_`
// (all state; held briefly, never while a worker is started or asked) before a route's own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/control/controller.h"
#include "gateway/scale/autoscale.h"

namespace tessera::gateway {

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
  std::optional<EndpointView> FindById(std::string_view id) const;
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
  void TakeNews();
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

}  // namespace tessera::gateway
