// SPDX-License-Identifier: Apache-2.0
//
// Metrics: engine statistics as a Prometheus page. Every metric has our own name (tessera_NAME).
// So that dashboards and autoscalers made for other servers work unchanged, the same values also
// appear under those servers' names, where asked for: vLLM's as twins vllm:NAME, the others' by
// metrics_compat.cc. A few are ours alone. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process_memory.h"
#include "engine/engine.h"
#include "engine/stats.h"
#include "net/server.h"
#include "server/download_meter.h"
#include "server/form_check.h"
#include "server/memory_use.h"
#include "server/metrics_names.h"
#include "server/otlp/exporter.h"
#include "server/serving_stats.h"
#include "server/warning_counters.h"
#include "text/grammar_cache.h"

namespace tessera::server {

struct MetricsInput {
  const engine::Stats& stats;
  const runtime::ModelShape& shape;
  std::string_view model_name;
  std::vector<std::pair<std::string, int64_t>> warnings{};  // Of answers, by code.
  WarningCounters::Calls calls{};
  FormCounters::Counts forms{};
  text::GrammarCache::Counters grammars{};
  ServingStats::Counts serving{};
  net::ServerStats http{};
  otlp::ExporterCounters traces{};
  std::vector<std::pair<std::string, double>> load_seconds{};  // By phase.
  std::optional<DownloadFigures> download{};
  // Nothing where the system does not say.
  std::optional<MemoryUse::Reading> memory{};
  std::optional<ProcessUse> process{};
  uint64_t log_lines_lost = 0;
  MetricsNames names{};
};

/// Text exposition format 0.0.4.
std::string MetricsPage(const MetricsInput& input);
/// Before there is a model: the download's part of that page, with an empty model_name.
std::string DownloadPage(const DownloadFigures& download);
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace tessera::server
