// SPDX-License-Identifier: Apache-2.0
//
// Options are checked before the bundle is looked at. Loading itself: tests/cpu_program/.
#include "runtime/load.h"

#include <gtest/gtest.h>

#include "runtime/limits.h"
#include "support/fixtures.h"

namespace tessera::runtime {
namespace {

Code CodeOf(const LoadOptions& options) {
  const testing::TempDir dir;
  return StatusOf(LoadSession(dir.path() / "missing", options)).code();
}

TEST(LoadSession, OptionsHaveLimits) {
  const Code missing = CodeOf({});
  ASSERT_NE(missing, Code::kOk);
  ASSERT_NE(missing, Code::kInvalidArgument);
  LoadOptions options;
  for (const int threads : {0, 1, kMaxThreads - 1, kMaxThreads, kMaxThreads + 1, -1}) {
    options.threads = threads;
    const bool allowed = threads >= 0 && threads <= kMaxThreads;
    EXPECT_EQ(CodeOf(options), allowed ? missing : Code::kInvalidArgument) << threads;
  }
  options = {};
  for (const int64_t rows : {int64_t{1}, kMaxRows - 1, kMaxRows, kMaxRows + 1, int64_t{0}}) {
    options.max_rows = rows;
    const bool allowed = rows >= 1 && rows <= kMaxRows;
    EXPECT_EQ(CodeOf(options), allowed ? missing : Code::kInvalidArgument) << rows;
  }
}

}  // namespace
}  // namespace tessera::runtime
