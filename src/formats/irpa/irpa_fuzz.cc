// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: the reader answers with an index or an error; what it accepts can be shown, its
// dataset blobs parse or are refused, and its table can be planned again.
#include <cstdint>

#include "base/check.h"
#include "formats/fuzz_checks.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/describe_dataset.h"
#include "formats/irpa/logical_index.h"
#include "formats/irpa/reader.h"
#include "formats/irpa/writer.h"

namespace {

namespace irpa = tessera::formats::irpa;
using tessera::ByteSpan;

void CheckRewritable(const tessera::formats::ParameterIndex& index) {
  std::vector<irpa::WriteEntry> entries;
  for (const auto& entry : index.entries())
    entries.push_back({entry.name, entry.note, entry.bytes, entry.splat});
  const auto plan = irpa::PlanArchive(entries, {});
  // Entries may share storage, so copies of them may be larger than the file, but not in one table.
  TESSERA_CHECK(plan.has_value());
  for (size_t i = 0; i < entries.size(); ++i)
    TESSERA_CHECK(plan->data_offsets[i] % 64 == 0 && plan->data_offsets[i] <= plan->storage_end);
}

/// Logical tensors are refused, or can be shown and read to the end.
void CheckLogical(const tessera::formats::ParameterIndex& index, const irpa::Dataset& dataset) {
  const auto text = irpa::DescribeDatasetText(index, dataset);
  TESSERA_CHECK(text.has_value() == irpa::DescribeDatasetJson(index, dataset).has_value());
  const auto logical = irpa::OpenLogical(index, dataset, {});
  if (!logical.has_value()) return;
  TESSERA_CHECK(text.has_value());
  tessera::formats::CheckShowable(*logical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = irpa::Parse(ByteSpan(reinterpret_cast<const std::byte*>(data), size), "input");
  if (!index.has_value()) {
    TESSERA_CHECK(!index.error().ToString().empty());
    return 0;
  }
  tessera::formats::CheckShowable(*index);
  CheckRewritable(*index);
  if (const auto dataset = irpa::ReadDataset(*index); dataset.has_value()) {
    TESSERA_CHECK(irpa::IsDataset(*index));
    CheckLogical(*index, *dataset);
  }
  return 0;
}
