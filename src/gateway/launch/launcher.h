// SPDX-License-Identifier: Apache-2.0
//
// Launcher: starts and ends workers somewhere: processes of this machine (local/), pods of a
// cluster. It knows nothing of endpoints and decides nothing; the controller does. Every launcher
// keeps to what stands here. Calls come from one thread, the controller's, and return soon.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "gateway/store/records.h"

namespace tessera::gateway {

/// What a worker runs: `tessera serve` with these arguments behind the verb.
struct WorkerOrder {
  std::string worker_id;
  std::string endpoint_id;
  std::string endpoint_name;
  int64_t generation = 1;
  std::string key;  // The worker asks callers for it; never among the arguments.
  std::vector<std::string> arguments{};
  uint64_t memory_bytes_max = 0;  // Beyond it the system ends the worker; 0: no limit.
};

struct WorkerExit {
  std::string worker_id;
  std::string reason;  // "exit status 1: <its last line>", "killed by signal 9".
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  // A start has two halves, so that a gateway that dies between them leaves no worker that nobody
  // knows: the record is stored after the first, and the worker runs only from the second on.

  /// The record by which Adopt finds the worker again. On an error nothing was made.
  virtual Result<WorkerRecord> Prepare(const WorkerOrder& order) = 0;
  /// Of what Prepare made last. On an error it is gone.
  virtual Status Run(std::string_view worker_id) = 0;
  /// A worker that an earlier gateway started. False: it is gone.
  virtual bool Adopt(const WorkerRecord& record) = 0;
  /// Lets open calls end, then the worker. No effect on unknown ids.
  virtual void Drain(std::string_view worker_id) = 0;
  virtual void Kill(std::string_view worker_id) = 0;
  /// Workers that ended since the last call, each told once.
  virtual std::vector<WorkerExit> TakeExits() = 0;
  /// The newest `bytes_max` bytes of what the worker printed. kNotFound.
  virtual Result<std::string> ReadLog(std::string_view worker_id, uint64_t bytes_max) const = 0;
};

}  // namespace tessera::gateway
