// SPDX-License-Identifier: Apache-2.0
//
// A small valid program for tests: one layer of every step, q8 and f32 buffers.
#pragma once

#include "bundle/program.h"

namespace tessera::bundle {

/// hidden 64, 2 layers, 4 heads, 2 KV heads of 16, ffn 96, vocabulary 40.
Program SampleProgram();

}  // namespace tessera::bundle
