// SPDX-License-Identifier: Apache-2.0
//
// HttpService: one model served over HTTP: routes, access, and the order in which things start and
// stop. It owns engine, task thread and HTTP server. One owner thread calls Start, Drain and the
// destructor.
//
//   auto service = HttpService::Listen(options, Clock::Real());   // The port is ours, or an error.
//   log("listening on " + (*service)->address());
//   ...open the model; meanwhile all but /livez is 503 "loading"...
//   (*service)->Serve(std::move(model), std::move(engine));
//   ...on SIGTERM:  (*service)->Drain(std::chrono::seconds(30));
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "net/router.h"
#include "net/server.h"
#include "server/access/access_control.h"
#include "server/context.h"
#include "server/form_check.h"
#include "server/memory_use.h"
#include "server/operate/drainer.h"
#include "server/otlp/exporter.h"
#include "server/request_observer.h"
#include "server/served_model.h"
#include "server/service_control.h"
#include "server/serving_stats.h"

namespace tessera::server {

struct ServiceOptions {
  ApiOptions api;
  net::ServerOptions http;                 // Address, threads, limits, TLS.
  std::optional<otlp::Endpoint> traces{};  // Where spans are sent; nothing: nowhere.
};

class HttpService : private ServiceControl {
 public:
  /// Binds and answers: 200 on /livez, what is downloaded on /metrics, 503 with code "loading" on
  /// all else, until Serve. Errors are
  /// those of net::Server::Start and of the key file. `clock` must outlive the service.
  static Result<std::unique_ptr<HttpService>> Listen(ServiceOptions options, const Clock& clock);
  /// From now on requests reach the model. Once, from the owner thread. Requires tokenizer and
  /// make_detokenizer in `model`.
  void Serve(ServedModel model, std::unique_ptr<engine::Engine> engine);
  /// Both at once, for callers that have the model already.
  static Result<std::unique_ptr<HttpService>> Start(ServedModel model,
                                                    std::unique_ptr<engine::Engine> engine,
                                                    ServiceOptions options, const Clock& clock);
  /// Cuts what is open.
  ~HttpService() override;
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }
  /// After Serve.
  engine::Engine& engine() { return *engine_; }

  /// Gate, drain, stop: new requests get 503 and /readyz says so, running ones have `patience` to
  /// finish, then all is stopped. kDeadlineExceeded when some were cut.
  Status Drain(Duration patience);

  /// See ServiceControl. Any thread, from Listen on. What was wrong is in the log, too.
  Result<ReloadReport> Reload() override;

 private:
  Status StartDrain(Duration patience, std::function<void(const Status&)> done) override;
  HttpService(ApiOptions options, const Clock& clock);

  const ApiOptions options_;
  const Clock& clock_;
  const TimePoint started_;
  std::mutex reload_mutex_;  // One at a time.
  std::unique_ptr<AccessControl> access_;
  // Before all that may end a request.
  ServingStats stats_;
  std::unique_ptr<otlp::Exporter> exporter_;  // Null: no traces are sent.
  const RequestObserver observer_;
  std::unique_ptr<MemoryUse> memory_;
  // Before the engine and the task thread, as their last events still reach them.
  RequestRegistry registry_;
  EventStreams streams_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Drainer> drainer_;
  std::unique_ptr<TaskThread> tasks_;
  WarningCounters warnings_;
  FormCounters forms_;
  std::unique_ptr<FormWorker> form_worker_;
  std::unique_ptr<const Context> context_;
  // Workers read the pointer, which moves once from the first handler to the second.
  net::Handler loading_;
  net::Handler serving_;
  std::atomic<const net::Handler*> handler_;
  std::unique_ptr<net::Server> server_;
};

/// All routes over `context`, which must outlive the router.
net::Router MakeRouter(const Context* context);
/// What answers before there is a model. All must outlive the handler.
net::Handler MakeLoadingHandler(const ApiOptions* options, const RequestObserver* observer,
                                const AccessControl* access);

}  // namespace tessera::server
