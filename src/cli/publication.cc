// SPDX-License-Identifier: Apache-2.0
#include "cli/publication.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/thread.h"

namespace tessera::cli {

Result<std::shared_ptr<Publication>> Publication::Begin(std::function<Status()> make) {
  std::shared_ptr<Publication> publication(new Publication);
  // The destructor joins: the plain pointer is valid as long as the thread runs.
  TESSERA_ASSIGN_OR_RETURN(
      publication->thread_,
      StartThread("the bundle", [self = publication.get(), run = std::move(make)]() mutable {
        self->status_ = run();
        run = {};  // What it holds ends with it, not with whoever joins.
        if (!self->status_.ok()) self->has_failed_ = true;
      }));
  return publication;
}

Publication::~Publication() {
  if (thread_.joinable()) thread_.join();
}

Status Publication::Wait() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

void Publication::GiveWay() {
  // On Linux a nice value belongs to a thread. That it stays as it was is no fault.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
}

}  // namespace tessera::cli
