// SPDX-License-Identifier: Apache-2.0
//
// DownloadBars: a download on stderr: on a terminal a line for each of the files that are on their
// way and one for all of them, redrawn in place; elsewhere (a log) a line now and then. The numbers
// are those of `--progress json` and of the metrics page. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/hub_options.h"

#include "base/clock.h"

namespace tessera::cli {

/// One line for each file that has begun and is not complete, at most `most_files` of them (those
/// with most to come), then one for all; each shorter than `columns`. Pure.
std::vector<std::string> DownloadLines(const DownloadFigures& figures, int columns,
                                       size_t most_files);

class DownloadBars {
 public:
  explicit DownloadBars(const Clock& clock = Clock::Real()) : clock_(clock), begin_(clock.Now()) {}
  ~DownloadBars();  // Removes lines that were not finished.
  DownloadBars(const DownloadBars&) = delete;
  DownloadBars& operator=(const DownloadBars&) = delete;

  /// Redraws at most ten times a second; without a terminal adds a line every ten seconds.
  void Show(const DownloadFigures& figures);
  /// Replaces the lines by "downloading X and 5 more: 98.4 MB in 90 ms (1.1 GB/s)".
  void Finish();

 private:
  void Erase();

  const Clock& clock_;
  TimePoint begin_;
  std::optional<TimePoint> shown_;
  size_t lines_ = 0;  // That stand on the terminal; the cursor is at the end of the last.
  std::string title_;
  uint64_t first_done_ = 0;
  uint64_t done_ = 0;
};

}  // namespace tessera::cli
