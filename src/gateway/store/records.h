// SPDX-License-Identifier: Apache-2.0
//
// What the store keeps. Plain values. Times are Unix seconds, UTC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/spec/endpoint_spec.h"

namespace tessera::gateway {

struct EndpointRecord {
  std::string id;     // "end_" and a sortable number, see MakeId.
  std::string owner;  // The user who created it.
  EndpointSpec spec{};
  int64_t revision = 1;      // Counts accepted changes.
  int64_t generation = 1;    // Counts those that need new workers.
  bool is_deleting = false;  // Its workers are drained, then it vanishes.
  std::vector<std::string> warnings{};
  int64_t created_at = 0;
  int64_t updated_at = 0;

  bool operator==(const EndpointRecord&) const = default;
};

/// A worker that was started and not yet seen to have ended: what a gateway that comes back needs
/// to find it again.
struct WorkerRecord {
  std::string id;  // "wrk_...".
  std::string endpoint_id;
  int64_t generation = 1;
  int64_t pid = 0;
  /// Of /proc/PID/stat: with the pid it names one process for as long as the machine is up.
  int64_t start_ticks = 0;
  int64_t port = 0;  // 0: not known yet, see Launcher::TakeNews.
  std::string key;   // What the worker asks for; secret.
  int64_t started_at = 0;
  // Not stored: a launcher that adopts the worker tells them again.
  std::string host = "127.0.0.1";  // In digits.
  std::string pod{};               // Of a cluster.

  bool operator==(const WorkerRecord&) const = default;
};

/// One thing that happened, for GET .../events and the audit.
struct EventRecord {
  int64_t sequence = 0;  // Grows; given by the store.
  std::string endpoint_id;
  int64_t at = 0;
  std::string kind;   // "created", "updated", "worker_ready", "failed", ...
  std::string text;   // One sentence.
  std::string actor;  // The user; empty: the gateway itself.

  bool operator==(const EventRecord&) const = default;
};

/// An uploaded file; its bytes lie beside the database, named by `id`.
struct FileRecord {
  std::string id;  // "file-...".
  std::string owner;
  std::string filename;
  int64_t bytes = 0;
  std::string sha256;
  int64_t created_at = 0;
  std::string purpose{};  // A word of the caller's: "batch", "fine-tune"; may be empty.

  bool operator==(const FileRecord&) const = default;
};

/// `prefix` and 26 characters of Crockford's base 32 (the ULID form): 48 bits of milliseconds and
/// 80 random ones, so that later ones sort behind earlier ones.
std::string MakeId(std::string_view prefix, int64_t unix_milliseconds, uint64_t random_high,
                   uint64_t random_low);
/// The same of the system's clock and randomness.
std::string NewId(std::string_view prefix);

}  // namespace tessera::gateway
