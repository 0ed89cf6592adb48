// SPDX-License-Identifier: Apache-2.0
//
// The standard streams, and sizes and durations in readable units. What people see on the way goes
// to stderr (Note, and progress.h); answers and facts go to stdout and never through Note.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace tessera::cli {

/// "1.4 GB" (powers of 1000, as disks and downloads count).
std::string HumanBytes(uint64_t bytes);
/// "850 ms", "12.3 s", "3 min 20 s".
std::string HumanDuration(double seconds);
/// False under --log-format json: there are no bars in a log.
bool StderrIsTerminal();
bool StdoutIsTerminal();
/// Of the terminal behind stderr; 80 where it does not say.
int StderrColumns();

/// Puts /dev/null where the caller left descriptor 0, 1 or 2 closed, so that no file opened later
/// takes their number and receives their text. Reads of stdin and writes to stdout still fail:
/// an answer that nobody can get is an error; notes to stderr vanish. First call of main.
void ReserveStandardStreams();
/// Writes all that waits for stdout. kUnavailable, with the reason if the system gives one, when it
/// or anything before it was lost: a full disk, a reader that went away.
Status FlushStdout();
/// The same after writing `text`.
Status WriteStdout(std::string_view text);
/// Writes to stderr; with --log-format json as a line of the log. A stderr that is full, closed or
/// without reader loses the text and nothing else: what is told on the way never ends the work.
void WriteStderr(std::string_view text);
/// "tessera: <text>" as one line on stderr: names from files and flags may hold anything, so what
/// steers a terminal is escaped, and what is endless is cut.
void WriteError(std::string_view text);
template <typename... Args>
void Note(fmt::format_string<Args...> format, Args&&... args) {
  WriteStderr(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera::cli
