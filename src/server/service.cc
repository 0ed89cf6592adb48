// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace tessera::server {

HttpService::HttpService(ServedModel model, std::unique_ptr<engine::Engine> engine,
                         ApiOptions options, const Clock& clock)
    : engine_(std::move(engine)), tasks_(std::make_unique<TaskThread>()), context_([&] {
        text::SpecialTokens specials(*model.tokenizer);
        return std::make_unique<const Context>(Context{.model = std::move(model),
                                                       .specials = std::move(specials),
                                                       .options = std::move(options),
                                                       .engine = engine_.get(),
                                                       .tasks = tasks_.get(),
                                                       .clock = &clock});
      }()) {}

Result<std::unique_ptr<HttpService>> HttpService::Start(ServedModel model,
                                                        std::unique_ptr<engine::Engine> engine,
                                                        ServiceOptions options,
                                                        const Clock& clock) {
  TESSERA_CHECK(engine != nullptr && model.tokenizer != nullptr && model.make_detokenizer);
  std::unique_ptr<HttpService> service(
      new HttpService(std::move(model), std::move(engine), std::move(options.api), clock));
  TESSERA_ASSIGN_OR_RETURN(
      service->server_,
      net::Server::Start(std::move(options.http), MakeRouter(service->context_.get()).AsHandler()));
  return service;
}

HttpService::~HttpService() {
  // Handlers first, as they submit; then the engine's requests, as they post; then the posts, as
  // they may still call the engine.
  server_.reset();
  (void)engine_->Drain(Duration::zero());
  tasks_.reset();
}

Status HttpService::Drain(Duration patience) {
  const auto start = context_->clock->Now();
  const Status engine = engine_->Drain(patience);
  const Duration left = patience - (context_->clock->Now() - start);
  // Answers that are made still have to be sent: a moment for that in any case.
  const Status http = server_->Drain(std::max<Duration>(left, std::chrono::seconds(1)));
  return engine.ok() ? http : engine;
}

}  // namespace tessera::server
