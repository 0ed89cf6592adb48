// SPDX-License-Identifier: Apache-2.0
//
// Context: what every route handler works with. Owned by HttpService, immutable while it serves,
// shared by its worker threads; what its pointers lead to is
// thread-safe itself.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "net/server.h"
#include "server/access/access_control.h"
#include "server/download_meter.h"
#include "server/event_streams.h"
#include "server/limits.h"
#include "server/metrics_names.h"
#include "server/request_record.h"
#include "server/request_registry.h"
#include "server/served_model.h"
#include "server/task_thread.h"
#include "server/warning_counters.h"
#include "text/chat_prompt.h"

namespace tessera::server::otlp {
class Exporter;
}

namespace tessera::server {

class FormCounters;
class FormWorker;
class MemoryUse;
class RequestObserver;
class ServiceControl;
class ServingStats;

struct ApiOptions {
  AccessOptions access{};
  std::string cors_origin{};  // Access-Control-Allow-Origin; empty: no CORS headers.
  MetricsNames metrics_names{};
  std::shared_ptr<const DownloadMeter> downloads{};  // Of the model; null: none is shown.
  Duration ready_age = kReadyStepAge;
  Duration ping_interval = kPingInterval;  // Positive.
  Duration resume_grace = kResumeGrace;
  /// Hears of each request that is over, beside the log. See OnRequestEnd.
  OnRequestEnd on_request_end{};
  Duration drain_patience = std::chrono::seconds(30);  // Of /admin/drain, unless it says otherwise.
};

struct Context {
  ServedModel model;
  text::SpecialTokens specials;  // Of model.tokenizer.
  ApiOptions options;
  engine::Engine* engine = nullptr;
  TaskThread* tasks = nullptr;
  const AccessControl* access = nullptr;
  RequestRegistry* registry = nullptr;
  EventStreams* streams = nullptr;
  WarningCounters* warnings = nullptr;
  FormCounters* forms = nullptr;
  FormWorker* form_worker = nullptr;
  const RequestObserver* observer = nullptr;
  ServingStats* stats = nullptr;
  const MemoryUse* memory = nullptr;
  const otlp::Exporter* exporter = nullptr;  // May be null.
  std::function<net::ServerStats()> http_stats{};
  const Clock* clock = nullptr;
  ServiceControl* control = nullptr;
  TimePoint started{};
};

}  // namespace tessera::server
