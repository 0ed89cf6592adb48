// SPDX-License-Identifier: Apache-2.0
//
// LocalLauncher: workers as processes of this machine. The launcher binds each worker's port on
// loopback before it starts it and hands the socket over, so that a port is never taken by somebody
// else in between and calls that come early wait in the socket instead of being refused.
//
// Workers outlive a gateway that was killed: they end when nobody has held the state folder's lock
// for a while (`serve --lease`), and until then the next gateway adopts them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "gateway/launch/launcher.h"
#include "gateway/launch/local/child_process.h"

namespace tessera::gateway {

struct LocalLauncherOptions {
  std::filesystem::path program;  // `tessera` itself.
  std::filesystem::path log_dir;
  std::filesystem::path lease;  // Empty: workers do not look after one.
  int drain_seconds = 60;
};

/// What a worker's log may hold; then its older half goes.
inline constexpr uint64_t kLogBytesMax = 8u << 20;
/// Logs of workers that have ended: of so many, the newest.
inline constexpr size_t kEndedLogsMax = 64;

class LocalLauncher final : public Launcher {
 public:
  /// Makes the folder of logs.
  static Result<std::unique_ptr<LocalLauncher>> Make(LocalLauncherOptions options);
  /// Leaves the workers running.
  ~LocalLauncher() override = default;

  Result<WorkerRecord> Prepare(const WorkerOrder& order) override;
  Status Run(std::string_view worker_id) override;
  bool Adopt(const WorkerRecord& record) override;
  void Drain(std::string_view worker_id) override;
  void Kill(std::string_view worker_id) override;
  std::vector<WorkerExit> TakeExits() override;
  Result<std::string> ReadLog(std::string_view worker_id, uint64_t bytes_max) const override;

 private:
  struct Worker {
    ProcessName process;
    bool is_child = false;  // Else adopted: its exit status is not ours to see.
    bool was_killed = false;
  };

  explicit LocalLauncher(LocalLauncherOptions options) : options_(std::move(options)) {}
  std::filesystem::path LogOf(std::string_view worker_id) const;
  /// Empty while it lives.
  std::string ExitReason(const std::string& id, const Worker& worker) const;
  std::string LastLine(std::string_view worker_id) const;
  void TrimLog(std::string_view worker_id) const;
  void RemoveOldLogs() const;

  const LocalLauncherOptions options_;
  std::map<std::string, HeldChild, std::less<>> prepared_;
  std::map<std::string, Worker, std::less<>> workers_;
};

}  // namespace tessera::gateway
