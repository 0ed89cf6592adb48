// SPDX-License-Identifier: Apache-2.0
#include "compiler/targets/cpu/splats.h"

#include <algorithm>

#include "kernels/pack.h"

namespace tessera::compiler {
namespace {

bool SameSplat(const formats::ParameterEntry& a, const formats::ParameterEntry& b) {
  return a.dtype == b.dtype && a.splat->pattern_bytes == b.splat->pattern_bytes &&
         std::equal(a.splat->pattern.begin(), a.splat->pattern.begin() + a.splat->pattern_bytes,
                    b.splat->pattern.begin());
}

/// Whether every row of the weight has the same bytes as every other.
bool AllRowsAreEqual(const Recipe& recipe, const formats::ParameterIndex& index) {
  const formats::ParameterEntry* first = nullptr;
  for (const RowRun& run : recipe.runs) {
    if (run.source == RowRun::kZeros) return false;
    const formats::ParameterEntry* entry =
        index.Find(recipe.sources[static_cast<size_t>(run.source)]);
    if (entry == nullptr || !entry->splat) return false;
    if (first == nullptr) first = entry;
    if (!SameSplat(*first, *entry)) return false;
    const Result<uint64_t> row =
        tensor::RowBytes(entry->dtype, static_cast<uint64_t>(entry->shape.columns()));
    if (!row.has_value() || *row % entry->splat->pattern_bytes != 0) return false;
  }
  return first != nullptr;
}

std::optional<formats::Splat> PatternOf(std::span<const std::byte> bytes) {
  for (const size_t period : {1, 2, 4, 8, 16}) {
    if (bytes.size() < period || bytes.size() % period != 0) break;
    // A sequence that equals itself shifted by its period repeats it.
    if (!std::equal(bytes.begin() + static_cast<ptrdiff_t>(period), bytes.end(), bytes.begin()))
      continue;
    formats::Splat splat;
    splat.pattern_bytes = static_cast<uint8_t>(period);
    std::copy_n(bytes.begin(), period, splat.pattern.begin());
    return splat;
  }
  return std::nullopt;
}

bool IsZero(const formats::Splat& splat) {
  return std::all_of(splat.pattern.begin(), splat.pattern.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

Result<std::optional<formats::Splat>> FindSplat(const bundle::Weight& weight, const Recipe& recipe,
                                                const formats::ParameterIndex& index,
                                                const MakeFirst& make_first) {
  if (!AllRowsAreEqual(recipe, index)) return std::nullopt;
  std::vector<std::byte> bytes;
  TESSERA_RETURN_IF_ERROR(make_first(&bytes));
  const std::optional<formats::Splat> splat = PatternOf(bytes);
  if (!splat || static_cast<uint64_t>(weight.bytes) % splat->pattern_bytes != 0)
    return std::nullopt;
  // The last group is filled up with rows of zero bytes.
  const bool padded =
      weight.layout != bundle::WeightLayout::kRows && weight.n % kernels::kGroupRows != 0;
  if (padded && !IsZero(*splat)) return std::nullopt;
  return splat;
}

}  // namespace tessera::compiler
