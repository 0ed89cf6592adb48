// SPDX-License-Identifier: Apache-2.0
//
// tessera benchmark-module: times the functions of a compiled model, with the flags and the row
// names of iree-benchmark-module. Google Benchmark measures and reports; its own flags
// (--benchmark_repetitions=3, --benchmark_format=json, ...) pass through.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <initializer_list>

#include "cli/module_function.h"
#include "cli/module_input.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "bundle/bundle.h"
#include "bundle/limits.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string module;
  std::vector<std::string> parameters;
  std::vector<std::string> devices;
  std::string function;
  std::vector<std::string> inputs;
  std::string time_unit = "ms";
  int64_t batch_size = 1;
  int threads = 0;
  int64_t context = 128;
  std::string isa = "auto";
  bool print_statistics = false;
  std::vector<std::string> library_flags;  // "--benchmark_repetitions=3"
};

/// Of Google Benchmark: --benchmark_NAME=VALUE.
struct LibraryFlag {
  std::string_view name;
  std::string_view does;
  std::initializer_list<std::string> values;  // Empty: any, the library checks it.
};
const LibraryFlag kLibraryFlags[] = {
    {"repetitions",
     "How often each function is measured; more than one gives mean and deviation",
     {}},
    {"min_time", "Seconds that a measurement takes at the least", {}},
    {"filter", "Only benchmarks whose names match this regular expression", {}},
    {"format", "Of the report on stdout", {"console", "json", "csv"}},
    {"out", "A file that gets the report, too", {}},
    {"out_format", "Of that file", {"console", "json", "csv"}},
    {"report_aggregates_only", "Only mean, median and deviation", {"true", "false"}},
    {"counters_tabular", "Counters in columns", {"true", "false"}},
    {"list_tests", "Name the benchmarks instead of running them", {"true", "false"}}};

/// "[scope=]path". The scope of our parameters is `model`, as exporters have it.
Result<fs::path> ParameterPath(const std::string& value) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return fs::path(value);
  const std::string scope = value.substr(0, equals);
  if (scope == "model") return fs::path(value.substr(equals + 1));
  return Fail(InvalidArgument(fmt::format(
      "--parameters={}: the scope is \"{:.40}\"; parameters of a model have the scope \"model\"",
      value, scope)));
}

Result<bundle::Bundle> OpenModule(const Options& options) {
  const fs::path path = options.module;
  if (path.extension() == ".vmfb")
    return Fail(Unimplemented(fmt::format(
        "{}: IREE programs are not built in; name a program.json or a bundle", options.module)));
  std::error_code error;
  if (options.parameters.empty()) {
    const fs::path folder = fs::is_directory(path, error) ? path : path.parent_path();
    return bundle::OpenBundle(folder, bundle::Check::kSizesAndSmallFiles);
  }
  bundle::Parts parts;
  parts.program = fs::is_directory(path, error) ? path / bundle::kProgramFile : path;
  parts.config = parts.program.parent_path() / bundle::kConfigFile;
  for (const std::string& value : options.parameters) {
    TESSERA_ASSIGN_OR_RETURN(fs::path file, ParameterPath(value));
    parts.parameters.push_back(std::move(file));
  }
  return bundle::OpenParts(parts);
}

Status CheckDevices(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    if (device == "cpu" || device == "local-task" || device == "local-sync") continue;
    return Unimplemented(fmt::format(
        "--device={:.60}: programs of the cpu target run on cpu (local-task and local-sync mean "
        "the same)",
        device));
  }
  return {};
}

Result<std::vector<ModuleInput>> InputsOf(const Options& options, const bundle::Bundle& bundle,
                                          const FunctionName& function) {
  if (options.inputs.empty()) return SampleInputs(bundle, function, options.context);
  std::vector<ModuleInput> inputs;
  for (const std::string& text : options.inputs) {
    auto input = ParseModuleInput(text);
    if (!input.has_value())
      return Fail(input.error().WithContext(fmt::format("--input number {}", inputs.size())));
    inputs.push_back(*std::move(input));
  }
  return inputs;
}

benchmark::TimeUnit UnitOf(const std::string& name) {
  if (name == "ns") return benchmark::kNanosecond;
  if (name == "us") return benchmark::kMicrosecond;
  return name == "s" ? benchmark::kSecond : benchmark::kMillisecond;
}

void Measure(benchmark::State& state, ModuleFunction* function, int64_t batch_size) {
  while (state.KeepRunningBatch(batch_size)) {
    for (int64_t i = 0; i < batch_size; ++i) {
      const Status status = function->Run();
      if (status.ok()) continue;
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

Status BenchmarkModule(const Options& options) {
  TESSERA_RETURN_IF_ERROR(CheckDevices(options.devices));
  TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle bundle, OpenModule(options));
  const std::vector<std::string> names = options.function.empty()
                                             ? FunctionNames(bundle.config)
                                             : std::vector<std::string>{options.function};
  if (options.function.empty() && !options.inputs.empty())
    return InvalidArgument("--input goes with --function: every function takes other inputs");
  runtime::LoadOptions load;
  load.threads = options.threads;
  TESSERA_ASSIGN_OR_RETURN(load.isa, CapIsa(ReadIsa(), options.isa));
  std::vector<std::unique_ptr<ModuleFunction>> functions;
  for (const std::string& name : names) {
    TESSERA_ASSIGN_OR_RETURN(const FunctionName function, FindFunction(bundle.config, name));
    TESSERA_ASSIGN_OR_RETURN(const std::vector<ModuleInput> inputs,
                             InputsOf(options, bundle, function));
    auto made = ModuleFunction::Make(bundle, function, inputs, load);
    if (!made.has_value()) return made.error().WithContext(name);
    functions.push_back(*std::move(made));
  }
  std::vector<std::string> words = {"tessera benchmark-module"};
  words.insert(words.end(), options.library_flags.begin(), options.library_flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  auto argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    return InvalidArgument(
        fmt::format("{}: no flag of Google Benchmark, or no value of it", argv[1]));
  for (size_t i = 0; i < names.size(); ++i) {
    ModuleFunction* function = functions[i].get();
    const int64_t batch = options.batch_size;
    benchmark::RegisterBenchmark(
        fmt::format("BM_{}", names[i]).c_str(),
        [function, batch](benchmark::State& state) { Measure(state, function, batch); })
        ->MeasureProcessCPUTime()
        ->UseRealTime()
        ->Unit(UnitOf(options.time_unit));
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (options.print_statistics)
    for (size_t i = 0; i < names.size(); ++i)
      Note("{}: {} tokens a call\n", names[i], functions[i]->tokens());
  return {};
}

}  // namespace

void AddBenchmarkModule(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "benchmark-module",
      "Time the functions of a compiled model, with the flags of iree-benchmark-module");
  verb->add_option("--module", options->module, "A program.json or a bundle")->required();
  verb->add_option("--parameters", options->parameters,
                   "[model=]FILE, once for each archive (default: those of the bundle)")
      ->allow_extra_args(false);
  verb->add_option("--device", options->devices, "cpu, local-task or local-sync: the same here")
      ->allow_extra_args(false);
  verb->add_option("--function", options->function, "prefill_bsN or decode_bsN (default: all)");
  verb->add_option("--input", options->inputs,
                   "SHAPExTYPE[=VALUES or @FILE] or @FILE.npy, once for each input of the "
                   "function (default: made up, see --context)")
      ->allow_extra_args(false);
  verb->add_option("--context", options->context,
                   "Tokens of each sequence of the inputs that are made up")
      ->check(WholeNumber(1, bundle::kMaxContext))
      ->capture_default_str();
  verb->add_option("--batch_size", options->batch_size, "Calls that count as one iteration")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--time_unit", options->time_unit, "Of the report")
      ->check(CLI::IsMember({"ns", "us", "ms", "s"}))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(WholeNumber(0, 1024));
  verb->add_option(
      "--isa", options->isa,
      "Highest instruction set to use: auto, ref, avx2, avx_vnni, avx512, avx512_vnni");
  verb->add_flag("--print_statistics", options->print_statistics,
                 "Tokens of each call, at the end");
  for (const LibraryFlag& flag : kLibraryFlags) {
    const std::string name = fmt::format("--benchmark_{}", flag.name);
    CLI::Option* option = verb->add_option_function<std::string>(
        name,
        [options, name](const std::string& value) {
          options->library_flags.push_back(fmt::format("{}={}", name, value));
        },
        std::string(flag.does));
    if (flag.values.size() > 0) option->check(CLI::IsMember(std::vector<std::string>(flag.values)));
  }
  verb->callback(
      [options, context] { RunVerb(context, [&] { return BenchmarkModule(*options); }); });
}

}  // namespace tessera::cli
