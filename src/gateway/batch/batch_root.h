// SPDX-License-Identifier: Apache-2.0
//
// BatchRoot: the one folder of this machine in which callers may name inputs and outputs of
// batches. Paths are walked step by step without following links, so that neither ".." nor a link
// that somebody puts there meanwhile leads out of it. Immutable; any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::gateway {

class BatchRoot {
 public:
  /// Without a folder: no path may be named. kNotFound, kInvalidArgument when it is none.
  static Result<BatchRoot> Make(const std::filesystem::path& folder);
  BatchRoot() = default;

  /// A regular file's bytes. kPermissionDenied for a path out of the root or through a link,
  /// kNotFound, kResourceExhausted beyond `bytes_max`, kInvalidArgument for what is no file.
  Result<std::string> Read(std::string_view path, uint64_t bytes_max) const;

  /// Whether something could be written there: makes the folders on the way, and refuses a folder.
  Status CheckOutput(std::string_view path) const;

  /// Where an output's bytes go.
  using Write = std::function<Status(std::string_view bytes)>;
  /// Writes a whole file: `produce` gives its bytes; readers see what was there before or all of
  /// it. Errors as Read, kResourceExhausted for a full disk, and those of `produce`.
  Status WriteFile(std::string_view path, const std::function<Status(const Write&)>& produce) const;

 private:
  /// The steps of a path below the root. kPermissionDenied when it is outside.
  Result<std::vector<std::string>> StepsOf(std::string_view path) const;
  /// A descriptor of the folder that the last step is in, made where it is not there.
  Result<int> OpenParent(const std::vector<std::string>& steps, bool makes_folders,
                         std::string_view path) const;

  std::filesystem::path as_given_;  // Absolute; names on the way may be links.
  std::filesystem::path folder_;    // Canonical; empty: there is none.
};

}  // namespace tessera::gateway
