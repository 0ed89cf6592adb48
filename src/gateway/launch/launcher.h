// SPDX-License-Identifier: Apache-2.0
//
// Launcher: starts and ends workers somewhere: processes of this machine (local/), pods of a
// cluster (kubernetes/). It knows nothing of endpoints and decides nothing; the controller does.
// Every launcher keeps to what stands here, which conformance.h tests. Calls come from one thread,
// the controller's, but for ReadLog, which any thread may call; but for that they return soon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// What became known of a worker after Run or Adopt.
struct WorkerNews {
  std::string worker_id;
  std::string host{};  // Where it will listen, in digits; told once, and never another.
  int64_t port = 0;    // 0: this news is not of that.
  std::string pod{};   // Together with the address.
  std::string text{};  // For people: what it waits for. May be empty.
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  // A start has two halves, so that a gateway that dies between them leaves no worker that nobody
  // knows: the record is stored after the first, and the worker runs only from the second on.

  /// The record by which Adopt finds the worker again. On an error nothing was made.
  /// kInvalidArgument: see CheckOrder.
  virtual Result<WorkerRecord> Prepare(const WorkerOrder& order) = 0;
  /// Of what Prepare made last. On an error it is gone. That it could not be started may also show
  /// later, as an exit.
  virtual Status Run(std::string_view worker_id) = 0;
  /// A worker that an earlier gateway started. False: it is gone. Who cannot tell at once says true
  /// and tells of its exit when it knows.
  virtual bool Adopt(const WorkerRecord& record) = 0;
  /// Lets open calls end, then the worker. No effect on unknown ids.
  virtual void Drain(std::string_view worker_id) = 0;
  /// At once, and for good. No effect on unknown ids.
  virtual void Kill(std::string_view worker_id) = 0;
  /// Workers that ended since the last call, each told once, when nothing is left of them but what
  /// ReadLog gives. A worker ends once: no launcher starts it again while a gateway looks on.
  virtual std::vector<WorkerExit> TakeExits() = 0;
  /// Of workers whose record has no port, and what else there is to tell.
  virtual std::vector<WorkerNews> TakeNews() { return {}; }
  /// The newest `bytes_max` bytes of what the worker printed, also for a while after its end.
  /// kNotFound, kUnavailable.
  virtual Result<std::string> ReadLog(std::string_view worker_id, uint64_t bytes_max) const = 0;
};

/// 1 to kWorkerIdBytesMax of A-Z a-z 0-9 _: it becomes the name of files and objects.
bool IsWorkerId(std::string_view id);
inline constexpr size_t kWorkerIdBytesMax = 40;
/// What every launcher refuses: an id that is none, arguments with a zero byte, which no program
/// can be given, or that are not UTF-8. Anything else, as in the endpoint's name, is only carried.
Status CheckOrder(const WorkerOrder& order);

}  // namespace tessera::gateway
