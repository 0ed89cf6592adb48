// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding in config.json: `rope_theta` and `rope_scaling` (transformers 4) or
// `rope_parameters` (transformers 5).
#pragma once

#include "model/families.h"
#include "model/key_reader.h"
#include "model/model_config.h"

namespace tessera::model {

/// Reads the rope keys of `config`. `head_dim` and `context_length` as read before; yarn raises
/// the context length to what it stretches the original one to. kUnimplemented names a rope type
/// (dynamic, longrope, ...) or sub-key that we lack.
Result<RopeConfig> ReadHfRope(const Family& family, KeyReader& config, int64_t head_dim,
                              int64_t& context_length);

}  // namespace tessera::model
