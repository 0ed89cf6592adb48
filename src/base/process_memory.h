// SPDX-License-Identifier: Apache-2.0
//
// What this process has from the machine, as the kernel counts it (/proc/self): resident memory,
// whole and of ranges of addresses, descriptors, CPU time. Linux only. Any thread; each call reads
// anew and costs what is said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"

namespace tessera {

struct ProcessMemory {
  uint64_t resident_bytes = 0;  // The sum of:
  uint64_t anonymous_bytes = 0;
  uint64_t file_bytes = 0;  // Of mapped files; other processes may share them.
  uint64_t shared_bytes = 0;
};
/// kUnavailable where /proc does not say.
Result<ProcessMemory> ReadProcessMemory();

struct AddressRange {
  uint64_t begin = 0;  // A multiple of the page size,
  uint64_t bytes = 0;  // and whole pages: what is over counts as a page.
};

/// Bytes of the range that are in memory for this process: pages present in its page table, not
/// those that only the page cache has. Reads 8 bytes for each page of the range, reserved or not.
/// kUnavailable where /proc does not say.
Result<uint64_t> ResidentBytes(const AddressRange& range);

/// Where the file is mapped now; empty where it is not. Costs a line for each mapping.
Result<std::vector<AddressRange>> MappingsOf(const std::filesystem::path& file);

struct ProcessUse {
  double cpu_seconds = 0;  // User and system, all threads.
  double start_unix_seconds = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
};
/// Lists the open descriptors one by one.
Result<ProcessUse> ReadProcessUse();

}  // namespace tessera
