// SPDX-License-Identifier: Apache-2.0
//
// Counts every C++ allocation of the process, whatever thread makes it, by replacing operator new.
// A file of its own, so that no compiler sees both a caller and the replacement.
#pragma once

#include <cstdint>

namespace tessera::testing {

int64_t Allocations();

}  // namespace tessera::testing
