// SPDX-License-Identifier: Apache-2.0
//
// Controller: keeps endpoints as their records want them. One thread looks at what was changed,
// asks scaling and Reconcile, and has the launcher start and end workers; callers change records
// and read what is known. It is the only writer of the store's endpoints and workers.
//
//   API thread:  Create/Update/Delete --> store (durable) --> answer;  the thread is woken
//   its thread:  launcher's exits, probes' results, load --> Reconcile --> launcher, route, store
//
// Thread-safe. One lock guards all state; it is never held while a worker is started or asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gateway/control/prober.h"
#include "gateway/launch/launcher.h"
#include "gateway/models/model_table.h"
#include "gateway/reconcile/reconcile.h"
#include "gateway/route/route.h"
#include "gateway/spec/read_spec.h"
#include "gateway/store/store.h"

namespace tessera::gateway {

struct WorkerView {
  WorkerRecord record;
  WorkerState state = WorkerState::kStarting;
  int64_t since = 0;  // Unix seconds, in this state.
  int64_t open_calls = 0;
};

/// An endpoint as it is now. A copy.
struct EndpointView {
  EndpointRecord record;
  EndpointStatus status = EndpointStatus::kUpdatePending;
  std::string reason{};
  bool is_ready = false;
  std::vector<WorkerView> workers{};
  int64_t open_calls = 0, waiting_calls = 0;
};

/// The way to an endpoint's workers.
struct WayTo {
  std::shared_ptr<Route> route;
  bool is_off = false;  // max_workers is 0: no call will be answered.
};

struct ControllerOptions {
  Duration idle = std::chrono::seconds(60);    // Before the last worker of min_workers 0 goes.
  Duration window = std::chrono::seconds(30);  // Before fewer workers are wanted.
  Patience patience{};
  int64_t waiting_max = 1024;                  // Calls held for an endpoint.
  std::vector<std::string> serve_arguments{};  // Behind MODEL, for every worker.
  std::filesystem::path template_dir{};        // Chat templates of endpoints; is made.
};

class Controller {
 public:
  /// Loads the endpoints, adopts their workers that live, and begins. All must outlive it.
  static Result<std::unique_ptr<Controller>> Start(ControllerOptions options, Store* store,
                                                   Launcher* launcher, const ModelTable* models,
                                                   std::unique_ptr<Prober> prober,
                                                   const Clock& clock);
  /// Leaves workers and records as they are.
  ~Controller();

  /// The endpoint's id. 400 for a name that is taken or a model that nothing stands for, 503 when
  /// it could not be stored.
  ApiResult<std::string> Create(const AskedSpec& asked, const std::string& owner);
  /// `body` names what changes. 404 for one that `user` does not own.
  ApiResult<std::string> Update(std::string_view name, const json::Object& body,
                                const std::string& user);
  ApiResult<void> Delete(std::string_view name, const std::string& user);
  /// New workers in place of those there are, as an update does it.
  ApiResult<void> Restart(std::string_view name, const std::string& user);

  /// Of endpoints that `user` may see; by the order of their creation.
  std::vector<EndpointView> List(std::string_view user) const;
  /// Nothing if there is none or `user` may not see it.
  std::optional<EndpointView> Find(std::string_view name, std::string_view user) const;
  /// For who proved otherwise that he may see it.
  std::optional<EndpointView> FindById(std::string_view id) const;
  /// Where its calls go; `route` is null as above.
  WayTo FindRoute(std::string_view name, std::string_view user) const;

  /// Drains all workers and waits for their end, at most so long: for a gateway that ends for good.
  void StopWorkers(Duration timeout);

 private:
  class Impl;
  explicit Controller(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::gateway
