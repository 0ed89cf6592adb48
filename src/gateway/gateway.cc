// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.h"

#include <mutex>
#include <utility>

#include "gateway/api/caller.h"
#include "gateway/api/context.h"
#include "gateway/api/endpoints_api.h"
#include "gateway/api/inference.h"
#include "gateway/batch/batch_api.h"
#include "gateway/download/download_api.h"
#include "gateway/files/files_api.h"
#include "gateway/launch/local/local_launcher.h"
#include "gateway/lead/leadership.h"
#include "gateway/lead/relay.h"
#include "gateway/openapi/document.h"
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
  if (error.status == 401) response.headers.Set("WWW-Authenticate", "Bearer");
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
  FileServices files;
  Context context;
  std::unique_ptr<Batches> batches;
  BatchServices batch_services;
  DownloadServices downloads;

  /// `opened`: the state, which this gateway alone writes.
  static Result<std::unique_ptr<Parts>> Make(const GatewayOptions& options, const Clock& clock,
                                             std::unique_ptr<Store> opened);
  net::Router Routes();
};

Result<std::unique_ptr<Gateway::Parts>> Gateway::Parts::Make(const GatewayOptions& options,
                                                             const Clock& clock,
                                                             std::unique_ptr<Store> opened) {
  auto parts = std::make_unique<Parts>();
  TESSERA_ASSIGN_OR_RETURN(parts->models, ModelTable::Read(options.models));
  parts->store = std::move(opened);
  TESSERA_ASSIGN_OR_RETURN(parts->launcher,
                           LocalLauncher::Make({.program = options.program,
                                                .log_dir = options.state_dir / "logs",
                                                .lease = options.state_dir / kLockFile,
                                                .drain_seconds = options.worker_drain_seconds}));
  TESSERA_ASSIGN_OR_RETURN(auto prober, MakeHttpProber());
  ControllerOptions control = options.control;
  control.template_dir = options.state_dir / "templates";
  TESSERA_ASSIGN_OR_RETURN(
      parts->controller,
      Controller::Start(std::move(control), parts->store.get(), parts->launcher.get(),
                        &parts->models, std::move(prober), clock));
  TESSERA_ASSIGN_OR_RETURN(auto upstream, net::UpstreamClient::Start({.loop_threads = 2}));
  parts->context = {.controller = parts->controller.get(),
                    .store = parts->store.get(),
                    .launcher = parts->launcher.get(),
                    .upstream = std::move(upstream),
                    .hold = options.hold,
                    .clock = &clock};
  TESSERA_ASSIGN_OR_RETURN(parts->files.store, FileStore::Open(parts->store.get(), options.files));
  TESSERA_ASSIGN_OR_RETURN(parts->files.sender, FileSender::Start());
  TESSERA_ASSIGN_OR_RETURN(BatchRoot batch_root, BatchRoot::Make(options.batch_root));
  TESSERA_ASSIGN_OR_RETURN(parts->batches, Batches::Start(&parts->context, parts->files.store.get(),
                                                          std::move(batch_root)));
  TESSERA_ASSIGN_OR_RETURN(UrlSigner signer, UrlSigner::Open(options.state_dir / "download.key"));
  parts->downloads = {.context = &parts->context,
                      .models = &parts->models,
                      .sender = parts->files.sender.get(),
                      .hub_cache = options.hub_cache,
                      .has_tls = options.http.tls.has_value(),
                      .signer = std::move(signer)};
  parts->batch_services = {&parts->context, &parts->models, parts->batches.get()};
  return parts;
}

net::Router Gateway::Parts::Routes() {
  net::Router router;
  AddHealthRoutes(&router);
  AddEndpointRoutes(context, &router);
  AddInferenceRoutes(context, &router);
  AddFileRoutes(&files, &router);
  AddBatchRoutes(&batch_services, &router);
  AddDownloadRoutes(&downloads, &router);
  AddFineTuneRoutes(&router);
  openapi::AddDocumentRoutes(&router);
  AddRefusals(&router);
  return router;
}

struct Gateway::Front {
  /// Calls go to `now`, which changes once: when this gateway begins to lead.
  struct Switch {
    struct Way {
      net::Handler handler;
      net::BodyReceiverHook plan;  // May be empty.
    };
    void Set(net::Handler handler, net::BodyReceiverHook plan = {}) {
      auto next = std::make_shared<const Way>(std::move(handler), std::move(plan));
      const std::lock_guard lock(mutex);
      now.swap(next);
    }
    std::shared_ptr<const Way> Now() {
      const std::lock_guard lock(mutex);
      return now;
    }

    std::mutex mutex;
    std::shared_ptr<const Way> now;
  };

  Front(GatewayOptions with, const Clock& of) : options(std::move(with)), clock(of) {}
  Status Serve();
  Status Follow();
  /// `database` is null for SQLite.
  Status Lead(std::unique_ptr<Database> database);
  std::string Advertised() const;

  // Destroyed from the last to the first: nothing is called that is not there any more.
  GatewayOptions options;
  const Clock& clock;
  const std::shared_ptr<Switch> calls = std::make_shared<Switch>();
  std::unique_ptr<Parts> parts;  // Of the thread of `leadership` while there is one.
  std::unique_ptr<Relay> relay;
  std::unique_ptr<net::Server> server;
  std::unique_ptr<Leadership> leadership;
};

Status Gateway::Front::Serve() {
  net::ServerOptions http = options.http;
  http.error_hook = DetailResponse;
  http.body_receiver_hook =
      [calls = calls](const net::Request& head) -> std::expected<net::BodyPlan, net::HttpError> {
    const auto way = calls->Now();
    return way->plan ? way->plan(head) : net::BodyPlan();
  };
  TESSERA_ASSIGN_OR_RETURN(
      server, net::Server::Start(std::move(http),
                                 [calls = calls](net::Request request, net::ResponseWriter writer) {
                                   calls->Now()->handler(std::move(request), std::move(writer));
                                 }));
  return {};
}

Status Gateway::Front::Lead(std::unique_ptr<Database> database) {
  TESSERA_ASSIGN_OR_RETURN(auto store, database == nullptr
                                           ? Store::Open(options.state_dir)
                                           : Store::Open(options.state_dir, std::move(database)));
  TESSERA_ASSIGN_OR_RETURN(parts, Parts::Make(options, clock, std::move(store)));
  calls->Set(parts->Routes().AsHandler(),
             [files = &parts->files](const net::Request& head) { return PlanUpload(files, head); });
  return {};
}

std::string Gateway::Front::Advertised() const {
  return options.advertise.empty() ? server->address() : options.advertise;
}

Status Gateway::Front::Follow() {
  TESSERA_ASSIGN_OR_RETURN(relay, Relay::Make());
  calls->Set([relay = relay.get()](const net::Request& request, const net::ResponseWriter& writer) {
    relay->Handle(request, writer);
  });
  TESSERA_RETURN_IF_ERROR(Serve());
  TESSERA_RETURN_IF_ERROR(StatusOf(ReadAddress(Advertised())).WithContext("--advertise"));
  LeadershipHooks hooks{
      .lead = [this](std::unique_ptr<Database> database) { return Lead(std::move(database)); },
      .check = [this] { return parts->store->Check(); },
      .follow =
          [this](std::optional<std::string> address) { relay->SetLeader(std::move(address)); },
      .lost = options.on_lead_lost};
  TESSERA_ASSIGN_OR_RETURN(leadership,
                           Leadership::Start(options.database, Advertised(), std::move(hooks)));
  return {};
}

Gateway::Gateway(std::unique_ptr<Front> front) : front_(std::move(front)) {}
Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::Start(GatewayOptions options, const Clock& clock) {
  auto front = std::make_unique<Front>(std::move(options), clock);
  if (front->options.database.empty()) {
    TESSERA_RETURN_IF_ERROR(front->Lead(nullptr));
    TESSERA_RETURN_IF_ERROR(front->Serve());
  } else {
    TESSERA_RETURN_IF_ERROR(front->Follow());
  }
  return std::unique_ptr<Gateway>(new Gateway(std::move(front)));
}

std::string Gateway::address() const {
  return front_->server->address();
}

std::vector<net::Router::Route> Gateway::routes() const {
  return front_->parts == nullptr ? std::vector<net::Router::Route>()
                                  : front_->parts->Routes().routes();
}

Status Gateway::Drain(Duration timeout) {
  front_->leadership.reset();
  // Rows under way run again at the next start; waiting for the last of them could take days.
  if (front_->parts != nullptr) front_->parts->batches->Stop();
  const Status drained = front_->server->Drain(timeout);
  if (front_->parts != nullptr) front_->parts->controller->StopWorkers(timeout);
  return drained;
}

}  // namespace tessera::gateway
