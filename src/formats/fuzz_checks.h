// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzers of all formats demand of an index that a reader accepted.
#pragma once

#include "formats/parameter_index.h"

namespace tessera::formats {

/// CHECKs that the index can be described as text and JSON and that every range can be read, or, of
/// made rows, is refused as data that does not hold together.
void CheckShowable(const ParameterIndex& index);

}  // namespace tessera::formats
