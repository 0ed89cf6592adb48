// SPDX-License-Identifier: Apache-2.0
//
// tessera compile MODEL (also installed as shark-compile): repository -> bundle, in the cache or in
// a folder of its own. Prints the bundle's path on stdout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/dev_artifacts.h"
#include "cli/emit_dataset.h"
#include "cli/loaded_model.h"
#include "cli/number_list.h"
#include "cli/rank_options.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/json.h"
#include "bundle/bundle.h"
#include "bundle/export.h"
#include "bundle/limits.h"
#include "compiler/explain.h"

namespace tessera::cli {
namespace {

struct Options {
  LoadOptions load;
  std::string output;
  std::string dev_output;
  std::string prefill_sizes = "1,4";
  std::string decode_sizes = "1,4,8";
  bool no_certificate = false;
  bool json = false;
};

/// The bundle, or its copy where the user wants one.
Result<std::filesystem::path> Exported(const std::filesystem::path& bundle,
                                       const Options& options) {
  if (options.output.empty()) return bundle;
  TESSERA_RETURN_IF_ERROR(bundle::Export(bundle, options.output));
  return options.output;
}

/// Absolute, links resolved as far as there is something, no slash at the end.
std::filesystem::path Whole(const std::filesystem::path& path) {
  std::error_code error;  // What cannot be examined fails where it is used.
  const auto whole =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return whole.has_filename() ? whole : whole.parent_path();
}

/// `path` is `folder` or lies in it.
bool IsIn(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

/// Whether the folders can be written to, before hours of work for them.
Status CheckTargets(const Options& options) {
  if (!options.output.empty())
    TESSERA_RETURN_IF_ERROR(
        bundle::CheckExportTarget(options.output).WithContext("--output-artifacts-dir"));
  if (!options.dev_output.empty())
    TESSERA_RETURN_IF_ERROR(
        CheckDevFolder(options.dev_output).WithContext("--output-dev-artifacts-dir"));
  if (!options.load.emit_dataset.empty())
    TESSERA_RETURN_IF_ERROR(
        CheckDatasetTarget(options.load.emit_dataset).WithContext("--emit-dataset"));
  if (options.output.empty() || options.dev_output.empty()) return {};
  const std::filesystem::path output = Whole(options.output);
  const std::filesystem::path dev_output = Whole(options.dev_output);
  if (!IsIn(output, dev_output) && !IsIn(dev_output, output)) return {};
  return InvalidArgument(fmt::format(
      "--output-artifacts-dir {} and --output-dev-artifacts-dir {} lie in one another; name two "
      "folders side by side",
      options.output, options.dev_output));
}

Status Compile(Options options) {
  compiler::CompileOptions& compile = options.load.compile;
  TESSERA_ASSIGN_OR_RETURN(compile.prefill_batch_sizes, ParseNumberList(options.prefill_sizes, 1));
  TESSERA_ASSIGN_OR_RETURN(compile.decode_batch_sizes, ParseNumberList(options.decode_sizes, 1));
  options.load.certify = !options.no_certificate;
  bool compiled = false;  // Not called for what is a bundle already.
  TESSERA_RETURN_IF_ERROR(CheckTargets(options));
  const auto deliver = [&](const compiler::CompileInput& input,
                           const compiler::CompileReport& report) -> Status {
    compiled = true;
    TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path made, Exported(report.bundle, options));
    if (options.dev_output.empty()) return {};
    compiler::CompileOptions explained = compile;
    explained.quantize = report.quantize;
    TESSERA_ASSIGN_OR_RETURN(const compiler::Explanation explanation,
                             compiler::Explain(input, explained, report));
    return WriteDevArtifacts(options.dev_output, made, explanation);
  };
  TESSERA_ASSIGN_OR_RETURN(compiler::CompileReport report, EnsureBundle(options.load, deliver));
  if (!compiled && !options.dev_output.empty())
    return FailedPrecondition(fmt::format(
        "--output-dev-artifacts-dir tells what the compiler decides about a repository, and {} is "
        "a bundle; name its repository",
        options.load.model));
  std::filesystem::path folder =
      options.output.empty() ? report.bundle : std::filesystem::path(options.output);
  if (!compiled && !options.output.empty()) {
    TESSERA_RETURN_IF_ERROR(StatusOf(Exported(report.bundle, options)));
  } else if (!compiled) {
    const std::string reason =
        fmt::format("{} is a bundle already: nothing to compile", options.load.model);
    Note("{}\n", reason);
    report.reasons.push_back(reason);
  }
  if (!options.json) {
    fmt::print("{}\n", folder.string());
    return {};
  }
  json::Array reasons, notes, stages;
  for (const auto& stage : report.stages)
    stages.push_back(
        json::Object{{"name", stage.name}, {"bytes", stage.bytes}, {"seconds", stage.seconds}});
  for (const std::string& reason : report.reasons) reasons.emplace_back(reason);
  for (const std::string& note : report.notes) notes.emplace_back(note);
  json::Object facts = {{"bundle", folder.string()},
                        {"reused", report.reused},
                        {"parameter_bytes", report.parameter_bytes},
                        {"stages", std::move(stages)},
                        {"reasons", std::move(reasons)},
                        {"notes", std::move(notes)}};
  TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest, bundle::LoadManifest(folder));
  if (manifest.parity) facts["parity"] = bundle::ParityToJson(*manifest.parity);
  fmt::print("{}", json::SerializePretty(facts));
  return {};
}

}  // namespace

void AddCompile(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  compiler::CompileOptions& compile = options->load.compile;
  CLI::App* verb =
      app->add_subcommand("compile", "Repository -> bundle (also named shark-compile)");
  options->load.given = [verb](std::string_view flag) {
    const CLI::Option* option = verb->get_option_no_throw(std::string(flag));
    return option != nullptr && option->count() > 0;
  };
  CLI::Option* model =
      verb->add_option("MODEL", options->load.model,
                       "A repository (org/repo[@revision][:QUANT]), a folder, a "
                       "GGUF file or a dataset (.irpa); a bundle only to be copied");
  verb->add_option("--hf-model", options->load.model, "The same as MODEL")->excludes(model);
  verb->add_option("--cache-dir", options->load.cache_dir, "Where bundles are kept");
  AddHubOptions(verb, &options->load.hub);
  verb->add_option("--compile-target", compile.target, "cpu, x86-64-v3 or x86-64-v4")
      ->capture_default_str();
  AddRankOptions(verb, &compile);
  verb->add_option("--output-artifacts-dir", options->output,
                   "Copy the bundle here; an older bundle there is replaced");
  verb->add_option("--output-dev-artifacts-dir", options->dev_output,
                   "What a bug report needs beside the bundle: flags and inputs of "
                   "benchmark-module, the passes' decisions, versions, reproduce.sh");
  verb->add_option("--emit-dataset", options->load.emit_dataset,
                   "Also write the weights as a dataset that sharktank reads: FILE.irpa, or a "
                   "folder; of several ranks FILE.rank0.irpa, ... beside it");
  verb->add_flag(
      "--use-hf", options->load.use_hf,
      "A dataset's q and k are in Hugging Face's order (rotary pairs half a head apart), "
      "whatever its rope.interleave_emb says");
  verb->add_option("--quantize", compile.quantize,
                   "What float matrices become: none, q8_0, q6_k, q4_1, q4_k, q4_0, or auto: the "
                   "finest that fits into memory with its KV cache")
      ->capture_default_str();
  verb->add_option(
      "--imatrix", options->load.imatrix,
      "An importance matrix of llama-imatrix (.dat or .gguf) that weighs the errors of "
      "--quantize");
  verb->add_flag(
      "--no-certificate", options->no_certificate,
      "Do not measure how near quantised weights are to the original (manifest: parity)");
  verb->add_option("--max-seq-len,--max-model-len", compile.max_seq_len,
                   "Longest sequence (0 = the model's own)")
      ->check(WholeNumber(0, bundle::kMaxContext));
  verb->add_option("--bs-prefill", options->prefill_sizes, "Prefill batch sizes in config.json")
      ->check(NumberList(1, compiler::kMaxBatchSize))
      ->capture_default_str();
  verb->add_option("--bs-decode", options->decode_sizes, "Decode batch sizes in config.json")
      ->check(NumberList(1, compiler::kMaxBatchSize))
      ->capture_default_str();
  verb->add_option("--block-seq-stride", compile.page_tokens, "Positions of a KV page")
      ->check(WholeNumber(16, bundle::kMaxPageTokens))
      ->capture_default_str();
  verb->add_option("--device-block-count", compile.device_block_count,
                   "KV pages in config.json (0 = one sequence)")
      ->check(WholeNumber(0, bundle::kMaxDeviceBlocks));
  AddEnsureOptions(verb, &compile);
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] {
    if (options->load.model.empty())
      return ReportUsage(context, InvalidArgument("MODEL (or --hf-model) is required"));
    RunVerb(context, [&] { return Compile(*options); });
  });
}

}  // namespace tessera::cli
