// SPDX-License-Identifier: Apache-2.0
//
// Where tests find their data. Shared fixtures lie beside the project (../shared); the real model
// and the tokenizer packages are fetched by tools/fetch_test_data.sh into .cache/testdata.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tessera::testing {

/// Root of the source tree.
std::filesystem::path SourceDir();
/// ../shared/<relative>, or $TESSERA_SHARED/<relative>. Missing folder = test failure, no skip.
std::filesystem::path Shared(std::string_view relative);
/// .cache/testdata/<relative>, or $TESSERA_TESTDATA/<relative>.
std::filesystem::path TestData(std::string_view relative);
/// A fresh folder, removed when the object dies.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Contents of a file; fails the test (and returns "") when it cannot be read.
std::string ReadAll(const std::filesystem::path& path);
/// One JSON value per line.
std::vector<json::Value> ReadJsonLines(const std::filesystem::path& path);
json::Value ReadJson(const std::filesystem::path& path);

}  // namespace tessera::testing
