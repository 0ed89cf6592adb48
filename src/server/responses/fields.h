// SPDX-License-Identifier: Apache-2.0
//
// The request fields of the Responses API, as a table of the kind that openai/schema.h describes.
#pragma once

#include <span>

#include "server/openai/schema.h"

namespace tessera::server::responses {

inline constexpr unsigned kResponses = 1;  // The one place where they stand.

std::span<const openai::Field> ResponseFields();

}  // namespace tessera::server::responses
