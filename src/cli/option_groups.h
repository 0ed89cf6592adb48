// SPDX-License-Identifier: Apache-2.0
//
// Headings in the help of verbs with many flags.
#pragma once

#include <memory>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace tessera::cli {

/// For the program, before it gets its verbs.
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

/// Puts the flags of a verb under headings where it has more of them than a list is good for. What
/// has no heading of its own stays under "Options".
void GroupOptions(CLI::App* verb);

}  // namespace tessera::cli
