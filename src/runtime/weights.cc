// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "bundle/program_verify.h"
#include "kernels/catalog.h"
#include "kernels/pack.h"
#include "tensor/convert.h"

namespace tessera::runtime {
namespace {

Result<kernels::MatmulFn> MatmulOf(const bundle::Weight& weight, int64_t rows, const Isa& isa) {
  const kernels::Entry* entry = kernels::FindMatmul(weight.dtype, rows, isa);
  if (entry == nullptr)
    return Fail(Unimplemented(fmt::format("weight {}: no kernel multiplies {}", weight.entry,
                                          tensor::Name(weight.dtype))));
  return std::get<kernels::MatmulFn>(entry->fn);
}

Status BindPacked(const bundle::Weight& weight, const Isa& isa, BoundWeight* bound) {
  const int64_t parts = weight.layout == bundle::WeightLayout::kSegments ? weight.segments : 1;
  const int64_t k = weight.k / parts;
  if (!kernels::CanPack(weight.dtype, k))
    return Unimplemented(fmt::format("weight {}: {} with {} inputs has no packed layout",
                                     weight.entry, tensor::Name(weight.dtype), k));
  const int64_t expected = parts * kernels::PackedBytes(weight.dtype, weight.n, k);
  if (expected != weight.bytes)
    return DataLoss(fmt::format("weight {}: {} bytes, expected {} for packed {} [{},{}]",
                                weight.entry, weight.bytes, expected, tensor::Name(weight.dtype),
                                weight.n, weight.k));
  bound->group_bytes = kernels::GroupBytes(weight.dtype, k);
  bound->segment_bytes = weight.bytes / parts;
  bound->input = bundle::InputKind(weight.dtype);
  TESSERA_ASSIGN_OR_RETURN(bound->one, MatmulOf(weight, 1, isa));
  TESSERA_ASSIGN_OR_RETURN(bound->many, MatmulOf(weight, 2, isa));
  return {};
}

Status CheckRows(const bundle::Weight& weight) {
  if (!tensor::CanConvertToFloat(weight.dtype))
    return Unimplemented(fmt::format("weight {}: {} cannot be read as float", weight.entry,
                                     tensor::Name(weight.dtype)));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t row,
                           tensor::RowBytes(weight.dtype, static_cast<uint64_t>(weight.k)));
  if (row * static_cast<uint64_t>(weight.n) != static_cast<uint64_t>(weight.bytes))
    return DataLoss(fmt::format("weight {}: {} bytes, expected {} for {} [{},{}]", weight.entry,
                                weight.bytes, row * static_cast<uint64_t>(weight.n),
                                tensor::Name(weight.dtype), weight.n, weight.k));
  return {};
}

bool IsZero(const formats::Splat& splat) {
  return std::all_of(splat.pattern.begin(), splat.pattern.begin() + splat.pattern_bytes,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

/// Memory of its own, which holds the pattern again and again. Zeros cost no memory.
Result<Mapping> MakeBytes(const formats::ParameterEntry& entry) {
  TESSERA_ASSIGN_OR_RETURN(Mapping memory, Mapping::Reserve(entry.bytes, false));
  const formats::Splat& splat = *entry.splat;
  if (IsZero(splat)) return memory;
  for (uint64_t at = 0; at < entry.bytes; at += splat.pattern_bytes)
    std::memcpy(memory.data() + at, splat.pattern.data(),
                std::min<uint64_t>(splat.pattern_bytes, entry.bytes - at));
  return memory;
}

}  // namespace

uint64_t SplatBytes(const bundle::Program& program, const formats::ParameterIndex& archive) {
  uint64_t bytes = 0;
  for (const bundle::Weight& weight : program.weights) {
    const formats::ParameterEntry* entry = archive.Find(weight.entry);
    if (entry != nullptr && entry->splat && !IsZero(*entry->splat)) bytes += entry->bytes;
  }
  return bytes;
}

Result<std::vector<BoundWeight>> BindWeights(const bundle::Program& program,
                                             const formats::ParameterIndex& archive, const Isa& isa,
                                             std::vector<Mapping>* splats) {
  std::vector<BoundWeight> bound;
  bound.reserve(program.weights.size());
  for (const bundle::Weight& weight : program.weights) {
    const formats::ParameterEntry* entry = archive.Find(weight.entry);
    TESSERA_CHECK(entry != nullptr);  // VerifyArchive
    BoundWeight b;
    if (entry->splat) {
      TESSERA_ASSIGN_OR_RETURN(Mapping memory, MakeBytes(*entry));
      b.data = memory.data();
      splats->push_back(std::move(memory));
    } else {
      b.data = archive.View(*entry).bytes.data();
    }
    b.layout = weight.layout;
    b.dtype = weight.dtype;
    b.n = weight.n;
    b.k = weight.k;
    b.segments = weight.segments;
    if (weight.layout != bundle::WeightLayout::kRows) {
      TESSERA_RETURN_IF_ERROR(BindPacked(weight, isa, &b));
    } else {
      TESSERA_RETURN_IF_ERROR(CheckRows(weight));
    }
    bound.push_back(b);
  }
  return bound;
}

}  // namespace tessera::runtime
