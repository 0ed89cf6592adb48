// SPDX-License-Identifier: Apache-2.0
//
// Drainer: drains the engine on a thread of its own, so that whoever asks need not wait.
// Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"

namespace tessera::server {

class Drainer {
 public:
  using Done = std::function<void(const Status&)>;

  /// `engine` must outlive it.
  explicit Drainer(engine::Engine* engine) : engine_(engine) {}
  /// Waits for the end of a drain that has begun.
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// See ServiceControl::StartDrain. After the end `done` hears at once.
  Status Start(Duration patience, Done done);

 private:
  void Run(Duration patience);

  engine::Engine* const engine_;
  std::mutex mutex_;
  std::vector<Done> waiting_;
  std::optional<Status> result_;
  std::thread thread_;
};

}  // namespace tessera::server
