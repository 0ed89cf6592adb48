// SPDX-License-Identifier: Apache-2.0
//
// Sampling parameters that a repository recommends.
#pragma once

#include "base/json.h"
#include "formats/metadata.h"
#include "model/open.h"

namespace tessera::model {

/// From generation_config.json. Keys that would change the output and that we do not apply become
/// warnings; so do values outside their range, which are then left out.
Result<GenerationDefaults> ReadHfGeneration(const json::Object& generation_config,
                                            std::vector<std::string>& warnings);
/// From general.sampling.*, if the file has them.
Result<GenerationDefaults> ReadGgufGeneration(const formats::Metadata& metadata);

}  // namespace tessera::model
