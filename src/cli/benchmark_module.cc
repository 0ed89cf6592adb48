// SPDX-License-Identifier: Apache-2.0
//
// tessera benchmark-module: times the functions of a compiled model, with the flags and the row
// names of iree-benchmark-module. Google Benchmark measures and reports; its own flags
// (--benchmark_repetitions=3, --benchmark_format=json, ...) pass through.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "cli/module_function.h"
#include "cli/module_input.h"
#include "cli/module_report.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/file.h"
#include "bundle/bundle.h"
#include "bundle/limits.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

/// Of inputs that are made up.
constexpr int64_t kContext = 128;

struct Options {
  std::string module;
  std::vector<std::string> parameters;
  std::vector<std::string> devices;
  std::string function;
  std::vector<std::string> inputs;
  std::string time_unit = "ms";
  int64_t batch_size = 1;
  int threads = 0;
  int64_t context = 0;
  std::string isa = "auto";
  bool print_statistics = false;
  MinTime min_time;
  std::string format = "console";
  std::string out_format = "json";
  std::string out;
  std::string color = "auto";
  int64_t repetitions = 1;
  double warmup_seconds = 0;
  bool tabular = false;
  bool lists = false;
  std::vector<std::string> library_flags;  // "--benchmark_repetitions=3"
};

/// Of Google Benchmark: --benchmark_NAME=VALUE.
struct LibraryFlag {
  std::string_view name;
  std::string_view does;
  std::initializer_list<std::string> values;  // Empty: any.
  std::string Options::*keep = nullptr;       // Where we need to know it, too.
};
const LibraryFlag kLibraryFlags[] = {
    {"filter", "Only benchmarks whose names match this regular expression", {}},
    {"format", "Of the report on stdout", {"console", "json", "csv"}, &Options::format},
    {"out", "A file that gets the report, too", {}, &Options::out},
    {"out_format", "Of that file", {"console", "json", "csv"}, &Options::out_format},
    {"context", "KEY=VALUE,... for the report's head", {}},
    {"color", "Of the report on stdout", {"auto", "true", "false"}, &Options::color}};

/// --benchmark_NAME, --benchmark_NAME=true or --benchmark_NAME=false.
struct LibrarySwitch {
  std::string_view name;
  std::string_view does;
  bool Options::*keep = nullptr;
};
constexpr LibrarySwitch kLibrarySwitches[] = {
    {"report_aggregates_only", "Only mean, median and deviation"},
    {"display_aggregates_only", "The same on stdout; the file gets all"},
    {"enable_random_interleaving", "Repetitions of functions take turns"},
    {"counters_tabular", "Counters in columns", &Options::tabular},
    {"list_tests", "Name the benchmarks instead of running them", &Options::lists}};

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
  if (!fs::exists(path, error))
    return Fail(NotFound(
        fmt::format("--module: {} is not there; name a program.json or a bundle", options.module)));
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
  if (options.inputs.empty()) {
    const int64_t room = std::max<int64_t>(bundle.program.dims.max_seq_len - 1, 1);
    const int64_t context = options.context > 0 ? options.context : std::min(kContext, room);
    return SampleInputs(bundle, function, context);
  }
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

/// A report that cannot be written: the library would end the process.
Status CheckReportFile(const std::vector<std::string>& flags) {
  constexpr std::string_view kOut = "--benchmark_out=";
  for (const std::string& flag : flags) {
    if (!flag.starts_with(kOut)) continue;
    const std::string path = flag.substr(kOut.size());
    if (!std::ofstream(path, std::ios::app))
      return ErrnoStatus(errno, "--benchmark_out: creating", path);
  }
  return {};
}

/// The error of the first call that failed; a row of the report alone would be a success.
Status g_failed;

void Measure(benchmark::State& state, ModuleFunction* function, int64_t batch_size) {
  while (state.KeepRunningBatch(batch_size)) {
    for (int64_t i = 0; i < batch_size; ++i) {
      const Status status = function->Run();
      if (status.ok()) continue;
      state.SkipWithError(status.ToString().c_str());
      if (g_failed.ok()) g_failed = status;
      return;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void Register(const std::string& name, ModuleFunction* function, const Options& options) {
  const int64_t batch = options.batch_size;
  auto* benchmark = benchmark::RegisterBenchmark(
      fmt::format("BM_{}", name).c_str(),
      [function, batch](benchmark::State& state) { Measure(state, function, batch); });
  benchmark->MeasureProcessCPUTime()->UseRealTime()->Unit(UnitOf(options.time_unit));
  if (options.min_time.iterations > 0) benchmark->Iterations(options.min_time.iterations);
}

/// False when --benchmark_filter leaves nothing to run.
bool RunAndReport(const Options& options) {
  const bool in_color = options.color == "true" || (options.color == "auto" && StdoutIsTerminal());
  const auto display = MakeModuleReporter(options.format, {in_color, options.tabular});
  std::unique_ptr<benchmark::BenchmarkReporter> file;  // The library refuses one without a file.
  if (!options.out.empty()) file = MakeModuleReporter(options.out_format, {});
  const size_t matched = benchmark::RunSpecifiedBenchmarks(display.get(), file.get());
  benchmark::Shutdown();
  return matched > 0 || options.lists;
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
  TESSERA_RETURN_IF_ERROR(CheckReportFile(options.library_flags));
  std::vector<std::string> words = {"tessera benchmark-module"};
  words.insert(words.end(), options.library_flags.begin(), options.library_flags.end());
  words.push_back(fmt::format("--benchmark_repetitions={}", options.repetitions));
  words.push_back(fmt::format("--benchmark_min_warmup_time={}", options.warmup_seconds));
  if (options.min_time.seconds > 0)
    words.push_back(fmt::format("--benchmark_min_time={}", options.min_time.seconds));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  auto argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    return InvalidArgument(
        fmt::format("{}: no flag of Google Benchmark, or no value of it", argv[1]));
  for (size_t i = 0; i < names.size(); ++i) Register(names[i], functions[i].get(), options);
  if (!RunAndReport(options))
    return NotFound(
        fmt::format("--benchmark_filter matches none of BM_{}", fmt::join(names, ", BM_")));
  TESSERA_RETURN_IF_ERROR(g_failed);
  if (options.print_statistics)
    for (size_t i = 0; i < names.size(); ++i)
      Note("{}: {} tokens a call\n", names[i], functions[i]->tokens());
  return {};
}

void AddLibraryFlags(CLI::App* verb, const std::shared_ptr<Options>& options) {
  verb->add_option("--benchmark_repetitions", options->repetitions,
                   "How often each function is measured; more than one gives mean and deviation")
      ->check(WholeNumber(1, 1'000'000));
  verb->add_option_function<std::string>(
          "--benchmark_min_time",
          [options](const std::string& text) { options->min_time = *ParseMinTime(text); },
          "What a measurement takes at the least: seconds (0.5 or 0.5s), or a number of "
          "iterations (10x)")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            if (ParseMinTime(text)) return {};
            return fmt::format("\"{:.40}\": expected seconds (0.5 or 0.5s) or iterations (10x)",
                               text);
          },
          ""));
  verb->add_option("--benchmark_min_warmup_time", options->warmup_seconds,
                   "Seconds that each function runs before it is measured")
      ->check(Number(0, 1e6));
  for (const LibraryFlag& flag : kLibraryFlags) {
    const std::string name = fmt::format("--benchmark_{}", flag.name);
    CLI::Option* option = verb->add_option_function<std::string>(
        name,
        [options, name, keep = flag.keep](const std::string& value) {
          options->library_flags.push_back(fmt::format("{}={}", name, value));
          if (keep != nullptr) (*options).*keep = value;
        },
        std::string(flag.does));
    if (flag.values.size() > 0) option->check(CLI::IsMember(std::vector<std::string>(flag.values)));
  }
  for (const LibrarySwitch& flag : kLibrarySwitches) {
    const std::string name = fmt::format("--benchmark_{}", flag.name);
    verb->add_flag_function(
        name,
        [options, name, keep = flag.keep](int64_t count) {
          options->library_flags.push_back(fmt::format("{}={}", name, count > 0));
          if (keep != nullptr) (*options).*keep = count > 0;
        },
        std::string(flag.does));
  }
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
                   "Tokens of each sequence of the inputs that are made up (default: 128, or what "
                   "the model has room for)")
      ->check(WholeNumber(1, bundle::kMaxContext));
  verb->add_option("--batch_size", options->batch_size, "Calls that count as one iteration")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--time_unit,--benchmark_time_unit", options->time_unit, "Of the report")
      ->check(CLI::IsMember({"ns", "us", "ms", "s"}))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(WholeNumber(0, 1024));
  verb->add_option(
      "--isa", options->isa,
      "Highest instruction set to use: auto, ref, avx2, avx_vnni, avx512, avx512_vnni");
  verb->add_flag("--print_statistics", options->print_statistics,
                 "Tokens of each call, at the end");
  AddLibraryFlags(verb, options);
  verb->callback(
      [options, context] { RunVerb(context, [&] { return BenchmarkModule(*options); }); });
}

}  // namespace tessera::cli
