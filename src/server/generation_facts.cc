// SPDX-License-Identifier: Apache-2.0
#include "server/generation_facts.h"

#include <algorithm>

namespace tessera::server {

void GenerationFacts::Add(const engine::Finish& finish) {
  using engine::FinishReason;
  const bool makes_token = finish.generated_tokens > 0;
  const Duration first = finish.queue + finish.prefill;
  const Duration last = std::max(queue + prefill + decode, first + finish.decode);
  if (!has_choice_) {
    queue = finish.queue;
    prefill = finish.prefill;
    reason = finish.reason;
  } else {
    const Duration earliest = has_token == makes_token ? std::min(queue + prefill, first)
                              : makes_token            ? first
                                                       : queue + prefill;
    queue = std::min(queue, finish.queue);
    prefill = earliest - queue;
    // Whatever is not a plain end says more; of the plain ones, that something is missing.
    if (finish.reason > reason) reason = finish.reason;
  }
  has_choice_ = true;
  has_token = has_token || makes_token;
  decode = has_token ? last - (queue + prefill) : Duration::zero();
}

}  // namespace tessera::server
