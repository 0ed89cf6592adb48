// SPDX-License-Identifier: Apache-2.0
//
// The contents of one entry, streamed to a sink in pieces of bounded size, splats included.
#pragma once

#include <functional>

#include "formats/parameter_index.h"

namespace tessera::formats {

/// Takes the next piece; an error ends the dump and is returned from it.
using ByteSink = std::function<Status(ByteSpan)>;

/// The elements as little-endian float32, row-major. kInvalidArgument for a blob (it has no dtype;
/// DumpBytes shows it), kUnimplemented for dtypes without a float meaning.
Status DumpFloats(const ParameterIndex& index, const ParameterEntry& entry, const ByteSink& sink);

/// The bytes as they are in the file.
Status DumpBytes(const ParameterIndex& index, const ParameterEntry& entry, const ByteSink& sink);

}  // namespace tessera::formats
