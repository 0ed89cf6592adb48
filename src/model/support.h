// SPDX-License-Identifier: Apache-2.0
//
// What is known to work: which models, with which weights, at which tensor parallelism, and the
// test that ran it. `tessera models` and docs/models.md show it; tests/e2e/test_models.py checks
// that every test that is named exists.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::model {

/// What was run, most first.
enum class Weights : uint8_t {
  kReal,     // The published weights.
  kRandom,   // Random weights of exactly that shape.
  kSmall,    // Random weights of a smaller shape of the same family.
  kSplats,   // A bundle of that shape, each weight one repeated value; nothing was computed.
  kHeaders,  // Planned from headers; nothing was compiled.
};
/// "real weights", "random weights of its shape", ...
std::string_view WeightsText(Weights weights);

struct SupportedModel {
  std::string_view family;  // model/families.h
  std::string_view model;
  std::string_view sharding;  // "tp1, tp3"
  Weights weights = Weights::kSmall;
  bool in_ci = true;          // Else it takes longer, or files that tests do not fetch.
  std::string_view evidence;  // A test ("FILE:NAME") or the command that ran it.
};

std::span<const SupportedModel> SupportedModels();

}  // namespace tessera::model
