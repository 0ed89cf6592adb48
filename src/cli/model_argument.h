// SPDX-License-Identifier: Apache-2.0
//
// What the MODEL argument of a verb names. Every verb asks here, so that the same words mean the
// same and an absent model gets the same answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tessera::cli {

enum class ModelKind : uint8_t {
  kBundle,
  kSource,  // A folder or file that model::OpenModel or formats::Open takes.
};

/// kNotFound, with what MODEL may be, when nothing is there.
Result<ModelKind> ResolveModel(const std::string& model);

/// kNotFound when the folder that --bundle names is absent or no bundle.
Status RequireBundle(const std::string& folder);

}  // namespace tessera::cli
