// SPDX-License-Identifier: Apache-2.0
//
// ModelTable: what `model_name` (or `checkpoint_path`) of an endpoint stands for: the MODEL
// argument of `tessera serve`. In this order:
//   1. an alias of models.toml
//   2. an alias of the built-in table (llm-engine's model names -> repositories of the hub)
//   3. a path under --model-root
//   4. a repository of the hub: org/name[@revision][:quantisation], or its https:// address
// Immutable; any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::gateway {

struct ModelTableOptions {
  std::filesystem::path aliases_file;  // models.toml; empty: none.
  std::filesystem::path model_root;    // Empty: no paths.
};

class ModelTable {
 public:
  /// kInvalidArgument says what is wrong in the file, and where.
  static Result<ModelTable> Read(const ModelTableOptions& options);

  /// kNotFound for what nothing stands for, with the nearest names; kPermissionDenied for a path
  /// that leads out of the root.
  Result<std::string> Resolve(std::string_view model_name) const;
  /// The same for checkpoint_path: s3://, hf://, https://, or a path under the root.
  Result<std::string> ResolveCheckpoint(std::string_view path) const;

  /// Up to three aliases that are spelt alike, best first.
  std::vector<std::string> Nearest(std::string_view name) const;

 private:
  Result<std::string> UnderRoot(std::string_view path) const;

  std::map<std::string, std::string, std::less<>> aliases_;
  std::filesystem::path model_root_;
};

/// `[models]` alias = "repository, path or bundle". Aliases may hold any text.
Result<std::map<std::string, std::string, std::less<>>> ParseAliases(std::string_view text,
                                                                     std::string_view where);

/// Insertions, deletions and changes of one byte that lead from a to b (Levenshtein, 1966).
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tessera::gateway
