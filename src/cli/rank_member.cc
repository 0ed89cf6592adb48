// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_member.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "cli/environment.h"
#include "cli/rank_group.h"

#include "base/draft.h"
#include "base/thread.h"

namespace tessera::cli {
namespace {

constexpr int kListenerPatienceMs = 30'000;  // The supervisor has nothing else to do.

void Obey(RankLink* link) {
  while (true) {
    const auto received = link->Receive(/*waits=*/true);
    if (!received.has_value() || !received->has_value()) break;
    if ((*received)->word == RankWord::kDrain) kill(getpid(), SIGTERM);
    if ((*received)->word == RankWord::kReload) kill(getpid(), SIGHUP);
  }
  RemoveOwnDrafts();
  _exit(1);
}

Result<int> AwaitListener(RankLink* link) {
  pollfd waits = {link->fd(), POLLIN, 0};
  if (poll(&waits, 1, kListenerPatienceMs) == 1) {
    const auto received = link->Receive(/*waits=*/false);
    if (received.has_value() && received->has_value() && (*received)->fd >= 0)
      return (*received)->fd;
  }
  return Fail(Unavailable("the supervisor of the rank group gave no listening socket"));
}

}  // namespace

bool IsSupervisedRank() {
  return JobSize() > 1 && Environment(kRankGroupVariable).has_value();
}

Result<RankMember> RankMember::Join() {
  RankMember member;
  auto link = RankLink::Connect(Environment(kRankGroupVariable).value_or(""));
  if (!link.has_value()) {
    if (JobRank() > 0) return member;
    return Fail(FailedPrecondition(link.error().message() +
                                   "; rank 0 listens there: put this host first in --hostfile"));
  }
  member.link_ = std::make_shared<RankLink>(*std::move(link));
  TESSERA_RETURN_IF_ERROR(member.link_->Send(RankWord::kHello, std::to_string(JobRank())));
  if (JobRank() > 0) return member;
  TESSERA_ASSIGN_OR_RETURN(member.listener_, AwaitListener(member.link_.get()));
  return member;
}

std::optional<int> RankMember::TakeListener() {
  return std::exchange(listener_, std::nullopt);
}

Status RankMember::Watch() {
  if (link_ == nullptr) return {};
  TESSERA_ASSIGN_OR_RETURN(auto thread,
                           StartThread("rank link", [link = link_] { Obey(link.get()); }));
  thread.detach();
  return {};
}

void RankMember::TellReady() {
  if (link_ != nullptr) (void)link_->Send(RankWord::kReady);
}

void RankMember::TellLeaving() {
  if (link_ != nullptr) (void)link_->Send(RankWord::kLeaving);
}

void RankMember::TellError(std::string_view why) {
  if (link_ != nullptr) (void)link_->Send(RankWord::kError, why);
}

}  // namespace tessera::cli
