// SPDX-License-Identifier: Apache-2.0
//
// Export: a copy of a bundle in a folder of the user's choice, complete or absent. Nothing that is
// not a bundle of ours is ever removed. Stateless; two exports to one folder at the same time end
// with one whole bundle there or an error of the later one.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace tessera::bundle {

/// Copies the files that the manifest of `bundle` names to `target`: into a new folder beside it,
/// every file and the folder synced, then renamed into place. `target` may be absent, an empty
/// folder, or a bundle that holds nothing else: that one is removed when the new one is in its
/// place.
///
/// kInvalidArgument: `target` is the bundle itself or lies inside it. kAlreadyExists: something
/// else is at `target`, named; it is not touched. kNotFound, kDataLoss: `bundle` is no whole
/// bundle. On any error `target` is as it was, and nothing is left beside it.
Status Export(const std::filesystem::path& bundle, const std::filesystem::path& target);

/// Whether Export() could write to `target` as it is now: for callers with much work before it.
Status CheckExportTarget(const std::filesystem::path& target);

}  // namespace tessera::bundle
