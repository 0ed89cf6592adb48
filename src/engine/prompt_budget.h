// SPDX-License-Identifier: Apache-2.0
//
// How long a step may take in which some decode and others have prompts to compute. A pure
// function; no token depends on it.
//
// Prompts lengthen the step, and every reader waits for it: a step that is twice as long as one
// without prompts is a reader's worst gap as long as few wait. Small pieces of prompts cost more
// than large ones, and those who wait for a first token are readers as well; so the more wait
// beside the fewer who read, the longer the step, up to the target:
//
//   decode step * (1 + max(1, kFirstTokenWeight * prompts / decoding)), at most the target
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tessera::engine {

/// Waiting for the first token counts as so many readers who wait for their next one.
inline constexpr int64_t kFirstTokenWeight = 8;

/// `decode_step`: what the step would take without prompts. `decoding` >= 1.
Duration StepTimeBesidePrompts(Duration target, Duration decode_step, int64_t decoding,
                               int64_t prompts);

}  // namespace tessera::engine
