// SPDX-License-Identifier: Apache-2.0
//
// Flags and environment of the hub, the same for every verb that takes a MODEL by name, and what is
// shown while something is downloaded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "hub/download.h"
#include "hub/settings.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// What every display of a download says: terminal, JSON lines and metrics.
struct DownloadFigures {
  const hub::DownloadProgress& progress;
  uint64_t fetched = 0;         // Body bytes that this process received, also for earlier files.
  double bytes_per_second = 0;  // On average, of what was not there at the beginning.
  std::optional<double> seconds_left;  // At that rate.
};

struct HubOptions {
  std::string hf_cache_dir;       // Empty: $HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub.
  std::string revision;           // Empty: what the name says, else "main".
  bool offline = false;           // Or $HF_HUB_OFFLINE.
  std::string progress = "auto";  // "auto": bars or lines; "json"; "none".
  /// Gets what is shown, too; may be empty. On the thread that downloads.
  std::function<void(const DownloadFigures&)> on_download;
};

/// Declares --hf-cache-dir, --revision and --offline.
void AddHubOptions(CLI::App* verb, HubOptions* options);

/// Reads the environment (docs/hub.md lists the variables). `cache` is our own cache folder, for
/// what is no repository of the hub. kFailedPrecondition without a home folder; kInvalidArgument
/// names a variable whose value cannot be used, never a secret.
Result<hub::Settings> HubSettings(const HubOptions& options, const std::string& cache_dir);

/// Shows a download on stderr; the bars and the JSON lines have the same numbers.
class PullDisplay {
 public:
  explicit PullDisplay(const HubOptions& options);
  ~PullDisplay();
  PullDisplay(const PullDisplay&) = delete;
  PullDisplay& operator=(const PullDisplay&) = delete;

  /// Valid as long as this object.
  hub::DownloadEvents Events();
  /// Ends the bar; call it when the download is over.
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::cli
