// SPDX-License-Identifier: Apache-2.0
//
// Files that shrink while they are mapped. Touching a page that the file no longer has raises
// SIGBUS; the guard's handler puts a page of zeros there instead and marks the mapping as damaged,
// so the computation goes on with wrong numbers, and whoever asked for it finds the mark and
// fails that request, not the process. Handlers cannot return a Status; a mark can be read.
#pragma once

#include <cstddef>

namespace tessera {

/// Installs the SIGBUS handler, once for the process. A fault outside of all guarded mappings ends
/// the process as before. Any thread.
void InstallMappingGuard();

/// One guarded range of addresses. Any thread may read the mark. Lock-free; at most
/// kMaxGuardedMappings at once, those beyond it are not guarded.
class GuardedMapping {
 public:
  GuardedMapping() = default;
  GuardedMapping(const void* begin, size_t bytes);
  ~GuardedMapping();
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;

  /// Whether a page of it was lost since it was made.
  bool damaged() const;

 private:
  int slot_ = -1;
};

inline constexpr int kMaxGuardedMappings = 4096;

}  // namespace tessera
