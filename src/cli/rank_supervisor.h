// SPDX-License-Identifier: Apache-2.0
//
// `serve --tp N --rank-processes`: this process starts the ranks with mpirun, and again when one of
// them died. It keeps the listening socket, so that calls which come meanwhile wait instead of
// being refused, and hands it to rank 0. It loads no model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}

namespace tessera::cli {

struct RankProcessOptions {
  bool is_on = false;
  std::string hostfile{};        // Empty: all ranks run on this host.
  std::string mpirun_options{};  // Separated by blanks.
  int restarts = 5;              // As RestartPolicy.
};

/// Declares --rank-processes, --hostfile, --mpirun-options and --rank-restarts.
void AddRankProcessOptions(CLI::App* verb, RankProcessOptions* options);

/// The options for mpirun, one each. kInvalidArgument for those that are not for it to give, for
/// fewer than two ranks, and for a process that mpirun has started already.
Result<std::vector<std::string>> MpirunOptions(const RankProcessOptions& options, int64_t ranks);

struct SupervisorOptions {
  int ranks = 2;
  std::vector<std::string> mpirun_options{};
  std::vector<std::string> arguments{};  // Of this process, behind its name.
  int listener = -1;                     // Owned from now on.
  std::string lease{};                   // As --lease.
  int drain_seconds = 30;
  int restarts = 5;
};

/// Until the group has ended for good: kOk when that was asked for, by SIGTERM or SIGINT, which
/// drain; else what happened. A signal while no rank serves ends this process at once, as it does a
/// server that loads. SIGHUP goes on to rank 0. To be called before any other thread is made.
Status SuperviseRanks(const SupervisorOptions& options);

}  // namespace tessera::cli
