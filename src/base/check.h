// SPDX-License-Identifier: Apache-2.0
//
// TESSERA_CHECK: a broken invariant of our own ends the process with the place and the operands'
// text. Always on. TESSERA_DCHECK: the same in debug builds only, for inner loops. Neither is for
// data from outside (status.h).
#pragma once

namespace tessera {

/// Prints "file:line: check failed: text" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* text);

}  // namespace tessera

#define TESSERA_CHECK(condition)                              \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::tessera::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#ifdef NDEBUG
#define TESSERA_DCHECK(condition) \
  do {                            \
    if (false) {                  \
      (void)(condition);          \
    }                             \
  } while (false)
#else
#define TESSERA_DCHECK(condition) TESSERA_CHECK(condition)
#endif
