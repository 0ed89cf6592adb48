// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.h"

#include <utility>

#include "gateway/api/caller.h"
#include "gateway/api/context.h"
#include "gateway/api/endpoints_api.h"
#include "gateway/api/inference.h"
#include "gateway/launch/local/local_launcher.h"
#include "gateway/store/store.h"
#include "net/router.h"

namespace tessera::gateway {
namespace {

void AddHealthRoutes(net::Router* router) {
  for (const std::string_view path : {"/healthcheck", "/healthz", "/readyz", "/livez"})
    router->Add("GET", path, [](const net::Request&, const net::ResponseWriter& writer) {
      (void)writer.Send(net::Response::Json(200, "{\"status\":\"ok\"}"));
    });
}

void AddInferenceRoutes(const Context& context, net::Router* router) {
  for (const bool is_stream : {false, true})
    router->Add(
        "POST", is_stream ? "/v1/llm/completions-stream" : "/v1/llm/completions-sync",
        [&context, is_stream](const net::Request& request, const net::ResponseWriter& writer) {
          HandleCompletionV1(context, request, writer, is_stream);
        });
  for (const std::string_view version : {"/v1", "/v2"}) {
    for (const std::string_view call : {"/chat/completions", "/completions", "/embeddings"})
      router->Add("POST", std::string(version).append(call),
                  [&context, target = std::string("/v1").append(call)](
                      const net::Request& request, const net::ResponseWriter& writer) {
                    HandleOpenAi(context, request, writer, target);
                  });
    router->Add("GET", std::string(version) + "/models",
                [&context](const net::Request& request, const net::ResponseWriter& writer) {
                  HandleModels(context, request, writer);
                });
  }
}

/// Not built: the list is empty and making one is refused, in words that its clients show.
void AddFineTuneRoutes(net::Router* router) {
  const std::string all = "/v1/llm/fine-tunes", one = all + "/{id}";
  const auto answer = [router](std::string_view method, const std::string& pattern,
                               ApiError error) {
    router->Add(method, pattern,
                [error](const net::Request& request, const net::ResponseWriter& writer) {
                  const auto user = UserOf(request);
                  SendError(writer, user.has_value() ? error : user.error());
                });
  };
  router->Add("GET", all, [](const net::Request& request, const net::ResponseWriter& writer) {
    const auto user = UserOf(request);
    user.has_value() ? SendJson(writer, 200, {{"jobs", json::Array()}})
                     : SendError(writer, user.error());
  });
  answer("POST", all,
         {.status = 501,
          .text = "Fine-tuning is not offered here; make the weights elsewhere and create an "
                  "endpoint with their checkpoint_path"});
  const ApiError unknown{.status = 404, .text = "The specified fine-tune could not be found."};
  answer("GET", one, unknown);
  answer("PUT", one + "/cancel", unknown);
  answer("GET", one + "/events", unknown);
}

void AddRefusals(net::Router* router) {
  router->OnNotFound([](const net::Request& request, const net::ResponseWriter& writer) {
    SendError(writer, {.status = 404, .text = "There is no " + request.path.substr(0, 200)});
  });
  router->OnMethodNotAllowed([](const net::Request& request, const net::ResponseWriter& writer,
                                std::string_view allow) {
    net::Response response = net::Response::Json(
        405,
        ErrorBody({.status = 405,
                   .text = request.method + " is not offered here, but " + std::string(allow)}));
    response.headers.Set("Allow", allow);
    (void)writer.Send(std::move(response));
  });
}

/// What the server itself says: an object with `detail`, as everything here.
net::Response DetailResponse(const net::HttpError& error) {
  net::Response response =
      net::Response::Json(error.status, ErrorBody({.status = error.status, .text = error.message}));
  if (error.status == 503) response.headers.Set("Retry-After", "1");
  return response;
}

}  // namespace

/// In the order in which they are made; destroyed the other way round.
struct Gateway::Parts {
  std::unique_ptr<Store> store;
  std::unique_ptr<LocalLauncher> launcher;
  ModelTable models;
  std::unique_ptr<Controller> controller;
  Context context;
  std::unique_ptr<net::Server> server;
};

Gateway::Gateway(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, const Clock& clock) {
  auto parts = std::make_unique<Parts>();
  TESSERA_ASSIGN_OR_RETURN(parts->models, ModelTable::Read(options.models));
  TESSERA_ASSIGN_OR_RETURN(parts->store, Store::Open(options.state_dir));
  TESSERA_ASSIGN_OR_RETURN(parts->launcher,
                           LocalLauncher::Make({.program = options.program,
                                                .log_dir = options.state_dir / "logs",
                                                .lease = options.state_dir / kLockFile,
                                                .drain_seconds = options.worker_drain_seconds}));
  TESSERA_ASSIGN_OR_RETURN(auto prober, MakeHttpProber());
  options.control.template_dir = options.state_dir / "templates";
  TESSERA_ASSIGN_OR_RETURN(
      parts->controller,
      Controller::Start(std::move(options.control), parts->store.get(), parts->launcher.get(),
                        &parts->models, std::move(prober), clock));
  TESSERA_ASSIGN_OR_RETURN(auto upstream, net::UpstreamClient::Start({.loop_threads = 2}));
  parts->context = {.controller = parts->controller.get(),
                    .store = parts->store.get(),
                    .launcher = parts->launcher.get(),
                    .upstream = std::move(upstream),
                    .hold = options.hold,
                    .clock = &clock};
  net::Router router;
  AddHealthRoutes(&router);
  AddEndpointRoutes(parts->context, &router);
  AddInferenceRoutes(parts->context, &router);
  AddFineTuneRoutes(&router);
  AddRefusals(&router);
  options.http.error_hook = DetailResponse;
  TESSERA_ASSIGN_OR_RETURN(parts->server,
                           net::Server::Start(std::move(options.http), router.AsHandler()));
  return std::unique_ptr<Gateway>(new Gateway(std::move(parts)));
}

std::string Gateway::address() const {
  return parts_->server->address();
}

Status Gateway::Drain(Duration timeout) {
  const Status drained = parts_->server->Drain(timeout);
  parts_->controller->StopWorkers(timeout);
  return drained;
}

}  // namespace tessera::gateway
