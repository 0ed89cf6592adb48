// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

namespace tessera::cli {

using runtime::MachineRates;

double BenchRow::Seconds() const {
  return static_cast<double>(test.all_tokens()) / figures.Median();
}

double BenchRow::WeightBytesPerSecond() const {
  return static_cast<double>(figures.counted.weight_bytes) / Seconds();
}

double BenchRow::ReadBytesPerSecond() const {
  return static_cast<double>(figures.counted.weight_bytes + figures.counted.kv_bytes) / Seconds();
}

double BenchRow::OpsPerSecond() const {
  return 2 * static_cast<double>(figures.counted.matmul_macs + figures.counted.attention_macs) /
         Seconds();
}

double BenchRow::ShareOfRead() const {
  return ReadBytesPerSecond() / rates.read_bytes;
}

double BenchRow::ShareOfArithmetic() const {
  return bound.arithmetic_seconds / Seconds();
}

double BenchRow::BoundTokensPerSecond() const {
  return static_cast<double>(test.all_tokens()) / bound.seconds;
}

double BenchRow::BytesPerStep() const {
  return static_cast<double>(figures.counted.weight_bytes + figures.counted.kv_bytes) /
         static_cast<double>(figures.counted.steps);
}

double BenchRow::BarriersPerLayer() const {
  return static_cast<double>(figures.counted.barriers) /
         static_cast<double>(figures.counted.steps) / static_cast<double>(layers);
}

void PrintMachineTable(const std::vector<MachineRates>& machines) {
  const auto line = [&](std::string_view name,
                        const std::function<std::string(const MachineRates&)>& cell) {
    fmt::print("| {} |", name);
    for (const MachineRates& rates : machines) fmt::print(" {} |", cell(rates));
    fmt::print("\n");
  };
  line("machine", [](const MachineRates& rates) {
    return fmt::format("{} thread{}", rates.threads, rates.threads == 1 ? "" : "s");
  });
  fmt::print("|---|");
  for (size_t i = 0; i < machines.size(); ++i) fmt::print("---:|");
  fmt::print("\n");
  line("read, GB/s",
       [](const MachineRates& rates) { return fmt::format("{:.1f}", rates.read_bytes / 1e9); });
  for (size_t i = 0; i < machines.front().probes.size(); ++i)
    line(fmt::format("{}, GOP/s", machines.front().probes[i].name), [&](const MachineRates& rates) {
      return fmt::format("{:.0f}", rates.probes[i].ops / 1e9);
    });
  line("barrier, ns", [](const MachineRates& rates) {
    return rates.threads == 1 ? "" : fmt::format("{:.0f}", rates.barrier_seconds * 1e9);
  });
  fmt::print("\n");
}

void PrintCaseHeader(bool with_bound) {
  fmt::print(
      "| test | tok/s median | mean | sd | min | weights GB/s | % of read | GOP/s "
      "| % of peak | MB/step | barriers/layer |{}\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|{}\n",
      with_bound ? " bound tok/s | % of bound |" : "", with_bound ? "---:|---:|" : "");
}

void PrintCase(const BenchRow& row, bool with_bound) {
  const BenchFigures& figures = row.figures;
  fmt::print(
      "| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} "
      "| {:.2f} |",
      row.test.Name(), figures.Median(), figures.Mean(), figures.Deviation(), figures.Min(),
      row.WeightBytesPerSecond() / 1e9, 100 * row.ShareOfRead(), row.OpsPerSecond() / 1e9,
      100 * row.ShareOfArithmetic(), row.BytesPerStep() / 1e6, row.BarriersPerLayer());
  if (with_bound)
    fmt::print(" {:.1f} | {:.0f} |", row.BoundTokensPerSecond(),
               100 * figures.Median() / row.BoundTokensPerSecond());
  fmt::print("\n");
}

json::Object MachineJson(const Topology& topology, const MachineRates& rates) {
  json::Object probes;
  for (const MachineRates::ProbeRate& probe : rates.probes) probes[probe.name] = probe.ops;
  return {{"row", "machine"},
          {"version", TESSERA_VERSION},
          {"cpu", topology.cpu_name},
          {"isa", ReadIsa().ToString()},
          {"threads", rates.threads},
          {"read_bytes_per_second", rates.read_bytes},
          {"float_ops_per_second", rates.float_ops},
          {"bfloat16_ops_per_second", rates.bfloat16_ops},
          {"int5_ops_per_second", rates.int5_ops},
          {"int6_ops_per_second", rates.int6_ops},
          {"int8_ops_per_second", rates.int8_ops},
          {"barrier_seconds", rates.barrier_seconds},
          {"probe_ops_per_second", std::move(probes)}};
}

json::Object CaseJson(const std::string& model, const BenchRow& row) {
  const BenchFigures& figures = row.figures;
  const runtime::SessionStats& counted = figures.counted;
  const auto per_step = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(counted.steps);
  };
  return {
      {"row", "case"},
      {"model", model},
      {"test", row.test.Name()},
      {"kind", row.test.is_prompt ? "pp" : "tg"},
      {"tokens", row.test.tokens},
      {"depth", row.test.depth},
      {"batch", row.test.batch},
      {"threads", row.rates.threads},
      {"tokens_per_second_median", figures.Median()},
      {"tokens_per_second_mean", figures.Mean()},
      {"tokens_per_second_sd", figures.Deviation()},
      {"tokens_per_second_min", figures.Min()},
      {"tokens_per_second_max", figures.Max()},
      {"samples", json::Array(figures.tokens_per_second.begin(), figures.tokens_per_second.end())},
      {"steps", counted.steps},
      {"weight_bytes_per_step", per_step(counted.weight_bytes)},
      {"kv_bytes_per_step", per_step(counted.kv_bytes)},
      {"macs_per_step", per_step(counted.matmul_macs + counted.attention_macs)},
      {"barriers_per_step", per_step(counted.barriers)},
      {"barriers_per_layer", row.BarriersPerLayer()},
      {"weight_bytes_per_second", row.WeightBytesPerSecond()},
      {"read_bytes_per_second", row.ReadBytesPerSecond()},
      {"ops_per_second", row.OpsPerSecond()},
      {"probe_read_bytes_per_second", row.rates.read_bytes},
      {"share_of_read", row.ShareOfRead()},
      {"share_of_peak", row.ShareOfArithmetic()},
      {"bound_tokens_per_second", row.BoundTokensPerSecond()},
      {"share_of_bound", figures.Median() / row.BoundTokensPerSecond()}};
}

}  // namespace tessera::cli
