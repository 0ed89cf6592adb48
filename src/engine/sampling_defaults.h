// SPDX-License-Identifier: Apache-2.0
//
// Where sampling values come from, in one place: the request, else what the model recommends, else
// the caller's own starting point (SamplingParams{}: temperature 1, all else off).
//
//   WithDefaults(model);                       the recommendation over SamplingParams{}
//   WithDefaults(user, WithDefaults(model));   and the user's values over both
//
// Pure values.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/request.h"

namespace tessera::engine {

/// The sampling values that a generation_config or a user may name; nothing where it is silent.
struct SamplingDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

/// `otherwise` with what `named` names put over it.
SamplingParams WithDefaults(const SamplingDefaults& named, SamplingParams otherwise = {});

}  // namespace tessera::engine
