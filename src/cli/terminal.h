// SPDX-License-Identifier: Apache-2.0
//
// What people see on stderr: progress bars on a terminal, plain lines otherwise; sizes and
// durations in readable units. Answers and facts go to stdout and never through here.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::cli {

/// "1.4 GB" (powers of 1000, as disks and downloads count).
std::string HumanBytes(uint64_t bytes);
/// "850 ms", "12.3 s", "3 min 20 s".
std::string HumanDuration(double seconds);
bool StderrIsTerminal();
bool StdoutIsTerminal();

/// Puts /dev/null where the caller left descriptor 0, 1 or 2 closed, so that no file opened later
/// takes their number and receives their text. Reads of stdin and writes to stdout still fail:
/// an answer that nobody can get is an error; notes to stderr vanish. First call of main.
void ReserveStandardStreams();
/// Writes all that waits for stdout. kUnavailable, with the reason if the system gives one, when it
/// or anything before it was lost: a full disk, a reader that went away.
Status FlushStdout();
/// The same after writing `text`.
Status WriteStdout(std::string_view text);
/// Writes to stderr. A stderr that is full, closed or without reader loses the text and nothing
/// else: what is told on the way never ends the work.
void WriteStderr(std::string_view text);
template <typename... Args>
void Note(fmt::format_string<Args...> format, Args&&... args) {
  WriteStderr(fmt::format(format, std::forward<Args>(args)...));
}

/// A progress bar with bytes, rate and time left. On a terminal it redraws at most ten times a
/// second; elsewhere it prints nothing, and Finish() one line. Not thread-safe.
class Progress {
 public:
  explicit Progress(std::string_view title, const Clock& clock = Clock::Real());
  ~Progress();
  void Update(uint64_t done, uint64_t total);
  /// Replaces the bar by "title: 98.4 MB in 0.2 s".
  void Finish();

 private:
  std::string title_;
  const Clock& clock_;
  TimePoint begin_;
  TimePoint drawn_;
  uint64_t done_ = 0;
  bool visible_ = false;
  bool finished_ = false;
};

}  // namespace tessera::cli
