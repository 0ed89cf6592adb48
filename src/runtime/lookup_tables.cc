// SPDX-License-Identifier: Apache-2.0
#include "runtime/lookup_tables.h"

#include "bundle/step_weights.h"
#include "runtime/limits.h"

namespace tessera::runtime {

LookupTables::LookupTables(const bundle::Program& program, const formats::ParameterIndex& archive) {
  for (const bundle::WeightIndex index : bundle::LookupTables(program)) {
    const bundle::Weight& table = program.weights[static_cast<size_t>(index)];
    const formats::ParameterEntry* entry = archive.Find(table.entry);
    if (entry == nullptr || entry->splat || entry->bytes < kLeastTableBytes) continue;
    entries_.push_back(static_cast<size_t>(entry - archive.entries().data()));
  }
}

void LookupTables::HasRead(int64_t tokens, const formats::ParameterIndex& archive) {
  if (entries_.empty()) return;
  rows_ += tokens;
  if (rows_ < kRowsUntilGivenBack) return;
  rows_ = 0;
  for (const size_t index : entries_) {
    const formats::ParameterEntry& entry = archive.entries()[index];
    archive.DoneWith(entry, 0, entry.bytes);
  }
}

}  // namespace tessera::runtime
