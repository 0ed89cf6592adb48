// SPDX-License-Identifier: Apache-2.0
#include "compiler/quantise_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "compiler/dry_run.h"

namespace tessera::compiler {
namespace {

std::string Gigabytes(uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

Result<QuantiseChoice> ChooseQuantisation(std::span<const QuantiseSize> sizes, uint64_t kv_bytes,
                                          uint64_t memory_bytes) {
  TESSERA_CHECK(!sizes.empty());
  if (memory_bytes == 0)
    return QuantiseChoice{std::string(sizes.front().quantize), "the size of memory is unknown"};
  const auto room = static_cast<uint64_t>(kAutoMemoryShare * static_cast<double>(memory_bytes));
  const auto fits = [&](const QuantiseSize& size) {
    return kv_bytes <= room && size.weight_bytes <= room - kv_bytes;
  };
  const auto found = std::ranges::find_if(sizes, fits);
  const std::string have =
      fmt::format("{} of the {} of memory", Gigabytes(room), Gigabytes(memory_bytes));
  if (found == sizes.end())
    return Fail(ResourceExhausted(fmt::format(
        "no quantisation fits: {} of weights ({}) and {} of KV need more than {}; give a smaller "
        "--max-seq-len, or use a machine with more memory",
        Gigabytes(sizes.back().weight_bytes), sizes.back().quantize, Gigabytes(kv_bytes), have)));
  QuantiseChoice choice{std::string(found->quantize),
                        fmt::format("{} of weights and {} of KV fit into {}",
                                    Gigabytes(found->weight_bytes), Gigabytes(kv_bytes), have)};
  if (found != sizes.begin())
    choice.reason += fmt::format("; {} has {} of weights", std::prev(found)->quantize,
                                 Gigabytes(std::prev(found)->weight_bytes));
  return choice;
}

Result<QuantiseChoice> ChooseQuantisation(const model::ModelSource& source,
                                          const CompileOptions& options, uint64_t memory_bytes) {
  // The other two are no steps of a ladder: q4_1 is larger than q4_k and no finer.
  constexpr std::array<std::string_view, 5> kLadder = {"none", "q8_0", "q6_k", "q4_k", "q4_0"};
  std::vector<QuantiseSize> sizes;
  uint64_t kv_bytes = 0;
  for (const std::string_view quantize : kLadder) {
    CompileOptions with = options;
    with.quantize = quantize;
    TESSERA_ASSIGN_OR_RETURN(const DryRun run, MakeDryRun(source, with));
    sizes.push_back({quantize, static_cast<uint64_t>(run.memory.parameter_bytes)});
    kv_bytes = static_cast<uint64_t>(run.memory.kv_bytes_per_token * run.program.dims.max_seq_len);
  }
  return ChooseQuantisation(sizes, kv_bytes, memory_bytes);
}

}  // namespace tessera::compiler
