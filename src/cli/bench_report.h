// SPDX-License-Identifier: Apache-2.0
//
// What `bench` prints: a table for people, or one JSON line a row (docs/cli.md gives the members).
#pragma once

#include <string>
#include <vector>

#include "cli/bench_run.h"

#include "base/json.h"
#include "base/topology.h"
#include "runtime/machine_probe.h"

namespace tessera::cli {

/// A measured case with what it is compared to.
struct BenchRow {
  BenchCase test;
  BenchFigures figures;
  BenchBound bound;
  runtime::MachineRates rates;
  int64_t layers = 1;

  // All over the median run.
  double Seconds() const;
  double WeightBytesPerSecond() const;
  double ReadBytesPerSecond() const;  // Weights and KV.
  double OpsPerSecond() const;
  double ShareOfRead() const;        // Of the probe's read bandwidth.
  double ShareOfArithmetic() const;  // Of the probes' arithmetic, each format by its own.
  double BoundTokensPerSecond() const;
  double BytesPerStep() const;
  double BarriersPerLayer() const;  // And step.
};

void PrintMachineTable(const std::vector<runtime::MachineRates>& machines);
void PrintCaseHeader(bool with_bound);
void PrintCase(const BenchRow& row, bool with_bound);

json::Object MachineJson(const Topology& topology, const runtime::MachineRates& rates);
json::Object CaseJson(const std::string& model, const BenchRow& row);

}  // namespace tessera::cli
