// SPDX-License-Identifier: Apache-2.0
//
// RopeConfig -> the table of inverse frequencies. Formulas:
//  none      f(i) = theta^(-2i / rotary_dim)
//  linear    f(i) / factor (Chen et al., "Extending context window ... positional interpolation")
//  llama3    by wavelength: long ones f / factor, short ones f, between them a blend (Llama 3.1)
//  yarn      by number of turns within the original context: the same three cases with a linear
//            ramp over pairs, and attention_factor on cos and sin (Peng et al., "YaRN")
//  divisors  f(i) / divisors[i]
#pragma once

#include "graph/ir.h"
#include "model/model_config.h"

namespace tessera::model {

/// Total for a config that CheckConfig accepts.
graph::RopeTable MakeRopeTable(const RopeConfig& config);

/// The factor that yarn puts on attention when a config gives none: 0.1 * mscale * ln(factor) + 1,
/// and 1 when nothing is stretched.
double YarnAttentionFactor(double factor, double mscale = 1);

}  // namespace tessera::model
