// SPDX-License-Identifier: Apache-2.0
//
// XTC, one step of the sampler (sampler.h): with a certain probability all tokens that are likely,
// but the least likely of these, are taken out. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/candidate.h"
#include "engine/request.h"

namespace tessera::engine {

/// Whether it happens at this position; independent of the position's own draw.
bool XtcStrikes(const SamplingParams& params, uint64_t position);

/// Of the candidates with p >= threshold keeps the least likely (the last of equals), if there are
/// two or more, and makes the sum of p 1 again. Requires p to be set.
void ExcludeTopChoices(double threshold, std::vector<Candidate>* candidates);

}  // namespace tessera::engine
