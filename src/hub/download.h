// SPDX-License-Identifier: Apache-2.0
//
// Download: several files at once, each in ranges over several connections, until every byte is
// there and has the hash that was announced. A transfer that breaks is taken up again where it
// stopped, without limit as long as bytes arrive within Settings::patience; what was written is
// never fetched again (journal.h has the rule). A file appears under its name when it is complete,
// verified and synced. Two processes that want the same file: one downloads it, the other waits
// and finds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/http.h"
#include "hub/settings.h"

namespace tessera::hub {

struct DownloadFile {
  std::string name;  // For people.
  std::string url;
  std::string bearer;                // Empty: none.
  const AwsSettings* aws = nullptr;  // Signs the requests.
  uint64_t bytes = 0;
  /// What the bytes must hash to: one of the two, or neither where nobody announced it; then
  /// `validator` (an ETag) tells whether two requests were of the same bytes.
  std::string sha256;
  std::string git_sha1;
  std::string validator;
  std::filesystem::path target;
  std::filesystem::path lock;
  /// What a 401 or 403 of the file's own address means, and a 404 or 410 with the hub's code, as a
  /// sentence; empty: that it says so.
  std::function<Status(const HttpHead&)> explain;
};

struct DownloadProgress {
  struct File {
    std::string_view name;
    uint64_t done = 0;
    uint64_t total = 0;
  };
  std::vector<File> files;  // All that were asked for, in order; of the same bytes the first.
  uint64_t done = 0;        // Bytes there, whoever fetched them.
  uint64_t total = 0;
  uint64_t fetched = 0;  // Body bytes that this call received.
};

/// Both are called on the thread that called Download. `on_progress` about ten times a second and
/// at the end; `on_note` with a sentence now and then: a wait for another process, a retry.
struct DownloadEvents {
  std::function<void(const DownloadProgress&)> on_progress;
  std::function<void(const std::string&)> on_note;
};

struct DownloadReport {
  uint64_t fetched = 0;                // Body bytes received.
  uint64_t retries = 0;                // Transfers that were taken up again.
  std::vector<std::string> new_files;  // Names of those that this call completed.
};

/// kResourceExhausted: not enough room (asked before the first byte) or a disk that fills up; what
/// is there stays and the next call goes on. kDataLoss: other bytes than were announced.
/// kInvalidArgument: two sizes for one target. kUnavailable: nothing arrived for `patience`.
/// kPermissionDenied: the address refuses, or the folder cannot be written. kFailedPrecondition: a
/// file without announced hash changed meanwhile.
Result<DownloadReport> Download(std::span<const DownloadFile> files, const Settings& settings,
                                const HttpFactory& http, const DownloadEvents& events);

/// Whether the file stands complete under its name. A file of another size does not count.
bool IsComplete(const DownloadFile& file);

}  // namespace tessera::hub
