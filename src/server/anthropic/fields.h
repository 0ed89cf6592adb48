// SPDX-License-Identifier: Apache-2.0
//
// The request fields of the Messages API, as a table of the kind that openai/schema.h describes.
#pragma once

#include <span>

#include "server/openai/schema.h"

namespace tessera::server::anthropic {

// Where a field may stand.
inline constexpr unsigned kMessages = 1;
inline constexpr unsigned kCountTokens = 2;

std::span<const openai::Field> MessageFields();

}  // namespace tessera::server::anthropic
