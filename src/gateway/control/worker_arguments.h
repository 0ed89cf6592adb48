// SPDX-License-Identifier: Apache-2.0
//
// From an endpoint to the arguments of `tessera serve`. Pure, but for the file of a chat template.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "gateway/models/model_table.h"
#include "gateway/spec/endpoint_spec.h"

namespace tessera::gateway {

/// MODEL and the flags that the endpoint asks for. A chat template is written to a file in
/// `template_dir`, named by its hash. kNotFound, kPermissionDenied: the model; or as of writing.
Result<std::vector<std::string>> WorkerArguments(const EndpointSpec& spec, const ModelTable& models,
                                                 const std::filesystem::path& template_dir);

/// What the endpoint asks for and nobody does, one sentence each that begins with the field's name:
/// fields of the table (spec/field_table.h) without an effect that say something else than nothing.
std::vector<std::string> UnmetWishes(const EndpointSpec& spec);

}  // namespace tessera::gateway
