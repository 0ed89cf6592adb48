// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: starting a program with a socket and a log, in a process group of its own, and
// naming it so that no other process can be mistaken for it. Linux. Private to local/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tessera::gateway {

struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;    // Behind the program's name.
  std::vector<std::string> environment;  // "NAME=value", beside this process's own.
  int socket_fd = -1;                    // Becomes descriptor kChildSocket of the child.
  std::filesystem::path log;             // Output and errors are appended to it.
};
inline constexpr int kChildSocket = 3;

/// A process as long as the machine is up: pids come again, start times do not.
struct ProcessName {
  int64_t pid = 0;
  int64_t start_ticks = 0;

  bool operator==(const ProcessName&) const = default;
};

/// A process that was forked and waits to become its program: whoever made it can first write down
/// that it exists. If the object dies before Run, or this whole process does, so does the child.
class HeldChild {
 public:
  /// The child has no other descriptor of this process, default signals, and a group of its own, so
  /// that Ctrl-C in a terminal ends the gateway, which then ends it in good order.
  /// kResourceExhausted and the like: nothing was started.
  static Result<HeldChild> Make(const ChildOptions& options);
  HeldChild(HeldChild&& other) noexcept;
  HeldChild& operator=(HeldChild&&) = delete;
  ~HeldChild();

  const ProcessName& process() const { return process_; }
  /// Lets it exec. kNotFound, kPermissionDenied: it could not, and has ended. Once.
  Status Run();

 private:
  HeldChild(ProcessName process, std::filesystem::path program, int go_fd, int error_fd)
      : process_(process), program_(std::move(program)), go_fd_(go_fd), error_fd_(error_fd) {}
  void Abandon();

  ProcessName process_;
  std::filesystem::path program_;
  int go_fd_;     // A byte through it says go; its end without one says that nobody wants it.
  int error_fd_;  // What exec's failure comes through.
};

/// Field 22 of /proc/PID/stat. kNotFound when there is no such process (a zombie is none).
Result<int64_t> StartTicks(int64_t pid);
bool IsAlive(const ProcessName& process);
/// To the process's whole group. Nothing happens if it is gone.
void SignalGroup(const ProcessName& process, int signal);

}  // namespace tessera::gateway
