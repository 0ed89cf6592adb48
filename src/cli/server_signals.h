// SPDX-License-Identifier: Apache-2.0
//
// ServerSignals: the signals that a server takes, by a thread of their own: SIGTERM and SIGINT end
// it, SIGHUP makes it read its files again. Start it before any other thread: those made later
// inherit that the signals are blocked.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"

namespace tessera::cli {

class ServerSignals {
 public:
  ServerSignals();
  ~ServerSignals();
  ServerSignals(const ServerSignals&) = delete;
  ServerSignals& operator=(const ServerSignals&) = delete;

  Status Start();
  /// What SIGHUP does; called on the signals' thread, never two at a time. One that came before is
  /// answered at once, on this one. Null: nothing, from the return on.
  void OnHangup(std::function<void()> reload);
  /// Until here SIGTERM and SIGINT end the process; from now on the first one is for Wait.
  void BeginServing();
  /// The signal. A second one ends the process, although the owner is busy draining.
  int Wait();

 private:
  struct State;
  // Shared with the thread, which may be waiting when the process ends.
  const std::shared_ptr<State> state_;
};

}  // namespace tessera::cli
