// SPDX-License-Identifier: Apache-2.0
//
// MetricsPageBuilder: collects metric families and writes them in the text exposition format. Those
// under our prefix get twins under vLLM's at the end; those of other servers come with their whole
// name. One owner, one page.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/stats.h"
#include "server/metrics.h"

namespace tessera::server {

class MetricsPageBuilder {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;
  using Kind = prometheus::MetricType;

  explicit MetricsPageBuilder(std::string_view model_name) : model_name_(model_name) {}

  // Under our prefix, with the label model_name. `is_ours`: without a twin.
  void Gauge(std::string name, std::string help, double value, Labels labels = {},
             bool is_ours = false);
  void Counter(std::string name, std::string help, int64_t value, bool is_ours = false);
  /// Of ours, without a twin.
  void SecondsCounter(std::string name, std::string help, double seconds);
  /// One series for each value of `label`.
  void Counters(std::string name, std::string help, std::string label,
                const std::vector<std::pair<std::string, int64_t>>& values, bool is_ours = false);
  void Histogram(std::string name, std::string help, const tessera::Histogram& histogram,
                 bool is_ours = false);
  /// Ours alone, with series of several labels.
  void Family(std::string name, std::string help, Kind kind,
              std::vector<std::pair<Labels, double>> series);

  // Another server's, by whole name; `labels` are all there are.
  void Foreign(std::string name, std::string help, Kind kind, double value, Labels labels = {});
  void ForeignHistogram(std::string name, std::string help, const tessera::Histogram& histogram,
                        Labels labels = {});
  Labels ModelLabel() const { return {{"model_name", model_name_}}; }

  std::string Finish(bool with_twins) &&;

 private:
  prometheus::ClientMetric New(Labels labels) const;
  void Add(std::string name, std::string help, Kind kind,
           std::vector<prometheus::ClientMetric> metrics);

  const std::string model_name_;
  std::vector<prometheus::MetricFamily> families_;
  std::vector<prometheus::MetricFamily> foreign_;
  std::vector<std::string> ours_;  // Names without a twin.
};

// metrics_serving.cc: the HTTP side and the process.
void AddServing(const MetricsInput& input, MetricsPageBuilder* page);
void AddProcess(const MetricsInput& input, MetricsPageBuilder* page);
void AddDownload(const DownloadFigures& download, MetricsPageBuilder* page);

// metrics_compat.cc: what vLLM has beyond twins, and the names of text-generation-inference,
// llama.cpp's server and SGLang.
void AddVllmNames(const MetricsInput& input, MetricsPageBuilder* page);
void AddTgiNames(const MetricsInput& input, MetricsPageBuilder* page);
void AddLlamaCppNames(const MetricsInput& input, MetricsPageBuilder* page);
void AddSglangNames(const MetricsInput& input, MetricsPageBuilder* page);

}  // namespace tessera::server
