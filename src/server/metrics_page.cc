// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_page.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>

namespace tessera::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Cumulative, as the format wants it.
void Fill(const tessera::Histogram& histogram, ClientMetric* metric) {
  uint64_t cumulative = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    cumulative += static_cast<uint64_t>(histogram.counts()[i]);
    const double bound = i < histogram.bounds().size() ? histogram.bounds()[i]
                                                       : std::numeric_limits<double>::infinity();
    metric->histogram.bucket.push_back({cumulative, bound});
  }
  metric->histogram.sample_count = static_cast<uint64_t>(histogram.count());
  metric->histogram.sample_sum = histogram.sum();
}

}  // namespace

void MetricsPageBuilder::Gauge(std::string name, std::string help, double value, Labels labels,
                               bool is_ours) {
  ClientMetric metric = New(std::move(labels));
  metric.gauge.value = value;
  if (is_ours) ours_.push_back(name);
  Add(std::move(name), std::move(help), MetricType::Gauge, {std::move(metric)});
}

void MetricsPageBuilder::Counter(std::string name, std::string help, int64_t value, bool is_ours) {
  ClientMetric metric = New({});
  metric.counter.value = static_cast<double>(value);
  if (is_ours) ours_.push_back(name);
  Add(std::move(name), std::move(help), MetricType::Counter, {std::move(metric)});
}

void MetricsPageBuilder::SecondsCounter(std::string name, std::string help, double seconds) {
  ClientMetric metric = New({});
  metric.counter.value = seconds;
  ours_.push_back(name);
  Add(std::move(name), std::move(help), MetricType::Counter, {std::move(metric)});
}

void MetricsPageBuilder::Counters(std::string name, std::string help, std::string label,
                                  const std::vector<std::pair<std::string, int64_t>>& values,
                                  bool is_ours) {
  std::vector<ClientMetric> metrics;
  for (const auto& [word, value] : values) {
    metrics.push_back(New({{label, word}}));
    metrics.back().counter.value = static_cast<double>(value);
  }
  if (is_ours) ours_.push_back(name);
  Add(std::move(name), std::move(help), MetricType::Counter, std::move(metrics));
}

void MetricsPageBuilder::Histogram(std::string name, std::string help,
                                   const tessera::Histogram& histogram, bool is_ours) {
  ClientMetric metric = New({});
  Fill(histogram, &metric);
  if (is_ours) ours_.push_back(name);
  Add(std::move(name), std::move(help), MetricType::Histogram, {std::move(metric)});
}

void MetricsPageBuilder::Family(std::string name, std::string help, Kind kind,
                                std::vector<std::pair<Labels, double>> series) {
  std::vector<ClientMetric> metrics;
  for (auto& [labels, value] : series) {
    metrics.push_back(New(std::move(labels)));
    (kind == MetricType::Gauge ? metrics.back().gauge.value : metrics.back().counter.value) = value;
  }
  ours_.push_back(name);
  Add(std::move(name), std::move(help), kind, std::move(metrics));
}

void MetricsPageBuilder::Foreign(std::string name, std::string help, Kind kind, double value,
                                 Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (kind == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  // Series of one name are one family.
  if (!foreign_.empty() && foreign_.back().name == name) {
    foreign_.back().metric.push_back(std::move(metric));
    return;
  }
  foreign_.push_back({std::move(name), std::move(help), kind, {std::move(metric)}});
}

void MetricsPageBuilder::ForeignHistogram(std::string name, std::string help,
                                          const tessera::Histogram& histogram, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  Fill(histogram, &metric);
  foreign_.push_back(
      {std::move(name), std::move(help), MetricType::Histogram, {std::move(metric)}});
}

std::string MetricsPageBuilder::Finish(bool with_twins) && {
  std::vector<MetricFamily> page;
  for (const MetricFamily& family : families_) {
    page.push_back(family);
    page.back().name = "tessera_" + family.name;
  }
  if (with_twins) {
    for (MetricFamily& family : families_) {
      if (std::ranges::find(ours_, family.name) != ours_.end()) continue;
      family.name = "vllm:" + family.name;
      page.push_back(std::move(family));
    }
  }
  for (MetricFamily& family : foreign_) page.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(page);
}

ClientMetric MetricsPageBuilder::New(Labels labels) const {
  ClientMetric metric;
  metric.label = ModelLabel();
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  return metric;
}

void MetricsPageBuilder::Add(std::string name, std::string help, Kind kind,
                             std::vector<ClientMetric> metrics) {
  families_.push_back({std::move(name), std::move(help), kind, std::move(metrics)});
}

}  // namespace tessera::server
