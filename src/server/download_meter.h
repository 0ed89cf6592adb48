// SPDX-License-Identifier: Apache-2.0
//
// DownloadMeter: how far a download is, for the metrics page, also while the model is not there
// yet. Whoever downloads sets it; thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server {

struct DownloadFigures {
  struct File {
    std::string name;
    uint64_t done = 0;
    uint64_t total = 0;
  };
  std::vector<File> files;
  uint64_t done = 0;  // Bytes there, whoever fetched them.
  uint64_t total = 0;
  uint64_t fetched = 0;  // Body bytes that this process received.
  double bytes_per_second = 0;
  std::optional<double> seconds_left;  // Nothing where that is not known.
};

class DownloadMeter {
 public:
  void Set(DownloadFigures figures) {
    const std::lock_guard lock(mutex_);
    figures_ = std::move(figures);
  }
  /// Nothing as long as nothing was downloaded.
  std::optional<DownloadFigures> Read() const {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<DownloadFigures> figures_;
};

}  // namespace tessera::server
