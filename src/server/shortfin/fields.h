// SPDX-License-Identifier: Apache-2.0
//
// The request fields of /generate, as a table of the kind that openai/schema.h describes. It tells
// which fields are known and describes them; generate_request.cc checks their values.
#pragma once

#include <span>

#include "server/openai/schema.h"

namespace tessera::server::shortfin {

inline constexpr unsigned kGenerate = 1;  // The one place where they stand.

std::span<const openai::Field> GenerateFields();

}  // namespace tessera::server::shortfin
