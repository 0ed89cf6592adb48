// SPDX-License-Identifier: Apache-2.0
#include "server/readiness.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "server/limits.h"
#include "server/openai/error.h"

namespace tessera::server {
namespace {

net::Response ReadyResponse(const Status& status) {
  if (status.ok()) return net::Response{};
  // Whatever the reason is: not ready.
  return openai::ErrorResponse(openai::FromStatus(Unavailable(status.ToString())));
}

/// Answers when the token is there, on the task thread: that it runs belongs to being ready.
class ProbeSink : public engine::Sink {
 public:
  ProbeSink(TaskThread* tasks, Reply reply) : tasks_(tasks), reply_(std::move(reply)) {}
  void OnToken(engine::TokenOutput) override {}
  void OnFinish(engine::Finish finish) override {
    tasks_->Post([reply = reply_, status = std::move(finish.status)] {
      (void)reply.Send(ReadyResponse(status.ok() ? status : status.WithContext("one token")));
    });
  }

 private:
  TaskThread* const tasks_;
  const Reply reply_;
};

}  // namespace

Status CheckAlive(const Context& context) {
  if (context.engine->draining()) return Unavailable("the server is shutting down");
  const Duration age = context.engine->step_age();
  if (age > kStuckStep)
    return Unavailable(fmt::format("no step was finished for {:.0f} s; the engine is {}",
                                   Seconds(age), engine::StageName(context.engine->stage().stage)));
  return {};
}

void HandleReady(const Context& context, const net::Request&, const Reply& reply) {
  const Status alive = CheckAlive(context);
  const TimePoint now = context.clock->Now();
  const auto last_step = context.engine->stats().last_step;
  const bool is_proven = context.engine->step_age() > Duration::zero() ||
                         (last_step.has_value() && now - *last_step <= context.options.ready_age);
  if (!alive.ok() || is_proven) {
    (void)reply.Send(ReadyResponse(alive));
    return;
  }
  engine::Request probe;
  probe.prompt = {0};
  probe.sampling.temperature = 0;
  probe.stop.max_tokens = 1;
  probe.cache_prompt = false;
  probe.is_probe = true;
  probe.arrival = now;
  probe.deadline = now + kReadyPatience;
  probe.sink = std::make_shared<ProbeSink>(context.tasks, reply);
  const Status submitted = StatusOf(context.engine->Submit(std::move(probe)));
  if (!submitted.ok()) (void)reply.Send(ReadyResponse(submitted));
}

}  // namespace tessera::server
