// SPDX-License-Identifier: Apache-2.0
//
// What the look-ups of dtype.h accept, as text for messages about what they refused.
#pragma once

#include <string>

namespace tessera::tensor {

/// Ranges of ggml_type: "0-3, 6-30, 34".
std::string KnownGgufIds();
/// By alphabet: "BF16, BOOL, C64, ...".
std::string KnownSafetensorsNames();
/// By alphabet: "bfloat16, bool, ...".
std::string KnownTorchNames();

}  // namespace tessera::tensor
