// SPDX-License-Identifier: Apache-2.0
//
// What people see on stderr: progress bars on a terminal, plain lines otherwise; sizes and
// durations in readable units. Answers and facts go to stdout and never through here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tessera::cli {

/// "1.4 GB" (powers of 1000, as disks and downloads count).
std::string HumanBytes(uint64_t bytes);
/// "850 ms", "12.3 s", "3 min 20 s".
std::string HumanDuration(double seconds);
bool StderrIsTerminal();
bool StdoutIsTerminal();

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
