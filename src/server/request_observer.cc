// SPDX-License-Identifier: Apache-2.0
#include "server/request_observer.h"

#include "base/log.h"

namespace tessera::server {
namespace {

double Milliseconds(Duration duration) {
  return Seconds(duration) * 1e3;
}

void LogAccess(const RequestRecord& record) {
  log::Event(log::Level::info, "http", "request", AccessFields(record));
}

}  // namespace

std::shared_ptr<RequestScope> RequestObserver::Open(const net::Request& request,
                                                    std::string_view route,
                                                    std::string request_id) const {
  RequestRecord record;
  record.request_id = std::move(request_id);
  record.trace = ReadTraceContext(request.headers);
  record.method = request.method;
  record.path = request.path;
  record.route = route;
  record.arrival = clock_->Now();
  record.arrival_unix_ns = UnixNanoseconds();
  return std::make_shared<RequestScope>(
      std::move(record), clock_, [this](const RequestRecord& ended) {
        LogAccess(ended);
        stats_->CountAnswer(ended.route, ended.method, ended.status);
        if (also_) also_(ended);
      });
}

std::vector<log::Field> AccessFields(const RequestRecord& record) {
  std::vector<log::Field> fields{{"request_id", record.request_id},
                                 {"trace_id", record.trace.trace_id},
                                 {"method", record.method},
                                 {"path", record.path},
                                 {"status", int64_t{record.status}}};
  if (!record.key_name.empty()) fields.push_back({"key", record.key_name});
  if (record.generation.has_value()) {
    const GenerationFacts& facts = *record.generation;
    fields.push_back({"prompt_tokens", facts.prompt_tokens});
    fields.push_back({"cached_tokens", facts.cached_tokens});
    fields.push_back({"output_tokens", facts.output_tokens});
    fields.push_back({"queue_ms", Milliseconds(facts.queue)});
    if (facts.has_token) fields.push_back({"ttft_ms", Milliseconds(facts.queue + facts.prefill)});
    fields.push_back({"finish_reason", engine::FinishReasonName(facts.reason)});
  }
  fields.push_back({"e2e_ms", Milliseconds(record.duration)});
  if (record.was_cut) fields.push_back({"cut", true});
  return fields;
}

net::ErrorHook LogRefusals(net::ErrorHook hook) {
  return [hook = std::move(hook)](const net::HttpError& error) {
    // That one is about a request, which has its own line.
    if (error.code != "internal_error")
      log::Event(log::Level::info, "http", "refused",
                 {{"status", int64_t{error.status}}, {"code", std::string_view(error.code)}});
    return hook(error);
  };
}

}  // namespace tessera::server
