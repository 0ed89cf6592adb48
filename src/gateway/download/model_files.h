// SPDX-License-Identifier: Apache-2.0
//
// The files that an endpoint's model is loaded from, where they lie on this machine: a file or
// folder that its model names, or what is in the cache of huggingface_hub (its layout, which
// workers download into). Nothing outside of that folder, and no links but the cache's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "gateway/models/model_table.h"
#include "gateway/spec/endpoint_spec.h"

namespace tessera::gateway {

struct ModelFile {
  std::string name;  // Below the folder, with '/': "model.safetensors". UTF-8.
  std::filesystem::path path;

  bool operator==(const ModelFile&) const = default;
};

/// By name. kNotFound when none are here (not downloaded yet, or gone), kFailedPrecondition for a
/// model that is kept in no folder of its own, kResourceExhausted beyond kModelFilesMax.
Result<std::vector<ModelFile>> FindModelFiles(const EndpointSpec& spec, const ModelTable& models,
                                              const std::filesystem::path& hub_cache);

}  // namespace tessera::gateway
