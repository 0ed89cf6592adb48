// SPDX-License-Identifier: Apache-2.0
//
// GenerationFacts: what the engine did for one HTTP call, in numbers. Of what was cut it holds what
// was known by then.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "engine/request.h"

namespace tessera::server {

struct GenerationFacts {
  int64_t prompt_tokens = 0;  // Of all prompts, each once.
  int64_t cached_tokens = 0;  // Of these, found in the prefix cache.
  int64_t output_tokens = 0;  // Of all choices.
  // Of the choices together: arrival, first of them scheduled, first token, last token.
  Duration queue{};
  Duration prefill{};
  Duration decode{};
  bool has_token = false;  // Otherwise `prefill` lasted to the end, or did not begin.
  engine::FinishReason reason = engine::FinishReason::kStop;

  /// Takes in one choice's end.
  void Add(const engine::Finish& finish);

 private:
  bool has_choice_ = false;
};

}  // namespace tessera::server
