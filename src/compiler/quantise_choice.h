// SPDX-License-Identifier: Apache-2.0
//
// `--quantize auto`: the finest quantisation whose weights fit into memory together with the KV
// cache of one full sequence. For compile and plan alike; reads headers only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compile.h"
#include "model/open.h"

namespace tessera::compiler {

inline constexpr std::string_view kAutoQuantize = "auto";

/// Of the machine's memory, what weights and KV may take: the rest is for the program, its
/// activations, the system and the page cache.
inline constexpr double kAutoMemoryShare = 0.85;

struct QuantiseSize {
  std::string_view quantize;  // As of CompileOptions.
  uint64_t weight_bytes = 0;
};

struct QuantiseChoice {
  std::string quantize;
  std::string reason;  // One line: what fits, and what the next finer one would have needed.
};

/// Pure. `sizes` from the finest on; `memory_bytes` of the whole machine (or its cgroup), 0 =
/// unknown, which takes the finest. kResourceExhausted with need and have when nothing fits.
Result<QuantiseChoice> ChooseQuantisation(std::span<const QuantiseSize> sizes, uint64_t kv_bytes,
                                          uint64_t memory_bytes);

/// The same for a model, of "none", q8_0, q6_k, q4_k and q4_0 and the KV of one sequence of the
/// options' length in float16. Errors of the pipeline.
Result<QuantiseChoice> ChooseQuantisation(const model::ModelSource& source,
                                          const CompileOptions& options, uint64_t memory_bytes);

}  // namespace tessera::compiler
