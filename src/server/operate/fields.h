// SPDX-License-Identifier: Apache-2.0
//
// Fields of requests under /admin. Immutable; any thread.
#pragma once

#include <span>

#include "server/openai/schema.h"

namespace tessera::server::operate {

inline constexpr unsigned kDrain = 1;

std::span<const openai::Field> AdminFields();

}  // namespace tessera::server::operate
