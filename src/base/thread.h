// SPDX-License-Identifier: Apache-2.0
//
// StartThread: the one way to make a thread. std::thread throws where the system gives none (the
// user's process limit, a cgroup's pids.max, no memory for the stack), and nothing here throws.
#pragma once

#include <fmt/format.h>
#include <pthread.h>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"

namespace tessera {

/// Runs `function` on a new thread. `what` names it in the error and, its first 15 characters, for
/// top and debuggers: "the engine". kResourceExhausted when the system gives no thread; `function`
/// is then destroyed without having run.
template <typename Function>
Result<std::thread> StartThread(std::string_view what, Function&& function) {
  try {
    return std::thread(
        [name = std::string(what.substr(0, 15)), run = std::forward<Function>(function)]() mutable {
          (void)::pthread_setname_np(::pthread_self(), name.c_str());
          run();
        });
  } catch (const std::system_error& error) {
    return Fail(ResourceExhausted(
        fmt::format("the system gives no thread for {}: {}; raise the limit of processes (ulimit "
                    "-u, pids.max) or use fewer threads",
                    what, error.code().message())));
  }
}

}  // namespace tessera
