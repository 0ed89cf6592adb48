// SPDX-License-Identifier: Apache-2.0
//
// --flagfile=F: flags from a file, in IREE's syntax: one `--name=value` a line, white space
// trimmed, blank lines and lines that begin with # or // skipped, no positional arguments. Flags
// take the place of the --flagfile argument, so later ones override earlier ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::cli {

/// The arguments with every --flagfile replaced by the file's flags. A flagfile may not name
/// another. kNotFound / kInvalidArgument name the file and line.
Result<std::vector<std::string>> ExpandFlagfiles(const std::vector<std::string>& arguments);

/// The flags of one file's text; `where` names it in errors.
Result<std::vector<std::string>> ParseFlagfile(std::string_view text, std::string_view where);

}  // namespace tessera::cli
