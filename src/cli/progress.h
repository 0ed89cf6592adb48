// SPDX-License-Identifier: Apache-2.0
//
// How far a long stage is, on stderr: a bar with bytes, rate and time left on a terminal, a line
// now and then elsewhere (a log). Not thread-safe.
//
//   Progress progress("packing parameters");
//   progress.Update(done, total);   // as often as convenient, first with done = 0
//   progress.Finish();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tessera::cli {

/// Until the rest is done at the average rate so far; nothing where that says nothing: no total,
/// more done than that, nothing done yet, no time gone.
std::optional<double> SecondsLeft(uint64_t done, uint64_t total, double seconds);

/// What a line says; without a rate only the bytes.
struct ProgressNumbers {
  uint64_t done = 0;
  uint64_t total = 0;  // 0: unknown.
  std::optional<double> bytes_per_second = {};
  std::optional<double> seconds_left = {};
};

/// "[####....]": `share` from 0 to 1 of so many cells.
std::string ProgressBar(double share, int cells);

/// "1.2 GB of 4.7 GB, 1.1 GB/s, 3.2 s left"
std::string ProgressFigures(const ProgressNumbers& numbers);
std::string ProgressLine(std::string_view title, const ProgressNumbers& numbers, int columns);

/// "packing parameters [####....] 1.2 GB of 4.7 GB, 1.1 GB/s, 3.2 s left", in fewer than `columns`
/// characters, so that no terminal breaks the line: first the bar gives way, then the bytes, then
/// the title. total = 0: unknown. The rate is the average over `seconds`.
std::string ProgressLine(std::string_view title, uint64_t done, uint64_t total, double seconds,
                         int columns);

class Progress {
 public:
  explicit Progress(std::string_view title, const Clock& clock = Clock::Real());
  /// Removes a bar that was not finished.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws the bar at most ten times a second; without a terminal adds a line every ten seconds.
  void Update(uint64_t done, uint64_t total);
  /// Replaces the bar by "title: 98.4 MB in 90 ms (1.1 GB/s)".
  void Finish();

 private:
  std::string title_;
  const Clock& clock_;
  TimePoint begin_;
  std::optional<TimePoint> shown_;
  uint64_t done_ = 0;
  bool has_bar_ = false;  // One stands on the terminal's current line.
};

}  // namespace tessera::cli
