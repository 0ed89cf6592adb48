// SPDX-License-Identifier: Apache-2.0
#include "server/operate/drainer.h"

#include <utility>

#include "base/thread.h"

namespace tessera::server {

Drainer::~Drainer() {
  if (thread_.joinable()) thread_.join();
}

Status Drainer::Start(Duration patience, Done done) {
  std::unique_lock lock(mutex_);
  if (result_.has_value()) {
    const Status result = *result_;
    lock.unlock();
    done(result);
    return {};
  }
  if (!thread_.joinable()) {
    TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("draining", [this, patience] { Run(patience); }));
  }
  waiting_.push_back(std::move(done));
  return {};
}

void Drainer::Run(Duration patience) {
  const Status result = engine_->Drain(patience);
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    result_ = result;
    waiting = std::move(waiting_);
  }
  for (const Done& done : waiting) done(result);
}

}  // namespace tessera::server
