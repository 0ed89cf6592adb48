// SPDX-License-Identifier: Apache-2.0
//
// Metrics of the HTTP side and of the process.
#include "server/metrics_page.h"

namespace tessera::server {
namespace {

using Kind = MetricsPageBuilder::Kind;
using Labels = MetricsPageBuilder::Labels;
using Series = std::vector<std::pair<Labels, double>>;

void AddHttp(const MetricsInput& input, MetricsPageBuilder* page) {
  Series answers;
  for (const auto& [kind, count] : input.serving.answers)
    answers.push_back(
        {{{"route", kind.route}, {"method", kind.method}, {"code", std::to_string(kind.status)}},
         static_cast<double>(count)});
  page->Family("http_requests_total", "HTTP requests that ended, by route, method and status.",
               Kind::Counter, std::move(answers));
  const net::ServerStats& http = input.http;
  page->Gauge("http_connections", "Connections that are open.",
              static_cast<double>(http.connections_open), {}, /*is_ours=*/true);
  page->Counter("http_connections_accepted_total", "Connections since the start.",
                static_cast<int64_t>(http.connections_accepted), /*is_ours=*/true);
  page->Counter("http_connections_refused_total", "Connections beyond the limit.",
                static_cast<int64_t>(http.connections_refused), /*is_ours=*/true);
  page->Counter("http_disconnects_total", "Clients that left before their answer was complete.",
                static_cast<int64_t>(http.disconnects), /*is_ours=*/true);
}

std::string_view CompilerName() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

void AddServing(const MetricsInput& input, MetricsPageBuilder* page) {
  AddHttp(input, page);
  const ServingStats::Counts& serving = input.serving;
  page->Histogram("request_preparation_seconds",
                  "Parsing, rendering, tokenising and grammars of a request.", serving.preparation,
                  /*is_ours=*/true);
  page->Histogram("cancel_latency_seconds",
                  "From the wish to end a generation until its pages were free.", serving.cancel,
                  /*is_ours=*/true);
  page->Histogram("grammar_compile_seconds", "Compiling a form that was not in the cache.",
                  input.grammars.compile_seconds, /*is_ours=*/true);
  std::vector<std::pair<std::string, int64_t>> misses;
  for (const auto& [reason, count] : serving.cache_misses) misses.emplace_back(reason, count);
  page->Counters("prefix_cache_misses_total",
                 "Prompts that the prefix cache did not have whole, by the reason.", "reason",
                 misses, /*is_ours=*/true);
  page->Counters("tool_calls_total", "Answers that called functions, by what came of it.", "result",
                 {{"parsed", input.calls.whole}, {"broken", input.calls.broken}},
                 /*is_ours=*/true);
}

void AddDownload(const DownloadFigures& download, MetricsPageBuilder* page) {
  const auto states = [](uint64_t done, uint64_t total, const Labels& more) {
    const auto with = [&](const char* state) {
      Labels labels = more;
      labels.push_back({"state", state});
      return labels;
    };
    return Series{{with("done"), static_cast<double>(done)},
                  {with("total"), static_cast<double>(total)}};
  };
  page->Family("download_bytes", "Bytes of the model's files: there, and in all.", Kind::Gauge,
               states(download.done, download.total, {}));
  Series files;
  for (const DownloadFigures::File& file : download.files)
    for (auto& row : states(file.done, file.total, {{"file", file.name}}))
      files.push_back(std::move(row));
  page->Family("download_file_bytes", "The same, file by file.", Kind::Gauge, std::move(files));
  page->Family("download_fetched_bytes_total", "Bytes that this process received.", Kind::Counter,
               {{{}, static_cast<double>(download.fetched)}});
  page->Gauge("download_bytes_per_second", "Of the model's files, on average.",
              download.bytes_per_second, {}, /*is_ours=*/true);
  if (download.seconds_left.has_value())
    page->Gauge("download_seconds_left", "Until the model's files are there, at that rate.",
                *download.seconds_left, {}, /*is_ours=*/true);
}

void AddProcess(const MetricsInput& input, MetricsPageBuilder* page) {
  page->Gauge("build_info", "The build, as labels.", 1,
              {{"version", TESSERA_VERSION}, {"compiler", std::string(CompilerName())}},
              /*is_ours=*/true);
  Series phases;
  for (const auto& [phase, seconds] : input.load_seconds)
    phases.push_back({{{"phase", phase}}, seconds});
  page->Family("load_seconds", "Time from the start to ready, by phase.", Kind::Gauge,
               std::move(phases));
  page->Counter("log_lines_lost_total", "Lines of the log that nobody took.",
                static_cast<int64_t>(input.log_lines_lost), /*is_ours=*/true);
  const otlp::ExporterCounters& traces = input.traces;
  page->Counters("otlp_spans_total", "Spans for the collector, by what became of them.", "result",
                 {{"sent", static_cast<int64_t>(traces.sent)},
                  {"rejected", static_cast<int64_t>(traces.rejected)},
                  {"dropped", static_cast<int64_t>(traces.dropped)},
                  {"failed", static_cast<int64_t>(traces.failed)}},
                 /*is_ours=*/true);
  if (input.memory.has_value()) {
    Series owners;
    for (const auto& [owner, bytes] : input.memory->owners)
      owners.push_back({{{"owner", owner}}, static_cast<double>(bytes)});
    page->Family("memory_bytes", "Resident memory by owner; the sum is what is resident.",
                 Kind::Gauge, std::move(owners));
    page->Foreign("process_resident_memory_bytes", "Resident memory.", Kind::Gauge,
                  static_cast<double>(input.memory->resident_bytes));
  }
  if (!input.process.has_value()) return;
  const ProcessUse& use = *input.process;
  page->Foreign("process_cpu_seconds_total", "CPU time of user and system.", Kind::Counter,
                use.cpu_seconds);
  page->Foreign("process_start_time_seconds", "Start of the process, since 1970.", Kind::Gauge,
                use.start_unix_seconds);
  page->Foreign("process_open_fds", "Open descriptors.", Kind::Gauge,
                static_cast<double>(use.open_fds));
  page->Foreign("process_max_fds", "Descriptors that may be open.", Kind::Gauge,
                static_cast<double>(use.max_fds));
}

}  // namespace tessera::server
