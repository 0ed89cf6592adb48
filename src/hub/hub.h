// SPDX-License-Identifier: Apache-2.0
//
// Hub: from a name to files on disk. Pull() asks the hub what the revision is now, downloads what a
// model needs and the cache lacks, verifies it, and gives the folder (or GGUF file) to open. What
// is there is used without a byte of transfer; without network, or offline, the cache alone
// answers. Blocks; belongs to one thread, which gets the events.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "hub/download.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/repository_name.h"
#include "hub/select_files.h"
#include "hub/settings.h"

namespace tessera::hub {

struct LocalModel {
  std::filesystem::path path;  // Folder or GGUF file to open.
  std::string repository;      // "org/repo", or the address without query.
  std::string revision;        // Commit, or the validator of an address; may be empty.
  std::string licence;
  struct File {
    std::filesystem::path path;  // In the snapshot.
    std::string sha256;          // Empty where only git's hash is known.
  };
  /// Those that this call downloaded: their bytes were just compared with the hash.
  std::vector<File> verified;
  uint64_t fetched = 0;  // Body bytes that this call received.
  uint64_t missing = 0;  // Bytes of disk that the download will take; for InspectFn only.
};

/// Gets what PullHeaders would give, before the first byte of a weight file is asked for but its
/// header. An error ends the pull.
using InspectFn = std::function<Status(const LocalModel& headers)>;

class Hub {
 public:
  explicit Hub(Settings settings);
  /// With another transport, for tests.
  Hub(Settings settings, HttpFactory http);

  /// Requires place kHub, kUrl or kS3. Errors as hub_api.h, select_files.h and download.h; offline
  /// kNotFound says what is missing in which cache.
  /// `inspect` is called where weights have to be downloaded and their headers can be had; headers
  /// are not verified, the download is.
  Result<LocalModel> Pull(const RepositoryName& name, const DownloadEvents& events,
                          const InspectFn& inspect = {}) const;

  /// A folder that the readers of formats/ and model/ open like the real one: small files whole,
  /// weight files of their true size with nothing but the header in them. For plan: kilobytes are
  /// fetched, once for each commit. Weights of such a folder must not be used.
  Result<LocalModel> PullHeaders(const RepositoryName& name, const DownloadEvents& events) const;

  const Settings& settings() const { return settings_; }

 private:
  struct Resolved;
  struct Chosen;
  Result<Resolved> Resolve(const RepositoryName& name, const DownloadEvents& events) const;
  Result<Chosen> Choose(const RepositoryName& name, const DownloadEvents& events) const;
  Result<LocalModel> PullRepository(const RepositoryName& name, const DownloadEvents& events,
                                    const InspectFn& inspect, std::string* vanished) const;
  Result<std::filesystem::path> HeadersOf(const Resolved& resolved, const Selection& selection,
                                          const DownloadEvents& events, LocalModel* model) const;
  Status Inspect(const Resolved& resolved, const Selection& selection, const DownloadEvents& events,
                 const InspectFn& inspect, LocalModel* model) const;
  Result<Listing> ResolvePlain(Http& http, const RepositoryName& name, Resolved* resolved) const;
  DownloadFile ToDownload(const Resolved& resolved, const RepositoryFile& file) const;
  Result<Selection> Select(const RepositoryName& name, const Resolved& resolved,
                           const DownloadEvents& events, LocalModel* model) const;
  Status Get(const Resolved& resolved, const std::vector<const RepositoryFile*>& files,
             const DownloadEvents& events, LocalModel* model) const;
  Status MakeHeaders(const Resolved& resolved, const Selection& selection,
                     const std::filesystem::path& folder, const DownloadEvents& events,
                     LocalModel* model) const;

  Settings settings_;
  HttpFactory http_;
};

}  // namespace tessera::hub
