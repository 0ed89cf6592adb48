// SPDX-License-Identifier: Apache-2.0
//
// HeaderRange: how many bytes at the beginning of a weight file its readers need before the
// tensors' own: the length prefix and JSON of safetensors, the metadata and tensor table of GGUF,
// the segments before the storage of IRPA. Lengths are followed, nothing is interpreted: the
// readers of formats/ judge the contents. A pure function.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace tessera::hub {

/// `prefix` is the beginning of a file, as much as is known of it. Gives a length: at most
/// prefix.size() when the header is complete (its exact end), else how much to get before asking
/// again, which is more than prefix.size(). kInvalidArgument when the bytes are no such header,
/// kResourceExhausted past kMaxWeightHeaderBytes.
Result<uint64_t> HeaderBytesNeeded(ByteSpan prefix);

}  // namespace tessera::hub
