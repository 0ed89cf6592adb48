// SPDX-License-Identifier: Apache-2.0
//
// The environment and the folders it names, read here and nowhere below cli/.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"

namespace tessera::cli {

/// The variable's value; nothing when unset or empty.
std::optional<std::string> Environment(const char* name);

/// $HOME, else the home of the user database. kFailedPrecondition without either.
Result<std::filesystem::path> HomeFolder();

/// The cache folder: `flag` if given, else $TESSERA_CACHE, else $XDG_CACHE_HOME/tessera, else
/// ~/.cache/tessera with the home of $HOME or the user database. kFailedPrecondition without a
/// home: a folder of the temporary one would let other users of the machine put bundles in its
/// place.
Result<std::filesystem::path> CacheFolder(const std::string& flag);

/// Processes of the job that this one belongs to, as mpirun says; 1 when nobody says anything.
int JobSize();
/// Which of them this one is, from 0 on.
int JobRank();

/// How many of them run on this machine; 1 when nobody says anything.
int JobSizeHere();

/// The hub's address: $HF_ENDPOINT or the public one, without a slash at the end.
std::string HubEndpoint();

}  // namespace tessera::cli
