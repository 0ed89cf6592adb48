// SPDX-License-Identifier: Apache-2.0
//
// Importance: how much each input of each matrix matters, from an importance matrix file
// (formats/imatrix/reader.h), found by the names of the model at hand. Immutable: any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/imatrix/reader.h"

namespace tessera::compiler {

/// GGUF's name of a parameter that Hugging Face's names call `parameter`; others come back as they
/// are.
std::string GgufNameOf(std::string_view parameter);

class Importance {
 public:
  /// Errors of files and of the reader.
  static Result<std::shared_ptr<const Importance>> Open(const std::filesystem::path& path);

  /// One value > 0 for each input, their mean 1; null when the file has none. By GGUF's or Hugging
  /// Face's name; for a tied embedding table also by the head's.
  const std::vector<float>* Find(std::string_view parameter) const;
  const std::filesystem::path& path() const { return path_; }
  const std::string& sha256() const { return sha256_; }

 private:
  std::filesystem::path path_;
  std::string sha256_;
  formats::imatrix::Importances by_name_;
};

}  // namespace tessera::compiler
