// SPDX-License-Identifier: Apache-2.0
//
// RankMember: this process as a rank of a supervised group (rank_supervisor.h). It ends when its
// supervisor does.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "cli/rank_link.h"

#include "base/status.h"

namespace tessera::cli {

/// mpirun started this process for a supervisor, on this host or another.
bool IsSupervisedRank();

class RankMember {
 public:
  /// Comes to the supervisor; of rank 0, receives the listening socket. kFailedPrecondition: rank 0
  /// runs on another host than the supervisor, which has the port.
  static Result<RankMember> Join();

  /// Of rank 0. The caller's; once.
  std::optional<int> TakeListener();
  /// From a thread of its own: SIGTERM and SIGHUP as the supervisor asks; the end of this process
  /// with the supervisor's. Ranks of other hosts have no such thread: they end with mpirun.
  Status Watch();
  void TellReady();
  void TellLeaving();
  /// Why this process is about to end the group.
  void TellError(std::string_view why);

 private:
  std::shared_ptr<RankLink> link_;  // Null on another host. Shared with the thread.
  std::optional<int> listener_;
};

}  // namespace tessera::cli
