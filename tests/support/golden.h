// SPDX-License-Identifier: Apache-2.0
//
// Golden files: expected text stored in the tree. UPDATE=1 in the environment rewrites them from
// what the code prints now; read the difference before committing it.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::testing {

/// Fails the current test, showing the first differing line, unless the file
/// tests/golden/<relative> holds exactly `actual`.
void ExpectGolden(std::string_view actual, const std::filesystem::path& relative);

/// The same for a generated part of a document of the tree: the lines between `<!-- name -->` and
/// `<!-- end -->` in `document` (relative to the tree) must be exactly `actual`.
void ExpectDocumentBlock(std::string_view actual, const std::filesystem::path& document,
                         std::string_view name);

}  // namespace tessera::testing
