// SPDX-License-Identifier: Apache-2.0
#include "support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::testing {
namespace {

constexpr uint64_t kMaxGoldenBytes = 64u << 20;

bool Updating() {
  const char* update = std::getenv("UPDATE");
  return update != nullptr && std::string_view(update) == "1";
}

}  // namespace

void ExpectGolden(std::string_view actual, const std::filesystem::path& relative) {
  const std::filesystem::path path = SourceDir() / "tests" / "golden" / relative;
  if (Updating()) {
    std::filesystem::create_directories(path.parent_path());
    const Status status = WriteFileAtomic(path, actual);
    ASSERT_TRUE(status.ok()) << status.ToString();
    return;
  }
  const auto expected = ReadFile(path, kMaxGoldenBytes);
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

void ExpectDocumentBlock(std::string_view actual, const std::filesystem::path& document,
                         std::string_view name) {
  const std::filesystem::path path = SourceDir() / document;
  const auto text = ReadFile(path, kMaxGoldenBytes);
  ASSERT_TRUE(text.has_value()) << StatusOf(text).ToString();
  const std::string begin_mark = "<!-- " + std::string(name) + " -->\n";
  const size_t begin = text->find(begin_mark);
  ASSERT_NE(begin, std::string::npos) << path << " has no " << begin_mark;
  const size_t from = begin + begin_mark.size();
  const size_t to = text->find("<!-- end -->", from);
  ASSERT_NE(to, std::string::npos) << path << ": " << name << " has no end";
  if (Updating()) {
    const Status status =
        WriteFileAtomic(path, text->substr(0, from) + std::string(actual) + text->substr(to));
    ASSERT_TRUE(status.ok()) << status.ToString();
    return;
  }
  EXPECT_EQ(text->substr(from, to - from), actual) << path << " is old; UPDATE=1 rewrites it";
}

}  // namespace tessera::testing
