// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling_defaults.h"

namespace tessera::engine {

SamplingParams WithDefaults(const SamplingDefaults& named, SamplingParams otherwise) {
  SamplingParams params = std::move(otherwise);
  params.temperature = named.temperature.value_or(params.temperature);
  params.top_p = named.top_p.value_or(params.top_p);
  params.top_k = named.top_k.value_or(params.top_k);
  params.min_p = named.min_p.value_or(params.min_p);
  params.repetition_penalty = named.repetition_penalty.value_or(params.repetition_penalty);
  return params;
}

}  // namespace tessera::engine
