// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_budget.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::engine {

Duration StepTimeBesidePrompts(Duration target, Duration decode_step, int64_t decoding,
                               int64_t prompts) {
  TESSERA_CHECK(decoding >= 1 && prompts >= 0);
  const double stretch =
      std::max(1.0, static_cast<double>(kFirstTokenWeight) * static_cast<double>(prompts) /
                        static_cast<double>(decoding));
  const double seconds = Seconds(decode_step) * (1 + stretch);
  if (seconds >= Seconds(target)) return target;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace tessera::engine
