// SPDX-License-Identifier: Apache-2.0
#include "support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::testing {

void ExpectGolden(std::string_view actual, const std::filesystem::path& relative) {
  const std::filesystem::path path = SourceDir() / "tests" / "golden" / relative;
  if (const char* update = std::getenv("UPDATE");
      update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    const Status status = WriteFileAtomic(path, actual);
    ASSERT_TRUE(status.ok()) << status.ToString();
    return;
  }
  const auto expected = ReadFile(path, 64u << 20);
  ASSERT_TRUE(expected.has_value()) << StatusOf(expected).ToString() << "; UPDATE=1 creates it";
  if (*expected == actual) return;
  const auto [a, b] =
      std::mismatch(actual.begin(), actual.end(), expected->begin(), expected->end());
  const auto at = static_cast<size_t>(a - actual.begin());
  const auto line = 1 + std::count(actual.begin(), a, '\n');
  ADD_FAILURE() << path << " differs at line " << line << "\n  expected: ..."
                << expected->substr(at, 120) << "\n  actual:   ..." << actual.substr(at, 120)
                << "\nUPDATE=1 rewrites the file";
}

}  // namespace tessera::testing
