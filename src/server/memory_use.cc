// SPDX-License-Identifier: Apache-2.0
#include "server/memory_use.h"

#include <algorithm>

#include "base/check.h"
#include "server/limits.h"

namespace tessera::server {
namespace {

Result<MemoryUse::Reading> ReadNow(const std::vector<OwnedMemory>& memory) {
  std::vector<uint64_t> resident;
  for (const OwnedMemory& part : memory) {
    TESSERA_ASSIGN_OR_RETURN(const uint64_t bytes, ResidentBytes(part.range));
    resident.push_back(bytes);
  }
  TESSERA_ASSIGN_OR_RETURN(const ProcessMemory whole, ReadProcessMemory());
  return ShareOut(whole, memory, resident);
}

}  // namespace

MemoryUse::Reading ShareOut(const ProcessMemory& whole, const std::vector<OwnedMemory>& memory,
                            const std::vector<uint64_t>& resident) {
  TESSERA_CHECK(memory.size() == resident.size());
  MemoryUse::Reading reading{.resident_bytes = whole.resident_bytes, .owners = {}};
  uint64_t files = whole.file_bytes;
  uint64_t rest = whole.anonymous_bytes + whole.shared_bytes;
  for (size_t i = 0; i < memory.size(); ++i) {
    // The kernel counts the two in different places: no part is more than the whole.
    uint64_t& left = memory[i].is_file ? files : rest;
    const uint64_t bytes = std::min(resident[i], left);
    left -= bytes;
    const auto same = std::ranges::find(reading.owners, memory[i].owner,
                                        &std::pair<std::string, uint64_t>::first);
    if (same != reading.owners.end()) {
      same->second += bytes;
    } else {
      reading.owners.emplace_back(memory[i].owner, bytes);
    }
  }
  reading.owners.emplace_back("code", files);
  reading.owners.emplace_back("other", rest);
  return reading;
}

Result<MemoryUse::Reading> MemoryUse::Read() const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_->Now();
  if (!last_.has_value() || now - read_at_ >= kMemoryReadingAge) {
    last_ = ReadNow(memory_);
    read_at_ = now;
  }
  return *last_;
}

}  // namespace tessera::server
