// SPDX-License-Identifier: Apache-2.0
//
// Headings in the help of verbs with many flags.
#pragma once

namespace CLI {
class App;
}

namespace tessera::cli {

/// Puts the flags of a verb under headings where it has more of them than a list is good for. What
/// has no heading of its own stays under "Options".
void GroupOptions(CLI::App* verb);

}  // namespace tessera::cli
