// SPDX-License-Identifier: Apache-2.0
//
// Memory while a model is compiled, by stage: stages follow each other, so the largest is the peak.
// What is private must be there; mapped pages of files are the system's to take back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cli/plan_facts.h"

namespace tessera::cli {

struct StageBytes {
  uint64_t own = 0;     // Private memory of the process.
  uint64_t mapped = 0;  // Pages of files that stay mapped.
  uint64_t total() const { return own + mapped; }
};

struct CompileForecast {
  StageBytes hashing, tokenizer, packing, certificate;  // All 0 for a bundle.

  uint64_t PrivateBytes() const {
    return std::max({hashing.own, tokenizer.own, packing.own, certificate.own});
  }
  /// The most resident memory (VmHWM).
  uint64_t PeakBytes() const {
    return std::max({hashing.total(), tokenizer.total(), packing.total(), certificate.total()});
  }
};

/// `certify` as of compile --no-certificate: false leaves that stage out.
CompileForecast ForecastCompile(const PlanFacts& facts, bool certify = true);

}  // namespace tessera::cli
