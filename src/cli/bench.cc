// SPDX-License-Identifier: Apache-2.0
//
// tessera bench: speed of a model on this machine over a grid of prompts, generations, depths and
// batches (bench_case.h), beside what the machine could do (runtime/machine_probe.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "cli/bench_case.h"
#include "cli/bench_report.h"
#include "cli/bench_run.h"
#include "cli/loaded_model.h"
#include "cli/number_list.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/clock.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "bundle/limits.h"

namespace tessera::cli {
namespace {

// Beyond any model; so that no product below overflows.
constexpr int64_t kMaxTokens = bundle::kMaxContext;
constexpr int64_t kMaxSequences = 1 << 16;
constexpr auto kProbeInterval = std::chrono::seconds(3);

struct Options {
  LoadOptions load;
  std::string prompts = "512";
  std::string generations = "128";
  std::string depths = "0";
  std::string batches = "1";
  int repetitions = 5;
  bool roofline = false;
  bool json = false;
};

Result<std::vector<BenchCase>> Grid(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(const auto prompts, ParseNumberList(options.prompts, 0));
  TESSERA_ASSIGN_OR_RETURN(const auto generations, ParseNumberList(options.generations, 0));
  TESSERA_ASSIGN_OR_RETURN(const auto depths, ParseNumberList(options.depths, 0));
  TESSERA_ASSIGN_OR_RETURN(const auto batches, ParseNumberList(options.batches, 1));
  std::vector<BenchCase> grid = BenchGrid(prompts, generations, depths, batches);
  if (grid.empty()) return Fail(InvalidArgument("nothing to measure: -p and -n are all 0"));
  return grid;
}

/// With the roofline at one thread, too; the last one is the session's.
Result<std::vector<runtime::MachineRates>> Probe(const Options& options, const Topology& topology) {
  const int threads = options.load.threads > 0 ? options.load.threads : topology.DefaultThreads();
  std::vector<runtime::MachineRates> machines;
  if (options.roofline && threads > 1) {
    TESSERA_ASSIGN_OR_RETURN(machines.emplace_back(), runtime::MeasureMachine(topology, 1));
  }
  TESSERA_ASSIGN_OR_RETURN(machines.emplace_back(), runtime::MeasureMachine(topology, threads));
  return machines;
}

Status PrintLine(const json::Object& row) {
  return WriteStdout(json::Serialize(row) + "\n");
}

Status Bench(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<BenchCase> grid, Grid(options));
  LoadOptions load = options.load;
  // Sequences take whole pages, of which the bundle knows the size: room for one more each.
  if (load.kv.bytes == 0)
    for (const BenchCase& test : grid)
      load.kv.tokens =
          std::max(load.kv.tokens, test.batch * (test.length() + load.compile.page_tokens));
  TESSERA_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(load));
  const runtime::ModelShape& shape = model.session->shape();
  for (const BenchCase& test : grid) TESSERA_RETURN_IF_ERROR(CheckFits(test, shape));
  TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle bundle,
                           bundle::OpenBundle(model.bundle, bundle::Check::kSizesAndSmallFiles));
  TESSERA_ASSIGN_OR_RETURN(const kernels::KvType kv_type, KvTypeOf(load.kv_dtype));
  const runtime::ProgramWork work(bundle.program, kv_type);

  const Topology topology = ReadTopology();
  TESSERA_ASSIGN_OR_RETURN(std::vector<runtime::MachineRates> machines, Probe(options, topology));
  runtime::MachineRates& rates = machines.back();
  TimePoint probed = Clock::Real().Now();
  if (options.json) {
    for (const runtime::MachineRates& each : machines)
      TESSERA_RETURN_IF_ERROR(PrintLine(MachineJson(topology, each)));
  } else {
    fmt::print("{}: {} threads, {}, {}\n\n", model.name, rates.threads, topology.cpu_name,
               ReadIsa().ToString());
    if (options.roofline) PrintMachineTable(machines);
    PrintCaseHeader(options.roofline);
  }
  for (const BenchCase& test : grid) {
    TESSERA_ASSIGN_OR_RETURN(BenchFigures figures,
                             RunBenchCase(model.session.get(), test, options.repetitions));
    // Again, near the figures: a neighbour may have been at work before.
    if (Clock::Real().Now() - probed > kProbeInterval) {
      TESSERA_ASSIGN_OR_RETURN(const runtime::MachineRates again,
                               runtime::MeasureMachine(topology, rates.threads));
      rates.KeepBest(again);
      probed = Clock::Real().Now();
    }
    const BenchBound bound = BoundOf(BenchSteps(test, shape.max_rows), work, rates);
    const BenchRow row{test, std::move(figures), bound, rates, shape.layers};
    if (options.json) {
      TESSERA_RETURN_IF_ERROR(PrintLine(CaseJson(model.name, row)));
    } else {
      PrintCase(row, options.roofline);
      TESSERA_RETURN_IF_ERROR(FlushStdout());
    }
  }
  return {};
}

}  // namespace

void AddBench(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "bench", "Speed: prompt processing and generation, over depths and batches");
  AddLoadOptions(verb, &options->load);
  verb->add_option("-p,--n-prompt", options->prompts, "Prompt lengths (0 = none)")
      ->check(NumberList(0, kMaxTokens))
      ->capture_default_str();
  verb->add_option("-n,--n-gen", options->generations, "Tokens to generate (0 = none)")
      ->check(NumberList(0, kMaxTokens))
      ->capture_default_str();
  verb->add_option("-d,--n-depth", options->depths, "Positions already in the context")
      ->check(NumberList(0, kMaxTokens))
      ->capture_default_str();
  verb->add_option("-b,--batch", options->batches, "Sequences at once")
      ->check(NumberList(1, kMaxSequences))
      ->capture_default_str();
  verb->add_option("-r,--repetitions", options->repetitions, "Counted runs of each")
      ->check(WholeNumber(1, 1000))
      ->capture_default_str();
  verb->add_flag("--roofline", options->roofline,
                 "Show the machine's rates and the bound that they set for each figure");
  verb->add_flag("--json", options->json, "One JSON line a row on stdout");
  verb->callback([options, context] { RunVerb(context, [&] { return Bench(*options); }); });
}

}  // namespace tessera::cli
