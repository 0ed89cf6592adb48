// SPDX-License-Identifier: Apache-2.0
#include "cli/model_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "bundle/manifest.h"

namespace tessera::cli {
namespace {

/// Flags that say which bundle to find or make.
constexpr std::string_view kBundleFlags[] = {
    "--bundle",       "--cache-dir",     "--compile-target", "--quantize",
    "--max-seq-len",  "--ensure-export", "--ensure-compile", "--tp",
    "--allow-uneven", "--hf-cache-dir",  "--revision",       "--offline",
    "--verify"};  // Hashes are the manifest's, which parts have none of.

}  // namespace

void AddPartsOptions(CLI::App* verb, ModelParts* parts) {
  verb->add_option("--tokenizer_json", parts->tokenizer_json,
                   "A precompiled model, file by file: its tokenizer.json");
  verb->add_option("--tokenizer_config_json", parts->tokenizer_config_json,
                   "... its tokenizer_config.json (default: <stem>_config.json beside the "
                   "tokenizer)");
  verb->add_option("--model_config", parts->model_config, "... its config.json");
  verb->add_option("--program", parts->program, "... its program.json");
  verb->add_option("--vmfb", parts->vmfb, "... its IREE program, instead of --program");
  verb->add_option("--parameters", parts->parameters,
                   "... its parameter archives, those of all ranks");
}

Status CheckParts(const ModelParts& parts, bool has_model, const FlagGiven& given) {
  std::vector<std::string_view> others;
  for (const std::string_view flag : kBundleFlags)
    if (given(flag)) others.push_back(flag);
  if (has_model && !given("--bundle")) others.insert(others.begin(), "MODEL");
  if (!others.empty())
    return InvalidArgument(fmt::format(
        "a model is named either by MODEL (or --model-path, --bundle) with --cache-dir, --tp, "
        "--compile-target, --ensure-export and the like, or precompiled by --tokenizer_json, "
        "--model_config, --program (or --vmfb) and --parameters; here flags of the second way "
        "stand beside {}",
        fmt::join(others, ", ")));
  if (!parts.vmfb.empty())
    return Unimplemented(
        "--vmfb: IREE programs are not built in; name a program.json of the cpu target with "
        "--program");
  std::vector<std::string_view> missing;
  if (parts.tokenizer_json.empty()) missing.push_back("--tokenizer_json");
  if (parts.model_config.empty()) missing.push_back("--model_config");
  if (parts.program.empty()) missing.push_back("--program");
  if (parts.parameters.empty()) missing.push_back("--parameters");
  if (missing.empty()) return {};
  return InvalidArgument(
      fmt::format("a precompiled model needs --tokenizer_json, --model_config, --program and "
                  "--parameters; missing: {}",
                  fmt::join(missing, ", ")));
}

DocumentPaths DocumentsOfBundle(const std::filesystem::path& bundle) {
  return {bundle, bundle / bundle::kTokenizerConfigFile, bundle / bundle::kGenerationConfigFile,
          bundle / bundle::kChatTemplateFile};
}

DocumentPaths DocumentsOfParts(const ModelParts& parts) {
  const std::filesystem::path tokenizer = parts.tokenizer_json;
  const std::filesystem::path folder = tokenizer.parent_path();
  std::filesystem::path config = parts.tokenizer_config_json;
  if (config.empty()) config = folder / fmt::format("{}_config.json", tokenizer.stem().string());
  return {tokenizer, config, folder / bundle::kGenerationConfigFile,
          folder / bundle::kChatTemplateFile};
}

}  // namespace tessera::cli
