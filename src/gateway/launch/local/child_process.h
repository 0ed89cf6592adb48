// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: starting a program with a socket and a log, in a process group of its own, and
// naming it so that no other process can be mistaken for it. Linux. Private to local/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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

/// fork and exec. The child has no other descriptor of this process, default signals, and a group
/// of its own, so that Ctrl-C in a terminal ends the gateway, which then ends it in good order.
/// Errors of exec come back from here: kNotFound, kPermissionDenied, kResourceExhausted.
Result<ProcessName> StartChild(const ChildOptions& options);

/// Field 22 of /proc/PID/stat. kNotFound when there is no such process (a zombie is none).
Result<int64_t> StartTicks(int64_t pid);
bool IsAlive(const ProcessName& process);
/// To the process's whole group. Nothing happens if it is gone.
void SignalGroup(const ProcessName& process, int signal);

}  // namespace tessera::gateway
