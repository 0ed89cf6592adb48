// SPDX-License-Identifier: Apache-2.0
//
// tessera compile MODEL (also installed as shark-compile): repository -> bundle, in the cache or in
// a folder of its own. Prints the bundle's path on stdout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#include "base/json.h"

namespace tessera::cli {
namespace {

struct Options {
  LoadOptions load;
  std::string model_flag;
  std::string sharding = "tp1";
  std::string output;
  bool json = false;
};

/// "tp4" -> 4.
Result<int64_t> ParseSharding(const std::string& mode) {
  if (mode.size() == 3 && mode.starts_with("tp") && mode[2] >= '1' && mode[2] <= '8')
    return mode[2] - '0';
  return Fail(
      InvalidArgument(fmt::format("--sharding-mode \"{}\" is unknown; expected tp1 to tp8", mode)));
}

/// Copies the bundle's files to a folder of the user's, complete or not at all.
Status CopyBundle(const std::filesystem::path& bundle, const std::filesystem::path& target) {
  std::error_code error;
  if (std::filesystem::exists(target / "manifest.json")) std::filesystem::remove_all(target, error);
  std::filesystem::create_directories(target.parent_path().empty() ? "." : target.parent_path(),
                                      error);
  std::filesystem::path temporary = target;
  temporary += ".tmp";
  std::filesystem::remove_all(temporary, error);
  std::filesystem::copy(bundle, temporary, std::filesystem::copy_options::recursive, error);
  if (!error && std::filesystem::exists(target) && !std::filesystem::is_empty(target))
    error = std::make_error_code(std::errc::directory_not_empty);
  if (!error) std::filesystem::remove(target, error);
  if (!error) std::filesystem::rename(temporary, target, error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove_all(temporary, ignored);
  return Unavailable(
      fmt::format("the bundle cannot be copied to {}: {}", target.string(), error.message()));
}

Status Compile(Options options) {
  if (options.load.model.empty() == options.model_flag.empty())
    return InvalidArgument("name the model once: as MODEL or with --hf-model");
  if (options.load.model.empty()) options.load.model = options.model_flag;
  TESSERA_ASSIGN_OR_RETURN(options.load.compile.tensor_parallel, ParseSharding(options.sharding));
  TESSERA_ASSIGN_OR_RETURN(const compiler::CompileReport report, EnsureBundle(options.load));
  std::filesystem::path bundle = report.bundle;
  if (!options.output.empty()) {
    TESSERA_RETURN_IF_ERROR(CopyBundle(bundle, options.output));
    bundle = options.output;
  }
  for (const auto& pass : report.passes)
    fmt::print(stderr, "pass {:<20} {}\n", pass.name, HumanDuration(pass.seconds));
  if (!options.json) {
    fmt::print("{}\n", bundle.string());
    return {};
  }
  json::Array reasons, notes;
  for (const std::string& reason : report.reasons) reasons.emplace_back(reason);
  for (const std::string& note : report.notes) notes.emplace_back(note);
  fmt::print("{}", json::SerializePretty(json::Object{{"bundle", bundle.string()},
                                                      {"reused", report.reused},
                                                      {"parameter_bytes", report.parameter_bytes},
                                                      {"reasons", std::move(reasons)},
                                                      {"notes", std::move(notes)}}));
  return {};
}

}  // namespace

void AddCompile(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  compiler::CompileOptions& compile = options->load.compile;
  CLI::App* verb =
      app->add_subcommand("compile", "Repository -> bundle (also named shark-compile)");
  verb->add_option("MODEL", options->load.model, "A folder or a GGUF file");
  verb->add_option("--hf-model", options->model_flag, "The same as MODEL");
  verb->add_option("--cache-dir", options->load.cache_dir, "Where bundles are kept");
  verb->add_option("--compile-target", compile.target, "cpu, x86-64-v3 or x86-64-v4")
      ->capture_default_str();
  verb->add_option("--sharding-mode", options->sharding, "Tensor parallelism, tp1 to tp8")
      ->capture_default_str();
  verb->add_option("--output-artifacts-dir", options->output, "Copy the bundle to this folder");
  verb->add_option("--quantize", compile.quantize, "none, q8_0, q4_0 or q4_1 (of float matrices)")
      ->capture_default_str();
  verb->add_option("--max-seq-len", compile.max_seq_len, "Longest sequence (0 = the model's own)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--bs-prefill", compile.prefill_batch_sizes,
                   "Prefill batch sizes in config.json")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  verb->add_option("--bs-decode", compile.decode_batch_sizes, "Decode batch sizes in config.json")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  verb->add_option("--block-seq-stride", compile.page_tokens, "Positions of a KV page")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--device-block-count", compile.device_block_count,
                   "KV pages in config.json (0 = one sequence)")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] { RunVerb(context, [&] { return Compile(*options); }); });
}

}  // namespace tessera::cli
