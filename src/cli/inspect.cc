// SPDX-License-Identifier: Apache-2.0
//
// tessera inspect FILE|FOLDER|BUNDLE: what is inside a GGUF, safetensors or IRPA file, a repository
// or a bundle; --dump writes one tensor as float32 to stdout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/inspect_diff.h"
#include "cli/model_argument.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#include "base/file.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "formats/describe.h"
#include "formats/dump.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/describe_dataset.h"
#include "formats/open.h"
#include "model/open.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string path;
  HubOptions hub;
  std::string dump;
  bool raw = false;
  bool json = false;
  bool verify = false;
  std::string other;  // --diff
};

Status WriteBytes(ByteSpan bytes) {
  return WriteStdout({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Status DumpMade(const Options& options);

/// `may_be_made`: names that the file lacks may be weights of the model that it holds.
Status Dump(const Options& options, const formats::ParameterIndex& index,
            bool may_be_made = false) {
  const formats::ParameterEntry* entry = index.Find(options.dump);
  if (entry == nullptr && may_be_made) return DumpMade(options);
  if (entry == nullptr)
    return NotFound(fmt::format("{} has no tensor \"{}\"; tessera inspect {} lists them",
                                options.path, options.dump, options.path));
  TESSERA_RETURN_IF_ERROR(options.raw ? formats::DumpBytes(index, *entry, WriteBytes)
                                      : formats::DumpFloats(index, *entry, WriteBytes));
  return index.CheckIntact();
}

/// A logical tensor of a dataset, a matrix of a quantised repository.
Status DumpMade(const Options& options) {
  const auto source = model::OpenModel(options.path);
  // A file that is no model has its own tensors only.
  return Dump(options, source.has_value() ? source->index : formats::ParameterIndex());
}

/// What a file says: its entries, and of a dataset its logical tensors.
Status ShowFile(const Options& options, const formats::ParameterIndex& index) {
  std::optional<formats::irpa::Dataset> dataset;
  if (formats::irpa::IsDataset(index)) {
    TESSERA_ASSIGN_OR_RETURN(dataset, formats::irpa::ReadDataset(index));
  }
  if (options.json) {
    json::Value report = formats::DescribeJson(index);
    if (dataset) {
      TESSERA_ASSIGN_OR_RETURN(report.get_object()["dataset"],
                               formats::irpa::DescribeDatasetJson(index, *dataset));
    }
    fmt::print("{}", json::SerializePretty(report));
    return {};
  }
  fmt::print("{}", formats::DescribeText(index));
  if (!dataset) return {};
  TESSERA_ASSIGN_OR_RETURN(const std::string text,
                           formats::irpa::DescribeDatasetText(index, *dataset));
  fmt::print("{}", text);
  return {};
}

Status InspectBundle(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(
      const bundle::Bundle bundle,
      bundle::OpenBundle(options.path, options.verify ? bundle::Check::kEverything
                                                      : bundle::Check::kSizesAndSmallFiles));
  if (!options.dump.empty()) return Dump(options, bundle.archive);
  TESSERA_ASSIGN_OR_RETURN(
      const json::Value manifest,
      json::Parse(bundle::WriteManifest(bundle.manifest), {}, bundle::kManifestFile));
  if (options.json) {
    json::Object report;
    report["manifest"] = manifest;
    report["parameters"] = formats::DescribeJson(bundle.archive);
    fmt::print("{}", json::SerializePretty(report));
    return {};
  }
  const bundle::Manifest& m = bundle.manifest;
  fmt::print("bundle       {} for {} ({}), tp{}, quantisation {}\n", m.model, m.target, m.isa,
             m.tensor_parallel, m.quantization);
  fmt::print("made by      tessera {}, key {}\n", m.tessera_version, m.key);
  fmt::print("memory       parameters {}, KV {} a token, scratch {}\n",
             HumanBytes(static_cast<uint64_t>(m.plan.parameter_bytes)),
             HumanBytes(static_cast<uint64_t>(m.plan.kv_bytes_per_token)),
             HumanBytes(static_cast<uint64_t>(m.plan.scratch_bytes)));
  for (const bundle::FileRecord& file : m.files)
    fmt::print("file         {:<26} {:>10}  sha256 {}\n", file.name, HumanBytes(file.bytes),
               file.sha256);
  fmt::print("{}", formats::DescribeText(bundle.archive));
  return {};
}

/// Two of a kind, for what differs.
Status Diff(const Options& options) {
  const auto resolve = [&](const std::string& path) {
    return ResolveModel(path, options.hub, /*cache_dir=*/"", ModelNeed::kWeights);
  };
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel first, resolve(options.path));
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel second, resolve(options.other));
  const bool is_bundle = first.kind == ModelKind::kBundle;
  if (first.kind != second.kind)
    return InvalidArgument(fmt::format(
        "--diff compares two bundles or two parameter files; {} is a bundle, {} is none",
        is_bundle ? options.path : options.other, is_bundle ? options.other : options.path));
  std::vector<Difference> differences;
  if (is_bundle) {
    const auto check =
        options.verify ? bundle::Check::kEverything : bundle::Check::kSizesAndSmallFiles;
    TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle a, bundle::OpenBundle(first.path, check));
    TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle b, bundle::OpenBundle(second.path, check));
    TESSERA_ASSIGN_OR_RETURN(differences, DiffBundles(a, b));
  } else {
    TESSERA_ASSIGN_OR_RETURN(const auto a, formats::Open(first.path, /*with_ranks=*/true));
    TESSERA_ASSIGN_OR_RETURN(const auto b, formats::Open(second.path, /*with_ranks=*/true));
    differences = DiffParameters(a, b);
    TESSERA_RETURN_IF_ERROR(a.CheckIntact());
    TESSERA_RETURN_IF_ERROR(b.CheckIntact());
  }
  fmt::print("{}",
             options.json ? json::SerializePretty(DiffReport(differences)) : DiffText(differences));
  return {};
}

Status Inspect(Options options) {
  if (!options.other.empty()) return Diff(options);
  const ModelNeed need = options.dump.empty() ? ModelNeed::kHeaders : ModelNeed::kWeights;
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel model,
                           ResolveModel(options.path, options.hub, /*cache_dir=*/"", need));
  options.path = model.path;
  if (model.kind == ModelKind::kBundle) return InspectBundle(options);
  TESSERA_ASSIGN_OR_RETURN(const auto index, formats::Open(options.path, /*with_ranks=*/true));
  if (!options.dump.empty()) return Dump(options, index, /*may_be_made=*/true);
  return ShowFile(options, index);
}

}  // namespace

void AddInspect(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app->add_subcommand("inspect", "What is inside a parameter file, repository or bundle");
  verb->add_option("PATH", options->path,
                   "GGUF, safetensors or IRPA file, folder, bundle or repository")
      ->required();
  AddHubOptions(verb, &options->hub);
  CLI::Option* dump = verb->add_option("--dump", options->dump,
                                       "Write this tensor as float32 little-endian to stdout");
  verb->add_flag("--raw", options->raw, "With --dump: the stored bytes instead")->needs(dump);
  verb->add_option("--diff", options->other,
                   "Of two bundles or two parameter files: what differs, with both values")
      ->excludes(dump);
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->add_flag("--verify", options->verify,
                 "Of a bundle: check the hash of every file, parameters too");
  verb->callback([options, context] { RunVerb(context, [&] { return Inspect(*options); }); });
}

}  // namespace tessera::cli
