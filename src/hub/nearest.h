// SPDX-License-Identifier: Apache-2.0
//
// Nearest: which repository of a cache somebody may have meant by a name that nothing has.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::hub {

/// Of `names` ("org/repo") the one that `wanted` ("org/repo", or "repo" alone) is a slip of: other
/// case, a few letters (a fifth of them at most), another organisation, or the beginning of it.
/// Nothing when none is that near. Pure.
std::optional<std::string> NearestName(std::string_view wanted, std::span<const std::string> names);

/// The same of the repositories in a cache folder: names of folders only, so cheap.
std::optional<std::string> NearestInCache(std::string_view wanted,
                                          const std::filesystem::path& cache);

}  // namespace tessera::hub
