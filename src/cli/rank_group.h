// SPDX-License-Identifier: Apache-2.0
//
// RankGroup: one life of a group of rank processes: `mpirun -n N tessera serve ...`, and a link to
// each rank of this host. When one rank or mpirun ends, so do all, within seconds. Nothing of it
// outlives this process, however that ends: ranks end with their link, mpirun gets SIGTERM from the
// kernel. One thread, which must be the process's main one (PR_SET_PDEATHSIG counts threads).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/rank_link.h"

#include "base/clock.h"
#include "base/status.h"

namespace tessera::cli {

/// The variable by which a rank knows its group; the value is the name of the supervisor's door.
inline constexpr char kRankGroupVariable[] = "TESSERA_RANK_GROUP";

struct RankGroupOptions {
  int ranks = 2;
  std::vector<std::string> mpirun_options{};  // Beside what this file adds.
  std::vector<std::string> command{};         // What a rank runs: program and arguments.
  int listener = -1;                          // For rank 0. Borrowed.
};

class RankGroup {
 public:
  /// kNotFound: there is no mpirun. Others: as of starting a process.
  static Result<std::unique_ptr<RankGroup>> Start(const RankGroupOptions& options);
  /// Kills what is left.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  /// What to poll before the next Look. `until`, if any: look then in any case.
  void AddWaits(std::vector<pollfd>* fds, std::optional<TimePoint>* until) const;
  /// Takes note of all that has happened; never waits.
  void Look(TimePoint now);

  bool is_ready() const { return is_ready_; }
  bool has_ended() const;
  /// Of one that ended: status 0, a drain or a signal to rank 0.
  bool ended_well() const { return has_ended() && mpirun_status_ == 0; }
  /// Of one that ended: by a signal.
  bool was_crash() const;
  /// Which rank ended first and how: "rank 1 (process 4711) was ended by signal 9".
  std::string Why() const;

  /// Says so to rank 0, if it is there.
  void Tell(RankWord word);
  /// Ends all, in good order at first.
  void End(TimePoint now);

 private:
  struct Rank {
    RankLink link;
    pid_t pid = 0;
    int number = -1;  // -1: it has not said yet.
  };
  struct Gone {
    int number = -1;
    pid_t pid = 0;
  };

  RankGroup(RankDoor door, int ranks) : door_(std::move(door)), ranks_(ranks) {}
  Status StartMpirun(const RankGroupOptions& options);
  void LookAtRank(Rank* rank, bool* has_ended);
  void LookAtMpirun();
  void KillAll();

  RankDoor door_;
  const int ranks_;
  int listener_ = -1;
  pid_t mpirun_ = 0;                  // 0: it has ended.
  int mpirun_status_ = 0;             // As of waitpid.
  std::vector<Rank> links_;           // Ranks of this host that live.
  int here_ = 0;                      // Ranks of this host that ever came.
  std::optional<Gone> first_gone_{};  // Before anybody was asked to end.
  std::string error_;                 // What a rank said first.
  bool is_ready_ = false;
  bool is_ending_ = false;              // It was told to.
  bool is_leaving_ = false;             // In good order, before anybody was gone.
  std::optional<TimePoint> cut_at_{};   // Somebody is gone: the other ranks are ended then,
  std::optional<TimePoint> ask_at_{};   // all that is left is asked to end then,
  std::optional<TimePoint> kill_at_{};  // and killed then.
};

}  // namespace tessera::cli
