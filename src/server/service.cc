// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "server/limits.h"

namespace tessera::server {

HttpService::HttpService(ApiOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      started_(clock.Now()),
      observer_(&clock_, &stats_,
                [this](const RequestRecord& record) {
                  if (exporter_ != nullptr) exporter_->Export(record);
                  if (options_.on_request_end) options_.on_request_end(record);
                }),
      handler_(&loading_) {}

Result<std::unique_ptr<HttpService>> HttpService::Listen(ServiceOptions options,
                                                         const Clock& clock) {
  std::unique_ptr<HttpService> service(new HttpService(std::move(options.api), clock));
  TESSERA_ASSIGN_OR_RETURN(service->access_, AccessControl::Make(service->options_.access, clock));
  service->loading_ =
      MakeLoadingHandler(&service->options_, &service->observer_, service->access_.get());
  const auto dispatch = [raw = service.get()](net::Request request, net::ResponseWriter writer) {
    const net::Handler& handler = *raw->handler_.load(std::memory_order_acquire);
    handler(std::move(request), std::move(writer));
  };
  const Duration silence = service->options_.ping_interval;
  TESSERA_ASSIGN_OR_RETURN(
      service->tasks_, TaskThread::Start(silence / 10, [raw = service.get(), silence] {
        raw->streams_.Tick(raw->clock_.Now(), silence, raw->options_.resume_grace);
      }));
  TESSERA_ASSIGN_OR_RETURN(service->form_worker_, FormWorker::Start());
  if (options.traces.has_value()) {
    TESSERA_ASSIGN_OR_RETURN(service->exporter_,
                             otlp::Exporter::Start({.endpoint = *std::move(options.traces)}));
  }
  options.http.error_hook = LogRefusals(std::move(options.http.error_hook));
  TESSERA_ASSIGN_OR_RETURN(service->server_, net::Server::Start(std::move(options.http), dispatch));
  return service;
}

void HttpService::Serve(ServedModel model, std::unique_ptr<engine::Engine> engine) {
  TESSERA_CHECK(context_ == nullptr && engine != nullptr && model.tokenizer != nullptr &&
                model.make_detokenizer);
  engine_ = std::move(engine);
  drainer_ = std::make_unique<Drainer>(engine_.get());
  memory_ = std::make_unique<MemoryUse>(std::move(model.memory), &clock_);
  text::SpecialTokens specials(*model.tokenizer);
  context_ = std::make_unique<const Context>(
      Context{.model = std::move(model),
              .specials = std::move(specials),
              .options = options_,
              .engine = engine_.get(),
              .tasks = tasks_.get(),
              .access = access_.get(),
              .registry = &registry_,
              .streams = &streams_,
              .warnings = &warnings_,
              .forms = &forms_,
              .form_worker = form_worker_.get(),
              .observer = &observer_,
              .stats = &stats_,
              .memory = memory_.get(),
              .exporter = exporter_.get(),
              .http_stats = [server = server_.get()] { return server->stats(); },
              .clock = &clock_,
              .control = this,
              .started = started_});
  serving_ = MakeRouter(context_.get()).AsHandler();
  handler_.store(&serving_, std::memory_order_release);
}

Result<std::unique_ptr<HttpService>> HttpService::Start(ServedModel model,
                                                        std::unique_ptr<engine::Engine> engine,
                                                        ServiceOptions options,
                                                        const Clock& clock) {
  TESSERA_ASSIGN_OR_RETURN(auto service, Listen(std::move(options), clock));
  service->Serve(std::move(model), std::move(engine));
  return service;
}

HttpService::~HttpService() {
  // Handlers first, as they submit; then the engine's requests, as they post, and with them a drain
  // that waits for them; then the looks at answers, as they post; then the posts, as they may still
  // call the engine.
  server_.reset();
  if (engine_ != nullptr) (void)engine_->Drain(Duration::zero());
  drainer_.reset();
  if (form_worker_ != nullptr) form_worker_->Stop();
  tasks_.reset();
}

Status HttpService::Drain(Duration patience) {
  const auto start = clock_.Now();
  const Status engine = engine_ == nullptr ? Status() : engine_->Drain(patience);
  const Duration left = patience - (clock_.Now() - start);
  // Answers that are made still have to be sent: a moment for that in any case.
  const Status http = server_->Drain(std::max<Duration>(left, std::chrono::seconds(1)));
  if (exporter_ != nullptr) exporter_->Flush(kTraceFlushPatience);
  return engine.ok() ? http : engine;
}

Status HttpService::StartDrain(Duration patience, std::function<void(const Status&)> done) {
  return drainer_->Start(patience, std::move(done));
}

Result<ReloadReport> HttpService::Reload() {
  const std::lock_guard lock(reload_mutex_);
  auto keys = access_->Load();
  // The certificate counts once it is read, so it comes last of what can fail.
  const Status status = keys.has_value() ? server_->ReloadTls() : keys.error();
  if (!status.ok()) {
    log::error("reload: nothing was changed: {}", status.ToString());
    return Fail(status);
  }
  const ReloadReport report{.keys = keys->size(),
                            .has_key_file = access_->has_key_file(),
                            .has_certificate = server_->has_tls()};
  access_->Use(*std::move(keys));
  return report;
}

}  // namespace tessera::server
