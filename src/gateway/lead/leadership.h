// SPDX-License-Identifier: Apache-2.0
//
// Leadership: the thread that has a gateway lead when nobody else does, and follow until then.
//
//   follows: every kLookEvery it tries to lead, and tells who does
//   leads:   every kLookEvery it looks whether the database is still there; lost is lost, and the
//            process must end: another gateway may lead by now (as kubernetes' controllers do it)
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/status.h"
#include "gateway/lead/candidate.h"

namespace tessera::gateway {

/// Called by Start, then by the thread; one at a time.
struct LeadershipHooks {
  /// Begins to lead with this database. After kUnavailable (the old leader has not let go of the
  /// state folder yet) it is tried again; any other error is told as it is.
  std::function<Status(std::unique_ptr<Database>)> lead;
  /// Of a leader: whether its database is there.
  std::function<Status()> check;
  std::function<void(std::optional<std::string>)> follow;
  std::function<void(const Status&)> lost;
};

class Leadership {
 public:
  /// Leads or follows when it returns. Errors of the database and of `lead`.
  static Result<std::unique_ptr<Leadership>> Start(std::string url, std::string address,
                                                   LeadershipHooks hooks);
  /// No hook is called from its return on.
  ~Leadership();

 private:
  Leadership(std::string url, std::string address, LeadershipHooks hooks)
      : url_(std::move(url)), address_(std::move(address)), hooks_(std::move(hooks)) {}
  /// Leads if nobody does, else follows.
  Status Look();
  void Loop();

  const std::string url_;
  const std::string address_;
  const LeadershipHooks hooks_;
  std::unique_ptr<Candidate> candidate_;
  bool leads_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tessera::gateway
