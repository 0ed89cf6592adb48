// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/check.h"
#include "base/file.h"

namespace tessera::testing {
namespace {

constexpr uint64_t kMaxFixtureBytes = 1ull << 30;

std::filesystem::path FromEnvironment(const char* name, const std::filesystem::path& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::filesystem::path(value) : fallback;
}

json::Value MustParse(std::string_view text, const std::string& where) {
  json::Limits limits;
  limits.max_bytes = kMaxFixtureBytes;
  limits.max_depth = 200;
  auto value = json::Parse(text, limits, where);
  EXPECT_TRUE(value.has_value()) << StatusOf(value).ToString();
  return value.has_value() ? *std::move(value) : json::Value();
}

}  // namespace

std::filesystem::path SourceDir() {
  return TESSERA_SOURCE_DIR;
}

std::filesystem::path Shared(std::string_view relative) {
  return FromEnvironment("TESSERA_SHARED", SourceDir().parent_path() / "shared") / relative;
}

std::filesystem::path TestData(std::string_view relative) {
  return FromEnvironment("TESSERA_TESTDATA", SourceDir() / ".cache" / "testdata") / relative;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "tessera_test_XXXXXX").string();
  TESSERA_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadAll(const std::filesystem::path& path) {
  auto text = ReadFile(path, kMaxFixtureBytes);
  EXPECT_TRUE(text.has_value()) << StatusOf(text).ToString()
                                << " (tools/fetch_test_data.sh brings .cache/testdata)";
  return text.has_value() ? *std::move(text) : std::string();
}

std::vector<json::Value> ReadJsonLines(const std::filesystem::path& path) {
  const std::string text = ReadAll(path);
  std::vector<json::Value> values;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin)
      values.push_back(MustParse(std::string_view(text).substr(begin, end - begin), path.string()));
    begin = end + 1;
  }
  EXPECT_FALSE(values.empty()) << path;
  return values;
}

json::Value ReadJson(const std::filesystem::path& path) {
  return MustParse(ReadAll(path), path.string());
}

}  // namespace tessera::testing
