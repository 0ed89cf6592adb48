// SPDX-License-Identifier: Apache-2.0
#include "cli/model_argument.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "bundle/bundle.h"

namespace tessera::cli {

Result<ModelKind> ResolveModel(const std::string& model) {
  std::error_code error;  // What cannot be examined cannot be read either.
  if (!std::filesystem::exists(model, error))
    return Fail(NotFound(fmt::format(
        "{} is not there: expected a folder with config.json, tokenizer.json and safetensors, a "
        ".gguf file, or a bundle. Models are not fetched by repository name yet: download the "
        "files first",
        model)));
  return bundle::IsBundle(model) ? ModelKind::kBundle : ModelKind::kSource;
}

Status RequireBundle(const std::string& folder) {
  return bundle::CheckIsBundle(folder).WithContext("--bundle");
}

}  // namespace tessera::cli
