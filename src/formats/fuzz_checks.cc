// SPDX-License-Identifier: Apache-2.0
#include "formats/fuzz_checks.h"

#include "base/check.h"
#include "base/json.h"
#include "formats/describe.h"
#include "formats/dump.h"

namespace tessera::formats {
namespace {

// Splats may stand for any size; others are as large as the input.
constexpr uint64_t kMaxDumpBytes = 1u << 20;

}  // namespace

void CheckShowable(const ParameterIndex& index) {
  TESSERA_CHECK(!DescribeText(index).empty());
  const std::string text = json::Serialize(DescribeJson(index));
  json::Limits limits;
  limits.unique_keys = false;
  TESSERA_CHECK(json::Parse(text, limits, "description").has_value());
  unsigned sum = 0;
  const auto read = [&](ByteSpan bytes) {
    for (const std::byte byte : bytes) sum += static_cast<unsigned>(byte);
    return Status();
  };
  for (const ParameterEntry& entry : index.entries()) {
    TESSERA_CHECK(index.Find(entry.name) != nullptr);
    if (entry.bytes > kMaxDumpBytes) continue;
    // Makers may find that their sources hold what their format does not (plane_blocks.h).
    const auto refused = [&](const Status& status) {
      return entry.rows != nullptr && status.code() == Code::kDataLoss;
    };
    const Status dumped = DumpBytes(index, entry, read);
    TESSERA_CHECK(dumped.ok() || refused(dumped));
    const Status status = DumpFloats(index, entry, read);
    TESSERA_CHECK(status.ok() || status.code() == Code::kUnimplemented || !entry.is_tensor ||
                  refused(status));
  }
  // The sum is used, so that no read is optimised away.
  TESSERA_CHECK(sum + 1 != 0 || sum == ~0u);
}

}  // namespace tessera::formats
