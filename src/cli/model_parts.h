// SPDX-License-Identifier: Apache-2.0
//
// A precompiled model named file by file, with the flag names of the shortfin server. The other way
// to name a model, by repository or bundle, excludes this one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/bundle_options.h"

#include "base/status.h"

namespace CLI {
class App;
}

namespace tessera::cli {

struct ModelParts {
  std::string tokenizer_json;
  std::string tokenizer_config_json;  // Empty: "<stem of tokenizer_json>_config.json" beside it.
  std::string model_config;
  std::string program;
  std::string vmfb;
  std::vector<std::string> parameters;

  bool any() const {
    return !(tokenizer_json + tokenizer_config_json + model_config + program + vmfb).empty() ||
           !parameters.empty();
  }
};

void AddPartsOptions(CLI::App* verb, ModelParts* parts);

/// Of a precompiled model: kInvalidArgument (wrong usage) when a flag of the other way was given,
/// too, with both sets in one sentence, or when a part is not named; kUnimplemented for --vmfb.
/// `has_model`: MODEL or another name for it was given.
Status CheckParts(const ModelParts& parts, bool has_model, const FlagGiven& given);

/// Where the texts beside the program are. Files that need not be there may be absent.
struct DocumentPaths {
  std::filesystem::path tokenizer;  // A bundle, or a tokenizer.json.
  std::filesystem::path tokenizer_config;
  std::filesystem::path generation_config;
  std::filesystem::path chat_template;
};
DocumentPaths DocumentsOfBundle(const std::filesystem::path& bundle);
/// generation_config.json and chat_template.jinja are looked for beside the tokenizer.
DocumentPaths DocumentsOfParts(const ModelParts& parts);

}  // namespace tessera::cli
