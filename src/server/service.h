// SPDX-License-Identifier: Apache-2.0
//
// HttpService: one model served over HTTP: routes, access, and the order in which things start and
// stop. It owns engine, task thread and HTTP server. One owner thread calls Start, Drain and the
// destructor.
//
//   auto service = HttpService::Start(std::move(model), std::move(engine), options, Clock::Real());
//   log("listening on " + (*service)->address());
//   ...on SIGTERM:  (*service)->Drain(std::chrono::seconds(30));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "net/router.h"
#include "net/server.h"
#include "server/context.h"
#include "server/served_model.h"

namespace tessera::server {

struct ServiceOptions {
  ApiOptions api;
  net::ServerOptions http;  // Address, threads, limits, TLS.
};

class HttpService {
 public:
  /// Requires tokenizer and make_detokenizer in `model`. `clock` must outlive the service.
  static Result<std::unique_ptr<HttpService>> Start(ServedModel model,
                                                    std::unique_ptr<engine::Engine> engine,
                                                    ServiceOptions options, const Clock& clock);
  /// Cuts what is open.
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  uint16_t port() const { return server_->port(); }
  std::string address() const { return server_->address(); }
  engine::Engine& engine() { return *engine_; }

  /// Gate, drain, stop: new requests get 503 and /readyz says so, running ones have `patience` to
  /// finish, then all is stopped. kDeadlineExceeded when some were cut.
  Status Drain(Duration patience);

 private:
  HttpService(ServedModel model, std::unique_ptr<engine::Engine> engine, ApiOptions options,
              const Clock& clock);

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<TaskThread> tasks_;
  const std::unique_ptr<const Context> context_;
  std::unique_ptr<net::Server> server_;
};

/// All routes over `context`, which must outlive the router.
net::Router MakeRouter(const Context* context);

}  // namespace tessera::server
